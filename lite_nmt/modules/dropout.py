"""Dropout whose mask costs a tenth of the time on a CPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dropout(nn.Module):
    """Zero each element with probability p, scale the others by 1/(1-p) (Srivastava et al. 2014).

    PyTorch draws one Bernoulli number an element, in one thread: at our widths that is more time than the
    matrix products take. On a CPU we draw 64 bits for four elements instead, so p is rounded to 1/65536.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0.0:
            return x
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(x, self.p)
        words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        bits = words.view(torch.int16)[: x.numel()].view(x.shape)
        kept = bits >= round(self.p * 65536) - 32768
        return x * (kept.to(x.dtype) * (1 / (1 - self.p)))

    def extra_repr(self) -> str:
        return f"p={self.p}"
