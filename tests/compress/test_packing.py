"""Packed files: exact both ways, close to the entropy, and refused when they are not what they say."""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zstandard
from numpy.typing import NDArray

from lite_nmt.compress.int8 import Plain, Rows, quantize_rows
from lite_nmt.compress.kmeans import Book, make_book
from lite_nmt.compress.packing import DIGEST, LENGTH, MAGIC, Packed, Stored, expand_file, pack, squeeze_file, unpack
from lite_nmt.decode.pytorch import PyTorchEngine
from lite_nmt.decode.translator import Translator
from lite_nmt.errors import LiteNmtError
from lite_nmt.manifest import digest
from lite_nmt.models import checkpoint

HEAD = len(MAGIC) + DIGEST


def sparse(shape: tuple[int, ...], zeros: float, seed: int = 0) -> NDArray[np.float32]:
    """Normal weights, the smallest share of them zero."""
    weights = np.random.default_rng(seed).normal(0, 0.1, shape).astype(np.float32)
    weights[np.abs(weights) < np.quantile(np.abs(weights), zeros)] = 0
    return weights


def books(bits: int, zeros: float) -> list[Book]:
    one = {"a.weight": sparse((37, 23), zeros)}
    two = {"b.weight": sparse((64, 33), zeros, 1), "b.bias": sparse((5,), 0, 2)}
    return [make_book(one, bits), make_book(two, 8)]


def int8(zeros: float) -> list[Stored]:
    one = sparse((37, 23), zeros), {"a.bias": sparse((37,), 0, 2), "a.taps": sparse((2, 3), 0, 3)}
    return [
        Rows("a.weight", *quantize_rows(one[0])),
        Rows("b.weight", *quantize_rows(sparse((9, 4, 3), zeros, 1))),
        Plain(one[1]),
    ]


def codebooks(packed: Packed) -> list[Book]:
    found = unpack(packed.content, packed.expanded_bytes, "x")
    return [book for book in found if isinstance(book, Book)]


def renewed(body: bytes) -> bytes:
    """A packed file whose checksum is right, whatever it holds."""
    return MAGIC + hashlib.sha256(body).digest() + body


def with_header(packed: Packed, change: Callable[[list[dict[str, Any]]], Any]) -> bytes:
    """The same file with another header."""
    body = packed.content[HEAD:]
    end = LENGTH + int.from_bytes(body[:LENGTH], "little")
    entries = json.loads(zstandard.decompress(body[LENGTH:end]))
    changed = change(entries)
    header = zstandard.compress(json.dumps(entries if changed is None else changed).encode())
    return renewed(len(header).to_bytes(LENGTH, "little") + header + body[end:])


@pytest.mark.parametrize("zeros", [0.0, 0.45, 0.95, 1.0])
@pytest.mark.parametrize("bits", range(2, 9))
def test_what_is_unpacked_is_what_was_packed(bits: int, zeros: float) -> None:
    before = books(bits, zeros)
    packed = pack(before)
    assert packed.expanded_bytes == 4 * (37 * 23 + 64 * 33 + 5)
    assert packed.kind == "codebooks"
    for one, other in zip(before, codebooks(packed), strict=True):
        assert (one.bits, list(one.codes)) == (other.bits, list(other.codes))
        assert one.codebook.dtype == other.codebook.dtype
        np.testing.assert_array_equal(one.codebook, other.codebook)
        for name, weights in one.weights().items():
            np.testing.assert_array_equal(weights, other.weights()[name], strict=True)


def test_any_length_survives() -> None:
    # Among so many there are parts whose entropy-coded form is as long as the part itself.
    for bits, count in itertools.product((2, 3, 5, 8), range(1, 300)):
        codes = np.random.default_rng(count).integers(0, 2**bits - 90 * (bits == 8), count, np.uint8)
        book = Book(bits, np.arange(2**bits, dtype=np.float16) + 1, {"a": codes})
        packed = pack([book])
        np.testing.assert_array_equal(codebooks(packed)[0].codes["a"], codes)


