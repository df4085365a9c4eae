"""Mult-Adds of any ``nn.Module``, counted over its TorchScript trace with fvcore and our own operator handles."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from lite_nmt.config import Config
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.translation import TranslationModel
from lite_nmt.profiling.activations import observe
from lite_nmt.profiling.cost import Cost, Lengths, Part
from lite_nmt.profiling.einsum import einsum
from lite_nmt.profiling.kinds import part_of

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it uses torch.jit.script, which warns
        from fvcore.nn.jit_analysis import JitModelAnalysis
        from fvcore.nn.jit_handles import get_shape
except ImportError as error:
    raise LiteNmtError("counting a traced model needs fvcore; install lite-nmt[profile].") from error

Handle = Callable[[list[Any], list[Any]], Any]  # a whole number


def _shape(value: Any) -> tuple[int, ...]:
    if (shape := get_shape(value)) is None:
        raise LiteNmtError(f"the trace does not say the shape of {value.debugName()}, which is needed to count it.")
    return tuple(shape)


def _size(value: Any) -> int:
    return math.prod(_shape(value))


def _product(inputs: list[Any], outputs: list[Any]) -> int:
    """Matrix products: each result is a sum over the first operand's last dimension."""
    return _size(outputs[0]) * _shape(inputs[0])[-1]


def _added_product(inputs: list[Any], outputs: list[Any]) -> int:
    return _product(inputs[1:], outputs)


def _einsum(inputs: list[Any], outputs: list[Any]) -> int:
    return einsum(inputs[0].toIValue(), [_shape(value) for value in inputs[1].node().inputs()])


def _attention(inputs: list[Any], outputs: list[Any]) -> int:
    """QK^T and AV, whatever a mask leaves of them."""
    query, key, value = (_shape(v) for v in inputs[:3])
    return math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _convolution(inputs: list[Any], outputs: list[Any]) -> int:
    transposed = bool(inputs[6].toIValue())
    return _size(inputs[0] if transposed else outputs[0]) * math.prod(_shape(inputs[1])[1:])


class _MetaConvolution(TorchFunctionMode):
    """On the meta device PyTorch cannot trace its own convolutions: their shape check meets traced sizes. The shape is
    computed while tracing pauses, and an operator of ours stands in the trace."""

    KINDS = tuple(getattr(torch, f"conv{kind}{n}d") for n in (1, 2, 3) for kind in ("", "_transpose"))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tracer: Any = torch._C
        state = tracer._get_tracing_state()
        if func not in self.KINDS or not state or not args[0].is_meta:
            return func(*args, **(kwargs or {}))
        tracer._set_tracing_state(None)
        try:
            shape = list(func(*args, **(kwargs or {})).shape)
        finally:
            tracer._set_tracing_state(state)
        return _convolved(args[0], args[1], shape, "transpose" in func.__name__)


@torch.library.custom_op("lite_nmt::convolved", mutates_args=())
def _convolved(x: Tensor, weight: Tensor, shape: list[int], transposed: bool) -> Tensor:
    raise NotImplementedError


@_convolved.register_fake
def _(x: Tensor, weight: Tensor, shape: list[int], transposed: bool) -> Tensor:
    return x.new_empty(shape)


def _convolved_size(inputs: list[Any], outputs: list[Any]) -> int:
    transposed = bool(inputs[3].toIValue())
    return _size(inputs[0] if transposed else outputs[0]) * math.prod(_shape(inputs[1])[1:])


def _banded(inputs: list[Any], outputs: list[Any]) -> int:
    return _size(outputs[0]) * _shape(inputs[1])[-1]


def _recurrent(inputs: list[Any], outputs: list[Any]) -> int:
    """Every weight matrix once a step; biases are vectors."""
    batch_and_steps = math.prod(_shape(inputs[0])[:2])
    lists = [list(value.node().inputs()) for value in inputs[1:] if value.node().kind() == "prim::ListConstruct"]
    weights = max(lists, key=len)  # the other one holds the initial state
    return batch_and_steps * sum(_size(w) for w in weights if len(_shape(w)) == 2)


