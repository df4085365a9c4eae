"""Text files of the command line: inputs opened before the work, outputs written whole or not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from lite_nmt.errors import LiteNmtError


def open_inputs(stack: ExitStack, names: Iterable[str]) -> list[tuple[str, BinaryIO]]:
    """Name and stream of each file, all opened now: a wrong name is not found out an hour later."""
    opened: list[tuple[str, BinaryIO]] = []
    for name in names:
        if name == "-":
            if sys.stdin is None:
                raise LiteNmtError("standard input is closed; name a file or give it text.")
            opened.append(("standard input", sys.stdin.buffer))
            continue
        try:
            opened.append((name, stack.enter_context(Path(name).open("rb"))))  # noqa: SIM115  # the stack closes it
        except OSError as error:
            raise LiteNmtError(f"cannot read {name}: {error.strerror}.") from error
    return opened


@contextmanager
def open_output(name: str | None, inputs: Iterable[str] = ()) -> Iterator[BinaryIO]:
    """Standard output, or a file that appears only when all is written.

    Raises:
        LiteNmtError: it is one of the inputs, or cannot be written.
    """
    if name is None or name == "-":
        if sys.stdout is None:
            raise LiteNmtError("standard output is closed; name a file with --output.")
        yield sys.stdout.buffer
        return
    path = Path(os.path.realpath(name))
    for other in inputs:
        if os.path.exists(other) and path.exists() and os.path.samefile(other, path):
            raise LiteNmtError(f"{name} is an input as well; write to another file.")
    special = path.exists() and not path.is_file()  # a pipe or /dev/null; a folder is refused by open
    partial = path if special else path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        stream = partial.open("wb")
    except OSError as error:
        raise LiteNmtError(f"cannot write {name}: {error.strerror}.") from error
    try:
        with stream:
            yield stream
        if not special:
            partial.replace(path)
    except BaseException:
        if not special:
            partial.unlink(missing_ok=True)
        raise
