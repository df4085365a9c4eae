"""Smaller weights in a graph: int8, or the codes of a codebook.

A weight is what a matrix product or a table of embeddings reads. LightConv's taps, biases and norms stay float32.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from lite_nmt.compress.int8 import quantize_rows
from lite_nmt.errors import LiteNmtError
from lite_nmt.export import fuse
from lite_nmt.export.nodes import Nodes, constant

SMALLEST = 512  # weights; a smaller tensor is not worth a node


def to_int8(model: ir.Model) -> None:
    """Give every product int8 weights, signed and with a scale for each output channel, and inputs that are
    quantised as they come (ONNX's DynamicQuantizeLinear, uint8); and tables a scale for each row.

    Attention is ONNX Runtime's own operator; the other nodes are ONNX's, in the order in which ONNX Runtime fuses them
    into one. A table that is also the output projection is stored once.
    """
    fuse.attention(model)
    graph = model.graph
    stored: dict[str, tuple[ir.Value, ir.Value]] = {}

    def rows(weight: ir.Value, transposed: bool) -> tuple[ir.Value, ir.Value]:
        """Codes and scales; of a weight that is stored input first, its columns are the channels."""
        key = str(weight.name)
        if key not in stored:
            values = numpy(weight)
            codes, scales = quantize_rows(values.T if transposed else values)
            codes = np.ascontiguousarray(codes.T if transposed else codes)
            stored[key] = constant(graph, f"{key}.int8", codes), constant(graph, f"{key}.scale", scales)
        return stored[key]

    for node in list(graph):
        turned = _turned(node)
        weight = turned or _weight(node)
        if weight is None:
            continue
        new = Nodes(node)
        if node.op_type == "Gather":
            codes, scales = rows(weight, transposed=False)
            scales = new("Unsqueeze", [scales, constant(graph, "last", np.array([-1]))])
            found = new("Cast", [new("Gather", [codes, node.inputs[1]])], to=ir.DataType.FLOAT)
            new.replace("Mul", [found, new("Gather", [scales, node.inputs[1]])])
            continue
        if node.op_type == "Attention":
            codes, scales = rows(weight, transposed=True)
            x, scale, zero = new("DynamicQuantizeLinear", [node.inputs[0]], outputs=3)
            centre = constant(graph, "centre", np.array(0, np.int8))
            inputs = [x, codes, node.inputs[2], scale, scales, node.inputs[3], zero, centre]
            new.replace("QAttention", inputs, domain=fuse.ORT, num_heads=node.attributes["num_heads"].value)
            continue
        transposed = turned is None and (node.op_type == "MatMul" or not node.attributes.get_int("transB", 0))
        codes, scales = rows(weight, transposed)
        if not transposed:
            codes = new("Transpose", [codes], perm=[1, 0])
        x, scale, zero = new("DynamicQuantizeLinear", [node.inputs[0]], outputs=3)
        product = new("Cast", [new("MatMulInteger", [x, codes, zero])], to=ir.DataType.FLOAT)
        scale = new("Mul", [scale, scales])
        bias = node.inputs[2] if len(node.inputs) > 2 else None
        if bias is None:
            new.replace("Mul", [product, scale])
        else:
            new.replace("Add", [new("Mul", [product, scale]), bias])


def to_codes(model: ir.Model) -> None:
    """Store each weight of a compressed model as its codebook and codes, from which the graph makes it again, exactly.

    Four bits a code where a tensor has at most 16 values, else eight. An engine that folds constants does the work
    once, when it loads.

    Raises:
        LiteNmtError: a tensor has more than 256 values.
    """
    graph = model.graph
    for node in list(graph):
        weight = _weight(node)
        if weight is None:
            continue
        values = numpy(weight)
        book, found = codebook(str(weight.name), values)
        new = Nodes(node)
        codes: NDArray[np.uint8] = found.reshape(-1).astype(np.uint8)
        if len(book) <= 16:
            even: NDArray[np.uint8] = np.append(codes, np.zeros(len(codes) % 2, np.uint8)).reshape(-1, 2)
            packed = constant(graph, f"{weight.name}.codes", even[:, :1] | even[:, 1:] << 4)
            sixteen = constant(graph, "sixteen", np.array(16, np.uint8))
            halves = [new("Mod", [packed, sixteen]), new("Div", [packed, sixteen])]
            flat = new("Reshape", [new("Concat", halves, axis=1), constant(graph, "flat", np.array([-1]))])
            ends = [constant(graph, f"{name}.{i}", np.array([i])) for name, i in (("from", 0), ("to", values.size))]
            index = new("Slice", [flat, *ends])
        else:
            index = constant(graph, f"{weight.name}.codes", codes)
        book_ = constant(graph, f"{weight.name}.book", book)
        shape = constant(graph, f"shape.{values.shape}", np.array(values.shape))
        made = new("Reshape", [new("Gather", [book_, new("Cast", [index], to=ir.DataType.INT32)]), shape])
        weight.replace_all_uses_with(made)


def codebook(name: str, values: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """A tensor's different values, and which of them each is.

    Raises:
        LiteNmtError: there are more than 256.
    """
    book, codes = np.unique(values, return_inverse=True)
    if len(book) > 256:
        raise LiteNmtError(
            f"{name} has {len(book):,} different values, and kmeans stores at most 256; it is for checkpoints that "
            "lite-nmt compress has given codebooks (without --int8), for others choose another precision."
        )
    return book, codes


CONVERSIONS: dict[str, Callable[[ir.Model], None]] = {
    "fp32": lambda model: None,
    "int8": to_int8,
    "kmeans": to_codes,
}


def _turned(node: ir.Node) -> ir.Value | None:
    """The constant matrix that a node multiplies by transposed: the exporter leaves a table's transposition to a node
    where the table is looked up too."""
    before = node.inputs[1].producer() if node.op_type == "MatMul" and node.inputs[1] is not None else None
    if before is None or before.op_type != "Transpose" or (value := before.inputs[0]) is None:
        return None
    return value if _is_matrix(value) else None


def _is_matrix(value: ir.Value) -> bool:
    """Whether it is a constant worth the trouble."""
    tensor = value.const_value
    return (
        tensor is not None and len(tensor.shape) == 2 and tensor.dtype == ir.DataType.FLOAT and tensor.size >= SMALLEST
    )


def _weight(node: ir.Node) -> ir.Value | None:
    """The constant matrix that a node multiplies by or looks up, if it is one worth the trouble."""
    place = {"MatMul": 1, "Gemm": 1, "Attention": 1, "Gather": 0}.get(node.op_type)
    value = None if place is None else node.inputs[place]
    return value if value is not None and _is_matrix(value) else None


def numpy(value: ir.Value) -> NDArray[np.float32]:
    """A constant's numbers."""
    assert value.const_value is not None
    return value.const_value.numpy()