COUNTED: dict[str, Handle] = {
    "aten::linear": lambda inputs, outputs: _size(outputs[0]) * _shape(inputs[0])[-1],
    "aten::matmul": _product,
    "aten::mm": _product,
    "aten::bmm": _product,
    "aten::mv": _product,
    "aten::bilinear": lambda inputs, outputs: _size(outputs[0]) * math.prod(_shape(inputs[2])[1:]),
    "aten::dot": lambda inputs, outputs: _size(inputs[0]),
    "aten::addmm": _added_product,
    "aten::baddbmm": _added_product,
    "aten::einsum": _einsum,
    "aten::scaled_dot_product_attention": _attention,
    "aten::_convolution": _convolution,
    "lite_nmt::convolved": _convolved_size,
    "lite_nmt::banded": _banded,
    "aten::lstm": _recurrent,
    "aten::gru": _recurrent,
    "aten::rnn_tanh": _recurrent,
    "aten::rnn_relu": _recurrent,
}
"""Operators whose products count."""

FREE = frozenset(
    f"aten::{name}"
    for name in """
    Int ScalarImplicit __and__ __or__ __xor__ _pad_circular _shape_as_tensor _weight_norm adaptive_avg_pool1d
    adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d alias all alpha_dropout amax
    amin any arange argmax argmin argsort avg_pool1d avg_pool2d avg_pool3d batch_norm broadcast_to cat
    channel_shuffle chunk clone concat constant_pad_nd contiguous copy count_nonzero cummax cummin cumprod
    cumsum detach diagonal diff dim dropout embedding embedding_bag empty empty_like expand expand_as eye
    feature_dropout fill flatten flip full full_like gather gelu glu group_norm hardsigmoid hardswish hardtanh
    index index_add index_copy index_put index_put_ index_select instance_norm is_floating_point item layer_norm
    leaky_relu lift_fresh linspace log_softmax logcumsumexp logsumexp masked_fill masked_scatter masked_select
    max max_pool1d max_pool2d max_pool3d mean median meshgrid min moveaxis movedim narrow native_batch_norm
    native_group_norm native_layer_norm new_empty new_full new_ones new_zeros nonzero norm numel numpy_T one_hot
    ones ones_like pad permute pixel_shuffle pixel_unshuffle prod rand rand_like randn randn_like
    reflection_pad1d reflection_pad2d relu relu6 repeat repeat_interleave replication_pad1d replication_pad2d
    reshape reshape_as resolve_conj resolve_neg rms_norm roll scatter scatter_add select silu size slice softmax
    sort split split_with_sizes squeeze stack std std_mean sum swapaxes swapdims t take take_along_dim
    tensor_split tile to topk transpose tril triu type_as unbind unflatten unfold unique2 unsafe_chunk
    unsafe_split unsqueeze var var_mean view view_as where zero zeros zeros_like
    """.split()  # noqa: SIM905  # as a list it would be thrice as long
)
"""Operators without products of weights or of activations: the convention counts none of them. Whatever PyTorch tags
as pointwise is free as well."""


def _free(name: str) -> bool:
    if not name.endswith("__"):
        name = name.removesuffix("_")  # in place
    namespace, _, operator = name.partition("::")
    if name in FREE or namespace == "prim":
        return True
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    return packet is not None and any(
        torch.Tag.pointwise in getattr(packet, overload).tags for overload in packet.overloads()
    )


