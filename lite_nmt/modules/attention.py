"""Multi-head attention, over the sentence itself and from target to source (Vaswani et al. 2017, section 3.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lite_nmt.modules.mixer import Mixer, State
from lite_nmt.ops.attend import attend


def split_heads(x: Tensor, heads: int) -> Tensor:
    """B T C -> B H T R."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """B H T R -> B T C."""
    return x.transpose(1, 2).flatten(-2)


class SelfAttention(Mixer):
    """softmax(Q K^T / sqrt(R)) V over one sequence.

    ``window`` = k limits what a step sees to k neighbours, centred as a convolution's taps are (Pay Less
    Attention's k = 3,7,15,31x3 baseline); the causal form then keeps only the last k - 1 keys and values. R is C/H, or
    ``head_width`` where pruning left fewer heads than C was divided into.

    ``persistent`` = N joins as many learned keys and values to those of the text, in each head, under one softmax: they
    do the work of a feed-forward network (Sukhbaatar et al. 2019, "Augmenting self-attention with persistent memory").
    They are stored divided by sqrt(R) and sqrt(N), as there, so that one learning rate suits all.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        causal: bool,
        window: int | None = None,
        dropout: float = 0.0,
        head_width: int | None = None,
        persistent: int = 0,
    ) -> None:
        super().__init__()
        self.heads, self.causal, self.window, self.dropout = heads, causal, window, dropout
        self.persistent = persistent
        inner = heads * head_width if head_width else width
        self.qkv = nn.Linear(width, 3 * inner)
        self.out = nn.Linear(inner, width)
        for part in self.qkv.weight.chunk(3):
            # As three separate square projections, scaled by 1/sqrt(2) because they are drawn as one.
            nn.init.xavier_uniform_(part, gain=2**-0.5)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.qkv.bias)
        nn.init.zeros_(self.out.bias)
        if persistent:
            self.persistent_key = nn.Parameter(torch.empty(heads, persistent, inner // heads))
            self.persistent_value = nn.Parameter(torch.empty(heads, persistent, inner // heads))
            nn.init.normal_(self.persistent_key, std=(inner // heads) ** -0.5)
            nn.init.normal_(self.persistent_value, std=persistent**-0.5)

    def memory(self) -> tuple[Tensor, Tensor]:
        """The persistent keys and values, H N R each."""
        scale = self.persistent_key.shape[-1] ** 0.5
        return self.persistent_key * scale, self.persistent_value * self.persistent**0.5

    def attend(self, q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, dropout: float = 0.0) -> Tensor:
        """Attention to the text's keys and values, B H S R, and to the persistent ones."""
        if self.persistent:
            k, v = (
                torch.cat([always.expand(q.shape[0], -1, -1, -1), own], 2)
                for always, own in zip(self.memory(), (k, v), strict=True)
            )
            allowed = None if allowed is None else nn.functional.pad(allowed, (self.persistent, 0), value=True)
        return attend(q, k, v, allowed, dropout)

    def allowed(self, length: int, keep: Tensor | None, device: torch.device) -> Tensor | None:
        """Which step (rows) may see which (columns), broadcastable to B H T T; None where all may."""
        mask = None
        if self.causal or self.window is not None:
            steps = torch.arange(length, device=device)
            distance = steps[None, :] - steps[:, None]
            left = length if self.window is None else self.window - 1 if self.causal else self.window // 2
            right = 0 if self.causal else (self.window or 1) - 1 - left
            mask = ((distance >= -left) & (distance <= right))[None, None]
        if keep is not None:
            mask = keep[:, None, None, :] if mask is None else mask & keep[:, None, None, :]
            if self.window is not None:
                # A padded step may have no neighbour left; let it see itself, so that its softmax is not 0/0.
                mask = mask | torch.eye(length, dtype=torch.bool, device=device)
        return mask

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        q, k, v = (split_heads(part, self.heads) for part in self.qkv(x).chunk(3, -1))
        mask = self.allowed(x.shape[1], keep, x.device)
        dropout = self.dropout if self.training else 0.0
        return self.out(merge_heads(self.attend(q, k, v, mask, dropout)))

    def weights(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """Where there are persistent vectors, a row sums to what they leave."""
        q, k, _ = (split_heads(part, self.heads) for part in self.qkv(x).chunk(3, -1))
        logits = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        mask = self.allowed(x.shape[1], keep, x.device)
        logits = logits if mask is None else logits.masked_fill(~mask, float("-inf"))
        if self.persistent:
            always = q @ self.memory()[0].transpose(-1, -2) * q.shape[-1] ** -0.5
            logits = torch.cat([always, logits], -1)
        return logits.softmax(-1)[..., self.persistent :]

    def initial_state(self, x: Tensor) -> State:
        # A window's state has its full size from the start, so that a graph's shapes do not depend on how far it is.
        past = 0 if self.window is None else self.window - 1
        empty = x.new_zeros(x.shape[0], self.heads, past, self.out.in_features // self.heads)
        return {"key": empty, "value": empty}

    def step(self, x: Tensor, position: int | Tensor, state: State) -> tuple[Tensor, State]:
        q, k, v = self.qkv(x).view(x.shape[0], 3 * self.heads, 1, -1).chunk(3, 1)  # N H 1 R
        key, value = torch.cat([state["key"], k], 2), torch.cat([state["value"], v], 2)
        if self.window is None:
            mixed = self.attend(q, key, value, None)
        else:
            there = torch.arange(self.window, device=x.device) >= self.window - 1 - position
            mixed = self.attend(q, key, value, there[None, None, None])
            key, value = key[:, :, 1:], value[:, :, 1:]
        return self.out(mixed.view(x.shape[0], -1)), {"key": key, "value": value}


class CrossAttention(nn.Module):
    """Attention from the target to the encoded source, whose keys and values are computed once a sentence.

    R is C/H, or ``head_width`` where pruning left fewer heads than C was divided into.
    """

    def __init__(self, width: int, heads: int, dropout: float = 0.0, head_width: int | None = None) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        inner = heads * head_width if head_width else width
        self.q = nn.Linear(width, inner)
        self.kv = nn.Linear(width, 2 * inner)
        self.out = nn.Linear(inner, width)
        for weight in (self.q.weight, *self.kv.weight.chunk(2)):
            nn.init.xavier_uniform_(weight, gain=2**-0.5)
        nn.init.xavier_uniform_(self.out.weight)
        for linear in (self.q, self.kv, self.out):
            nn.init.zeros_(linear.bias)

    def memory(self, encoded: Tensor) -> State:
        """Keys and values, B H S R each, of the encoded source, B S C."""
        # Laid out as they will be read, once for each target token.
        key, value = (split_heads(part, self.heads).contiguous() for part in self.kv(encoded).chunk(2, -1))
        return {"key": key, "value": value}

    def forward(self, x: Tensor, memory: State, keep: Tensor) -> Tensor:
        """Attend to a memory whose padding ``keep``, B S, leaves out.

        It does not look across target time, so that a sentence's steps and its hypotheses are alike.

        Args:
            x: B T C, N T C or N C, where N is B times the beam, a sentence's hypotheses side by side.

        Returns:
            The shape of ``x``.
        """
        q = split_heads(self.q(x).view(keep.shape[0], -1, self.q.out_features), self.heads)
        dropout = self.dropout if self.training else 0.0
        mixed = attend(q, memory["key"], memory["value"], keep[:, None, None, :], dropout)
        return self.out(merge_heads(mixed).view(*x.shape[:-1], -1))

    def weights(self, x: Tensor, memory: State, keep: Tensor) -> Tensor:
        """The attention itself, averaged over the heads: B T S, each row a distribution over the source."""
        q = split_heads(self.q(x), self.heads)
        logits = q @ memory["key"].transpose(-1, -2) * q.shape[-1] ** -0.5
        return logits.masked_fill(~keep[:, None, None, :], float("-inf")).softmax(-1).mean(1)
