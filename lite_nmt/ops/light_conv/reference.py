"""LightConv in plain PyTorch: what the kernels are held to."""

from __future__ import annotations

from torch import Tensor

from lite_nmt.ops.banded import normalize_taps, product
from lite_nmt.ops.dropconnect import dropconnect


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
    taps = dropconnect(normalize_taps(weight, "softmax"), dropout, seed)
    return product(x, taps, padding, bias, keep)
