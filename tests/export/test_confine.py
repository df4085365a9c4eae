"""A graph's external data lies in the bundle's own file, or the graph is refused."""

from __future__ import annotations

import pytest

from lite_nmt.errors import LiteNmtError
from lite_nmt.export.runtime import confine

LOCATION = b"\x0a\x08location"
OURS = b"\x12\x0bweights.bin"


def field(number: int, content: bytes, pad: int = 0) -> bytes:
    """A protobuf field; its length may be written with more bytes than it needs."""
    length = bytearray()
    size = len(content)
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    length.append(size)
    for _ in range(pad):
        length[-1] |= 128
        length.append(0)
    return bytes([number << 3 & 127 | 2]) + bytes(length) + content if number < 16 else _wide(number, length, content)


def _wide(number: int, length: bytearray, content: bytes) -> bytes:
    tag = number << 3 | 2
    return bytes([tag & 127 | 128, tag >> 7]) + bytes(length) + content


def initializer(entry: bytes) -> bytes:
    """A model with one tensor in its graph."""
    return field(7, field(5, field(8, b"w") + field(13, entry)))


def test_external_data_is_confined() -> None:
    confine(initializer(LOCATION + OURS), "g")
    confine(initializer(OURS + LOCATION), "g")
    confine(initializer(field(1, b"offset") + field(2, b"64")), "g")
    for where in (b"/etc/passwd", b"../weights.bin", b"./weights.bin", b"", b"*/_ORT_MEM_ADDR_/*", b"weights.bin/"):
        for entry in (
            field(1, b"location") + field(2, where),
            field(2, where) + field(1, b"location"),
            field(1, b"location", pad=1) + field(2, where),
            field(1, b"location") + field(2, where, pad=3),
            b"\x8a\x00\x08location" + field(2, where),
            LOCATION + OURS + field(2, where),  # the last one counts
            field(1, b"offset") + LOCATION + field(2, where),
            field(15, b"\x6a\x17") + LOCATION + OURS + field(2, where),
            LOCATION,
        ):
            with pytest.raises(LiteNmtError, match="from outside its bundle"):
                confine(initializer(entry), "g")


def test_external_data_is_found_wherever_it_hides() -> None:
    tensor = field(13, LOCATION + field(2, b"/etc/passwd"))
    graph = field(5, tensor)
    places = [
        field(7, field(1, field(5, field(5, tensor)))),  # a node's constant
        field(7, field(1, field(5, field(10, tensor)))),
        field(7, field(1, field(5, field(6, graph)))),  # a loop's body
        field(7, field(1, field(5, field(11, graph)))),
        field(7, field(1, field(5, field(6, field(1, field(5, field(5, tensor))))))),
        field(7, field(1, field(5, field(22, field(1, tensor))))),
        field(7, field(15, field(2, tensor))),
        field(25, field(7, field(5, field(5, tensor)))),  # a function
        field(25, field(11, field(5, tensor))),
        field(20, field(1, graph)),
    ]
    for place in places:
        with pytest.raises(LiteNmtError, match="from outside its bundle"):
            confine(place, "g")


def test_a_graph_that_is_not_whole_is_refused() -> None:
    content = initializer(LOCATION + OURS)
    for cut in range(1, len(content)):
        with pytest.raises(LiteNmtError, match="no whole ONNX graph"):
            confine(content[:cut], "g")
    for odd in (b"\x0b", b"\xff" * 12, b"\x08", b"\x0d\0", b"\x09\0"):
        with pytest.raises(LiteNmtError, match="no whole ONNX graph"):
            confine(odd, "g")
