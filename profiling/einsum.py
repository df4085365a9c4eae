"""Mult-Adds of an einsum, for the counters that meet one."""

from __future__ import annotations

import math
from collections.abc import Sequence


def einsum(equation: str, shapes: Sequence[Sequence[int]]) -> int:
    """Products of contracting the operands from left to right, as PyTorch and ONNX Runtime do.

    One operand alone is summed, not multiplied, and costs nothing.
    """
    terms, _, result = equation.replace(" ", "").partition("->")
    letters = [_letters(term, len(shape)) for term, shape in zip(terms.split(","), shapes, strict=True)]
    sizes: dict[str, int] = {}
    for term, shape in zip(letters, shapes, strict=True):
        for letter, size in zip(term, shape, strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))  # a broadcast dimension is 1 in one of them
    if "->" in equation:
        kept = set(result.replace(".", "")) | {letter for letter in sizes if not letter.isalpha()}
    else:
        everything = [letter for term in letters for letter in term]
        kept = {letter for letter in sizes if everything.count(letter) == 1}
    total, left = 0, set(letters[0])
    for i, term in enumerate(letters[1:], 1):
        met = left | set(term)
        total += math.prod(sizes[letter] for letter in met)
        left = met & kept.union(*letters[i + 1 :])
    return total


def _letters(term: str, rank: int) -> list[str]:
    """One name for each dimension; those of an ellipsis are numbered from the right."""
    before, dots, after = term.partition("...")
    hidden = rank - len(before) - len(after) if dots else 0
    return [*before, *(str(i) for i in reversed(range(hidden))), *after]
