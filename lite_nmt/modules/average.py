"""Average attention (Zhang, Xiong and Su 2018): the mean of what came before, a feed-forward network, a gate."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lite_nmt.modules.convolution import xavier
from lite_nmt.modules.mixer import Mixer, State


class AverageAttention(Mixer):
    """g[t] = FFN(mean of x[0..t]); [i, f] = sigmoid(W [x; g]); o = i * x + f * g (equations 1 to 3).

    Without ``causal`` the mean is over the whole sentence. The state is the running sum, however long the prefix.
    """

    def __init__(self, width: int, ffn: int, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.ffn = nn.Sequential(xavier(width, ffn), nn.ReLU(), xavier(ffn, width))
        self.gate = xavier(2 * width, 2 * width)

    def mix(self, x: Tensor, mean: Tensor) -> Tensor:
        """Feed-forward and gate, for any leading dimensions."""
        g = self.ffn(mean.to(x.dtype))
        i, f = self.gate(torch.cat([x, g], -1)).sigmoid().chunk(2, -1)
        return i * x + f * g

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        if keep is not None:
            x = x.masked_fill(~keep.unsqueeze(-1), 0)
        if self.causal:
            count = torch.arange(1, x.shape[1] + 1, device=x.device).unsqueeze(-1)
            return self.mix(x, x.float().cumsum(1) / count)
        total = x.float().sum(1, keepdim=True)
        count = torch.full_like(total[..., :1], x.shape[1]) if keep is None else keep.sum(1)[:, None, None]
        return self.mix(x, (total / count).expand(x.shape))

    def weights(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """The mean's own, one head: what the gate lets through of the step itself is left out."""
        there = torch.ones(x.shape[:2], device=x.device) if keep is None else keep.float()
        if self.causal:
            steps = torch.arange(1, x.shape[1] + 1, device=x.device)
            rows = (steps[None, :] <= steps[:, None]) / steps[:, None]
            return (rows * there[:, None, :]).unsqueeze(1)
        return (there / there.sum(1, keepdim=True))[:, None, None, :].expand(-1, 1, x.shape[1], -1)

    def initial_state(self, x: Tensor) -> State:
        return {"sum": torch.zeros_like(x, dtype=torch.float32)}

    def step(self, x: Tensor, position: int | Tensor, state: State) -> tuple[Tensor, State]:
        total = state["sum"] + x.float()
        return self.mix(x, total / (position + 1)), {"sum": total}
