"""New nodes and constants in a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir


def constant(graph: ir.Graph, name: str, values: np.ndarray) -> ir.Value:
    """A constant of a graph; one of that name is taken for the same."""
    if name not in graph.initializers:
        tensor = ir.tensor(values, name=name)
        value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(values.shape), const_value=tensor)
        graph.register_initializer(value)
    return graph.initializers[name]


class Nodes:
    """New nodes where another stands."""

    def __init__(self, node: ir.Node) -> None:
        self.node, self.count = node, 0

    def __call__(
        self, kind: str, inputs: Sequence[ir.Value | None], outputs: int = 1, domain: str = "", **attributes: Any
    ) -> Any:
        self.count += 1
        name = f"{self.node.name}/{self.count}"
        made = ir.node(kind, inputs, attributes, domain=domain, num_outputs=outputs, name=name)
        assert self.node.graph is not None
        self.node.graph.insert_before(self.node, made)
        return made.outputs[0] if outputs == 1 else made.outputs

    def replace(self, kind: str, inputs: Sequence[ir.Value | None], **attributes: Any) -> None:
        """The last of them takes the old one's place."""
        made = self(kind, inputs, **attributes)
        old = self.node.outputs[0]
        made.name, made.type, made.shape = old.name, old.type, old.shape
        ir.convenience.replace_all_uses_with(old, made, replace_graph_outputs=True)
        assert self.node.graph is not None
        self.node.graph.remove(self.node, safe=True)
