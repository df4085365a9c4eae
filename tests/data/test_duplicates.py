"""First occurrences, against a plain set."""

from __future__ import annotations

import random

from lite_nmt.data.duplicates import first_occurrences


def test_each_text_counts_once_and_the_first_time() -> None:
    chosen = random.Random(1)
    texts = ["".join(chosen.choices("ab ü", k=chosen.randint(0, 4))) for _ in range(500)]
    seen: set[str] = set()
    expected = [not (text in seen or seen.add(text)) for text in texts]  # type: ignore[func-returns-value]
    assert first_occurrences(texts).tolist() == expected
    assert 0 < sum(expected) < 500
    assert first_occurrences([]).tolist() == []
