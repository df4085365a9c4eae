"""Drawing at random, the same way on every Python.

Only `Random.random()` promises the same numbers from one Python version to the next, so every draw
of the corpus is made from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def chance(rng: Random, probability: float) -> bool:
    """True with the given probability."""
    return rng.random() < probability


def between(rng: Random, low: int, high: int) -> int:
    """An integer from low to high, both included."""
    return low + int(rng.random() * (high - low + 1))


def pick(rng: Random, items: Sequence[T]) -> T:
    """One of the items, all equally likely."""
    return items[int(rng.random() * len(items))]


def pick_weighted(rng: Random, items: Sequence[tuple[T, int]]) -> T:
    """One of the items, each as likely as its weight."""
    left = rng.random() * sum(weight for _, weight in items)
    for item, weight in items:
        left -= weight
        if left < 0:
            return item
    return items[-1][0]
