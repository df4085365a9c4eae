"""The encoder-decoder: source tokens in, scores of the next target token out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import torch
from torch import Tensor, nn

from lite_nmt.config import Config
from lite_nmt.models.build import build_decoder_layer, build_encoder_layer
from lite_nmt.modules.dropout import Dropout
from lite_nmt.modules.embedding import Embedding
from lite_nmt.modules.layer import DecoderLayer
from lite_nmt.modules.mixer import State, prefixed, without_prefix


class TranslationModel(nn.Module):
    """A model as its configuration says.

    Tokens are int64. ``keep``, B S, is true where the source is not padding. ``memory`` is what a decoder needs of
    the source: for each layer the cross-attention's keys and values, B H S R.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        model, vocabulary = config.model, config.vocabulary
        width = model.width
        self.target = Embedding(vocabulary.target, width)
        self.source = self.target if model.tie == "all" else Embedding(vocabulary.source, width)
        self.project = nn.Linear(width, vocabulary.target, bias=False)
        if model.tie == "none":
            nn.init.normal_(self.project.weight, std=width**-0.5)
        else:
            self.project.weight = self.target.weight
        self.dropout = Dropout(model.dropout)
        self.encoder = nn.ModuleList(build_encoder_layer(model, i) for i in range(model.encoder.layers))
        self.decoder = nn.ModuleList(build_decoder_layer(model, i) for i in range(model.decoder.layers))
        pre = model.norm == "pre"
        self.encoder_norm = nn.LayerNorm(width) if pre else nn.Identity()
        self.decoder_norm = nn.LayerNorm(width) if pre else nn.Identity()

    def forward(self, source: Tensor, keep: Tensor, target: Tensor) -> Tensor:
        """Teacher forcing: the decoder's output, B T C, before the projection to the vocabulary."""
        return self.decode(target, self.memory(self.encode(source, keep)), keep)

    def encode(self, source: Tensor, keep: Tensor) -> Tensor:
        """B S -> B S C."""
        x = self.dropout(self.source(source, torch.arange(source.shape[1], device=source.device)))
        for layer in self.encoder:
            x = layer(x, keep)
        return self.encoder_norm(x)

    def memory(self, encoded: Tensor) -> State:
        """Keys and values of every layer's cross-attention, computed once a sentence."""
        memory: State = {}
        for name, layer in self.decoder_layers():
            memory |= prefixed(name, layer.cross.memory(encoded))
        return memory

    def decode(self, target: Tensor, memory: State, keep: Tensor) -> Tensor:
        """N T -> N T C, all target steps at once; N is the memory's batch times the beam."""
        x = self.dropout(self.target(target, torch.arange(target.shape[1], device=target.device)))
        for name, layer in self.decoder_layers():
            x = layer(x, without_prefix(name, memory), keep)
        return self.decoder_norm(x)

    def initial_state(self, batch: int) -> State:
        """State of every decoder layer's mixer before the first step."""
        like = self.target.weight.new_empty(batch, self.target.weight.shape[1])
        state: State = {}
        for name, layer in self.decoder_layers():
            state |= prefixed(name, layer.mixer.initial_state(like))
        return state

    def step(
        self, token: Tensor, position: int | Tensor, state: State, memory: State, keep: Tensor
    ) -> tuple[Tensor, State]:
        """One target step.

        Args:
            token: N, the previous tokens; N is the memory's batch times the beam.
            position: how many tokens came before this one.

        Returns:
            Scores of the next token, N V, and the next state.
        """
        x = self.target(token, torch.as_tensor(position, device=token.device))
        x, state = self.advance(x, position, state, memory, keep)
        return self.project(x), state

    def advance(
        self, x: Tensor, position: int | Tensor, state: State, memory: State, keep: Tensor
    ) -> tuple[Tensor, State]:
        """:meth:`step` between the embedding and the projection to the vocabulary: N C to N C, and the next state."""
        after: State = {}
        for name, layer in self.decoder_layers():
            own, known = without_prefix(name, state), without_prefix(name, memory)
            x, own = layer.step(x, position, own, known, keep)
            after |= prefixed(name, own)
        return self.decoder_norm(x), after

    def alignment(self, target: Tensor, memory: State, keep: Tensor) -> Tensor:
        """The last layer's attention to the source, averaged over the heads: B T S."""
        x = self.target(target, torch.arange(target.shape[1], device=target.device))
        *before, (last_name, last) = self.decoder_layers()
        for name, layer in before:
            x = layer(x, without_prefix(name, memory), keep)
        x = last.mix.leave(x, last.mixer(last.mix.enter(x)))
        return last.cross.weights(last.look.enter(x), without_prefix(last_name, memory), keep)

    def decoder_layers(self) -> Iterator[tuple[str, DecoderLayer]]:
        """The decoder's layers with the names that state and memory know them by."""
        for i, layer in enumerate(self.decoder):
            yield str(i), cast(DecoderLayer, layer)
