"""The functions that graphs are made of, each a module around the one model.

Tensors of a state stand as B W ..., a sentence's W hypotheses side by side; a greedy search has no W. Lengths are
int64, and so are tokens; a graph tells padding from the source itself.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from lite_nmt.data.vocabulary import BOS, EOS, PAD
from lite_nmt.export.shortlist import Shortlist
from lite_nmt.models.language import LanguageModel
from lite_nmt.models.translation import TranslationModel
from lite_nmt.modules.embedding import sinusoid
from lite_nmt.modules.mixer import State


class Encode(nn.Module):
    """Source tokens, B S, to every decoder layer's keys and values, B H S R."""

    def __init__(self, model: TranslationModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor) -> State:
        return self.model.memory(self.model.encode(source, source != PAD))


class DecodeStep(nn.Module):
    """One step of B W hypotheses, which first take the states of their parents."""

    def __init__(self, model: TranslationModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, source: Tensor, token: Tensor, parent: Tensor, position: Tensor, memory: State, state: State
    ) -> tuple[Tensor, State]:
        """
        Args:
            source: B S, for its padding.
            token: B W, the last tokens.
            parent: B W, which of the sentence's hypotheses each continues.
            position: how many tokens came before the last one.

        Returns:
            Scores, B W V, before softmax; and the next state.
        """
        batch, width = token.shape
        state = flat(reorder(state, parent))
        logits, state = self.model.step(token.flatten(), position, state, memory, source != PAD)
        return logits.view(batch, width, -1), beamed(state, batch, width)


class LanguageStep(nn.Module):
    """One token of each of B texts."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, token: Tensor, position: Tensor, state: State) -> tuple[Tensor, State]:
        """Scores of the next token, B V, and the next state."""
        return self.model.step(token, position, state)


class Choose(nn.Module):
    """A sentence's shortlist: what its own tokens add to the types that every sentence has."""

    def __init__(self, model: TranslationModel, shortlist: Shortlist) -> None:
        super().__init__()
        self.model = model
        self.frequent = torch.from_numpy(shortlist.frequent).long()
        everywhere = np.isin(shortlist.table, shortlist.frequent)
        self.table = torch.from_numpy(np.where(everywhere, EOS, shortlist.table))

    def forward(self, source: Tensor) -> State:
        """``types``, B F-1+J, all but the end marker, which is the first of F; ``weight``, B C J, of the sentence's own
        rows of the output projection; ``bias``, B J, which leaves out what stands there twice."""
        batch = source.shape[0]
        own = self.table.index_select(0, source.flatten()).view(batch, -1).long().sort(1).values
        again = nn.functional.pad(own[:, 1:] == own[:, :-1], (1, 0)) | (own == EOS)  # what fills up the table
        types = torch.cat([self.frequent[1:].expand(batch, -1), own], 1)
        weight = nn.functional.embedding(own, self.model.project.weight).transpose(1, 2)
        return {"types": types, "weight": weight, "bias": again * -1e9}


class Projection(nn.Module):
    """The output projection of a search: over all types, or over a sentence's shortlist."""

    def __init__(self, model: TranslationModel, shortlist: Shortlist | None) -> None:
        super().__init__()
        weight = model.project.weight
        self.always = None if shortlist is None else weight[torch.from_numpy(shortlist.frequent).long()].detach()
        self.all = model.project

    def forward(self, x: Tensor, chosen: State) -> tuple[Tensor, Tensor]:
        """Scores before softmax, B W 1+J, of the end marker and J other types, and what normalises them, B W."""
        if self.always is None:
            logits = self.all(x)
            return logits[..., EOS:], logits.logsumexp(-1)
        own = x @ chosen["weight"] + chosen["bias"].unsqueeze(1)
        logits = torch.cat([nn.functional.linear(x, self.always), own], -1)
        return logits, logits.logsumexp(-1)

    def types(self, place: Tensor, chosen: State) -> Tensor:
        """Which of the J types stands at a place, B ...."""
        return place + (EOS + 1) if self.always is None else chosen["types"].gather(1, place)

    def among(self, tokens: Tensor, others: Tensor, chosen: State) -> Tensor:
        """Which of the J types are among B W G ``tokens``: B W J, as ``others`` are; PAD is none."""
        if self.always is not None:
            return (chosen["types"][:, None, :, None] == tokens.unsqueeze(2)).any(-1)
        there = nn.functional.pad(torch.zeros_like(others, dtype=torch.int64), (1, 0))  # the first for PAD
        return there.scatter(-1, (tokens - EOS).clamp(min=0), 1)[..., 1:] > 0


class GreedyBegin(nn.Module):
    """What a greedy search starts from; it holds no weight."""

    def __init__(self, model: TranslationModel) -> None:
        super().__init__()
        self.state, self.width = model.initial_state(1), model.target.weight.shape[1]

    def forward(self, source: Tensor, max_length: Tensor, min_length: Tensor) -> tuple[Tensor, ...]:
        """Each sentence's limit, B 1; encodings of all positions, U C; token, going, state of :class:`GreedyStep`."""
        limits = limits_of(source, max_length, min_length).unsqueeze(1)
        state = {name: first.expand(source.shape[0], *first.shape[1:]) for name, first in self.state.items()}
        places = encodings(limits, self.width)
        return limits, places, torch.full_like(limits, BOS), torch.ones_like(limits), *state.values()


