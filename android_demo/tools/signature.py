"""An animal-sniffer signature: the classes and members of a platform, as the stream that Java's serialisation makes.

Only what such a file holds is read: objects of one class with a name, a set of members, a superclass, interfaces.
"""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

from android_demo.tools.dex import Kind

NULL, REFERENCE, CLASS, OBJECT, STRING, ARRAY, BLOCK, END = 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x77, 0x78
FIRST_HANDLE = 0x7E0000


def read_signature(file: Path) -> dict[str, Kind]:
    """Classes by name, as ``read_dex`` has them."""
    stream = _Stream(gzip.decompress(file.read_bytes()))
    found = {}
    while (entry := stream.item()) is not None:
        parents = [entry["superClass"], *(entry["superInterfaces"] or [])]
        found[entry["name"]] = Kind([parent for parent in parents if parent], set(entry["signatures"]))
    return found


class _Stream:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 4  # after magic and version
        self.handles: list[Any] = []

    def take(self, form: str) -> int:
        (value,) = struct.unpack_from(f">{form}", self.data, self.at)
        self.at += struct.calcsize(f">{form}")
        return int(value)

    def text(self) -> str:
        size = self.take("H")
        self.at += size
        return self.data[self.at - size : self.at].decode("utf-8", "surrogatepass")

    def item(self) -> Any:
        tag = self.take("B")
        if tag == NULL:
            return None
        if tag == REFERENCE:
            return self.handles[self.take("I") - FIRST_HANDLE]
        if tag == STRING:
            return self.keep(self.text())
        if tag == CLASS:
            return self.class_()
        if tag == ARRAY:
            self.item()
            items = self.keep([])
            items.extend(self.item() for _ in range(self.take("I")))
            return items
        assert tag == OBJECT, hex(tag)
        name, fields = self.item()
        if name == "java.util.HashSet":
            found = self.keep(set())
            while (tag := self.take("B")) != END:
                if tag == BLOCK:
                    size = self.take("B")
                    self.at += size
                else:
                    self.at -= 1
                    found.add(self.item())
            return found
        value = self.keep({})
        value.update({field: self.item() for field in fields})
        return value

    def keep(self, value: Any) -> Any:
        self.handles.append(value)
        return value

    def class_(self) -> tuple[str, list[str]]:
        name = self.text()
        self.at += 9  # version, flags
        fields: list[str] = []
        described = self.keep((name, fields))
        for _ in range(self.take("H")):
            kind = self.take("B")
            fields.append(self.text())
            assert kind in b"L[", kind  # no number is among them
            self.item()
        assert self.take("B") == END
        assert self.item() is None  # no class above
        return described
