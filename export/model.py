"""From a checkpoint's folder to a bundle: finds what it is to be measured on, then writes it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from lite_nmt.errors import LiteNmtError
from lite_nmt.export.bundle import Bundle, check_out
from lite_nmt.export.export import check_choice, export
from lite_nmt.export.language import export_language_model, find_text
from lite_nmt.models import checkpoint
from lite_nmt.train.pairs import find_pairs, need_pairs

SENTENCES = 1000


def export_model(
    model: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    to: str = "onnx",
    precision: str = "fp32",
    data: str | os.PathLike[str] | None = None,
    sentences: int | None = None,
    shortlist: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Bundle:
    """Write a bundle of a checkpoint of any task, if it does what the checkpoint does.

    Args:
        model: folder of a run or a checkpoint.
        out: a folder, or a file that ends in .zip; what is there is replaced once the new one is whole.
        to: ``onnx``, ``executorch`` or ``all``.
        precision: ``fp32``, ``int8``, or ``kmeans`` for a compressed checkpoint.
        data: a folder with ``valid.*`` and, for a shortlist, ``train.*``; None takes those of the run.
        sentences: the first validation pairs, on which it is measured; None: 1,000.
        shortlist: search among so many likeliest target types of each source type, and the most frequent ones.
        say: is told how far it is.

    Raises:
        LiteNmtError: the bundle disagrees with the checkpoint, and was not written; it cannot be made or written; or an
            argument changes nothing.
    """
    if sentences is not None and sentences < 1:
        raise LiteNmtError(f"sentences is {sentences}; it must be at least 1.")
    saved, target, folder = checkpoint.load(Path(model)), Path(out), None if data is None else Path(data)
    check_out(target)  # and not only once the training side is aligned
    if saved.config.task == "lm":
        for name, value in (("sentences", sentences), ("shortlist", shortlist)):
            if value is not None:
                raise LiteNmtError(f"{name} is {value}, which is not for language models; leave it out.")
        measured = precision == "int8"
        if folder and not measured:
            raise LiteNmtError(
                f"data is {folder}, and a language model in {precision} is measured on no text; leave it out."
            )
        return export_language_model(saved, target, precision, find_text(saved, folder) if measured else None, to)
    with tempfile.TemporaryDirectory() as scratch:
        pairs = (need_pairs if folder else find_pairs)(saved, "valid", folder, Path(scratch))
        if sentences is not None and not pairs:
            raise LiteNmtError(f"sentences is {sentences}, and there are no validation pairs; give --data.")
        check_choice(to, precision, shortlist is not None, bool(pairs))
        table = None
        if shortlist is not None:
            from lite_nmt.export.shortlist import build

            say("aligning the training side")
            table = build(saved, need_pairs(saved, "train", folder, Path(scratch)), shortlist)
        some = pairs and pairs.first(SENTENCES if sentences is None else sentences)
        return export(saved, target, to=to, precision=precision, pairs=some, shortlist=table, say=say)
