"""What an Android dex defines and what it refers to; the format is the one of Android's "Dalvik Executable format"."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

CALL_SITES = (0x0007, 0x0008)  # of the map: call sites and method handles, which invoke-custom needs

# Instructions by their opcode: how many 16-bit units they take.
_WIDTHS = [1] * 256
for _first, _last, _width in (
    *((0x02, 0x02, 2), (0x03, 0x03, 3), (0x05, 0x05, 2), (0x06, 0x06, 3), (0x08, 0x08, 2), (0x09, 0x09, 3)),
    *((0x13, 0x13, 2), (0x14, 0x14, 3), (0x15, 0x16, 2), (0x17, 0x17, 3), (0x18, 0x18, 5), (0x19, 0x1A, 2)),
    *((0x1B, 0x1B, 3), (0x1C, 0x1C, 2), (0x1F, 0x20, 2), (0x22, 0x23, 2), (0x24, 0x26, 3), (0x29, 0x29, 2)),
    *((0x2A, 0x2C, 3), (0x2D, 0x3D, 2), (0x44, 0x6D, 2), (0x6E, 0x72, 3), (0x74, 0x78, 3), (0x90, 0xAF, 2)),
    *((0xD0, 0xE2, 2), (0xFA, 0xFB, 4), (0xFC, 0xFD, 3), (0xFE, 0xFF, 2)),
):
    _WIDTHS[_first : _last + 1] = [_width] * (_last + 1 - _first)
_TYPES = {0x1C, 0x1F, 0x20, 0x22, 0x23, 0x24, 0x25}
_FIELDS = set(range(0x52, 0x6E))
_METHODS = {*range(0x6E, 0x73), *range(0x74, 0x79)}


@dataclass
class Kind:
    """A class: its members as "name(arguments)result" and "name#type", and what its code uses."""

    parents: list[str]
    members: set[str] = field(default_factory=set)
    uses: set[tuple[str, str]] = field(default_factory=set)  # class and member; no member where it is the class itself


@dataclass
class Dex:
    """Classes by name, as "java/lang/String"."""

    classes: dict[str, Kind]
    calls_custom: bool


def read_dex(code: bytes) -> Dex:
    """Read a whole dex file."""
    return _Reader(code).read()


class _Reader:
    def __init__(self, code: bytes) -> None:
        self.code = code
        header = struct.unpack_from("<20I", code, 32)
        (self.strings, self.types, self.protos, self.fields, self.methods, self.defined) = (
            (header[i + 1], header[i]) for i in range(6, 18, 2)
        )
        self.map = header[5]

    def read(self) -> Dex:
        types = [self.text(number) for number in self.table(self.types, "I")]
        protos = [self.proto(types, *row) for row in self.rows(self.protos, "III")]
        fields = [(_name(types[at]), f"{self.text(n)}#{types[kind]}") for at, kind, n in self.rows(self.fields, "HHI")]
        methods = [(_name(types[at]), f"{self.text(n)}{protos[p]}") for at, p, n in self.rows(self.methods, "HHI")]
        classes_only = [(_name(text), "") for text in types]
        tables = ((_TYPES, classes_only), (_FIELDS, fields), (_METHODS, methods))
        self.used = {opcode: table for opcodes, table in tables for opcode in opcodes}
        classes = {}
        for at, _, parent, interfaces, *_, data, _ in self.rows(self.defined, "8I"):
            parents = [types[i] for i in self.type_list(interfaces)]
            if parent != 0xFFFFFFFF:
                parents.insert(0, types[parent])
            classes[_name(types[at])] = kind = Kind([_name(text) for text in parents])
            for (_, member), code in self.own(data, fields, methods):
                kind.members.add(member)
                kind.uses.update(self.instructions(code))
        return Dex(classes, any(kind in CALL_SITES for kind in self.map_kinds()))

    def table(self, where: tuple[int, int], form: str) -> list[int]:
        return [row[0] for row in self.rows(where, form)]

    def rows(self, where: tuple[int, int], form: str) -> list[tuple[int, ...]]:
        start, count = where
        size = struct.calcsize(f"<{form}")
        return list(struct.iter_unpack(f"<{form}", self.code[start : start + count * size]))

    def map_kinds(self) -> list[int]:
        (count,) = struct.unpack_from("<I", self.code, self.map)
        return [row[0] for row in self.rows((self.map + 4, count), "HHII")]

    def text(self, number: int) -> str:
        (at,) = struct.unpack_from("<I", self.code, self.strings[0] + 4 * number)
        _, at = self.number(at)  # length in UTF-16
        return self.code[at : self.code.index(0, at)].decode("utf-8", "surrogatepass")

    def proto(self, types: list[str], _: int, result: int, arguments: int) -> str:
        return f"({''.join(types[i] for i in self.type_list(arguments))}){types[result]}"

    def type_list(self, at: int) -> list[int]:
        if at == 0:
            return []
        (count,) = struct.unpack_from("<I", self.code, at)
        return self.table((at + 4, count), "H")

    def own(
        self, at: int, fields: list[tuple[str, str]], methods: list[tuple[str, str]]
    ) -> Iterator[tuple[tuple[str, str], int]]:
        """A class's members, each with where its code is, 0 for none; a list's numbers count up from 0."""
        if at == 0:
            return
        counts = []
        for _ in range(4):
            count, at = self.number(at)
            counts.append(count)
        for count, members, of_methods in zip(counts, (fields, fields, methods, methods), (0, 0, 1, 1), strict=True):
            index = code = 0
            for _ in range(count):
                step, at = self.number(at)
                index += step
                _, at = self.number(at)  # access flags
                if of_methods:
                    code, at = self.number(at)
                yield members[index], code

    def instructions(self, code: int) -> Iterator[tuple[str, str]]:
        """What a method's instructions name."""
        if code == 0:
            return
        (size,) = struct.unpack_from("<I", self.code, code + 12)
        units = self.table((code + 16, size), "H")
        at = 0
        while at < size:
            opcode = units[at] & 0xFF
            if opcode in self.used:
                yield self.used[opcode][units[at + 1]]
            if units[at] == 0x0100:  # tables of switches and arrays
                at += units[at + 1] * 2 + 4
            elif units[at] == 0x0200:
                at += units[at + 1] * 4 + 2
            elif units[at] == 0x0300:
                at += (units[at + 1] * (units[at + 2] | units[at + 3] << 16) + 1) // 2 + 4
            else:
                at += _WIDTHS[opcode]

    def number(self, at: int) -> tuple[int, int]:
        """An unsigned LEB128 number, and where it ends."""
        value = shift = 0
        while True:
            byte = self.code[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7


def _is_class(text: str) -> bool:
    return text.lstrip("[").startswith("L")


def _name(text: str) -> str:
    """A class's name; an array has the members of Object."""
    if text.startswith("["):
        return text.lstrip("[")[1:-1] if _is_class(text) else "java/lang/Object"
    return text[1:-1] if text.startswith("L") else text
