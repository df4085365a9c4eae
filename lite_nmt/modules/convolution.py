"""Convolutions as mixers: LightConv, DynamicConv, TaLK, and Pay Less Attention's plain CNN rows."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lite_nmt.errors import LiteNmtError
from lite_nmt.modules.dropout import Dropout
from lite_nmt.modules.mixer import Mixer, State
from lite_nmt.ops.banded import band_matrix, banded, banded_step, normalize_taps, talk_taps
from lite_nmt.ops.dynamic_conv.api import dynamic_conv
from lite_nmt.ops.implementation import Implementation, use_triton
from lite_nmt.ops.light_conv.api import light_conv
from lite_nmt.ops.talk_conv.api import talk_conv


def xavier(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """A linear layer with Glorot's uniform weights and no initial bias."""
    linear = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(linear.weight)
    if bias:
        nn.init.zeros_(linear.bias)
    return linear


class Taps(nn.Module):
    """A producer of the band's weights: K taps, P of them to the left of the current step."""

    taps: int
    padding: int
    renormalize: bool
    fusable: bool  # whether the fused kernels can make these taps
    dropout: Dropout

    @property
    def drops(self) -> float:
        """With what probability a tap, or an offset, is dropped now."""
        return self.dropout.p if self.training else 0.0

    def convolve(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """The banded product of x, B T C, with its own taps, by the fused kernels."""
        raise NotImplementedError

    def forward(self, x: Tensor, valid: Tensor | None) -> Tensor:
        """Taps for x, ... C: H K where they are constant, else ... H K. ``valid``, ... K (true where a tap meets a
        token), is given only to producers that renormalise."""
        raise NotImplementedError


def absent(norm: str) -> float:
    """The logit of a tap that must weigh nothing after normalisation."""
    return float("-inf") if norm in ("softmax", "sigmoid") else 0.0


class LightTaps(Taps):
    """softmax_k(w[h]): constant over time (Pay Less Attention, equations 4 and 5)."""

    def __init__(self, heads: int, taps: int, padding: int, norm: str, dropout: float, renormalize: bool) -> None:
        super().__init__()
        self.taps, self.padding, self.norm, self.renormalize = taps, padding, norm, renormalize
        self.fusable = norm == "softmax" and not renormalize
        self.weight = nn.Parameter(torch.empty(heads, taps))
        nn.init.xavier_uniform_(self.weight)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, valid: Tensor | None) -> Tensor:
        weight: Tensor = self.weight
        if valid is not None:
            weight = weight.masked_fill(~valid.unsqueeze(-2), absent(self.norm))
        return self.dropout(normalize_taps(weight, self.norm)).to(x.dtype)

    def convolve(self, x: Tensor, keep: Tensor | None) -> Tensor:
        return light_conv(x, self.weight, self.padding, keep=keep, dropout=self.drops, impl="triton")


class DynamicTaps(Taps):
    """softmax_k(W x[t]): predicted from the current step alone (Pay Less Attention, equation 6)."""

    def __init__(
        self, width: int, heads: int, taps: int, padding: int, norm: str, dropout: float, renormalize: bool
    ) -> None:
        super().__init__()
        self.taps, self.padding, self.norm, self.renormalize = taps, padding, norm, renormalize
        self.fusable = norm == "softmax" and not renormalize
        self.heads = heads
        self.linear = xavier(width, heads * taps, bias=False)
        self.dropout = Dropout(dropout)

    def logits(self, x: Tensor) -> Tensor:
        """The taps before they are normalised, ... H K."""
        return self.linear(x).unflatten(-1, (self.heads, self.taps))

    def forward(self, x: Tensor, valid: Tensor | None) -> Tensor:
        weight = self.logits(x)
        if valid is not None:
            weight = weight.masked_fill(~valid.unsqueeze(-2), absent(self.norm))
        return self.dropout(normalize_taps(weight, self.norm)).to(x.dtype)

    def convolve(self, x: Tensor, keep: Tensor | None) -> Tensor:
        return dynamic_conv(x, self.logits(x), self.padding, keep=keep, dropout=self.drops, impl="triton")


