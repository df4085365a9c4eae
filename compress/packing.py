"""Quantised weights as bytes, and back exactly. Reading needs numpy and zstandard, not PyTorch.

A packed file is ``MAGIC``, the SHA-256 of all that follows, the length of the header, the header, and three streams
for each book: its codebook, which of its weights are not zero, and the codes. An int8 tensor has its rows' scales in
place of the codebook; tensors that are not quantised are all values, with neither positions nor codes. What a stream
or the header expands to is known before it is expanded, so that a file that lies is refused, not believed.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import zstandard
from numpy.typing import NDArray

from lite_nmt.compress.int8 import Plain, Rows, dequantize_rows, quantize_rows
from lite_nmt.compress.kmeans import MAX_BITS, MIN_BITS, Book, Codes
from lite_nmt.errors import LiteNmtError

MAGIC, DIGEST, LENGTH = b"LNMTPACK", 32, 4
# Codes hardly repeat in sequences, and where they seem to, zstandard's higher levels may spend more on the match than
# on the codes: the best of three is within 1% of the entropy up to half zeros, and 5% at nine tenths.
LEVELS = (1, 3, 19)
# The types of entries, and of their first streams: codebooks of two types, int8 by rows, tensors as they are.
INT8, PLAIN = "int8", "plain"
_F2, _F4 = np.dtype("<f2"), np.dtype("<f4")
TYPES: dict[str, np.dtype[Any]] = {"float16": _F2, "float32": _F4, INT8: _F4, PLAIN: _F4}
Stored: TypeAlias = Book | Rows | Plain
T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class Packed:
    """The contents of a packed file, how many bytes its weights take as float32, and their kind."""

    content: bytes
    expanded_bytes: int
    kind: str = "codebooks"  # or "int8"


def pack(books: Sequence[Stored]) -> Packed:
    """Put books into one file."""
    parts = [_streams(book) for book in books]
    entries = [entry | {"bytes": [len(stream) for stream in own]} for entry, own in parts]
    header = zstandard.compress(json.dumps(entries, separators=(",", ":")).encode(), max(LEVELS))
    body = len(header).to_bytes(LENGTH, "little") + header + b"".join(stream for _, own in parts for stream in own)
    size = 4 * sum(math.prod(shape) for entry in entries for shape in entry["tensors"].values())
    kind = "int8" if any(isinstance(book, Rows) for book in books) else "codebooks"
    return Packed(MAGIC + hashlib.sha256(body).digest() + body, size, kind)


def _streams(book: Stored) -> tuple[dict[str, Any], tuple[bytes, bytes, bytes]]:
    """A book's entry in the header, but for "bytes", and its streams."""
    if isinstance(book, Plain):
        values = np.concatenate([tensor.ravel() for tensor in book.tensors.values()]).astype(TYPES[PLAIN])
        shapes = {name: tensor.shape for name, tensor in book.tensors.items()}
        entry = {"bits": 32, "type": PLAIN, "values": len(values), "kept": None, "tensors": shapes}
        return entry, (_squeeze(values.tobytes()), b"", b"")
    tensors: dict[str, Codes]
    if isinstance(book, Rows):  # as bytes zero is code 0, and -127 to -1 are 129 to 255
        bits, kind, table, tensors, zero = 8, INT8, book.scales, {book.name: book.codes.view(np.uint8)}, True
    else:
        table, tensors = book.codebook, book.codes
        bits, kind, zero = book.bits, table.dtype.name, bool(table[0] == 0)
    codes = np.concatenate([part.ravel() for part in tensors.values()])
    kept, positions, indices = encode(codes, bits, zero)
    entry = {
        "bits": bits,
        "type": kind,
        "values": len(table),
        "kept": kept,  # weights that have a code; null where all have
        "tensors": {name: part.shape for name, part in tensors.items()},
    }
    return entry, (_squeeze(table.astype(TYPES[kind]).tobytes()), positions, indices)


def encode(codes: Codes, bits: int, zero: bool) -> tuple[int | None, bytes, bytes]:
    """Entropy-code a book's codes.

    Either all are coded alike, or, where code 0 is ``zero``, the positions of the others are coded apart, a bit each.
    Which is smaller depends on how many zeros there are, and on how the codes fill a byte.

    Returns:
        How many codes are not zero, or None where all are coded alike; positions; codes.
    """
    alike = _squeeze(_join(codes, bits))
    if zero:
        there = codes != 0
        apart = _squeeze(np.packbits(there).tobytes()), _squeeze(_join(codes[there] - 1, bits))
        if sum(map(len, apart)) < len(alike):
            return int(there.sum()), *apart
    return None, b"", alike


