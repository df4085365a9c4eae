"""The functions that graphs are made of, each a module around the one model.

Tensors of a state stand as B W ..., a sentence's W hypotheses side by side; a greedy search has no W. Lengths are
int64, and so are tokens; a graph tells padding from the source itself.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from lite_nmt.data.vocabulary import BOS, EOS, PAD
from lite_nmt.models.translation import TranslationModel
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


class GreedyBegin(nn.Module):
    """What a greedy search starts from; it holds no weight."""

    def __init__(self, model: TranslationModel) -> None:
        super().__init__()
        self.state = model.initial_state(1)

    def forward(self, source: Tensor, max_length: Tensor, min_length: Tensor) -> tuple[Tensor, ...]:
        """Each sentence's limit, B; token, total, going and state of :class:`GreedyStep`."""
        limits = limits_of(source, max_length, min_length)
        token = torch.full_like(limits, BOS)
        state = {name: first.expand(source.shape[0], *first.shape[1:]) for name, first in self.state.items()}
        return limits, token, torch.zeros_like(limits, dtype=torch.float32), token == BOS, *state.values()


class GreedyStep(nn.Module):
    """The best token of each sentence. A sentence that has ended goes on as padding until all have."""

    def __init__(self, model: TranslationModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        position: Tensor,
        token: Tensor,
        total: Tensor,
        going: Tensor,
        state: State,
        limits: Tensor,
        min_length: Tensor,
        source: Tensor,
        memory: State,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, State, Tensor]:
        """
        Args:
            token, total, going: B, the last tokens, the log-probabilities so far, and who has not ended.
            limits: B, the most tokens that each sentence is given.

        Returns:
            Whether any goes on; the new ``token``, ``total``, ``going`` and state; and B tokens of text.
        """
        logits, state = self.model.step(token, position, state, memory, source != PAD)
        end, (best, token) = logits[:, EOS], logits[:, EOS + 1 :].max(1)
        ends = ((end >= best) & (position >= min_length)) | (position >= limits)
        best = torch.where(ends, end, best) - logits.logsumexp(1)
        total = torch.where(going, total + best, total)
        going = going & ~ends
        token = token + (EOS + 1)
        return going.any(), token, total, going, state, torch.where(going, token, PAD)


class GreedyEnd(nn.Module):
    """What a greedy search found, in a beam search's shape."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, tokens: Tensor, total: Tensor, length_penalty: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """T B tokens and B log-probabilities to target, B 1 T; score and log-probability, B 1 each."""
        target, logprob = tokens.t().unsqueeze(1), total.unsqueeze(1)
        penalty = penalty_of((target != PAD).sum(-1) + 1, length_penalty, self.kind)
        return target, logprob / penalty, logprob


class BeamBegin(nn.Module):
    """What a beam search starts from: all hypotheses but one are impossible; it holds no weight."""

    def __init__(self, model: TranslationModel) -> None:
        super().__init__()
        self.state = model.initial_state(1)

    def forward(self, source: Tensor, max_length: Tensor, min_length: Tensor, slots: Tensor) -> tuple[Tensor, ...]:
        """Each sentence's limit, B; token to scores and state of :class:`BeamStep`. ``slots``: 0 ... W-1."""
        limits = limits_of(source, max_length, min_length)
        batch, width = source.shape[0], slots.shape[0]
        nothing = torch.full((batch, width), -math.inf)
        total = torch.where(slots == 0, torch.zeros(()), nothing)
        token = torch.full((batch, width), BOS)
        texts = torch.zeros(batch, width, 0, dtype=torch.int64)
        state = {k: first.unsqueeze(1).expand(batch, width, *first.shape[1:]) for k, first in self.state.items()}
        ended = torch.zeros_like(limits)
        return limits, token, total, texts, ended, texts.clone(), nothing, nothing.clone(), *state.values()


class BeamStep(nn.Module):
    """One step of ``lite_nmt.decode.search``'s beam search, its rule of ending included.

    Ended hypotheses go to a sentence's pool, the best W of them. A sentence that has ended changes no more.
    """

    def __init__(self, model: TranslationModel, kind: str) -> None:
        super().__init__()
        self.model, self.kind = model, kind

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
        min_length: Tensor,
        length_penalty: Tensor,
        source: Tensor,
        memory: State,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, State]:
        """
        Args:
            token, total: B W, the last tokens and the log-probabilities so far.
            history: B W P, all tokens so far.
            ended: B, how many hypotheses have; W or more once the sentence has.
            texts, logprobs, scores: B W P, B W and B W, the pool, the best first, minus infinity where there is none.
            limits: B, the most tokens that each sentence is given.

        Returns:
            Whether any sentence goes on, and what has changed.
        """
        batch, width = token.shape
        logits, state = self.model.step(token.flatten(), position, flat(state), memory, source != PAD)
        allowed = logits.log_softmax(-1)[:, EOS:].view(batch, width, -1)
        end = allowed[..., :1].masked_fill(position < min_length, -math.inf)
        others = allowed[..., 1:].masked_fill((position >= limits)[:, None, None], -math.inf)
        best, token = torch.cat([end, others], -1).topk(2 * width)
        best, place = (best + total.unsqueeze(-1)).flatten(1).topk(2 * width)
        token, parent = token.flatten(1).gather(1, place) + EOS, place // (2 * width)

        ends, open_ = token == EOS, (ended < width).unsqueeze(1)
        now, text = best[:, :width], rows(history, parent[:, :width])
        new = ends[:, :width] & now.isfinite() & open_
        ended = ended + new.sum(1)
        penalty = penalty_of(position + 1, length_penalty, self.kind)
        scores = torch.cat([scores, (now / penalty).masked_fill(~new, -math.inf)], 1)
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


def penalty_of(length: Tensor, exponent: Tensor, kind: str) -> Tensor:
    """``lite_nmt.decode.search.length_penalty``; ``length`` counts the end marker."""
    return (length if kind == "power" else (5 + length) / 6).float() ** exponent


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
