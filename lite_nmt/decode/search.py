"""Greedy and beam search over the one-step form of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from lite_nmt.config import DecodeConfig
from lite_nmt.data.vocabulary import BOS, EOS
from lite_nmt.decode.hypothesis import Hypothesis, check, hypothesis, length_limit, ranked
from lite_nmt.modules.mixer import State


class Steps(Protocol):
    """What a search needs of a model, as :class:`lite_nmt.models.translation.TranslationModel` says."""

    def encode(self, source: Tensor, keep: Tensor) -> Tensor: ...

    def memory(self, encoded: Tensor) -> State: ...

    def initial_state(self, batch: int) -> State: ...

    def step(
        self, token: Tensor, position: int | Tensor, state: State, memory: State, keep: Tensor
    ) -> tuple[Tensor, State]: ...


def search(model: Steps, source: Tensor, keep: Tensor, decode: DecodeConfig, nbest: int = 1) -> list[list[Hypothesis]]:
    """Translate a batch.

    A sentence ends when ``beam`` of its hypotheses have, or at its own length limit: a rule that looks at
    nothing but the sentence, so a result does not depend on the batch. Padding, BOS and UNK are never
    generated; what has no piece of its own is spelled in bytes.

    Args:
        model: in eval mode, which is the caller's duty.
        source: B S, each sentence closed by EOS.
        keep: B S, true where ``source`` is not padding.
        nbest: how many hypotheses of each sentence to return, at most ``decode.beam``.

    Returns:
        For each sentence its hypotheses, the best first, all different.

    Raises:
        LiteNmtError: the settings contradict one another, or the model's scores are not numbers.
    """
    check(decode, nbest)
    if not len(source):
        return []
    # The source's end marker is not counted: lengths in DecodeConfig leave it out.
    lengths = [length - 1 for length in keep.sum(1).tolist()]
    limits = [length_limit(length, decode) for length in lengths]
    with torch.inference_mode():
        memory = model.memory(model.encode(source, keep))
        run = _greedy if decode.beam == 1 else _beam
        found = run(model, memory, keep, limits, decode)
    return [ranked(hypotheses)[:nbest] for hypotheses in found]


def _greedy(
    model: Steps, memory: State, keep: Tensor, limits: list[int], decode: DecodeConfig
) -> list[list[Hypothesis]]:
    """The best token at each step. Rows N are the sentences that have not ended."""
    batch, device = len(limits), keep.device
    rows = list(range(batch))
    found: list[list[Hypothesis]] = [[] for _ in rows]
    state = model.initial_state(batch)
    token = torch.full((batch,), BOS, device=device)
    history = token.new_empty(batch, 0)
    total = torch.zeros(batch, device=device)
    for position in range(max(limits) + 1):
        logits, state = model.step(token, position, state, memory, keep)
        scores = _scores(logits, history, [limits[i] for i in rows], position, decode)
        best, token = scores.max(-1)
        total = total + best
        ended = (token == EOS).tolist()
        if any(ended):
            for row, sentence in enumerate(rows):
                if ended[row]:
                    found[sentence].append(hypothesis(history[row].tolist(), total[row].item(), decode))
            stay = [row for row, end in enumerate(ended) if not end]
            rows = [rows[row] for row in stay]
            if not rows:
                break
            index = torch.tensor(stay, device=device)
            state, memory, keep = _select(state, index), _select(memory, index), keep[index]
            history, token, total = history[index], token[index], total[index]
        history = torch.cat([history, token.unsqueeze(1)], 1)
    return found


def _beam(model: Steps, memory: State, keep: Tensor, limits: list[int], decode: DecodeConfig) -> list[list[Hypothesis]]:
    """Beam search with fairseq's finishing rule, under which the papers' figures were measured (Ott et al.
    2019, ``SequenceGenerator``): of each step's 2 * beam best continuations, those that end count if they are
    among the first ``beam``, and the first ``beam`` that go on are the next step's. As a hypothesis can end
    only once a step, there are always enough of the latter.

    Differs from fairseq: where the last step finishes more than ``beam``, the best are kept, not the first.

    Rows are the B sentences that have not ended; their W hypotheses stand side by side in the N = B * W rows
    of the state. W is 1 before the first step, when all would be equal.
    """
    beam, device = decode.beam, keep.device
    rows = list(range(len(limits)))
    found: list[list[Hypothesis]] = [[] for _ in rows]
    state = model.initial_state(len(rows))
    token = torch.full((len(rows),), BOS, device=device)
    history = token.new_empty(len(rows), 0)
    total = torch.zeros(len(rows), 1, device=device)  # B W
    for position in range(max(limits) + 1):
        logits, state = model.step(token, position, state, memory, keep)
        width, types = total.shape[1], logits.shape[1]
        scores = _scores(logits, history, [limits[i] for i in rows for _ in range(width)], position, decode)
        # Each hypothesis' own best first, so that the sums are of few numbers and not of the whole vocabulary.
        best, token = scores.topk(min(2 * beam, types))
        few = best.shape[1]
        joint = (best.view(len(rows), width, few) + total.unsqueeze(-1)).flatten(1)
        best, flat = joint.topk(min(2 * beam, width * few))
        token = token.view(len(rows), -1).gather(1, flat)
        parent = flat // few + torch.arange(len(rows), device=device).unsqueeze(1) * width  # rows of N
        ends = token == EOS
        ended = (ends[:, :beam] & best[:, :beam].isfinite()).nonzero()
        if len(ended):
            row, rank = ended.unbind(1)
            texts, logprobs = history[parent[row, rank]].tolist(), best[row, rank].tolist()
            for i, text, logprob in zip(row.tolist(), texts, logprobs, strict=True):
                found[rows[i]].append(hypothesis(text, logprob, decode))
        stay = [row for row, i in enumerate(rows) if len(found[i]) < beam and position < limits[i]]
        total, order = best.masked_fill(ends, -math.inf).topk(min(beam, best.shape[1]))
        parent, token = parent.gather(1, order), token.gather(1, order)
        if len(stay) < len(rows):
            rows = [rows[row] for row in stay]
            if not rows:
                break
            index = torch.tensor(stay, device=device)
            memory, keep = _select(memory, index), keep[index]
            total, parent, token = total[index], parent[index], token[index]
        parent, token = parent.flatten(), token.flatten()
        state = _select(state, parent)
        history = torch.cat([history[parent], token.unsqueeze(1)], 1)
    return found


def _scores(logits: Tensor, history: Tensor, limits: Sequence[int], position: int, decode: DecodeConfig) -> Tensor:
    """Log-probabilities of the next token, N V, minus infinity where it is not allowed.

    They are not normalised again over what is allowed, so that scores stay the model's own. A stepwise length penalty
    is among them: what it gives a token counts when ending is weighed against going on, which division by a length
    that all continuations share cannot do.
    """
    scores = logits.float().log_softmax(-1)
    scores[:, :EOS] = -math.inf
    if decode.penalty == "stepwise":
        scores[:, EOS + 1 :] += decode.length_penalty
    n = decode.no_repeat_ngram
    if 0 < n <= position:
        grams = history.unfold(1, n, 1)  # N, position - n + 1, n: all that has been said
        again = (grams[..., :-1] == history[:, None, position - n + 1 :]).all(-1)
        # A row that repeats nothing points at column 0, padding, which is forbidden anyway.
        scores.scatter_(1, grams[..., -1] * again, -math.inf)
    if position < decode.min_length:
        # Where n-gram blocking has left nothing else, the sentence may end early.
        others = scores[:, EOS + 1 :].amax(-1) > -math.inf
        scores[:, EOS].masked_fill_(others, -math.inf)
    last = [row for row, limit in enumerate(limits) if limit == position]
    if last:
        scores[torch.tensor(last, device=scores.device), EOS + 1 :] = -math.inf
    return scores


def _select(state: State, index: Tensor) -> State:
    return {name: tensor.index_select(0, index) for name, tensor in state.items()}
