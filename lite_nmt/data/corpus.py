"""Parallel text on disk: ``train.de`` beside ``train.en``, one sentence a line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lite_nmt.data import lines
from lite_nmt.errors import LiteNmtError


@dataclass(frozen=True)
class Sides:
    """Two files whose lines correspond."""

    source: Path
    target: Path
    lines: int


def sides(folder: Path, split: str, source: str, target: str) -> Sides:
    """Find ``folder/split.source`` and ``folder/split.target`` and hold their line counts against each other.

    Raises:
        LiteNmtError: a side is missing, unreadable or empty, or they differ in length.
    """
    paths = [folder / f"{split}.{language}" for language in (source, target)]
    if not folder.is_dir():
        raise LiteNmtError(f"the data folder {folder} does not exist.")
    there = [p.exists() for p in paths]
    for path, exists in zip(paths, there, strict=True):
        if not exists:
            raise LiteNmtError(f"{path} is missing; a corpus needs {paths[0].name} and {paths[1].name}.")
    counts = [count_lines(p) for p in paths]
    if counts[0] != counts[1]:
        raise LiteNmtError(
            f"{paths[0]} has {counts[0]} lines and {paths[1]} has {counts[1]}; they must correspond line by line."
        )
    if not counts[0]:
        raise LiteNmtError(f"{paths[0]} and {paths[1]} are empty.")
    return Sides(paths[0], paths[1], counts[0])


def count_lines(path: Path) -> int:
    """Lines, the last one with or without its newline."""
    return sum(1 for _ in read_lines(path))


def read_lines(path: Path) -> Iterator[str]:
    """Stream a file's lines, cleaned as translation cleans its input, so that a model meets the text it knows."""
    try:
        with path.open("rb") as file:
            yield from lines.read_lines(file, str(path))
    except OSError as error:
        raise LiteNmtError(f"cannot read {path}: {error.strerror}.") from error
