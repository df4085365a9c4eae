"""How surprised a language model is by a text that it reads one token at a time. This needs no PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from lite_nmt.data.vocabulary import EOS
from lite_nmt.decode.generate import Reader

OFTEN = 10_000  # words between two reports


def perplexity(nll: float) -> float:
    """exp of nats a word; infinity beyond what a number holds, where a model diverged."""
    return math.exp(nll) if nll < 700 else math.inf


def surprise(
    reader: Reader,
    text: Sequence[int],
    block: int | None,
    context: int = 0,
    say: Callable[[str], None] = lambda said: None,
) -> float:
    """Negative log-likelihood of a text's tokens, in nats each: each once, given those before it.

    Args:
        block: tokens that the reader is given before it begins anew; None: it never does.
        context: how many of a block are there for the others' sake and not scored again.
        say: is told how far it is.
    """
    total = 0.0
    for first, begin, end in windows(len(text), block or len(text), context):
        state = reader.start()
        for i in range(first, end):
            scores, state = reader.read(text[i - 1] if i else EOS, i - first, state)
            if i < begin:
                continue
            scores = scores.astype(np.float64) - scores.max()
            total += float(np.log(np.exp(scores).sum()) - scores[text[i]])
            if not (i + 1) % OFTEN:
                say(f"read {i + 1:,} of {len(text):,} words")
    return total / len(text)


def windows(length: int, block: int, context: int) -> Iterator[tuple[int, int, int]]:
    """Blocks of a text that overlap by ``context``: where each begins, its scored tokens begin, and it ends."""
    step = block - context
    for begin in range(0, length, step):
        yield max(begin - context, 0), begin, min(begin + step, length)
