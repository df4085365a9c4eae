"""Mult-Adds of an ONNX graph, by a walk over the shapes of its nodes. Weights are never read."""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lite_nmt.config import Config
from lite_nmt.errors import LiteNmtError
from lite_nmt.profiling.cost import EMBEDDING, Cost, Lengths, Part
from lite_nmt.profiling.einsum import einsum
from lite_nmt.profiling.kinds import part_of

try:
    import onnx
    import onnx.inliner
    from google.protobuf.message import DecodeError
except ImportError as error:
    raise LiteNmtError("counting an ONNX graph needs onnx; install lite-nmt[profile].") from error

Shape = tuple[int, ...]
Handle = Callable[[onnx.NodeProto, Sequence[Shape], Sequence[Shape]], int]


def _product(node: onnx.NodeProto, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    """Each result is a sum over the first operand's last dimension."""
    return math.prod(outputs[0]) * inputs[0][-1]


def _gemm(node: onnx.NodeProto, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    return math.prod(outputs[0]) * inputs[0][0 if _attribute(node, "transA", 0) else 1]


def _convolution(weight: int) -> Handle:
    return lambda node, inputs, outputs: math.prod(outputs[0]) * math.prod(inputs[weight][1:])


def _attention(node: onnx.NodeProto, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    """QK^T and AV, with the heads in a dimension of their own or not."""
    return (math.prod(inputs[0]) + math.prod(outputs[0])) * inputs[1][-2]


def _recurrent(node: onnx.NodeProto, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    return math.prod(inputs[0][:2]) * (math.prod(inputs[1]) + math.prod(inputs[2]))


COUNTED: dict[str, Handle] = {
    "MatMul": _product,
    "MatMulInteger": _product,
    "QLinearMatMul": _product,
    "com.microsoft.DynamicQuantizeMatMul": _product,
    "com.microsoft.MatMulIntegerToFloat": _product,
    "com.microsoft.MatMulNBits": _product,
    "Gemm": _gemm,
    "Conv": _convolution(1),
    "ConvInteger": _convolution(1),
    "QLinearConv": _convolution(3),
    "ConvTranspose": lambda node, inputs, outputs: math.prod(inputs[0]) * math.prod(inputs[1][1:]),
    "Einsum": lambda node, inputs, outputs: einsum(_attribute(node, "equation", b"").decode(), inputs),
    "Attention": _attention,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
}
"""Operators whose products count."""

VIEWS = frozenset(("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"))
FREE = VIEWS | frozenset(
    """
    Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization BitShift
    BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Compress Concat ConcatFromSequence
    Constant ConstantOfShape Cos Cosh CumSum DepthToSpace DequantizeLinear Div Dropout DynamicQuantizeLinear Elu
    Equal Erf Exp Expand EyeLike Floor Gather GatherElements GatherND Gelu GlobalAveragePool GlobalMaxPool
    Greater GreaterOrEqual GroupNormalization HardSigmoid HardSwish Hardmax InstanceNormalization IsInf IsNaN
    LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization Max MaxPool Mean
    MeanVarianceNormalization Min Mish Mod Mul Neg NonZero Not OneHot Or PRelu Pad Pow QuantizeLinear
    RMSNormalization Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean
    ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Round ScatterElements ScatterND Selu SequenceAt
    SequenceConstruct SequenceEmpty SequenceInsert SequenceLength Shape Shrink Sigmoid Sign Sin Sinh Size Slice
    Softmax Softplus Softsign SpaceToDepth Split SplitToSequence Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu
    Tile TopK Transpose Trilu Unique Where Xor
    """.split()  # noqa: SIM905  # as a list it would be thrice as long
)
"""Operators without products of weights or of activations."""


def count_file(path: Path, sizes: Mapping[str, int]) -> Cost:
    """Count an ONNX file; weights, in the file or beside it, are not read.

    Args:
        sizes: of the graph's symbolic dimensions, by name.

    Raises:
        LiteNmtError: it is not an ONNX file, or a dimension has no size.
    """
    try:
        model = onnx.load(path, load_external_data=False)
    except OSError as error:
        raise LiteNmtError(f"cannot read {path}: {error.strerror}.") from error
    except (DecodeError, ValueError) as error:
        raise LiteNmtError(f"{path} is not an ONNX model: {error}.") from error
    if not model.graph.node:
        raise LiteNmtError(f"{path} is not an ONNX model, or an empty one.")
    return count(model, sizes)


def count(model: onnx.ModelProto, sizes: Mapping[str, int]) -> Cost:
    """Count a graph; see :func:`count_file`."""
    model = onnx.inliner.inline_local_functions(model)
    weights = {w.name: math.prod(w.dims) for w in model.graph.initializer if w.data_type in _WEIGHTS}
    for weight in list(model.graph.initializer):
        if math.prod(weight.dims) > 1024:  # small ones may be shapes
            model.graph.initializer.remove(weight)
            model.graph.input.append(
                onnx.helper.make_tensor_value_info(weight.name, weight.data_type, list(weight.dims))
            )
    for value in model.graph.input:
        for i, dim in enumerate(value.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value"):  # type: ignore[no-untyped-call]  # protobuf's
                name = dim.dim_param or f"{value.name}[{i}]"
                if name not in sizes:
                    raise LiteNmtError(f"dimension {name} of input {value.name} has no size; give it: --dim {name}=1.")
                dim.dim_value = sizes[name]
    return _walk(model, weights)


_WEIGHTS = {
    getattr(onnx.TensorProto, name)
    for name in (
        "FLOAT",
        "DOUBLE",
        "FLOAT16",
        "BFLOAT16",
        "INT8",
        "UINT8",
        "INT4",
        "UINT4",
        "FLOAT8E4M3FN",
        "FLOAT8E5M2",
    )
}


def count_export(config: Config, of: Lengths) -> Cost:
    """Export a configuration's model, teacher-forced, from the meta device, and count the graph."""
    import torch

    from lite_nmt.profiling.traced import unallocated

    module, inputs = unallocated(config, of)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(torch.export.export(module, inputs), dynamo=True, verbose=False, optimize=False)
    assert program is not None  # typed as optional for the older exporter
    graph = program.model.graph
    weights = {
        name: math.prod(value.shape.numpy() if value.shape else ()) for name, value in graph.initializers.items()
    }
    for value in list(graph.initializers.values()):
        value.const_value = None  # there is none on the meta device
        graph.inputs.append(value)
    graph.initializers.clear()
    return _walk(program.model_proto, weights)


def _walk(model: onnx.ModelProto, weights: Mapping[str, int]) -> Cost:
    try:
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except onnx.shape_inference.InferenceError as error:
        raise LiteNmtError(f"cannot tell the shapes of the graph: {error}.") from error
    graph = model.graph
    values = {v.name: v.type.tensor_type for v in (*graph.value_info, *graph.input, *graph.output)}
    shapes = {name: shape for name, kind in values.items() if (shape := _shape(kind)) is not None}
    shapes |= {w.name: tuple(w.dims) for w in graph.initializer}
    alive = _alive(
        graph, {n: math.prod(s) * _item(values[n].elem_type) for n, s in shapes.items() if n in values}, weights
    )
    modules = [_modules(node) for node in graph.node]
    classes = {path: name for chain in modules for path, name in chain.items()}
    parts: dict[tuple[str, str], Part] = {}
    unknown: dict[str, int] = {}
    uncounted: list[str] = []
    left = dict(weights)
    for i, (node, chain) in enumerate(zip(graph.node, modules, strict=True)):
        kind = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        name = node.name or f"{node.op_type} {i}"
        products = 0
        if kind in COUNTED:
            try:
                products = COUNTED[kind](node, _Shapes(shapes, node.input), _Shapes(shapes, node.output))
            except KeyError as missing:
                uncounted.append(f"node {name} ({kind}), as the shape of {missing} is unknown")
        elif kind not in FREE:
            unknown[kind] = unknown.get(kind, 0) + 1
        # PyTorch's exporter says which modules a node came from; otherwise each node is a part of its own.
        part = part_of(list(chain)[-1], classes) if chain else (name, EMBEDDING if kind == "Gather" else kind)
        p = parts.get(part, Part(*part, 0, 0))
        held = p.parameters + sum(left.pop(v, 0) for v in node.input)
        parts[part] = Part(*part, p.mult_adds + products, held, max(p.activations, alive[i]))
    uncounted += [f"operator {kind}, {times} times" for kind, times in sorted(unknown.items())]
    counted = tuple(p for p in parts.values() if p.mult_adds or p.parameters)
    return Cost(counted, tuple(uncounted), max(alive, default=0))


def _alive(graph: onnx.GraphProto, sizes: Mapping[str, int], weights: Mapping[str, int]) -> list[int]:
    """Bytes of all values alive while each node runs, in the graph's order, each freed after its last use.

    A view shares its input's memory. Weights, inputs and what is computed from weights alone (once, when a runtime
    loads the graph) are not counted, nor values of unknown shape.
    """
    storage: dict[str, str] = {}
    constant = weights.keys() | {w.name for w in graph.initializer} | {""}
    for node in graph.node:
        if constant.issuperset(node.input):
            constant |= set(node.output)
            continue
        for name in node.output:
            if node.op_type in VIEWS and node.input[0] in storage:
                storage[name] = storage[node.input[0]]
            else:
                storage[name] = name
    last = {storage[name]: i for i, node in enumerate(graph.node) for name in node.input if name in storage}
    ends: dict[int, list[str]] = {}
    outputs = {storage[value.name] for value in graph.output if value.name in storage}
    for name, i in last.items():
        if name not in outputs:
            ends.setdefault(i, []).append(name)
    found, now = [], 0
    for i, node in enumerate(graph.node):
        now += sum(sizes.get(name, 0) for name in node.output if storage.get(name) == name)
        found.append(now)
        now -= sum(sizes.get(name, 0) for name in ends.get(i, []))
    return found


def _item(kind: int) -> int:
    """Bytes of one value."""
    return int(onnx.helper.tensor_dtype_to_np_dtype(kind).itemsize) if kind else 0


class _Shapes(Sequence[Shape]):
    """Shapes of a node's values by position; one that is needed and unknown is a KeyError with its name."""

    def __init__(self, shapes: Mapping[str, Shape], names: Sequence[str]) -> None:
        self.shapes, self.names = shapes, names

    def __getitem__(self, i: int) -> Shape:  # type: ignore[override]  # nobody slices
        return self.shapes[self.names[i]]

    def __len__(self) -> int:
        return len(self.names)


def _modules(node: onnx.NodeProto) -> dict[str, str]:
    """Path and class of the modules around a node, outermost first; empty where the exporter did not say."""
    said = {p.key: p.value for p in node.metadata_props}
    try:
        paths = ast.literal_eval(said["pkg.torch.onnx.name_scopes"])
        classes = ast.literal_eval(said["pkg.torch.onnx.class_hierarchy"])
        return dict(zip(paths[:-1], classes[:-1], strict=True))  # the last is the operator itself
    except (KeyError, ValueError, SyntaxError, TypeError):
        return {}


def _shape(kind: onnx.TypeProto.Tensor) -> Shape | None:
    if not kind.HasField("shape"):  # type: ignore[no-untyped-call]  # protobuf's
        return None
    dims = [d.dim_value if d.HasField("dim_value") else -1 for d in kind.shape.dim]  # type: ignore[no-untyped-call]
    return None if -1 in dims else tuple(dims)


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    return next((onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)
