"""DynamicConv in plain PyTorch: what the kernels are held to."""

from __future__ import annotations

from torch import Tensor

from lite_nmt.ops.banded import normalize_taps, product
from lite_nmt.ops.dropconnect import dropconnect


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
    taps = dropconnect(normalize_taps(logits, "softmax"), dropout, seed)
    return product(x, taps, padding, bias, keep)
