"""ROUGE as rouge-score computes it (Lin 2004)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from rouge_score.rouge_scorer import RougeScorer

from lite_nmt.errors import LiteNmtError

MEASURES = ("rouge1", "rouge2", "rougeL")


@dataclass(frozen=True)
class Measure:
    """Mean F1 of the summaries out of 100, and half of its 95% interval, by the mean's standard error, if there are two
    or more."""

    value: float
    spread: float | None


@dataclass(frozen=True)
class Rouge:
    """ROUGE-1, -2 and -L, which papers print, and the settings that make them comparable."""

    measures: dict[str, Measure]
    summaries: int
    signature: str


def rouge(summaries: Sequence[str], references: Sequence[str | Sequence[str]], stem: bool = True) -> Rouge:
    """Score summaries: shared words, pairs of words, and the longest common subsequence of a whole text.

    Args:
        references: one each, or several, of which each measure takes the best.
        stem: words of more than three letters by their stem (Porter's), as ROUGE-1.5.5's -m.

    Raises:
        LiteNmtError: the two sides differ in length or are empty, a summary has no reference, or no reference has a
            letter from a to z or a digit, which is all that rouge-score reads.
    """
    if len(summaries) != len(references):
        raise LiteNmtError(f"there are {len(summaries)} summaries and {len(references)} references; they must agree.")
    if not references:
        raise LiteNmtError("there are no summaries to score.")
    several = [[text] if isinstance(text, str) else list(text) for text in references]
    if missing := [i for i, texts in enumerate(several, 1) if not texts]:
        raise LiteNmtError(f"summary {missing[0]} has no reference.")
    if not any(re.search("[a-z0-9]", text.lower()) for texts in several for text in texts):
        raise LiteNmtError("no reference has a letter from a to z or a digit, and ROUGE reads nothing else.")
    scorer = RougeScorer(MEASURES, use_stemmer=stem)
    found = [scorer.score_multi(texts, summary) for texts, summary in zip(several, summaries, strict=True)]
    counts = sorted({len(texts) for texts in several})
    return Rouge(
        {name: _mean(np.array([100 * scores[name].fmeasure for scores in found])) for name in MEASURES},
        len(summaries),
        f"nrefs:{'-'.join(map(str, counts[:: max(len(counts) - 1, 1)]))}|best:each|f:1|stem:{'yes' if stem else 'no'}"
        f"|L:text|rouge-score:{version('rouge-score')}",
    )


def _mean(values: np.ndarray) -> Measure:
    error = float(1.96 * values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else None
    return Measure(float(values.mean()), error)
