"""A corpus as token numbers on disk, read through a memory map, so that it may be larger than memory."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lite_nmt.data.corpus import Sides, read_lines
from lite_nmt.data.vocabulary import Vocabulary
from lite_nmt.errors import LiteNmtError

CHUNK = 10_000
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Encoded:
    """Sentence i of a side is ``tokens[starts[i]:starts[i + 1]]``, closed by EOS."""

    source: Array
    source_starts: Array
    target: Array
    target_starts: Array
    left_out: dict[str, int]

    def __len__(self) -> int:
        return len(self.source_starts) - 1

    def lengths(self) -> tuple[Array, Array]:
        """Tokens of each sentence on both sides, EOS included."""
        return np.diff(self.source_starts), np.diff(self.target_starts)

    def pair(self, i: int) -> tuple[list[int], list[int]]:
        """Source and target of one pair."""
        source, target = (slice(*starts[i : i + 2]) for starts in (self.source_starts, self.target_starts))
        return self.source[source].tolist(), self.target[target].tolist()

    def first(self, count: int) -> Encoded:
        """The first ``count`` pairs, or all where there are fewer."""
        source, target = self.source_starts[: count + 1], self.target_starts[: count + 1]
        return Encoded(self.source[: source[-1]], source, self.target[: target[-1]], target, self.left_out)

    @classmethod
    def open(cls, folder: Path) -> Encoded:
        """Map what :func:`encode` wrote."""
        try:
            arrays = {name: np.load(folder / f"{name}_starts.npy", mmap_mode="r") for name in ("source", "target")}
            tokens = {name: np.memmap(folder / f"{name}.bin", dtype=np.int32, mode="r") for name in arrays}
            left_out = json.loads((folder / "left_out.json").read_text())
        except (OSError, ValueError) as error:
            raise LiteNmtError(
                f"cannot read the encoded corpus {folder} ({error}); if several processes train, they must share it."
            ) from error
        for name, starts in arrays.items():
            if starts[-1] != len(tokens[name]):
                raise LiteNmtError(f"{folder / name}.bin is damaged: {len(tokens[name])} tokens, not {starts[-1]}.")
        return cls(tokens["source"], arrays["source"], tokens["target"], arrays["target"], left_out)


def encode(
    corpus: Sides, vocabulary: Vocabulary, folder: Path, max_length: int | None, cut: int | None = None
) -> Encoded:
    """Encode a corpus into ``folder``, a chunk of lines at a time.

    Pairs with an empty side, or with one longer than ``max_length`` tokens, are left out and counted. Of sources longer
    than ``cut`` the beginning is taken.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        _write(corpus, vocabulary, partial, max_length, cut)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Encoded.open(folder)


def _write(corpus: Sides, vocabulary: Vocabulary, folder: Path, max_length: int | None, cut: int | None) -> None:
    left_out = {"empty": 0, "longer than max_length": 0}
    lengths: dict[str, list[Array]] = {"source": [], "target": []}
    with (folder / "source.bin").open("wb") as source_file, (folder / "target.bin").open("wb") as target_file:
        for pairs in _chunks(corpus):
            ids = vocabulary.encode_source([s for s, _ in pairs]), vocabulary.encode_target([t for _, t in pairs])
            kept = []
            for s, t in zip(*ids, strict=True):
                if cut is not None:
                    s[cut - 1 : -1] = []  # the end marker stays
                if len(s) == 1 or len(t) == 1:
                    left_out["empty"] += 1
                elif max_length is not None and max(len(s), len(t)) > max_length:
                    left_out["longer than max_length"] += 1
                else:
                    kept.append((s, t))
            for side, (name, file) in enumerate((("source", source_file), ("target", target_file))):
                sentences = [pair[side] for pair in kept]
                lengths[name].append(np.array([len(x) for x in sentences], dtype=np.int64))
                file.write(np.fromiter(itertools.chain.from_iterable(sentences), dtype=np.int32).tobytes())
    if not sum(len(c) for c in lengths["source"]):
        limit = "" if max_length is None else f" ({max_length} tokens)"
        raise LiteNmtError(
            f"{corpus.source} and {corpus.target} hold no usable pair: of {corpus.lines} pairs, "
            + " and ".join(f"{n} are {why}" for why, n in left_out.items())
            + f"{limit}."
        )
    for name, counts in lengths.items():
        np.save(folder / f"{name}_starts.npy", np.concatenate([[0], *counts]).cumsum())
    (folder / "left_out.json").write_text(json.dumps(left_out))


def _chunks(corpus: Sides) -> Iterator[list[tuple[str, str]]]:
    pairs = zip(read_lines(corpus.source), read_lines(corpus.target), strict=True)
    while chunk := list(itertools.islice(pairs, CHUNK)):
        yield chunk
