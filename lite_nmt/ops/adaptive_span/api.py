"""Attention with adaptive spans, whichever implementation computes it."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from lite_nmt.ops.adaptive_span import reference
from lite_nmt.ops.implementation import Implementation, use_triton

DEVICE = "cuda"
NARROWEST = 16  # channels of a head that FlexAttention takes


def span_attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    places: Tensor,
    mask: Tensor,
    *,
    always: tuple[Tensor, Tensor] | None = None,
    dropout: Callable[[Tensor], Tensor] | None = None,
    impl: Implementation = "auto",
) -> Tensor:
    """Attend to what came before: softmax_d(q[t] . (k[t-d] + p[d]) / sqrt(R) + log m[d]) v[t-d].

    Args:
        q: B H T R, the last T of S steps.
        k, v: B H S R.
        places: W R, p by distance 0 ... W-1.
        mask: H W, m likewise, in [0, 1], not 0 at distance 0. What lies W or more steps back is not seen.
        always: persistent keys and values, H N R each, which are seen from everywhere under the same softmax.
        dropout: of the weights; None where none are dropped.
        impl: "triton" is FlexAttention, compiled to Triton kernels. It has not been seen to run on a device yet, so
            that "auto" is the reference.

    Returns:
        B H T R.

    Raises:
        ValueError: a shape does not fit, by name.
        LiteNmtError: ``impl`` cannot run here; the message says what can.
    """
    _check(q, k, v, places, mask, always)
    wide = min(len(places), k.shape[2])
    past = min(k.shape[2] - q.shape[2], wide - 1)
    k, v = (x[:, :, x.shape[2] - q.shape[2] - past :] for x in (k, v))
    places, mask = places[:wide], mask[:, :wide]
    chosen: Implementation = "reference" if impl == "auto" else impl
    if use_triton(chosen, q, k, v, places, mask, *(always or ()), limit=_limit(q, k, v, dropout)):
        from lite_nmt.ops.adaptive_span import flex

        return flex.span_attend(q, k, v, places, mask, always)
    return reference.span_attend(q, k, v, places, mask, always, dropout)


def _limit(q: Tensor, k: Tensor, v: Tensor, dropout: Callable[[Tensor], Tensor] | None) -> str:
    """Which of FlexAttention's own limits these arguments are beyond; empty where none."""
    if q.device.type != DEVICE:
        return f"the tensors lie on {q.device.type}, and FlexAttention has gradients on a CUDA device alone"
    if dropout is not None:
        return "weights are dropped, and FlexAttention drops none (attention_dropout must be 0)"
    if q.shape[-1] < NARROWEST:
        return f"a head has {q.shape[-1]} channels, and FlexAttention takes {NARROWEST} or more"
    if not q.dtype == k.dtype == v.dtype:
        return f"q, k and v are {q.dtype}, {k.dtype} and {v.dtype}, and FlexAttention takes one type"
    return ""


def _check(q: Tensor, k: Tensor, v: Tensor, places: Tensor, mask: Tensor, always: tuple[Tensor, Tensor] | None) -> None:
    if q.dim() != 4:
        raise ValueError(f"q has the shape {tuple(q.shape)}; it must be B H T R")
    batch, heads, length, channels = q.shape
    if k.shape != v.shape or k.shape != (batch, heads, k.shape[-2], channels) or k.shape[2] < length:
        found = f"{tuple(k.shape)} and {tuple(v.shape)}"
        raise ValueError(f"k and v have the shapes {found}; both must be {(batch, heads)}, {length} steps or more, R")
    if places.dim() != 2 or places.shape[1] != channels or not len(places):
        raise ValueError(f"places has the shape {tuple(places.shape)}; it must be W, at least 1, and {channels}")
    if mask.shape != (heads, len(places)):
        raise ValueError(f"mask has the shape {tuple(mask.shape)}; it must be {(heads, len(places))}")
    for name, tensor in zip(("keys", "values"), always or (), strict=False):
        if tensor.dim() != 3 or tensor.shape[::2] != (heads, channels):
            raise ValueError(
                f"persistent {name} have the shape {tuple(tensor.shape)}; it must be {heads}, N, {channels}"
            )