def unpack(content: bytes, limit: int, where: str) -> list[Stored]:
    """Read what :func:`pack` wrote.

    Args:
        limit: bytes that the weights may take as float32; no more than a small multiple of it is allocated.
        where: the file, for messages.

    Raises:
        LiteNmtError: it is damaged, or holds more than ``limit``.
    """
    try:
        return _unpack(content, limit)
    except _Damaged as error:
        raise LiteNmtError(f"{where} is damaged: {error}; take another copy.") from error


class _Damaged(Exception):
    """Why a packed file cannot be read."""


def _unpack(content: bytes, limit: int) -> list[Stored]:
    body = content[len(MAGIC) + DIGEST :]
    if not content.startswith(MAGIC) or len(body) < LENGTH:
        raise _Damaged("it is not a packed file")
    if hashlib.sha256(body).digest() != content[len(MAGIC) : len(MAGIC) + DIGEST]:
        raise _Damaged("its checksum is not the one saved")
    start = LENGTH + int.from_bytes(body[:LENGTH], "little")
    entries = _header(body[LENGTH:start], limit)
    if start + sum(sum(entry["bytes"]) for entry in entries) != len(body):
        raise _Damaged("its parts are not as long as it says")
    sizes = [math.prod(shape) for entry in entries for shape in entry["tensors"].values()]
    if 4 * sum(sizes) > limit:
        raise _Damaged(f"it holds {4 * sum(sizes)} bytes of weights, not {limit}")
    books: list[Stored] = []
    for entry in entries:
        streams = []
        for length in entry["bytes"]:
            streams.append(body[start : start + length])
            start += length
        books.append(_book(entry, *streams))
    return books


def _header(content: bytes, limit: int) -> list[dict[str, Any]]:
    """The entries, each field of the type and in the range that it must have."""
    try:
        size = zstandard.frame_content_size(content)
        if not 0 <= size <= max(limit, 2**16):  # names and shapes take less room than the weights
            raise _Damaged(f"its header takes {size} bytes")
        entries = json.loads(_expand(content, size))
    except (zstandard.ZstdError, ValueError, RecursionError) as error:
        raise _Damaged(f"its header cannot be read ({error})") from error
    if not isinstance(entries, list) or not all(_well_formed(entry) for entry in entries):
        raise _Damaged("its header is not what it should be")
    names = [name for entry in entries for name in entry["tensors"]]
    if len(names) != len(set(names)):
        raise _Damaged("it holds a tensor twice")
    return entries


def _well_formed(entry: Any) -> bool:
    def count(value: object, low: int, high: float) -> bool:
        return type(value) is int and low <= value <= high

    if not isinstance(entry, dict) or entry.keys() != {"bits", "type", "values", "kept", "tensors", "bytes"}:
        return False
    shapes = list(entry["tensors"].values()) if isinstance(entry["tensors"], dict) else []
    if not all(isinstance(s, list) and len(s) < 8 and all(count(n, 0, 2**40) for n in s) for s in shapes):
        return False
    size = sum(map(math.prod, shapes))
    if entry["type"] == INT8:
        fits = (
            count(entry["bits"], 8, 8) and len(shapes) == 1 and len(shapes[0]) > 1 and entry["values"] == shapes[0][0]
        )
    elif entry["type"] == PLAIN:
        fits = count(entry["bits"], 32, 32) and entry["values"] == size and entry["kept"] is None
    else:
        fits = entry["type"] in ("float16", "float32") and count(entry["bits"], MIN_BITS, MAX_BITS)
        fits = fits and count(entry["values"], 1, 2 ** entry["bits"])
    return bool(
        shapes
        and fits
        and count(entry["values"], 0, 2**40)
        and (entry["kept"] is None or count(entry["kept"], 0, size))
        and isinstance(entry["bytes"], list)
        and len(entry["bytes"]) == 3
        and all(count(n, 0, 2**40) for n in entry["bytes"])
    )


