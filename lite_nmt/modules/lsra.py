"""Long-Short Range Attention (Lite Transformer, section 4): two mixers side by side on channel halves."""

from __future__ import annotations

import torch
from torch import Tensor

from lite_nmt.modules.mixer import Mixer, State, prefixed, without_prefix


class LSRA(Mixer):
    """Attention on channels [0, C/2), which is left to see far; a convolution on [C/2, C), which sees near.

    The outputs are concatenated; there is no projection after it. It has no ``weights`` of its own: its two parts have.
    """

    def __init__(self, attention: Mixer, convolution: Mixer) -> None:
        super().__init__()
        self.attention, self.convolution = attention, convolution

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        far, near = x.chunk(2, -1)
        return torch.cat([self.attention(far, keep), self.convolution(near, keep)], -1)

    def initial_state(self, x: Tensor) -> State:
        far, near = x.chunk(2, -1)
        return {
            **prefixed("attention", self.attention.initial_state(far)),
            **prefixed("convolution", self.convolution.initial_state(near)),
        }

    def step(self, x: Tensor, position: int | Tensor, state: State) -> tuple[Tensor, State]:
        far, near = x.chunk(2, -1)
        far, attention = self.attention.step(far, position, without_prefix("attention", state))
        near, convolution = self.convolution.step(near, position, without_prefix("convolution", state))
        state = {**prefixed("attention", attention), **prefixed("convolution", convolution)}
        return torch.cat([far, near], -1), state
