"""Going on with a text: greedily, or drawn from the likeliest words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from lite_nmt.data.vocabulary import EOS, UNK
from lite_nmt.errors import LiteNmtError


class Reader(Protocol):
    """What runs a language model: one text, one token at a time."""

    def start(self) -> Any:
        """The state before the first token."""
        ...

    def read(self, token: int, position: int, state: Any) -> tuple[np.ndarray, Any]:
        """Scores of the next token, V, once ``token`` is read; and the next state."""
        ...


def generate(
    reader: Reader, prompt: Sequence[int], words: int, temperature: float = 0.0, top: int = 0, seed: int = 1
) -> Iterator[int]:
    """The next ``words`` tokens, ends of lines among them; never the unknown word.

    Args:
        temperature: that scores are divided by before one is drawn; 0 takes the best.
        top: draw from so many of the likeliest; 0: from all.

    Raises:
        LiteNmtError: the model's scores are not numbers.
    """
    random = np.random.default_rng(seed)
    state, position = reader.start(), 0
    for token in [EOS, *prompt]:
        scores, state = reader.read(token, position, state)
        position += 1
    for left in reversed(range(words)):
        if not np.isfinite(scores).all():
            raise LiteNmtError("the model's scores are not finite numbers; its training diverged.")
        scores = scores.astype(np.float64)
        scores[UNK] = -np.inf
        if temperature:
            kept = np.argsort(-scores, kind="stable")[: top or None]
            odds = np.exp((scores[kept] - scores[kept[0]]) / temperature)
            token = int(random.choice(kept, p=odds / odds.sum()))
        else:
            token = int(scores.argmax())
        yield token
        if left:
            scores, state = reader.read(token, position, state)
            position += 1
