"""The language model: a decoder without a source. What came before in, scores of the next token out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import torch
from torch import Tensor, nn

from lite_nmt.config import Config
from lite_nmt.models.build import build_language_layer
from lite_nmt.modules.adaptive import AdaptiveEmbedding, AdaptiveSoftmax, Bands
from lite_nmt.modules.adaptive_span import AdaptiveSpan
from lite_nmt.modules.dropout import Dropout
from lite_nmt.modules.embedding import Embedding
from lite_nmt.modules.layer import EncoderLayer
from lite_nmt.modules.mixer import State, prefixed, without_prefix


class LanguageModel(nn.Module):
    """A model as its configuration says, of ``model.decoder``'s layers. Tokens are int64, B T or N.

    Where spans are adaptive it carries a cache from one block of a text to the next: for each layer what its mixer read
    last, as far back as its widest head sees. All other models read each block by itself.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        model, types = config.model, config.vocabulary.target
        width, tied = model.width, model.tie != "none"
        self.target: Embedding | AdaptiveEmbedding
        self.project: nn.Linear | AdaptiveSoftmax
        if model.cutoffs:
            bands = Bands(types, width, model.cutoffs, model.cutoff_factor)
            self.target = AdaptiveEmbedding(bands)
            self.project = AdaptiveSoftmax(bands if tied else Bands(types, width, model.cutoffs, model.cutoff_factor))
        else:
            self.target, self.project = Embedding(types, width), nn.Linear(width, types, bias=False)
            if tied:
                self.project.weight = self.target.weight
            else:
                nn.init.normal_(self.project.weight, std=width**-0.5)
        self.carries = model.carries
        self.dropout = Dropout(model.dropout)
        self.decoder = nn.ModuleList(build_language_layer(model, i) for i in range(model.decoder.layers))
        self.decoder_norm = nn.LayerNorm(width) if model.norm == "pre" else nn.Identity()
        self.width = width

    def look_up(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Embeddings; adaptive spans tell positions by themselves."""
        return self.target(tokens, None if self.carries else positions)

    def forward(self, tokens: Tensor, cache: State | None = None) -> tuple[Tensor, State]:
        """A block of a text: B T to B T C, before the projection to the vocabulary.

        Args:
            cache: what the block before left; None at the beginning. It is not changed.

        Returns:
            B T C, and the next cache, which holds no gradient.
        """
        x = self.dropout(self.look_up(tokens, torch.arange(tokens.shape[1], device=tokens.device)))
        after: State = {}
        for name, layer in self.layers():
            entered = layer.mix.enter(x)
            if isinstance(layer.mixer, AdaptiveSpan):
                past = cache.get(name) if cache else None
                mixed = layer.mixer(entered, None, past)
                known = entered if past is None else torch.cat([past, entered], 1)
                after[name] = known[:, max(known.shape[1] - layer.mixer.sees() + 1, 0) :].detach()
            else:
                mixed = layer.mixer(entered)
            x = layer.rest(x, mixed)
        return self.decoder_norm(x), after

    def initial_state(self, batch: int) -> State:
        """State of every layer's mixer before the first step."""
        like = next(self.parameters()).new_empty(batch, self.width)
        state: State = {}
        for name, layer in self.layers():
            state |= prefixed(name, layer.mixer.initial_state(like))
        return state

    def step(self, token: Tensor, position: int | Tensor, state: State) -> tuple[Tensor, State]:
        """One token, N, after ``position`` others: scores of the next one, N V, and the next state."""
        x = self.look_up(token, torch.as_tensor(position, device=token.device))
        after: State = {}
        for name, layer in self.layers():
            mixed, own = layer.mixer.step(layer.mix.enter(x), position, without_prefix(name, state))
            x = layer.rest(x, mixed)
            after |= prefixed(name, own)
        return self.project(self.decoder_norm(x)), after

    def parts(self, x: Tensor, labels: Tensor) -> Iterable[tuple[Tensor, Tensor, Tensor]]:
        """As :meth:`AdaptiveSoftmax.parts`; a plain softmax is one."""
        if isinstance(self.project, AdaptiveSoftmax):
            return self.project.parts(x, labels)
        return [(x, self.project.weight, labels)]

    def layers(self) -> Iterator[tuple[str, EncoderLayer]]:
        """The layers with the names that state and cache know them by."""
        for i, layer in enumerate(self.decoder):
            yield str(i), cast(EncoderLayer, layer)

    def spans(self) -> list[AdaptiveSpan]:
        """The mixers whose spans are adaptive, layer by layer."""
        return [layer.mixer for _, layer in self.layers() if isinstance(layer.mixer, AdaptiveSpan)]
