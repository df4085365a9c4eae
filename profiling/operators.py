"""What each of PyTorch's operators costs, as fvcore asks: one small pure function for each that multiplies."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lite_nmt.errors import LiteNmtError
from lite_nmt.profiling.einsum import einsum

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it uses torch.jit.script, which warns
        from fvcore.nn.jit_handles import get_shape
except ImportError as error:
    raise LiteNmtError("counting a traced model needs fvcore; install lite-nmt[profile].") from error

Handle = Callable[[list[Any], list[Any]], Any]  # inputs and outputs of a node in the trace -> a whole number


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


def _tensordot(inputs: list[Any], outputs: list[Any]) -> int:
    """Of a and b, each result sums over the c elements that both lose: |result| = |a| / c * |b| / c."""
    result = _size(outputs[0])
    return result * math.isqrt(_size(inputs[0]) * _size(inputs[1]) // result)


def _einsum(inputs: list[Any], outputs: list[Any]) -> int:
    return einsum(inputs[0].toIValue(), [_shape(value) for value in inputs[1].node().inputs()])


def _attention(inputs: list[Any], outputs: list[Any]) -> int:
    """QK^T and AV, whatever a mask leaves of them."""
    query, key, value = (_shape(v) for v in inputs[:3])
    return math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _convolution(transposed: int | None) -> Handle:
    """A convolution whose input of this number says whether it is transposed; None where it cannot be."""

    def count(inputs: list[Any], outputs: list[Any]) -> int:
        turned = transposed is not None and bool(inputs[transposed].toIValue())
        return _size(inputs[0] if turned else outputs[0]) * math.prod(_shape(inputs[1])[1:])

    return count


def _banded(inputs: list[Any], outputs: list[Any]) -> int:
    return _size(outputs[0]) * _shape(inputs[1])[-1]


def _recurrent(inputs: list[Any], outputs: list[Any]) -> int:
    """Every weight matrix once a step; biases are vectors. Packed sequences come with their batch sizes."""
    *steps, _ = _shape(inputs[0])
    packed = len(steps) == 1
    weights = inputs[3 if packed else 2].node().inputs()
    return math.prod(steps) * sum(_size(w) for w in weights if len(_shape(w)) == 2)


COUNTED: dict[str, Handle] = {
    "aten::linear": _product,
    "aten::matmul": _product,
    "aten::mm": _product,
    "aten::bmm": _product,
    "aten::mv": _product,
    "aten::inner": _product,
    "aten::dot": lambda inputs, outputs: _size(inputs[0]),
    "aten::addmm": _added_product,
    "aten::addmv": _added_product,
    "aten::baddbmm": _added_product,
    "aten::tensordot": _tensordot,
    "aten::einsum": _einsum,
    "aten::bilinear": lambda inputs, outputs: _size(outputs[0]) * math.prod(_shape(inputs[2])[1:]),
    "aten::scaled_dot_product_attention": _attention,
    "aten::_convolution": _convolution(6),
    "aten::_convolution_mode": _convolution(None),
    "lite_nmt::convolved": _convolution(3),
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
    Int ScalarImplicit __and__ __or__ __xor__ _pack_padded_sequence _pad_circular _pad_packed_sequence
    _shape_as_tensor _unique2 _weight_norm adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
    adaptive_max_pool1d adaptive_max_pool2d alias all alpha_dropout amax amin aminmax any arange argmax argmin
    argsort atleast_1d atleast_2d avg_pool1d avg_pool2d avg_pool3d batch_norm bernoulli bincount
    broadcast_tensors broadcast_to bucketize cat channel_shuffle chunk clone concat constant_pad_nd contiguous
    copy cosine_similarity count_nonzero cross_entropy_loss cummax cummin cumprod cumsum detach diagonal diff
    dim dropout dstack embedding embedding_bag empty empty_like expand expand_as expand_copy eye feature_dropout
    fill flatten flip full full_like gather gelu glu group_norm hardsigmoid hardswish hardtanh histc hstack
    index index_add index_copy index_put index_put_ index_select instance_norm is_floating_point isin item
    layer_norm leaky_relu lift_fresh linalg_norm linalg_vector_norm linspace log_softmax logcumsumexp logsumexp
    mH mT masked_fill masked_scatter masked_select max max_pool1d max_pool1d_with_indices max_pool2d
    max_pool2d_with_indices max_pool3d max_pool3d_with_indices mean median meshgrid min moveaxis movedim narrow
    native_batch_norm native_group_norm native_layer_norm new_empty new_full new_ones new_zeros nll_loss
    nll_loss_nd nonzero norm normal numel numpy_T one_hot ones ones_like pad permute pixel_shuffle
    pixel_unshuffle prelu prod quantile rand rand_like randn randn_like reflection_pad1d reflection_pad2d relu
    relu6 repeat repeat_interleave replication_pad1d replication_pad2d reshape reshape_as resolve_conj
    resolve_neg rms_norm roll scatter scatter_add searchsorted select silu size slice softmax sort split
    split_with_sizes squeeze stack std std_mean sum swapaxes swapdims t take take_along_dim tensor_split tile to
    topk transpose tril triu type_as unbind unflatten unfold uniform unsafe_chunk unsafe_split
    unsafe_split_with_sizes unsqueeze upsample_bicubic2d upsample_bilinear2d upsample_linear1d
    upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d var var_mean view view_as
    view_as_complex view_as_real vstack where zero zeros zeros_like
    """.split()  # noqa: SIM905  # as a list it would be thrice as long
)
"""Operators without products of weights or of activations: the convention counts none of them. Whatever PyTorch tags
as pointwise is free as well."""


def is_free(name: str) -> bool:
    """Whether an operator of the trace, as ``aten::relu``, costs nothing by the convention."""
    if not name.endswith("__"):
        name = name.removesuffix("_")  # in place
    namespace, _, operator = name.partition("::")
    if name in FREE:
        return True
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    return packet is not None and any(
        torch.Tag.pointwise in getattr(packet, overload).tags for overload in packet.overloads()
    )


class MetaConvolution(TorchFunctionMode):
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
