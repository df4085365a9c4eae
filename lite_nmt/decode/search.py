"""Greedy and beam search over the one-step form of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lite_nmt.config import DecodeConfig
from lite_nmt.data.vocabulary import BOS, EOS
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.translation import TranslationModel
from lite_nmt.modules.mixer import State


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation. ``score`` is ``logprob`` (natural logarithm, the end marker's included) after
    the length penalty; it is what hypotheses are ranked by."""

    tokens: tuple[int, ...]  # without the end marker
    score: float
    logprob: float


def search(
    model: TranslationModel, source: Tensor, keep: Tensor, decode: DecodeConfig, nbest: int = 1
) -> list[list[Hypothesis]]:
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
    if not 1 <= nbest <= decode.beam:
        raise LiteNmtError(f"nbest is {nbest}; it must be between 1 and decode.beam = {decode.beam}.")
    if 0 < decode.max_length < decode.min_length:
        raise LiteNmtError(
            f"decode.min_length is {decode.min_length}, more than decode.max_length = {decode.max_length}."
        )
    if not len(source):
        return []
    # The source's end marker is not counted: lengths in DecodeConfig leave it out.
    lengths = [length - 1 for length in keep.sum(1).tolist()]
    limits = [length_limit(length, decode) for length in lengths]
    with torch.inference_mode():
        memory = model.memory(model.encode(source, keep))
        run = _greedy if decode.beam == 1 else _beam
        found = run(model, memory, keep, limits, decode)
    if not all(hypotheses and math.isfinite(hypotheses[0].logprob) for hypotheses in found):
        raise LiteNmtError("the model's scores are not finite numbers; the checkpoint's training diverged.")
    return [sorted(hypotheses, key=lambda h: -h.score)[:nbest] for hypotheses in found]


def _greedy(
    model: TranslationModel, memory: State, keep: Tensor, limits: list[int], decode: DecodeConfig
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
                    found[sentence].append(_hypothesis(history[row].tolist(), total[row].item(), decode))
            stay = [row for row, end in enumerate(ended) if not end]
            rows = [rows[row] for row in stay]
            if not rows:
                break
            index = torch.tensor(stay, device=device)
            state, memory, keep = _select(state, index), _select(memory, index), keep[index]
            history, token, total = history[index], token[index], total[index]
        history = torch.cat([history, token.unsqueeze(1)], 1)
    return found


def _beam(
    model: TranslationModel, memory: State, keep: Tensor, limits: list[int], decode: DecodeConfig
) -> list[list[Hypothesis]]:
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
                found[rows[i]].append(_hypothesis(text, logprob, decode))
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

    They are not normalised again over what is allowed, so that scores stay the model's own.
    """
    scores = logits.float().log_softmax(-1)
    scores[:, :EOS] = -math.inf
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


def _hypothesis(tokens: list[int], logprob: float, decode: DecodeConfig) -> Hypothesis:
    return Hypothesis(tuple(tokens), logprob / length_penalty(len(tokens) + 1, decode), logprob)


def length_limit(length: int, decode: DecodeConfig) -> int:
    """The most tokens that a source of ``length`` tokens is given, end markers left out on both sides."""
    return decode.max_length or max(3 * length // 2 + 20, decode.min_length)


def length_penalty(length: int, decode: DecodeConfig) -> float:
    """What a log-probability is divided by; ``length`` counts the end marker.

    "power" is n^a (fairseq's, and so the papers' of Lite Transformer and Pay Less Attention); "gnmt" is
    ((5 + n) / 6)^a (Wu et al. 2016, equation 14).
    """
    base = float(length) if decode.penalty == "power" else (5 + length) / 6
    return float(base**decode.length_penalty)


def _select(state: State, index: Tensor) -> State:
    return {name: tensor.index_select(0, index) for name, tensor in state.items()}