def _book(entry: Mapping[str, Any], table: bytes, positions: bytes, indices: bytes) -> Stored:
    shapes: dict[str, list[int]] = entry["tensors"]
    kind, kept = entry["type"], entry["kept"]
    dtype, count = TYPES[kind], sum(map(math.prod, shapes.values()))
    value = np.frombuffer(_expand(table, entry["values"] * dtype.itemsize), dtype)
    if not np.isfinite(value).all():
        raise _Damaged("its values are not numbers")
    if kind == PLAIN:
        if positions or indices:
            raise _Damaged("tensors that have no codes have some")
        return Plain(_shaped(value.copy(), shapes))  # a writable one
    first = 0 if kept is None else 1
    codes = _split(indices, count if kept is None else kept, entry["bits"])
    top = 256 if kind == INT8 else len(value)
    if (codes.size and codes.max() >= top - first) or (first and kind != INT8 and value[0] != 0):
        raise _Damaged("its codes do not fit its codebook")
    if kept is not None:
        there = np.unpackbits(np.frombuffer(_expand(positions, -(-count // 8)), np.uint8), count=count).view(bool)
        if there.sum() != kept:
            raise _Damaged(f"{there.sum()} weights have a place and {kept} a code")
        everywhere = np.zeros(count, np.uint8)
        everywhere[there] = codes + 1
        codes = everywhere
    if kind == INT8:
        return _rows(*_shaped(codes.view(np.int8), shapes).popitem(), value)
    return Book(entry["bits"], value, _shaped(codes, shapes))


def _rows(name: str, codes: NDArray[np.int8], scales: NDArray[np.float32]) -> Rows:
    with np.errstate(over="ignore", invalid="ignore"):
        weights = dequantize_rows(codes, scales)
    try:
        found = quantize_rows(weights)
    except LiteNmtError as error:
        raise _Damaged("its weights are not numbers") from error
    if not (np.array_equal(found[0], codes) and np.array_equal(found[1], scales)):
        raise _Damaged("its weights are not on their rows' grids")
    return Rows(name, codes, scales)


def _shaped(flat: NDArray[T], shapes: Mapping[str, list[int]]) -> dict[str, NDArray[T]]:
    """Tensors out of one after the other."""
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])[:-1]
    parts = zip(shapes.items(), np.split(flat, ends), strict=True)
    return {name: part.reshape(shape) for (name, shape), part in parts}


# Codes are put side by side in bytes, none across two, so that the entropy coder, which counts bytes, sees them whole.


def _join(codes: Codes, bits: int) -> bytes:
    rows = np.zeros((-(-len(codes) // (8 // bits)), 8 // bits), np.uint8)
    rows.ravel()[: len(codes)] = codes
    return np.bitwise_or.reduce(rows << _shifts(bits), 1).astype(np.uint8).tobytes()


def _split(stored: bytes, count: int, bits: int) -> Codes:
    joined = np.frombuffer(_expand(stored, -(-count // (8 // bits))), np.uint8)
    return (joined[:, None] >> _shifts(bits) & np.uint8(2**bits - 1)).ravel()[:count]


def _shifts(bits: int) -> Codes:
    return np.arange(8 // bits, dtype=np.uint8) * np.uint8(bits)


def _squeeze(raw: bytes) -> bytes:
    """Entropy-coded, or as it is where that is not shorter: :func:`_expand` tells them apart by their length."""
    coded = min((zstandard.compress(raw, level) for level in LEVELS), key=len)
    return coded if len(coded) < len(raw) else raw


def _expand(stored: bytes, size: int) -> bytes:
    if len(stored) == size:
        return stored
    try:
        if zstandard.frame_content_size(stored) != size:
            raise _Damaged(f"a part does not expand to {size} bytes")
        return zstandard.ZstdDecompressor().decompress(stored, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise _Damaged(f"a part cannot be expanded ({error})") from error


# The vocabulary is text and tables, which LZMA takes a sixth further than zstandard.


def squeeze_file(content: bytes) -> bytes:
    """A whole file as .xz."""
    window = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": max(4096, len(content))}
    return lzma.compress(content, lzma.FORMAT_XZ, lzma.CHECK_CRC32, filters=[window])


def expand_file(stored: bytes, size: int, where: str) -> bytes:
    """What :func:`squeeze_file` was given, ``size`` bytes.

    Raises:
        LiteNmtError: it is damaged, or of another size.
    """
    decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=2 * size + 2**20)
    try:
        content = decoder.decompress(stored, max_length=size + 1)
    except (lzma.LZMAError, MemoryError) as error:
        raise LiteNmtError(f"{where} is damaged: {error}; take another copy.") from error
    if not decoder.eof or decoder.unused_data or len(content) != size:
        raise LiteNmtError(f"{where} is damaged: it does not expand to {size} bytes; take another copy.")
    return content
