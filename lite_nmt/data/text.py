"""A text as one row of token numbers, and the blocks that a language model reads it in."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lite_nmt.data.batches import send
from lite_nmt.data.corpus import read_lines
from lite_nmt.data.encoded import Array
from lite_nmt.data.lines import chunks
from lite_nmt.data.vocabulary import EOS, PAD, Vocabulary
from lite_nmt.errors import LiteNmtError

CHUNK = 10_000  # lines


@dataclass(frozen=True)
class Block:
    """Steps ``begin`` to ``end`` of texts that lie side by side, and where each of these starts."""

    starts: Array
    begin: int
    end: int


def encode_text(path: Path, vocabulary: Vocabulary, file: Path) -> None:
    """Write a text's words as 32-bit numbers, each line closed by EOS, blank ones too.

    Raises:
        LiteNmtError: it is empty or cannot be read.
    """
    with file.open("wb") as out:
        for lines in chunks(read_lines(path), CHUNK):
            numbers = itertools.chain.from_iterable(map(vocabulary.encode_words, lines))
            out.write(np.fromiter(numbers, dtype=np.int32).tobytes())
        if not out.tell():
            raise LiteNmtError(f"{path} is empty.")


def open_text(file: Path) -> Array:
    """Map what :func:`encode_text` wrote."""
    try:
        return np.memmap(file, dtype=np.int32, mode="r")
    except (OSError, ValueError) as error:
        raise LiteNmtError(
            f"cannot read the encoded text {file} ({error}); if several processes train, they must share it."
        ) from error


def side_by_side(length: int, texts: int, block: int) -> Iterator[Block]:
    """A text of ``length`` tokens cut into ``texts`` equal ones, read block by block; the last may lack some tokens."""
    each = -(-length // texts)
    for begin in range(0, each, block):
        yield Block(np.arange(texts) * each, begin, min(begin + block, each))


def gather(tokens: Array, block: Block, device: torch.device) -> tuple[Tensor, Tensor]:
    """What a block reads and what it is to predict, B T each: the text one step behind, which begins after an end of
    line, and the text; PAD where it is over."""
    index = block.starts[:, None] + np.arange(block.begin, block.end)
    labels = np.where(index < len(tokens), tokens[np.minimum(index, len(tokens) - 1)], PAD)
    inputs = np.where(index == 0, EOS, tokens[np.clip(index - 1, 0, len(tokens) - 1)])
    read, due = (send(torch.from_numpy(x.astype(np.int64)), device) for x in (inputs, labels))
    return read, due
