"""What a search finds, however it is run, and the lengths it goes by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lite_nmt.config import DecodeConfig
from lite_nmt.errors import LiteNmtError


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation. ``score`` is ``logprob`` (natural logarithm, the end marker's included) after
    the length penalty; it is what hypotheses are ranked by."""

    tokens: tuple[int, ...]  # without the end marker
    score: float
    logprob: float


def hypothesis(tokens: Sequence[int], total: float, decode: DecodeConfig) -> Hypothesis:
    """Score what has ended; ``total`` is its log-probability and whatever the search has added to it."""
    if decode.penalty == "stepwise":
        return Hypothesis(tuple(tokens), total, total - decode.length_penalty * len(tokens))
    return Hypothesis(tuple(tokens), total / length_penalty(len(tokens) + 1, decode), total)


def ranked(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """A sentence's hypotheses, the best first.

    Raises:
        LiteNmtError: the model's scores are not numbers.
    """
    best = sorted(hypotheses, key=lambda h: -h.score)
    if not best or not math.isfinite(best[0].logprob):
        raise LiteNmtError("the model's scores are not finite numbers; the checkpoint's training diverged.")
    return best


def check(decode: DecodeConfig, nbest: int) -> None:
    """Refuse more hypotheses than a beam has."""
    if not 1 <= nbest <= decode.beam:
        raise LiteNmtError(f"nbest is {nbest}; it must be between 1 and decode.beam = {decode.beam}.")


def length_limit(length: int, decode: DecodeConfig) -> int:
    """The most tokens that a source of ``length`` tokens is given, end markers left out on both sides."""
    return decode.max_length or max(3 * length // 2 + 20, decode.min_length)


def length_penalty(length: int, decode: DecodeConfig) -> float:
    """What a log-probability is divided by; ``length`` counts the end marker.

    "power" is n^a (fairseq's, and so the papers' of Lite Transformer and Pay Less Attention); "gnmt" is
    ((5 + n) / 6)^a (Wu et al. 2016, equation 14). A stepwise penalty is no divisor: the search adds it.
    """
    base = float(length) if decode.penalty == "power" else (5 + length) / 6
    return float(base**decode.length_penalty)
