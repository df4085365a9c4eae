"""TaLK Convolutions by the banded kernels."""

from __future__ import annotations

from torch import Tensor

from lite_nmt.ops.band_triton import forward


def talk_conv(
    x: Tensor,
    left: Tensor,
    right: Tensor | None,
    max_left: int,
    max_right: int,
    bias: Tensor | None,
    keep: Tensor | None,
    dropout: float,
    seed: Tensor | None,
) -> Tensor:
    """See :func:`lite_nmt.ops.talk_conv.api.talk_conv`."""
    taps = max_left + max_right + 1
    return forward(x, left, right, bias, keep, seed, "talk", left.shape[-1], taps, max_left, dropout)
