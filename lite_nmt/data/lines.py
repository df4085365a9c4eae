"""Bytes in, lines out: one for each input line, whatever it holds."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import BinaryIO, TypeVar

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")
T = TypeVar("T")
_NAMED = 10  # line numbers given in a warning


def clean(text: str) -> str:
    """Text that fits on one line: control characters, and all that any program takes for a line break, become
    spaces. Lone surrogates, which are not text, become U+FFFD."""
    return _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", text))


def read_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    """Lines of a binary stream, one at a time, without their ends.

    A line ends at ``\\n`` alone, as ``wc -l`` counts, so that line numbers agree with those of the other side
    of a corpus; a ``\\r`` before it is dropped, and so is a byte order mark at the very start. A last line
    without an end counts. Invalid UTF-8 becomes U+FFFD, with one warning after the last line.
    """
    invalid: list[int] = []
    count = 0
    for number, raw in enumerate(stream, 1):
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            text = raw.decode("utf-8", errors="replace")
            count += 1
            if count <= _NAMED:
                invalid.append(number)
        yield clean(text)
    if count:
        numbers = ", ".join(map(str, invalid)) + (", ..." if count > _NAMED else "")
        lines = "1 line" if count == 1 else f"{count} lines"
        warnings.warn(f"{name}: invalid UTF-8 was replaced in {lines} ({numbers}).", stacklevel=2)


def chunks(lines: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of ``size`` lines, the last one shorter."""
    lines = iter(lines)
    while chunk := list(islice(lines, size)):
        yield chunk
