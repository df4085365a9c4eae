"""Token embeddings scaled by sqrt(C), and sinusoidal positions (Vaswani et al. 2017, section 3.5)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def sinusoid(positions: Tensor, width: int) -> Tensor:
    """Sine of C/2 geometrically spaced frequencies, then cosine: positions' shape and C."""
    half = width // 2
    rate = torch.exp(torch.arange(half, device=positions.device) * -(math.log(10_000) / max(half - 1, 1)))
    angle = positions.unsqueeze(-1) * rate
    return torch.cat([angle.sin(), angle.cos()], -1)


class Embedding(nn.Module):
    """sqrt(C) * E[token] + position."""

    def __init__(self, types: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.weight = nn.Parameter(torch.empty(types, width))
        nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, tokens: Tensor, positions: Tensor | None) -> Tensor:
        """tokens: any shape; positions: broadcastable to it, or None for a model that tells them otherwise."""
        if positions is None:
            return self.lookup(tokens)
        return self.at(tokens, sinusoid(positions, self.width))

    def at(self, tokens: Tensor, encoded: Tensor) -> Tensor:
        """The same, where the positions' encoding is known."""
        embedded = self.lookup(tokens)
        return embedded + encoded.to(embedded.dtype)

    def lookup(self, tokens: Tensor) -> Tensor:
        """sqrt(C) * E[token]."""
        return nn.functional.embedding(tokens, self.weight) * math.sqrt(self.weight.shape[1])
