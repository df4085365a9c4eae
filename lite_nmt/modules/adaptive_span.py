"""Adaptive attention span: each head learns how far back it looks (Sukhbaatar et al. 2019)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lite_nmt.modules.attention import SelfAttention, merge_heads, split_heads
from lite_nmt.modules.dropout import Dropout
from lite_nmt.modules.mixer import State
from lite_nmt.ops.adaptive_span.api import span_attend
from lite_nmt.ops.adaptive_span.reference import log_mask
from lite_nmt.ops.implementation import Implementation


class AdaptiveSpan(SelfAttention):
    """Causal attention whose heads see m[d] = clamp((ramp + z S - d) / ramp, 0, 1) of what lies d steps back.

    z, one for each head, is learned, starts at 0 and is held between 0 and 1 by :meth:`clamp` after each update. Steps
    are told apart by relative position embeddings p[d], which the heads share. All that no head of the layer sees any
    more is not computed, and not kept: W = min(S, ceil(ramp + S max z)) steps matter, a step's own among them.
    ``learned`` fixes W, once training is over. ``impl`` says what computes the attention.
    """

    impl: Implementation = "auto"

    def __init__(
        self,
        width: int,
        heads: int,
        span: int,
        ramp: int,
        learned: int | None = None,
        dropout: float = 0.0,
        head_width: int | None = None,
        persistent: int = 0,
    ) -> None:
        super().__init__(width, heads, True, None, 0.0, head_width, persistent)
        self.span, self.ramp, self.learned = span, ramp, learned
        self.z = nn.Parameter(torch.zeros(heads))
        self.places = nn.Parameter(torch.empty(span, self.out.in_features // heads))
        nn.init.normal_(self.places, std=self.places.shape[1] ** -0.5)
        self.drop = Dropout(dropout)

    def sees(self) -> int:
        """W, the steps that matter to the layer's widest head."""
        if self.learned is not None:
            return self.learned
        if self.z.is_meta:  # which has no values: as wide as it may become
            return self.span
        return min(self.span, math.ceil(self.ramp + self.span * float(self.z.detach().max())))

    def mask(self) -> Tensor:
        """m, H W by distance."""
        distance = torch.arange(self.sees(), device=self.z.device)
        return ((self.ramp + self.z.unsqueeze(1) * self.span - distance) / self.ramp).clamp(0, 1)

    def clamp(self) -> None:
        """Hold z between 0 and 1."""
        with torch.no_grad():
            self.z.clamp_(0, 1)

    def forward(self, x: Tensor, keep: Tensor | None = None, past: Tensor | None = None) -> Tensor:
        """
        Args:
            keep: None; a text has no padding.
            past: B M C, the mixer's inputs before ``x``; those more than W - 1 steps back do not matter.
        """
        assert keep is None
        if past is None:
            q, k, v = self.qkv(x).chunk(3, -1)
        else:
            inner = self.out.in_features
            q = F.linear(x, self.qkv.weight[:inner], self.qkv.bias[:inner])
            k, v = F.linear(torch.cat([past, x], 1), self.qkv.weight[inner:], self.qkv.bias[inner:]).chunk(2, -1)
        q, k, v = (split_heads(part, self.heads) for part in (q, k, v))
        mask = self.mask()
        always = self.memory() if self.persistent else None
        places, dropout = self.places[: mask.shape[1]], self.drop if self.training and self.drop.p else None
        mixed = span_attend(q, k, v, places, mask, always=always, dropout=dropout, impl=self.impl)
        return self.out(merge_heads(mixed))

    def weights(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        q, k, _ = (split_heads(part, self.heads) for part in self.qkv(x).chunk(3, -1))
        q = q * q.shape[-1] ** -0.5
        mask = self.mask()
        steps = torch.arange(x.shape[1], device=x.device)
        distance = steps[:, None] - steps[None, :]
        bias = q @ self.places[: mask.shape[1]].t() + log_mask(mask).unsqueeze(1)
        known = distance.clamp(0, mask.shape[1] - 1).expand(*q.shape[:2], -1, -1)
        logits = q @ k.transpose(-1, -2) + bias.gather(-1, known)
        logits = logits.masked_fill((distance < 0) | (distance >= mask.shape[1]), float("-inf"))
        if self.persistent:
            logits = torch.cat([q @ self.memory()[0].transpose(-1, -2), logits], -1)
        return logits.softmax(-1)[..., self.persistent :]

    def initial_state(self, x: Tensor) -> State:
        empty = x.new_zeros(x.shape[0], self.heads, self.sees() - 1, self.out.in_features // self.heads)
        return {"key": empty, "value": empty}

    def step(self, x: Tensor, position: int | Tensor, state: State) -> tuple[Tensor, State]:
        q, k, v = self.qkv(x).view(x.shape[0], 3 * self.heads, 1, -1).chunk(3, 1)  # N H 1 R
        key, value = torch.cat([state["key"], k], 2), torch.cat([state["value"], v], 2)
        mask = self.mask().flip(-1)  # the oldest step first, as the keys are
        q = q * q.shape[-1] ** -0.5
        logits = q @ (key + self.places[: mask.shape[1]].flip(0)).transpose(-1, -2) + log_mask(mask).unsqueeze(1)
        there = torch.arange(mask.shape[1], device=x.device) >= mask.shape[1] - 1 - position
        logits, values = logits.masked_fill(~there, float("-inf")), value
        if self.persistent:
            always = self.memory()
            logits = torch.cat([q @ always[0].transpose(-1, -2), logits], -1)
            values = torch.cat([always[1].expand(x.shape[0], -1, -1, -1), value], 2)
        mixed = logits.softmax(-1) @ values
        return self.out(mixed.view(x.shape[0], -1)), {"key": key[:, :, 1:], "value": value[:, :, 1:]}