class GreedyStep(nn.Module):
    """The best token of each sentence. A sentence that has ended goes on as padding until all have."""

    def __init__(self, model: TranslationModel, shortlist: Shortlist | None) -> None:
        super().__init__()
        self.model, self.project = model, Projection(model, shortlist)

    def forward(
        self,
        position: Tensor,
        token: Tensor,
        going: Tensor,
        state: State,
        limits: Tensor,
        places: Tensor,
        min_length: Tensor,
        source: Tensor,
        memory: State,
        chosen: State,
    ) -> tuple[Tensor, Tensor, Tensor, State, Tensor, Tensor]:
        """
        Args:
            token, going: B 1, the last tokens, and 1 or 0 for whether a sentence goes on.
            limits: B 1, the most tokens that each sentence is given.
            places: U C, the encodings of all positions.
            chosen: what :class:`Choose` says, or nothing for all types.

        Returns:
            Whether any goes on; the new ``token``, ``going`` and state; the text's next tokens and their
            log-probabilities, B 1 each.
        """
        x = self.model.target.at(token.flatten(), places[position])
        x, state = self.model.advance(x, position, state, memory, source != PAD)
        logits, total = self.project(x.unsqueeze(1), chosen)
        end, (best, place) = logits[:, 0, :1], logits[:, 0, 1:].max(1, keepdim=True)
        ends = ((end >= best) & (position >= min_length)) | (position >= limits)
        logprob = torch.where(ends, end, best) - total
        going = torch.where(ends, 0, going)
        token = self.project.types(place, chosen)
        return going.max() > 0, token, going, state, token * going, logprob


