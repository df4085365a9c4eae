"""Which lines came before: 64-bit hashes and one sort, so that the text itself need not be in memory."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np

from lite_nmt.data.encoded import Array


def first_occurrences(texts: Iterable[str]) -> Array:
    """True for each text that none before it equals.

    It takes about 40 bytes a text while it sorts, whatever the texts' length. Two different ones of 100 million meet
    in 64 bits with a probability of 0.03%; the later one then counts as seen.
    """
    keys = np.fromiter((_key(text) for text in texts), dtype=np.uint64)
    first = np.zeros(len(keys), dtype=np.bool_)
    first[np.unique(keys, return_index=True)[1]] = True
    return first


def _key(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