def test_reading_does_not_need_pytorch() -> None:
    code = "import sys, lite_nmt.compress.packing; print(sorted({'torch', 'sklearn'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_float32_codebooks_survive() -> None:
    book = make_book({"a": np.array([1e5, -1e-3, 3e5], np.float32)}, 2)
    np.testing.assert_array_equal(codebooks(pack([book]))[0].codebook, book.codebook)


@pytest.mark.parametrize("zeros", [0.0, 0.45, 0.95, 1.0])
def test_int8_survives(zeros: float) -> None:
    before = int8(zeros)
    packed = pack(before)
    assert (packed.kind, packed.expanded_bytes) == ("int8", 4 * (37 * 23 + 9 * 4 * 3 + 37 + 6))
    for one, other in zip(before, unpack(packed.content, packed.expanded_bytes, "x"), strict=True):
        assert type(one) is type(other)
        assert list(one.weights()) == list(other.weights())
        for name, weights in one.weights().items():
            np.testing.assert_array_equal(weights, other.weights()[name], strict=True)
        if isinstance(one, Rows) and isinstance(other, Rows):
            np.testing.assert_array_equal(one.codes, other.codes, strict=True)
            np.testing.assert_array_equal(one.scales, other.scales)


def test_int8_off_its_grid_is_refused() -> None:
    codes, scales = np.array([[127, 3], [-5, -127]], np.int8), np.array([0.5, 0.25], np.float32)
    assert unpack(pack([Rows("a", codes, scales)]).content, 16, "x")
    for wrong in (
        Rows("a", np.array([[127, 3], [-5, -128]], np.int8), scales),
        Rows("a", np.array([[126, 3], [-5, -127]], np.int8), scales),  # no code of 127: another scale would do
        Rows("a", codes, np.array([0.5, -0.25], np.float32)),
        Rows("a", codes, np.array([0.5, 0], np.float32)),
        Rows("a", codes, np.array([0.5, 1e-40], np.float32)),
        Rows("a", codes, np.array([0.5, 3e38], np.float32)),
        Rows("a", codes, np.array([0.5, np.nan], np.float32)),
    ):
        with pytest.raises(LiteNmtError, match="x is damaged"):
            unpack(pack([wrong]).content, 16, "x")


@pytest.mark.parametrize("zeros", [0.0, 0.45, 0.9])
@pytest.mark.parametrize("bits", [3, 4, 5, 8])
def test_size_is_close_to_the_entropy(bits: int, zeros: float) -> None:
    book = make_book({"a": sparse((300, 300), zeros)}, bits)
    counts = np.bincount(book.codes["a"].ravel())
    share = counts[counts > 0] / counts.sum()
    entropy = -(share * np.log2(share)).sum() * 90_000 / 8
    assert len(pack([book]).content) < 1.02 * entropy / (1 if zeros < 0.9 else 0.95) + 2 * len(book.codebook) + 200


@pytest.mark.parametrize("held", [books(4, 0.5), int8(0.5)])
def test_any_flipped_byte_is_refused(held: list[Stored]) -> None:
    packed = pack(held)
    for i in range(len(packed.content)):
        damaged = bytearray(packed.content)
        damaged[i] ^= 1 << i % 8
        with pytest.raises(LiteNmtError, match="x is damaged"):
            unpack(bytes(damaged), packed.expanded_bytes, "x")


@pytest.mark.parametrize("held", [books(4, 0.5), int8(0.5)])
def test_any_truncation_is_refused(held: list[Stored]) -> None:
    packed = pack(held)
    for end in range(len(packed.content)):
        with pytest.raises(LiteNmtError, match="x is damaged"):
            unpack(packed.content[:end], packed.expanded_bytes, "x")


