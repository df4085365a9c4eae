"""DynamicConv by the banded kernels."""

from __future__ import annotations

from torch import Tensor

from lite_nmt.ops.band_triton import forward


def dynamic_conv(
    x: Tensor,
    logits: Tensor,
    padding: int,
    bias: Tensor | None,
    keep: Tensor | None,
    dropout: float,
    seed: Tensor | None,
) -> Tensor:
    """See :func:`lite_nmt.ops.dynamic_conv.api.dynamic_conv`."""
    heads, taps = logits.shape[-2:]
    return forward(x, logits, None, bias, keep, seed, "dynamic", heads, taps, padding, dropout)
