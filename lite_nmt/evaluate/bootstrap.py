"""How sure a difference in BLEU is: paired bootstrap resampling (Koehn 2004), over sacreBLEU's own counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU

from lite_nmt.errors import LiteNmtError


@dataclass(frozen=True)
class Difference:
    """BLEU of the second system less that of the first, with the middle 95% of the resampled differences."""

    bleu: float
    low: float
    high: float
    samples: int


def bleu_difference(
    first: Sequence[str], second: Sequence[str], references: Sequence[str], samples: int = 1000, seed: int = 12345
) -> Difference:
    """Compare two systems on the same sentences, one reference each.

    Raises:
        LiteNmtError: the three sides differ in length, or are empty.
    """
    if not len(first) == len(second) == len(references):
        raise LiteNmtError(
            f"there are {len(first)} and {len(second)} hypotheses and {len(references)} references; they must agree."
        )
    if not references:
        raise LiteNmtError("there are no sentences to compare.")
    counts = np.stack([_counts(system, references) for system in (first, second)])  # 2, sentences, counts
    draw = np.random.default_rng(seed)
    drawn = draw.multinomial(len(references), np.full(len(references), 1 / len(references)), size=samples)
    resampled = [_bleu(drawn @ system) for system in counts]  # samples each
    low, high = np.quantile(resampled[1] - resampled[0], (0.025, 0.975))
    whole = [_bleu(system.sum(0, keepdims=True))[0] for system in counts]
    return Difference(float(whole[1] - whole[0]), float(low), float(high), samples)


def _counts(hypotheses: Sequence[str], references: Sequence[str]) -> NDArray[np.int64]:
    """What BLEU sums over sentences: right and all n-grams of each order, and both lengths."""
    metric = BLEU(effective_order=True)  # for single sentences; the counts do not depend on it
    scores = [metric.sentence_score(h, [r]) for h, r in zip(hypotheses, references, strict=True)]
    return np.array([(*s.counts, *s.totals, s.sys_len, s.ref_len) for s in scores], np.int64)


def _bleu(sums: NDArray[np.int64]) -> NDArray[np.float64]:
    rows = [BLEU.compute_bleu(row[:4], row[4:8], row[8], row[9], smooth_method="exp").score for row in sums.tolist()]
    return np.array(rows)
