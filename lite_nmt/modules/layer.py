"""Encoder and decoder layers: mixers and a feed-forward network, each in a residual with a layer norm."""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor, nn

from lite_nmt.modules.attention import CrossAttention
from lite_nmt.modules.dropout import Dropout
from lite_nmt.modules.mixer import Mixer, State


class FeedForward(nn.Module):
    """Two linear layers around ReLU, or Swish for TaLK."""

    def __init__(self, width: int, hidden: int, activation: str, dropout: float = 0.0) -> None:
        super().__init__()
        self.inner, self.out = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.activation = {"relu": F.relu, "swish": F.silu}[activation]
        self.dropout = Dropout(dropout)
        # Glorot's bound with fan_out doubled. Differs from the released Lite Transformer, which puts 2 fan_in for
        # fan_out: the same where hidden = width, as in its models.
        nn.init.uniform_(self.inner.weight, -(b := math.sqrt(6 / (width + 2 * hidden))), b)
        nn.init.uniform_(self.out.weight, -(b := math.sqrt(6 / (hidden + 2 * width))), b)
        nn.init.zeros_(self.inner.bias)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.dropout(self.activation(self.inner(x))))


class Residual(nn.Module):
    """x + f(x), normalised after the sum ("post", the papers') or before f ("pre").

    Split in two halves, because what stands between them takes different arguments in each of its forms.
    """

    def __init__(self, width: int, dropout: float, pre: bool) -> None:
        super().__init__()
        self.norm, self.dropout, self.pre = nn.LayerNorm(width), Dropout(dropout), pre

    def enter(self, x: Tensor) -> Tensor:
        """The branch's input."""
        return self.norm(x) if self.pre else x

    def leave(self, x: Tensor, branch: Tensor) -> Tensor:
        """The sum."""
        x = x + self.dropout(branch)
        return x if self.pre else self.norm(x)


class EncoderLayer(nn.Module):
    """Mixer, feed-forward; the latter is None in all-attention. With a causal mixer it is a language model's layer."""

    def __init__(self, mixer: Mixer, ffn: FeedForward | None, width: int, dropout: float, pre: bool) -> None:
        super().__init__()
        self.mixer, self.ffn = mixer, ffn
        self.mix, self.feed = Residual(width, dropout, pre), Residual(width, dropout, pre) if ffn else None

    def rest(self, x: Tensor, mixed: Tensor) -> Tensor:
        """All that follows the mixer: the same for one step and for many."""
        return feed(self.feed, self.ffn, self.mix.leave(x, mixed))

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        return self.rest(x, self.mixer(self.mix.enter(x), keep))


def feed(residual: Residual | None, ffn: FeedForward | None, x: Tensor) -> Tensor:
    """A layer's last branch, where there is one."""
    return residual.leave(x, ffn(residual.enter(x))) if residual and ffn else x


class DecoderLayer(nn.Module):
    """Causal mixer, attention to the source, feed-forward."""

    def __init__(
        self, mixer: Mixer, cross: CrossAttention, ffn: FeedForward | None, width: int, dropout: float, pre: bool
    ) -> None:
        super().__init__()
        self.mixer, self.cross, self.ffn = mixer, cross, ffn
        self.mix, self.look = Residual(width, dropout, pre), Residual(width, dropout, pre)
        self.feed = Residual(width, dropout, pre) if ffn else None

    def rest(self, x: Tensor, mixed: Tensor, memory: State, keep: Tensor) -> Tensor:
        """All that follows the mixer: the same for one step and for many."""
        x = self.mix.leave(x, mixed)
        x = self.look.leave(x, self.cross(self.look.enter(x), memory, keep))
        return feed(self.feed, self.ffn, x)

    def forward(self, x: Tensor, memory: State, keep: Tensor) -> Tensor:
        """x: N T C, where N is the memory's batch times the beam, a sentence's hypotheses side by side."""
        return self.rest(x, self.mixer(self.mix.enter(x)), memory, keep)

    def step(
        self, x: Tensor, position: int | Tensor, state: State, memory: State, keep: Tensor
    ) -> tuple[Tensor, State]:
        """x: N C, with N as in :meth:`forward`."""
        mixed, state = self.mixer.step(self.mix.enter(x), position, state)
        return self.rest(x, mixed, memory, keep), state
