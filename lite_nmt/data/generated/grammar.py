"""The sentence patterns, and how often each is drawn."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from lite_nmt.data.generated import complex_sentences, facts, simple_sentences
from lite_nmt.data.generated.draw import pick_weighted
from lite_nmt.data.generated.phrases import Pair

PATTERNS: tuple[tuple[Callable[[Random], Pair], int], ...] = (
    (simple_sentences.statement, 28),
    (simple_sentences.question, 8),
    (simple_sentences.open_question, 6),
    (simple_sentences.request, 5),
    (simple_sentences.description, 8),
    (simple_sentences.position, 5),
    (simple_sentences.existence, 2),
    (simple_sentences.belonging, 2),
    (facts.timetable, 2),
    (facts.cost, 3),
    (facts.calendar, 2),
    (facts.birth, 1),
    (facts.hour, 1),
    (facts.age, 1),
    (facts.count, 1),
    (facts.duration, 1),
    (complex_sentences.reason, 7),
    (complex_sentences.condition, 4),
    (complex_sentences.meanwhile, 4),
    (complex_sentences.opposition, 3),
    (complex_sentences.report, 7),
    (complex_sentences.relative_sentence, 7),
    (complex_sentences.infinitive_sentence, 6),
)


def draw_pair(rng: Random) -> Pair:
    """One English sentence and its German translation."""
    english, german = pick_weighted(rng, PATTERNS)(rng)
    return english[0].upper() + english[1:], german[0].upper() + german[1:]