@pytest.mark.parametrize("held", [books(5, 0.5), int8(0.0), int8(0.8)])
def test_damage_under_a_renewed_checksum_neither_crashes_nor_takes_memory(held: list[Stored]) -> None:
    packed = pack(held)
    random = np.random.default_rng(0)
    refused = 0
    tracemalloc.start()
    try:
        for _ in range(1500):
            body = bytearray(packed.content[HEAD:])
            for i in random.integers(0, len(body), random.integers(1, 4)):
                body[i] = random.integers(256)
            body = body[: random.integers(len(body))] if random.random() < 0.2 else body
            try:
                found = unpack(renewed(bytes(body)), packed.expanded_bytes, "x")
            except LiteNmtError:
                refused += 1
            else:
                assert 4 * sum(w.size for book in found for w in book.weights().values()) <= packed.expanded_bytes
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert refused > 500
    assert peak < 8 * packed.expanded_bytes + 100_000


def setting(field: str, value: object) -> Callable[[list[dict[str, Any]]], None]:
    return lambda entries: entries[0].__setitem__(field, value)


@pytest.mark.parametrize(
    "change",
    [
        setting("tensors", {"a.weight": [2**30, 2**30]}),
        setting("tensors", {"a.weight": [37, 24]}),
        setting("tensors", {"a.weight": [37, -23]}),
        setting("tensors", {"a.weight": [37.0, 23]}),
        setting("tensors", {"b.bias": [37, 23]}),
        setting("tensors", {}),
        setting("tensors", [[37, 23]]),
        setting("bits", 9),
        setting("bits", 16),
        setting("bits", True),
        setting("values", 3),
        setting("values", 2**40),
        setting("type", "float64"),
        setting("type", ["float16"]),
        setting("kept", 10**12),
        setting("kept", 850),
        setting("kept", None),
        setting("bytes", [2**39, 0, 0]),
        setting("bytes", [1, 2]),
        lambda entries: [None],
        lambda entries: entries[:1],
        lambda entries: {"entries": entries},
        lambda entries: [],
    ],
)
def test_a_header_that_lies_is_refused(change: Callable[[list[dict[str, Any]]], Any]) -> None:
    packed = pack(books(4, 0.5))
    content = with_header(packed, change)
    tracemalloc.start()
    try:
        with pytest.raises(LiteNmtError, match="x is damaged"):
            unpack(content, packed.expanded_bytes, "x")
        assert tracemalloc.get_traced_memory()[1] < 8 * packed.expanded_bytes + 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "change",
    [
        setting("tensors", {"a.weight": [851]}),
        setting("tensors", {"a.weight": [23, 37]}),
        setting("tensors", {"a.weight": [30, 23], "c.weight": [7, 23]}),
        setting("bits", 7),
        setting("bits", True),
        setting("values", 36),
        setting("bits", 8.0),
        setting("values", 37.0),
        setting("type", "float32"),
        setting("type", "plain"),
        setting("type", None),
        setting("type", ["int8"]),
        setting("kept", 850),
        lambda entries: entries[-1].__setitem__("type", "float32"),
        lambda entries: entries[-1].__setitem__("bits", 8),
        lambda entries: entries[-1].__setitem__("values", 42),
        lambda entries: entries[-1].__setitem__("kept", 43),
        lambda entries: entries[-1].__setitem__("bytes", [sum(entries[-1]["bytes"]) - 1, 0, 1]),
        lambda entries: entries[-1].__setitem__("tensors", {"a.bias": [43, 2**30]}),
    ],
)
def test_an_int8_header_that_lies_is_refused(change: Callable[[list[dict[str, Any]]], Any]) -> None:
    packed = pack(int8(0.0))
    with pytest.raises(LiteNmtError, match="x is damaged"):
        unpack(with_header(packed, change), packed.expanded_bytes, "x")


def test_more_than_was_declared_is_refused() -> None:
    packed = pack(books(4, 0.5))
    with pytest.raises(LiteNmtError, match="it holds 11872 bytes of weights, not 11868"):
        unpack(packed.content, packed.expanded_bytes - 4, "x")


