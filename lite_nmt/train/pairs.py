"""The sentence pairs that a checkpoint was trained and validated on, or others for it."""

from __future__ import annotations

from pathlib import Path

from lite_nmt.data.corpus import sides
from lite_nmt.data.encoded import Encoded, encode
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.checkpoint import Checkpoint
from lite_nmt.train.prepare import run_of


def find_pairs(saved: Checkpoint, split: str, data: Path | None, scratch: Path) -> Encoded | None:
    """The encoded pairs of one side: from the run folder that the checkpoint lies in, or from text.

    Args:
        split: ``train`` or ``valid``.
        data: a folder with ``split.*`` as for training, which is encoded into ``scratch``; None looks in the run.

    Returns:
        None where there are none.

    Raises:
        LiteNmtError: what there is cannot be used.
    """
    if data is not None:
        if data.is_dir() and not any((data / f"{split}.{language}").exists() for language in saved.languages):
            return None
        longest = saved.config.vocabulary.max_length
        limit = longest if split == "train" else None
        cut = longest if saved.config.task == "summarize" else None
        return encode(sides(data, split, *saved.languages), saved.vocabulary, scratch / split, limit, cut)
    run = run_of(saved)
    return Encoded.open(run / "data" / split) if run and (run / "data" / split).is_dir() else None


def need_pairs(saved: Checkpoint, split: str, data: Path | None, scratch: Path) -> Encoded:
    """The same, where nothing can be done without.

    Raises:
        LiteNmtError: there are none.
    """
    pairs = find_pairs(saved, split, data, scratch)
    if pairs is None:
        names = " and ".join(f"{split}.{language}" for language in saved.languages)
        where = f"{data} has no {split} pairs" if data else f"{saved.folder} lies in no run with {split} pairs"
        raise LiteNmtError(f"{where}; give --data with {names}.")
    return pairs
