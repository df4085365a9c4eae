"""Whole searches, joined from their traced parts: a step becomes the body of a Loop, or a graph of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import NameFixPass

from lite_nmt.export import fuse
from lite_nmt.export.nodes import constant


@dataclass(frozen=True)
class Start:
    """A search before its first step.

    Attributes:
        model: its inputs but the source have defaults, so that a caller who is content with them gives the source
            alone; it has no outputs yet.
        known: every value that a step reads, by the name of the step's input.
        first: of those the ones that steps change, in the step's order.
    """

    model: ir.Model
    known: dict[str, ir.Value]
    first: list[ir.Value]


def prepare(encoder: ir.Model, before: Sequence[ir.Model], step: ir.Model, defaults: Mapping[str, float]) -> Start:
    """Encode, begin, choose the shortlist where there is one.

    Args:
        encoder: becomes the search.
        before: what ``step`` starts from, and what chooses the shortlist; they are used up.
        defaults: of the search's inputs, in the graph's order.
    """
    graph = encoder.graph
    known = {str(value.name): value for value in (*graph.inputs, *graph.outputs)}
    graph.outputs.clear()
    for name, default in defaults.items():
        kind = np.float32 if name == "length_penalty" else np.int64
        known[name] = constant(graph, name, np.array(default, kind))
        graph.inputs.append(known[name])
    if "beam" in known:
        zero, one = (constant(graph, f"begin.{i}", np.array(i, np.int64)) for i in (0, 1))
        known["slots"] = _node(graph, "Range", [zero, known["beam"], one])[0]
    begin, *choose = before
    known["limits"], known["places"], *first = _inline(graph, begin.graph, known, "begin")
    for part in choose:
        names = [str(value.name) for value in part.graph.outputs]
        known |= zip(names, _inline(graph, part.graph, known, "chosen"), strict=True)
    encoder.opset_imports.update(step.opset_imports)
    known |= zip((str(value.name) for value in step.graph.inputs[1:]), first, strict=False)
    return Start(encoder, known, first)


def begin(start: Start, step: ir.Model) -> ir.Model:
    """A search up to its first step, for callers who take the steps themselves.

    Its outputs are the step's inputs, by name, but for those that the caller has. Its inputs have no defaults: from
    Java ONNX Runtime takes no other value for an input that has one.
    """
    graph = start.model.graph
    for value in graph.inputs:
        if graph.initializers.pop(str(value.name), None):
            value.const_value = None
    for name in [str(value.name) for value in step.graph.inputs[1:]]:
        known = start.known.get(name)
        if known is not None and known not in graph.inputs:
            output = _node(graph, "Identity", [known])[0]
            output.type, output.shape = known.type, known.shape
            known.name, output.name = f"before.{name}", name
            graph.outputs.append(output)
    NameFixPass()(start.model)
    return start.model


def advance(step: ir.Model) -> ir.Model:
    """One step of a search: whether it goes on, and ``next.NAME`` of each input that it changes."""
    graph = step.graph
    going, *values = graph.outputs
    going.name = "going_on"
    for before, after in zip(graph.inputs[1 : 1 + len(values)], values, strict=True):
        after.name = f"next.{before.name}"
    NameFixPass()(step)
    return step


def whole(start: Start, step: ir.Model, end: ir.Model | None = None) -> ir.Model:
    """One graph from source to target: the start, then the step until it says that nothing goes on."""
    encoder, known, first = start.model, start.known, start.first
    graph, limits = encoder.graph, known["limits"]
    # Position and what changes are the body's own; all else it sees in the graph around it.
    body = step.graph
    position, *inputs = list(body.inputs)
    carried = inputs[: len(first)]
    ir.convenience.replace_all_uses_with(inputs[len(first) :], [known[str(v.name)] for v in inputs[len(first) :]])
    going = ir.Value(name="going_on", type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([]))
    body.inputs.clear()
    body.inputs.extend([position, going, *carried])
    for value in (*carried, *body.outputs):
        value.shape = None  # what is said grows, and so does what is remembered
    for name, value in list(body.initializers.items()):
        if name in graph.initializers and name.startswith("model."):
            value.replace_all_uses_with(graph.initializers[name])
            del body.initializers[name]

    fuse.hoist(body, graph)
    one = constant(graph, "limits.one", np.array(1, np.int64))
    most = _node(graph, "Add", [_node(graph, "ReduceMax", [limits], keepdims=0)[0], one])[0]
    yes = constant(graph, "going", np.array(True))
    *found, last = _node(graph, "Loop", [most, yes, *first], outputs=len(body.outputs) - 1, body=body)
    if end is None:
        _, _, _, _, target, logprob, score = [*found, last][:7]
    else:
        known |= {"tokens": found[-1], "logprobs": last}
        target, score, logprob = _inline(graph, end.graph, known, "end")
    for name, value, kind in (("target", target, "INT64"), ("score", score, "FLOAT"), ("logprob", logprob, "FLOAT")):
        output = _node(graph, "Identity", [value])[0]
        output.name, output.type = name, ir.TensorType(ir.DataType[kind])
        output.shape = ir.Shape(["batch", "beam", "length"][: 3 if name == "target" else 2])
        graph.outputs.append(output)
    NameFixPass()(encoder)
    return encoder


def _node(
    graph: ir.Graph, kind: str, inputs: Sequence[ir.Value], outputs: int = 1, **attributes: Any
) -> Sequence[ir.Value]:
    node = ir.node(kind, inputs, attributes, num_outputs=outputs)
    graph.append(node)
    return node.outputs


def _inline(graph: ir.Graph, part: ir.Graph, known: Mapping[str, ir.Value], prefix: str) -> list[ir.Value]:
    """Put another graph's nodes at the end of this one; inputs are found by name, and so are weights.

    Returns:
        What were its outputs.
    """
    ir.convenience.replace_all_uses_with(part.inputs, [known[str(v.name)] for v in part.inputs])
    outputs = list(part.outputs)
    part.outputs.clear()
    for name, value in list(part.initializers.items()):
        del part.initializers[name]
        if name in graph.initializers and name.startswith("model."):
            value.replace_all_uses_with(graph.initializers[name])
            continue
        value.name = f"{prefix}.{name}"
        graph.register_initializer(value)
    nodes = list(part)
    part.remove(nodes)
    graph.extend(nodes)
    return outputs