@pytest.mark.parametrize("bomb", [b"[" * 10**6, b"0" * 10**8, b"[" + b"9" * 9000 + b"]"])
def test_a_header_that_explodes_is_refused(bomb: bytes) -> None:
    header = zstandard.compress(bomb)
    with pytest.raises(LiteNmtError, match="x is damaged"):
        unpack(renewed(len(header).to_bytes(LENGTH, "little") + header), 2 * 10**6, "x")


def test_a_whole_file_and_back() -> None:
    content = b"piece\t-1.5\n" * 5000
    stored = squeeze_file(content)
    assert len(stored) < 500
    assert expand_file(stored, len(content), "x") == content
    for wrong in (len(content) - 1, len(content) + 1, 0):
        with pytest.raises(LiteNmtError, match="x is damaged"):
            expand_file(stored, wrong, "x")
    for damaged in (stored[:-9], stored + b"x", b"", b"x" * 50):
        with pytest.raises(LiteNmtError, match="x is damaged"):
            expand_file(damaged, len(content), "x")


@pytest.fixture
def packed_model(trained: Path, tmp_path: Path) -> Path:
    saved = checkpoint.load(trained)
    weights = {name: tensor.numpy() for name, tensor in saved.weights().items()}
    packed = pack([make_book({name: w}, 8) for name, w in weights.items()])
    folder = tmp_path / "packed"
    checkpoint.save(folder, saved.config, saved.languages, saved.step, {}, saved.vocabulary, packed)
    return folder


def test_a_packed_checkpoint_is_a_checkpoint(trained: Path, packed_model: Path) -> None:
    dense, saved = checkpoint.load(trained), checkpoint.load(packed_model)
    assert (dense.packed, saved.packed) == (None, 4 * sum(w.numel() for w in dense.weights().values()))
    assert saved.vocabulary.files() == dense.vocabulary.files()
    assert {p.name for p in packed_model.iterdir()} == {"checkpoint.json", "model.packed", "source.spm.xz"}
    model = dense.model()
    checkpoint.restore(model, saved.weights(), packed_model)
    expected = Translator(dense.config, dense.vocabulary, PyTorchEngine(model), dense.languages).translate(
        ["Der Hund schläft."]
    )
    assert Translator.load(packed_model).translate(["Der Hund schläft."]) == expected
    for name, tensor in saved.weights().items():
        torch.testing.assert_close(tensor, dense.weights()[name], rtol=0, atol=0.05)


def renew_manifest(folder: Path, name: str, **declared: int) -> None:
    path = folder / checkpoint.MANIFEST
    manifest = json.loads(path.read_text())
    content = (folder / name).read_bytes()
    checksum = hashlib.sha256(content).hexdigest()
    manifest["files"][name] |= {"bytes": len(content), "sha256": checksum, **declared}
    path.write_text(json.dumps({**manifest, "sha256": digest(manifest)}))


@pytest.mark.parametrize("name", ["model.packed", "source.spm.xz"])
def test_damage_is_refused_with_and_without_renewed_checksums(packed_model: Path, name: str) -> None:
    content = bytearray((packed_model / name).read_bytes())
    content[len(content) // 2] ^= 4
    (packed_model / name).write_bytes(content)
    with pytest.raises(LiteNmtError, match=f"{name} is altered"):
        checkpoint.load(packed_model)
    renew_manifest(packed_model, name)
    with pytest.raises(LiteNmtError, match=f"{name} is damaged"):
        checkpoint.load(packed_model).weights()


@pytest.mark.parametrize("size", [0, 1000, -1, None, 2**50, True, "9"])
def test_a_manifest_that_declares_another_size_is_refused(packed_model: Path, size: Any) -> None:
    for name in ("source.spm.xz", "model.packed"):
        renew_manifest(packed_model, name, expanded_bytes=size)
        with pytest.raises(LiteNmtError, match="is damaged"):
            checkpoint.load(packed_model).weights()