def profile(model: nn.Module, inputs: tuple[Any, ...] | Tensor, strict: bool = False) -> Cost:
    """Count the Mult-Adds, parameters and activations of one pass through any module.

    The model is traced with TorchScript, so what is counted is the path that these inputs take. On the meta device
    (``with torch.device("meta")``) nothing is computed and no memory is needed.

    Args:
        inputs: what ``model(*inputs)`` takes; a tensor stands for itself alone.
        strict: whether to refuse a model of which not all could be counted.

    Returns:
        One part for each module that does something; ``uncounted`` names operators that no handle knows, and modules
        with parameters that were not run. Products with weights count, as do those of attention; norms, softmax,
        pooling, activations, biases, lookups and elementwise products do not (docs/counting.md).

    Raises:
        LiteNmtError: the model cannot be traced, or, with ``strict``, not all of it counted.
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    training, fast = model.training, torch.backends.mha.get_fastpath_enabled()
    classes = {name: f"{type(m).__module__}.{type(m).__qualname__}" for name, m in model.named_modules()}
    parts = {name: part_of(name, classes) for name in classes}
    try:
        model.eval()
        torch.backends.mha.set_fastpath_enabled(False)  # it hides a whole encoder layer in one operator
        with warnings.catch_warnings(), _MetaConvolution():
            warnings.simplefilter("ignore")  # that tracing is deprecated, and that it follows one path
            products, uncounted = _trace(model, inputs)
            peaks, unused = observe(model, inputs, {name: part for name, (part, _) in parts.items()})
    except LiteNmtError:
        raise
    except Exception as error:  # whatever the model raises, and the tracer
        reason = str(error).strip().split("\n")[0]
        raise LiteNmtError(f"cannot trace {type(model).__name__}: {reason or type(error).__name__}.") from error
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        model.train(training)
    found = {part: Part(*part, 0, 0, peaks.get(part[0], 0)) for part in parts.values()}
    held = {name: sum(p.numel() for p in module.parameters(recurse=False)) for name, module in _once(model)}
    for name, part in parts.items():
        p = found[part]
        found[part] = Part(*part, p.mult_adds + products.get(name, 0), p.parameters + held.get(name, 0), p.activations)
    uncounted += [f"parameter {name}, which no operator used" for name in unused]
    counted = tuple(p for p in found.values() if p.mult_adds or p.parameters)
    total = Cost(counted, tuple(uncounted), max(peaks.values()))
    if strict and uncounted:
        raise LiteNmtError(f"could not count all of {type(model).__name__}: {'; '.join(uncounted)}.")
    return total


def _once(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Modules with their own parameters; a tied one is the first module's that holds it."""
    seen: set[int] = set()
    for name, module in model.named_modules():
        if own := [p for p in module.parameters(recurse=False) if id(p) not in seen]:
            seen |= {id(p) for p in own}
            yield name, module


def _trace(model: nn.Module, inputs: tuple[Any, ...]) -> tuple[dict[str, int], list[str]]:
    """Each module's own products, and what could not be counted."""
    analysis = JitModelAnalysis(model, inputs).set_op_handle(**COUNTED)
    analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).tracer_warnings("none")
    inclusive = analysis.by_module()
    own = dict(inclusive)
    for name, count in inclusive.items():
        if name:
            own[name.rpartition(".")[0]] -= count
    uncounted = [
        f"operator {name}, {times} times"
        for name, times in sorted(analysis.unsupported_ops().items())
        if not _free(name)
    ]
    return {name: int(count) for name, count in own.items()}, uncounted


class TeacherForced(TranslationModel):
    """A translation model whose pass ends with the scores: what every counter counts."""

    def forward(self, source: Tensor, keep: Tensor, target: Tensor) -> Tensor:
        """Scores of every target token, N T V."""
        return self.project(super().forward(source, keep, target))


class _NoValues(TorchFunctionMode):
    """Initialisation draws nothing: on the meta device there is nowhere to put it."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__module__", "") == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def unallocated(config: Config, of: Lengths) -> tuple[TeacherForced, tuple[Tensor, Tensor, Tensor]]:
    """The model that a configuration describes, and inputs for it, on the meta device."""
    with torch.device("meta"), _NoValues():
        model = TeacherForced(config).eval()
        source = torch.zeros(of.batch, of.source, dtype=torch.long)
        target = torch.zeros(of.batch * of.beam, of.target, dtype=torch.long)
        return model, (source, torch.ones(source.shape, dtype=torch.bool), target)
