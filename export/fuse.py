"""The same graphs in fewer nodes, or in faster ones: at batch 1, much of a node's time does not depend on its size."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import CommonSubexpressionEliminationPass, RemoveUnusedNodesPass
from onnxscript.rewriter import RewriteRule, RewriteRuleSet

from lite_nmt.export.nodes import Nodes, constant

ORT = "com.microsoft"  # ONNX Runtime's own operators


def simplify(model: ir.Model) -> None:
    """In ONNX's own operators: what is said twice once, and the layer norms of whole sentences as instance norms."""
    _normalize_sentences(model.graph)
    CommonSubexpressionEliminationPass()(model)


def _normalize_sentences(graph: ir.Graph) -> None:
    """A layer norm of B S C is an instance norm whose channels are the S steps, and then C's scales and biases.

    ONNX Runtime sums a layer norm's row one number after another, and an instance norm's many at once.
    """
    ones: ir.Value | None = None
    for node in list(graph):
        x = node.inputs[0] if node.op_type == "LayerNormalization" else None
        if x is None or x.shape is None or len(x.shape) != 3:
            continue
        new = Nodes(node)
        if ones is None:
            steps = new("Shape", [x], start=1, end=2)
            filled = [constant(graph, f"norm.{i}", np.array(i, np.float32)) for i in (1, 0)]
            ones, zeros = (new("Expand", [value, steps]) for value in filled)
        same = new("InstanceNormalization", [x, ones, zeros], epsilon=node.attributes["epsilon"].value)
        new.replace("Add", [new("Mul", [same, node.inputs[1]]), node.inputs[2]])


def hoist(body: ir.Graph, graph: ir.Graph) -> None:
    """Out of a loop's body, to the end of the graph around it, goes what is the same each time."""
    changing = set(body.inputs)
    for node in list(body):
        constants = [value for value in node.inputs if value is not None and value.const_value is not None]
        if len(constants) == len(node.inputs) or not changing.isdisjoint(node.inputs):
            changing.update(node.outputs)
            continue
        for value in constants:
            if body.initializers.pop(str(value.name), None) is not None:
                value.name = f"hoisted.{value.name}"
                graph.register_initializer(value)
        body.remove(node)
        graph.append(node)


def attention(model: ir.Model) -> None:
    """In ONNX Runtime's operators: the encoder's attention over the whole sentence, and the decoder's to the source."""
    model.opset_imports[ORT] = 1
    # What a pattern's nodes give to others as well stays.
    rules = [RewriteRule(a, b, remove_nodes=False) for a, b in ((_self, _one_self), (_cross, _one_cross))]
    RewriteRuleSet(rules).apply_to_model(model)
    RemoveUnusedNodesPass()(model)
    CommonSubexpressionEliminationPass()(model)


def _attend(op: Any, q: Any, key: Any, value: Any, root: Any, keep: Any, axes: Any, nothing: Any) -> Any:
    """``lite_nmt.ops.attend``; q, B H T R, value, B H S R, and key, B H R S."""
    hidden = op.Not(op.Unsqueeze(keep, axes))
    weights = op.Softmax(op.Where(hidden, nothing, op.MatMul(op.Mul(q, root), key)), axis=-1)
    return op.Transpose(op.MatMul(weights, value), perm=[0, 2, 1, 3])


def _self(
    op: Any, x: Any, weight: Any, bias: Any, split: Any, merged: Any, root: Any, keep: Any, axes: Any, nothing: Any
) -> Any:
    q, k, v = op.Split(op.Add(op.MatMul(x, weight), bias), axis=2, num_outputs=3, _outputs=3)
    q = op.Transpose(op.Reshape(q, split, _outputs=["heads"]), perm=[0, 2, 1, 3])
    key = op.Transpose(op.Reshape(k, split), perm=[0, 2, 3, 1])
    value = op.Transpose(op.Reshape(v, split), perm=[0, 2, 1, 3])
    return op.Reshape(_attend(op, q, key, value, root, keep, axes, nothing), merged)


def _one_self(op: Any, x: Any, weight: Any, bias: Any, heads: Any, keep: Any, **_: Any) -> Any:
    mask = op.Cast(keep, to=ir.DataType.INT32)
    return op.Attention(x, weight, bias, mask, num_heads=heads.shape[2], _domain=ORT)


def _cross(
    op: Any, x: Any, split: Any, merged: Any, key: Any, value: Any, root: Any, keep: Any, axes: Any, nothing: Any
) -> Any:
    q = op.Transpose(op.Reshape(x, split, _outputs=["heads"]), perm=[0, 2, 1, 3])
    key = op.Transpose(key, perm=[0, 1, 3, 2])
    return op.Reshape(_attend(op, q, key, value, root, keep, axes, nothing), merged)


def _one_cross(op: Any, heads: Any, merged: Any, key: Any, value: Any, keep: Any, **_: Any) -> Any:
    mask = op.Cast(keep, to=ir.DataType.INT32)
    q = op.Reshape(heads, op.Constant(value_ints=[0, 0, -1]))
    found = op.MultiHeadAttention(q, key, value, None, mask, num_heads=heads.shape[2], _domain=ORT)
    return op.Reshape(found, merged)
