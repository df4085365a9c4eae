"""Adaptive inputs and adaptive softmax: rare types get narrow embeddings (Baevski and Auli 2019; Grave et al. 2017).

The types stand by falling frequency and are cut into bands. Band b of V_b types has embeddings of C / factor^b
channels and a linear map to C. The first band of the softmax scores its own types and one for each other band, which
stands for all types in it: log p(w) = log p(band) + log p(w | band).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lite_nmt.modules.embedding import sinusoid


class Bands(nn.Module):
    """Tables of all bands and their maps to C channels: one set where input and softmax are tied.

    The first table's last rows stand for the other bands. Differs from the released code, where those rows are of C
    channels and meet the model's output itself: here they stand behind the first band's map, as its types do.
    """

    def __init__(self, types: int, width: int, cutoffs: Sequence[int], factor: int) -> None:
        super().__init__()
        edges = (0, *cutoffs, types)
        self.spans = tuple(itertools.pairwise(edges))
        self.widths = tuple(width // factor**b for b in range(len(self.spans)))
        rows = [end - begin for begin, end in self.spans]
        rows[0] += len(cutoffs)
        self.tables = nn.ParameterList(torch.empty(n, c) for n, c in zip(rows, self.widths, strict=True))
        self.maps = nn.ParameterList(torch.empty(width, c) for c in self.widths)
        for table, linear in zip(self.tables, self.maps, strict=True):
            nn.init.normal_(table, std=table.shape[1] ** -0.5)
            nn.init.xavier_uniform_(linear)

    def look_up(self, index: Tensor, band: int) -> Tensor:
        """Rows of one band's table: ... to ... C_b."""
        return F.embedding(index, self.tables[band])

    def embed(self, rows: Tensor) -> Tensor:
        """What all bands looked up, side by side: ... to ... C, scaled by sqrt(C)."""
        linear = torch.cat(list(self.maps), 1)
        return F.linear(rows, linear) * math.sqrt(linear.shape[0])

    def project(self, x: Tensor, band: int) -> Tensor:
        """... C to the channels of one band."""
        return F.linear(x, self.maps[band].t().to(x.dtype))

    def score(self, x: Tensor, band: int) -> Tensor:
        """... C to a score of each row of one band's table."""
        return F.linear(self.project(x, band), self.tables[band])


class AdaptiveEmbedding(nn.Module):
    """sqrt(C) * M_b E_b[token] + position, for the token's band b."""

    def __init__(self, bands: Bands) -> None:
        super().__init__()
        self.bands = bands

    def forward(self, tokens: Tensor, positions: Tensor | None) -> Tensor:
        """As :class:`~lite_nmt.modules.embedding.Embedding`'s."""
        found = []
        for band, (begin, end) in enumerate(self.bands.spans):
            rows = self.bands.look_up((tokens - begin).clamp(0, end - begin - 1), band)
            found.append(rows * ((tokens >= begin) & (tokens < end)).unsqueeze(-1))
        embedded = self.bands.embed(torch.cat(found, -1))
        return embedded if positions is None else embedded + sinusoid(positions, embedded.shape[-1]).to(embedded.dtype)


class AdaptiveSoftmax(nn.Module):
    """Log-probabilities of all types, and the softmaxes that score given ones at less cost."""

    def __init__(self, bands: Bands) -> None:
        super().__init__()
        self.bands = bands

    def forward(self, x: Tensor) -> Tensor:
        """... C to ... V."""
        head, *tails = (self.bands.score(x, b).log_softmax(-1) for b in range(len(self.bands.spans)))
        frequent = self.bands.spans[0][1]
        parts = [tail + head[..., frequent + b, None] for b, tail in enumerate(tails)]
        return torch.cat([head[..., :frequent], *parts], -1)

    def parts(self, x: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """The softmaxes whose log-likelihoods add up to that of ``labels``, N, after ``x``, N C: each as what it reads,
        its matrix, and its own labels."""
        frequent = self.bands.spans[0][1]
        first = labels
        tails = []
        for b, (begin, end) in enumerate(self.bands.spans[1:], 1):
            there = (labels >= begin) & (labels < end)
            first = first.masked_fill(there, frequent + b - 1)
            tails.append((self.bands.project(x[there], b), self.bands.tables[b], labels[there] - begin))
        yield self.bands.project(x, 0), self.bands.tables[0], first
        yield from tails