class TalkTaps(Taps):
    """A soft box whose two ends are predicted from the current step (TaLK Convolutions, equations 2 to 8)."""

    def __init__(self, width: int, heads: int, left: int, right: int, dropout: float) -> None:
        super().__init__()
        self.left, self.right = left, right
        self.taps, self.padding, self.renormalize, self.fusable = left + right + 1, left, False, True
        self.offsets = xavier(width, heads * (2 if right else 1))
        self.dropout = Dropout(dropout)

    def reach(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """a_l and a_r, ... H each, as shares of L and R; the second is None where R = 0."""
        return self.ends(self.dropout(self.offsets(x).sigmoid()))

    def ends(self, offsets: Tensor) -> tuple[Tensor, Tensor | None]:
        """Left and right offsets apart."""
        left, right = offsets.chunk(2, -1) if self.right else (offsets, None)
        return left, right

    def forward(self, x: Tensor, valid: Tensor | None) -> Tensor:
        left, right = self.reach(x)
        return talk_taps(left, right, self.left, self.right).to(x.dtype)

    def convolve(self, x: Tensor, keep: Tensor | None) -> Tensor:
        left, right = self.ends(self.offsets(x).sigmoid())
        return talk_conv(x, left, right, self.left, self.right, keep=keep, dropout=self.drops, impl="triton")


class Convolution(Mixer):
    """Linear (or linear to 2C and GLU), the banded product, linear (Pay Less Attention, figure 2).

    Padded positions are zeroed after the input projection: zeroing before a biased linear would let the bias
    back in, and make a sentence's result depend on its batch. Between the projections there are ``channels``: C, or
    what pruning left of them. ``impl`` says whether the fused kernels compute the product; they know taps that are
    normalised by softmax over all K, and "auto" leaves others to the reference.
    """

    impl: Implementation = "auto"

    def __init__(self, width: int, producer: Taps, glu: bool, channels: int | None = None) -> None:
        super().__init__()
        channels = channels or width
        self.glu = glu
        self.inner = xavier(width, 2 * channels if glu else channels)
        self.producer = producer
        self.out = xavier(channels, width)

    def project(self, x: Tensor) -> Tensor:
        """What the taps are applied to."""
        x = self.inner(x)
        return F.glu(x, -1) if self.glu else x

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        x = self.project(x)
        if self.fused(x):
            return self.out(self.producer.convolve(x, keep))
        x, band = self.operands(x, keep)
        return self.out(banded(x, band, self.producer.padding))

    def fused(self, x: Tensor) -> bool:
        """Whether the kernels compute the product for a projected x.

        Raises:
            LiteNmtError: ``impl`` is "triton", and they cannot.
        """
        fusable = self.producer.fusable
        if self.impl == "triton" and not fusable:
            raise LiteNmtError(
                'the kernels know only weight_norm = "softmax" without renormalize; use kernels = "auto".'
            )
        return fusable and use_triton(self.impl, x)

    def operands(self, x: Tensor, keep: Tensor | None) -> tuple[Tensor, Tensor]:
        """The banded product's two sides for a projected x: B T C, and the taps."""
        if keep is not None:
            x = x.masked_fill(~keep.unsqueeze(-1), 0)
        valid = self.valid_taps(x, keep) if self.producer.renormalize else None
        return x, self.producer(x, valid)

    def weights(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """The band laid out. Weights may be negative where ``norm`` is not softmax or sigmoid."""
        x, band = self.operands(self.project(x), keep)
        batch, length, _ = x.shape
        matrix = band_matrix(band, length, self.producer.padding).expand(batch, -1, -1, -1)
        return matrix if keep is None else matrix.masked_fill(~keep[:, None, None, :], 0)

    def valid_taps(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """B T K: which taps meet a token. The current step always does, so that no softmax is empty."""
        there = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if keep is None else keep
        taps, padding = self.producer.taps, self.producer.padding
        ahead = F.pad(there, (padding, taps - 1 - padding))
        tap = torch.arange(taps, device=x.device)
        index = torch.arange(x.shape[1], device=x.device).unsqueeze(1) + tap  # T K
        # Tensor.unfold would be the same, but a graph that holds it takes no sentence shorter than K.
        around = ahead.index_select(1, index.flatten()).view(x.shape[0], -1, taps)
        return around | (tap == padding)

    def initial_state(self, x: Tensor) -> State:
        return {"inputs": x.new_zeros(x.shape[0], self.producer.taps - 1, self.out.in_features)}

    def step(self, x: Tensor, position: int | Tensor, state: State) -> tuple[Tensor, State]:
        x = self.project(x)
        window = torch.cat([state["inputs"], x.unsqueeze(1)], 1)
        valid = None
        if self.producer.renormalize:
            taps = self.producer.taps
            valid = (torch.arange(taps, device=x.device) >= taps - 1 - position).expand(x.shape[0], taps)
        mixed = banded_step(window, self.producer(x, valid))
        return self.out(mixed), {"inputs": window[:, 1:]}


class PlainConvolution(Mixer):
    """A full convolution, C x C x K: the "CNN" row of Pay Less Attention's Table 3.

    It mixes channels by itself, and has no projections around it: only so do the row's 208M parameters come out.
    """

    def __init__(self, width: int, taps: int, padding: int, glu: bool) -> None:
        super().__init__()
        self.glu, self.taps, self.padding = glu, taps, padding
        self.conv = nn.Conv1d(width, 2 * width if glu else width, taps)
        nn.init.xavier_uniform_(self.conv.weight)
        if self.conv.bias is not None:  # typed as optional
            nn.init.zeros_(self.conv.bias)

    def mix(self, x: Tensor) -> Tensor:
        """B T+K-1 C -> B T C."""
        x = self.conv(x.transpose(1, 2)).transpose(1, 2)
        return F.glu(x, -1) if self.glu else x

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        if keep is not None:
            x = x.masked_fill(~keep.unsqueeze(-1), 0)
        return self.mix(F.pad(x, (0, 0, self.padding, self.taps - 1 - self.padding)))

    def weights(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """One head: a tap is a C x C matrix here, so its weight is its share of the taps' Frobenius norms."""
        norms = self.conv.weight.norm(dim=(0, 1))
        matrix = band_matrix((norms / norms.sum()).unsqueeze(0), x.shape[1], self.padding)
        matrix = matrix.expand(x.shape[0], -1, -1, -1)
        return matrix if keep is None else matrix.masked_fill(~keep[:, None, None, :], 0)

    def initial_state(self, x: Tensor) -> State:
        return {"inputs": x.new_zeros(x.shape[0], self.taps - 1, x.shape[1])}

    def step(self, x: Tensor, position: int | Tensor, state: State) -> tuple[Tensor, State]:
        window = torch.cat([state["inputs"], x.unsqueeze(1)], 1)
        return self.mix(window).squeeze(1), {"inputs": window[:, 1:]}
