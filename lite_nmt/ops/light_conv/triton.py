"""LightConv by the banded kernels."""

from __future__ import annotations

from torch import Tensor

from lite_nmt.ops.band_triton import forward


def light_conv(
    x: Tensor,
    weight: Tensor,
    padding: int,
    bias: Tensor | None,
    keep: Tensor | None,
    dropout: float,
    seed: Tensor | None,
) -> Tensor:
    """See :func:`lite_nmt.ops.light_conv.api.light_conv`."""
    heads, taps = weight.shape
    return forward(x, weight, None, bias, keep, seed, "light", heads, taps, padding, dropout)
