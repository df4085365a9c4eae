"""A small English-German corpus that writes itself, so that the first command needs no download.

`draw_pair` knows the two grammars well enough to translate by construction: it draws a meaning and
says it twice. The vocabulary is small and one-to-one, and each German construction has one English
one (the perfect is the simple past, "gerade" is the progressive, "gern" is "likes to").
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from lite_nmt.data.generated.grammar import draw_pair
from lite_nmt.errors import LiteNmtError

__all__ = ["sentence_pairs", "write_corpus"]

#: The grammar counts as exhausted when this many draws in a row bring nothing new.
_PATIENCE = 10_000


def sentence_pairs(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Distinct (English, German) sentences, the same for a seed on every machine.

    No English and no German sentence appears twice, and a smaller count gives the beginning of a
    larger one. Raises `LiteNmtError` when count is below 1 or the grammar holds fewer sentences.
    """
    if count < 1:
        raise LiteNmtError(f"The number of sentence pairs must be at least 1, not {count}.")
    rng = Random(seed)
    pairs: list[tuple[str, str]] = []
    seen: set[str] = set()
    misses = 0
    while len(pairs) < count:
        english, german = draw_pair(rng)
        if f"en {english}" in seen or f"de {german}" in seen:
            misses += 1
            if misses == _PATIENCE:
                raise LiteNmtError(
                    f"{count} distinct sentence pairs were asked for, but the grammar gave only "
                    f"{len(pairs)}; ask for fewer."
                )
            continue
        misses = 0
        seen.update((f"en {english}", f"de {german}"))
        pairs.append((english, german))
    return pairs


def write_corpus(folder: Path, train: int = 30_000, valid: int = 500, test: int = 500, seed: int = 1) -> dict[str, int]:
    """Write train, valid and test as .en and .de files, one sentence per line; return pairs per split.

    The splits share no sentence on either side. Test and valid are drawn first, so more training data
    leaves them as they are. Each file is put in place whole. Raises `LiteNmtError` for a split below 1
    or more pairs than the grammar holds.
    """
    sizes = {"test": test, "valid": valid, "train": train}
    for split, size in sizes.items():
        if size < 1:
            raise LiteNmtError(f"The {split} split needs at least 1 sentence pair, not {size}.")
    pairs = iter(sentence_pairs(train + valid + test, seed))
    folder.mkdir(parents=True, exist_ok=True)
    for split, size in sizes.items():
        english, german = zip(*(next(pairs) for _ in range(size)), strict=True)
        for language, sentences in (("en", english), ("de", german)):
            target = folder / f"{split}.{language}"
            unfinished = folder / f".{split}.{language}.{os.getpid()}"
            text = "".join(f"{sentence}\n" for sentence in sentences)
            unfinished.write_text(text, encoding="utf-8", newline="\n")
            os.replace(unfinished, target)
    return {"train": train, "valid": valid, "test": test}
