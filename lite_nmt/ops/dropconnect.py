"""DropConnect on the taps, from random bits that are a function of a seed and a position, so no mask is stored.

The bits are Philox4x32-10's (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), in plain PyTorch:
the kernels draw the same ones.
"""

from __future__ import annotations

import torch
from torch import Tensor

_WORD = 0xFFFFFFFF


def philox(seed: Tensor, counter: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Four random words, 0 ... 2^32 - 1, for each counter.

    Args:
        seed: one number of 64 bits.
        counter: three words that broadcast to one shape; the fourth is 0.

    Returns:
        That shape and 4, int64.
    """
    a, b, c = torch.broadcast_tensors(*counter)
    d = torch.zeros_like(a)
    low, high = seed & _WORD, (seed >> 32) & _WORD
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c  # of 64 bits: they may wrap, their words are right
        a, b = ((second >> 32) & _WORD) ^ b ^ low, second & _WORD
        c, d = ((first >> 32) & _WORD) ^ d ^ high, first & _WORD
        low, high = (low + 0x9E3779B9) & _WORD, (high + 0xBB67AE85) & _WORD
    return torch.stack([a, b, c, d], -1)


def dropconnect(weights: Tensor, dropout: float, seed: Tensor | None) -> Tensor:
    """Zero each weight with probability ``dropout`` and divide the others by 1 - ``dropout``.

    Args:
        weights: B T H K, or H K where the same weights serve all steps.
        seed: one int64; None leaves the weights as they are.
    """
    if seed is None:
        return weights
    *rows, heads, taps = weights.shape
    device = weights.device
    quads = torch.arange((taps + 3) // 4, device=device)
    row = torch.arange(rows[0] * rows[1] if rows else 1, device=device)[:, None, None]
    words = philox(seed.view(()), (quads, row, torch.arange(heads, device=device)[:, None])).flatten(-2)[..., :taps]
    kept = (words >> 1) >= round(dropout * 2**31)
    return weights * kept.view(weights.shape) / (1 - dropout)