class GreedyEnd(nn.Module):
    """What a greedy search found, in a beam search's shape."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, tokens: Tensor, logprobs: Tensor, length_penalty: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """T B 1 tokens and log-probabilities to target, B 1 T; score and log-probability, B 1 each."""
        target = tokens.permute(1, 2, 0)
        length = (target != PAD).sum(-1)  # padding follows only once a sentence has ended
        counts = torch.arange(target.shape[2], device=target.device) <= length.unsqueeze(-1)
        logprob = torch.where(counts, logprobs.permute(1, 2, 0), 0).sum(-1)
        return target, logprob / penalty_of(length + 1, length_penalty, self.kind), logprob


class BeamBegin(nn.Module):
    """What a beam search starts from: all hypotheses but one are impossible; it holds no weight."""

    def __init__(self, model: TranslationModel) -> None:
        super().__init__()
        self.state, self.width = model.initial_state(1), model.target.weight.shape[1]

    def forward(self, source: Tensor, max_length: Tensor, min_length: Tensor, slots: Tensor) -> tuple[Tensor, ...]:
        """Each sentence's limit, B; encodings of all positions, U C; token to scores and state of :class:`BeamStep`.
        ``slots``: 0 ... W-1."""
        limits = limits_of(source, max_length, min_length)
        batch, width = source.shape[0], slots.shape[0]
        nothing = torch.full((batch, width), -math.inf)
        total = torch.where(slots == 0, torch.zeros(()), nothing)
        token = torch.full((batch, width), BOS)
        texts = torch.zeros(batch, width, 0, dtype=torch.int64)
        state = {k: first.unsqueeze(1).expand(batch, width, *first.shape[1:]) for k, first in self.state.items()}
        ended = torch.zeros_like(limits)
        places = encodings(limits, self.width)
        return limits, places, token, total, texts, ended, texts.clone(), nothing, nothing.clone(), *state.values()


class BeamStep(nn.Module):
    """One step of ``lite_nmt.decode.search``'s beam search, its rule of ending included.

    Ended hypotheses go to a sentence's pool, the best W of them. A sentence that has ended changes no more.
    """

    def __init__(self, model: TranslationModel, shortlist: Shortlist | None, kind: str, ngram: int = 0) -> None:
        """
        Args:
            kind: of length penalty.
            ngram: so many tokens in a row are not said twice; 0: they may be.
        """
        super().__init__()
        self.model, self.project, self.kind, self.ngram = model, Projection(model, shortlist), kind, ngram

    def forward(
        self,
        position: Tensor,
        token: Tensor,
        total: Tensor,
        history: Tensor,
        ended: Tensor,
        texts: Tensor,
        logprobs: Tensor,
        scores: Tensor,
        state: State,
        limits: Tensor,
        places: Tensor,
        min_length: Tensor,
        length_penalty: Tensor,
        source: Tensor,
        memory: State,
        chosen: State,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, State]:
        """
        Args:
            token, total: B W, the last tokens and the log-probabilities so far, with what a stepwise penalty adds.
            history: B W P, all tokens so far.
            ended: B, how many hypotheses have; W or more once the sentence has.
            texts, logprobs, scores: B W P, B W and B W, the pool, the best first, minus infinity where there is none.
            limits: B, the most tokens that each sentence is given.
            places: U C, the encodings of all positions.
            chosen: what :class:`Choose` says, or nothing for all types.

        Returns:
            Whether any sentence goes on, and what has changed.
        """
        batch, width = token.shape
        x = self.model.target.at(token.flatten(), places[position])
        x, state = self.model.advance(x, position, flat(state), memory, source != PAD)
        logits, norm = self.project(x.view(batch, width, -1), chosen)
        logprob = logits - norm.unsqueeze(-1)
        end, others, early = logprob[..., :1], logprob[..., 1:], position < min_length
        if self.kind == "stepwise":
            others = others + length_penalty
        if self.ngram:
            others = others.masked_fill(self.project.among(repeated(history, self.ngram), others, chosen), -math.inf)
            early = early & (others.amax(-1, keepdim=True) > -math.inf)  # else nothing is left but to end
        end = end.masked_fill(early, -math.inf)
        others = others.masked_fill((position >= limits)[:, None, None], -math.inf)
        # Each hypothesis' own best first, so that the sums are of few numbers and not of the whole vocabulary.
        best, place = torch.cat([end, others], -1).topk(2 * width)
        best, rank = (best + total.unsqueeze(-1)).flatten(1).topk(2 * width)
        place, parent = place.flatten(1).gather(1, rank), rank // (2 * width)
        token = torch.where(place == 0, EOS, self.project.types((place - 1).clamp(min=0), chosen))

        ends, open_ = token == EOS, (ended < width).unsqueeze(1)
        now, text = best[:, :width], rows(history, parent[:, :width])
        new = ends[:, :width] & now.isfinite() & open_
        ended = ended + new.sum(1)
        if self.kind == "stepwise":
            score, now = now, now - length_penalty * position
        else:
            score = now / penalty_of(position + 1, length_penalty, self.kind)
        scores = torch.cat([scores, score.masked_fill(~new, -math.inf)], 1)
        scores, place = scores.topk(width)
        logprobs = torch.cat([logprobs, now], 1).gather(1, place)
        texts = rows(torch.cat([texts, text], 1), place)
        ended = torch.where(position >= limits, width, ended)

        total, place = best.masked_fill(ends, -math.inf).topk(width)
        parent, token = parent.gather(1, place), token.gather(1, place)
        history = torch.cat([rows(history, parent), token.unsqueeze(-1)], -1)
        texts = nn.functional.pad(texts, (0, 1), value=PAD)
        state = reorder(beamed(state, batch, width), parent)
        return (ended < width).any(), token, total, history, ended, texts, logprobs, scores, state


def limits_of(source: Tensor, max_length: Tensor, min_length: Tensor) -> Tensor:
    """``lite_nmt.decode.search.length_limit`` of each sentence, B."""
    length = (source != PAD).sum(1) - 1
    automatic = torch.maximum(3 * length // 2 + 20, min_length)
    return torch.where(max_length > 0, max_length, automatic)


def encodings(limits: Tensor, width: int) -> Tensor:
    """Of every position that a search may come to, U C: computed once, and not at every step."""
    count = cast(int, (limits.max() + 1).item())  # int() would make it a constant
    torch._check(count > 1)  # which the exporter cannot know
    return sinusoid(torch.arange(count), width)


def penalty_of(length: Tensor, exponent: Tensor, kind: str) -> Tensor:
    """``lite_nmt.decode.search.length_penalty``; ``length`` counts the end marker."""
    return (length if kind == "power" else (5 + length) / 6).float() ** exponent


def repeated(history: Tensor, n: int) -> Tensor:
    """Of B W P tokens those that would end n of them in a row a second time, B W P+1; PAD where there is none."""
    length = history.shape[-1]
    padded = nn.functional.pad(history, (n, 0), value=PAD)  # so that there are n, which repeat nothing
    same = torch.ones_like(padded[..., : length + 1], dtype=torch.bool)
    for i in range(n - 1):
        same = same & (padded[..., i : i + length + 1] == padded[..., length + 1 + i : length + 2 + i])
    return torch.where(same, padded[..., n - 1 :], PAD)


def rows(x: Tensor, index: Tensor) -> Tensor:
    """Of B W P those that ``index``, B J, names in each sentence: B J P."""
    return x.gather(1, index.unsqueeze(-1).expand(-1, -1, x.shape[-1]))


def reorder(state: State, parent: Tensor) -> State:
    """The states of ``parent``, B W, sentence by sentence."""
    batch, width = parent.shape
    index = (parent + torch.arange(batch, device=parent.device).unsqueeze(1) * width).flatten()
    return {name: x.flatten(0, 1).index_select(0, index).view(x.shape) for name, x in state.items()}


def flat(state: State) -> State:
    """B W ... to N ...."""
    return {name: tensor.flatten(0, 1) for name, tensor in state.items()}


def beamed(state: State, batch: int, width: int) -> State:
    """N ... to B W ...."""
    return {name: tensor.unflatten(0, (batch, width)) for name, tensor in state.items()}
