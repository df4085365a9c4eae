"""TaLK Convolutions in plain PyTorch: what the kernels are held to."""

from __future__ import annotations

import torch
from torch import Tensor

from lite_nmt.ops.banded import normalize_taps, product, talk_taps
from lite_nmt.ops.dropconnect import dropconnect


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
    ends = torch.stack([left] if right is None else [left, right], -1)
    ends = dropconnect(normalize_taps(ends, "none"), dropout, seed)
    taps = talk_taps(ends[..., 0], None if right is None else ends[..., 1], max_left, max_right)
    return product(x, taps, max_left, bias, keep)
