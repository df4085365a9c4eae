"""Drop the library classes that nothing refers to, so that Kotlin's library brings only what the app uses."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

KEPT = ("litenmt/", "ai/onnxruntime/")  # the app; what native code looks up by name
_DESCRIBED = re.compile(rb"L([\w/$]+);")
# Sizes of a class file's constants by their tag; 1 is text, whose size it says itself.
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}


def shrink(folder: Path) -> None:
    """Delete the class files under ``folder`` that no class of ``KEPT`` needs, directly or not."""
    files = {str(file.relative_to(folder).with_suffix("")): file for file in folder.rglob("*.class")}
    needed: set[str] = set()
    new = {name for name in files if name.startswith(KEPT)}
    while new:
        needed |= new
        new = {other for name in new for other in _mentioned(files[name].read_bytes())} & files.keys() - needed
    for name in files.keys() - needed:
        files[name].unlink()


def _mentioned(code: bytes) -> Iterator[str]:
    """Every name in a class file that may be a class's."""
    (count,) = struct.unpack_from(">H", code, 8)
    at, index = 10, 1
    while index < count:
        tag = code[at]
        if tag == 1:
            (size,) = struct.unpack_from(">H", code, at + 1)
            text = code[at + 3 : at + 3 + size]
            yield text.decode("utf-8", "replace")
            yield from (name.decode() for name in _DESCRIBED.findall(text))
            at += 3 + size
        else:
            at += 1 + _SIZES[tag]
        index += 2 if tag in (5, 6) else 1
