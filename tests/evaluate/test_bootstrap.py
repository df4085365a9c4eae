"""The bootstrap against sacreBLEU's corpus scores, and against what must be so."""

from __future__ import annotations

import random

import pytest
from sacrebleu.metrics.bleu import BLEU

from lite_nmt.errors import LiteNmtError
from lite_nmt.evaluate.bootstrap import bleu_difference

REFERENCES = [" ".join(random.Random(i).choices(["a", "b", "c", "d", "e", "f"], k=8)) for i in range(60)]


def spoiled(share: float) -> list[str]:
    """Every sentence with some of its words replaced."""
    draw = random.Random(7)
    return [" ".join("x" if draw.random() < share else w for w in line.split()) for line in REFERENCES]


def test_the_difference_is_that_of_corpus_scores() -> None:
    worse, better = spoiled(0.4), spoiled(0.1)
    found = bleu_difference(worse, better, REFERENCES, samples=200)
    scores = [BLEU().corpus_score(side, [REFERENCES]).score for side in (worse, better)]
    assert found.bleu == pytest.approx(scores[1] - scores[0])
    assert 0 < found.low < found.bleu < found.high
    assert bleu_difference(better, worse, REFERENCES, samples=200).high == pytest.approx(-found.low)


def test_a_system_does_not_differ_from_itself() -> None:
    found = bleu_difference(spoiled(0.2), spoiled(0.2), REFERENCES, samples=50)
    assert (found.bleu, found.low, found.high) == (0, 0, 0)


def test_refusals() -> None:
    with pytest.raises(LiteNmtError, match="there are 2 and 1 hypotheses and 2 references"):
        bleu_difference(["a", "b"], ["a"], ["a", "b"])
    with pytest.raises(LiteNmtError, match="no sentences"):
        bleu_difference([], [], [])
