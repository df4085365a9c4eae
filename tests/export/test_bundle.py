"""A bundle is whole, or refused in one plain sentence; whoever made it."""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import json
import os
import random
import stat
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lite_nmt import manifest
from lite_nmt.config import Config
from lite_nmt.data.vocabulary import SOURCE_FILE
from lite_nmt.errors import LiteNmtError
from lite_nmt.export import bundle
from lite_nmt.export.bundle import MANIFEST, WEIGHTS
from lite_nmt.export.runtime import GREEDY, OnnxEngine, open_engine
from lite_nmt.models import checkpoint


@pytest.fixture(scope="module")
def whole(saved: str) -> tuple[Config, dict[str, bytes]]:
    """A configuration and files, graphs of nonsense among them: nobody looks into them here."""
    from_run = checkpoint.load(Path(saved))
    return from_run.config, {GREEDY: b"graph" * 9, WEIGHTS: bytes(range(200)), **from_run.vocabulary.files()}


def write(path: Path, whole: tuple[Config, dict[str, bytes]]) -> Path:
    bundle.save(path, {"precision": "fp32"}, whole[0], ("de", "en"), whole[1])
    return path


@pytest.fixture
def folder(whole: tuple[Config, dict[str, bytes]], tmp_path: Path) -> Path:
    return write(tmp_path / "bundle", whole)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where zips are unpacked."""
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def refused(path: Path) -> str:
    with pytest.raises(LiteNmtError) as caught:
        bundle.load(path)
    said = str(caught.value)
    assert "\n" not in said
    return said


def zipped(path: Path, members: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def resealed(folder: Path, change: Callable[[dict[str, Any]], object]) -> bytes:
    """A manifest altered by someone who renewed its checksum."""
    said = json.loads((folder / MANIFEST).read_bytes())
    change(said)
    said["sha256"] = manifest.digest(said)
    return json.dumps(said).encode()


@pytest.mark.parametrize("name", ["bundle", "bundle.zip", "BUNDLE.ZIP"])
def test_round_trip(name: str, whole: tuple[Config, dict[str, bytes]], tmp_path: Path, scratch: Path) -> None:
    config, files = whole
    path = write(tmp_path / name, whole)
    opened = bundle.load(path)
    assert opened.config == config
    assert opened.languages == ("de", "en")
    assert opened.manifest["precision"] == "fp32"
    assert {name: (opened.folder / name).read_bytes() for name in opened.files} == files
    assert opened.size() == sum(map(len, files.values()))
    assert opened.vocabulary.files() == {SOURCE_FILE: files[SOURCE_FILE]}
    assert bundle.is_bundle(path)
    assert bundle.read_config(path) == config
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del opened
        gc.collect()
    assert not list(scratch.iterdir())


def test_the_same_bytes_twice(whole: tuple[Config, dict[str, bytes]], tmp_path: Path) -> None:
    first, second = (write(tmp_path / name, whole) for name in ("a.zip", "b.zip"))
    assert first.read_bytes() == second.read_bytes()
    assert contents(write(tmp_path / "a", whole)) == contents(write(tmp_path / "b", whole))


def test_every_flip_is_refused(folder: Path) -> None:
    """One bit or one byte; what is changed in the manifest without a change of meaning may pass, as 1e-5 for 1E-5."""
    draw = random.Random(1)
    before = bundle.load(folder).manifest
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for _ in range(300 if path.name == MANIFEST else 30):
            damaged = bytearray(content)
            where = draw.randrange(len(damaged))
            damaged[where] = draw.choice([damaged[where] ^ 1 << draw.randrange(8), draw.randrange(256)])
            if damaged == content:
                continue
            path.write_bytes(damaged)
            try:
                after = bundle.load(folder).manifest
            except LiteNmtError:
                continue
            assert path.name == MANIFEST
            assert after == before
        path.write_bytes(content)
    bundle.load(folder)


def test_what_is_cut_short_or_too_long_is_refused(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for cut in (0, 1, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:cut])
            refused(folder)
        path.write_bytes(content + b"}")
        refused(folder)
        path.unlink()
        refused(folder)
        path.mkdir()
        refused(folder)
        path.rmdir()
        path.write_bytes(content)
    bundle.load(folder)


def test_every_flip_in_a_zip_is_refused(whole: tuple[Config, dict[str, bytes]], tmp_path: Path, scratch: Path) -> None:
    """Headers, directory, compressed data: refused, or (a date, say) without any meaning."""
    draw = random.Random(2)
    path = write(tmp_path / "bundle.zip", whole)
    content, before = path.read_bytes(), bundle.load(path).manifest
    directory = content.index(b"PK\x01\x02")
    for i in range(400):
        damaged = bytearray(content)
        where = draw.randrange(directory, len(damaged)) if i % 2 else draw.randrange(len(damaged))
        damaged[where] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        try:
            assert bundle.load(path).manifest == before
        except LiteNmtError:
            assert not list(scratch.iterdir())
    for cut in range(0, len(content), 997):
        path.write_bytes(content[:cut])
        refused(path)
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    "name",
    ["../x", "/etc/passwd", "a/b", "a\\b", "..", ".", "", "C:x", "a\0b", "\ud800", "x" * 300, ".hidden", "a/", "é"],
)
def test_names_that_lead_elsewhere_are_refused(name: str, folder: Path, tmp_path: Path, scratch: Path) -> None:
    content = b"payload"
    entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    altered = resealed(folder, lambda said: said["files"].update({name: entry}))
    (folder / MANIFEST).write_bytes(altered)
    assert "names a file outside its folder" in refused(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        members = {MANIFEST: altered} | ({name: content} if name.isascii() and name else {})
        assert "names a file outside its folder" in refused(zipped(tmp_path / "b.zip", members))
    assert not list(scratch.iterdir())
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said.pop("languages"),
        lambda said: said.update(languages=["de", "en"]),
        lambda said: said.update(languages={"source": "de"}),
        lambda said: said.pop("config"),
        lambda said: said.update(config=3),
        lambda said: said["config"].update(nonsense=1),
        lambda said: said["config"]["model"].update(width=-1),
        lambda said: said["config"]["model"].update(width="wide"),
        lambda said: said["config"]["vocabulary"].update(joint=False),
        lambda said: said.update(format="lite-nmt checkpoint"),
        lambda said: said.update(version=2),
        lambda said: said.update(version=None),
        lambda said: said.pop("files"),
        lambda said: said.update(files=[]),
        lambda said: said["files"].pop(SOURCE_FILE),
        lambda said: said["files"].update(more=3),
        lambda said: said["files"][WEIGHTS].update(bytes=199),
        lambda said: said["files"][WEIGHTS].update(bytes=-5),
        lambda said: said["files"][WEIGHTS].update(bytes="200"),
        lambda said: said["files"][WEIGHTS].update(bytes=True),
        lambda said: said["files"][WEIGHTS].update(bytes=2**70),
        lambda said: said["files"][WEIGHTS].pop("sha256"),
        lambda said: said["files"][WEIGHTS].update(sha256="0" * 64),
    ],
)
def test_a_manifest_that_lies_is_refused(
    change: Callable[[dict[str, Any]], object], folder: Path, tmp_path: Path, scratch: Path
) -> None:
    (folder / MANIFEST).write_bytes(resealed(folder, change))
    refused(folder)
    refused(zipped(tmp_path / "b.zip", contents(folder)))
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("content", [b"", b"null", b"[]", b"{}", b"\xff\xfe{", b"NaN", b"[" * 10**6, b'{"a":' * 10**5])
def test_a_manifest_that_is_none_is_refused(content: bytes, folder: Path) -> None:
    (folder / MANIFEST).write_bytes(content)
    refused(folder)


def test_deep_nesting_is_refused(folder: Path) -> None:
    start = json.dumps({"format": bundle.FORMAT, "version": 1, "files": {}, "sha256": ""}).encode()[:-1]
    for depth in range(850, 1000, 3):
        (folder / MANIFEST).write_bytes(start + b', "x": ' + b"[" * depth + b"]" * depth + b"}")
        refused(folder)


def test_a_manifest_without_end_is_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "LARGEST_MANIFEST", 1000)
    assert "is over 1,000 bytes long" in refused(folder)
    assert "is longer than 1,000 bytes" in refused(zipped(tmp_path / "b.zip", contents(folder)))


def test_a_device_is_no_file(folder: Path) -> None:
    (folder / MANIFEST).write_bytes(resealed(folder, lambda said: said["files"][WEIGHTS].update(bytes=0)))
    (folder / WEIGHTS).unlink()
    (folder / WEIGHTS).symlink_to("/dev/zero")
    assert "is not a file" in refused(folder)


def test_bombs_are_refused(folder: Path, tmp_path: Path, scratch: Path) -> None:
    files = contents(folder)
    path = tmp_path / "b.zip"
    # The manifest says that it is large: over a hundred times the zip.
    bomb = bytes(10**8)
    entry = {"bytes": len(bomb), "sha256": hashlib.sha256(bomb).hexdigest()}
    said = resealed(folder, lambda said: said["files"].update(bomb=entry))
    assert "over 100 times its own size" in refused(zipped(path, {**files, MANIFEST: said, "bomb": bomb}))
    # It says nothing of that, and a member is longer than it says, or than the zip's own directory says.
    assert "is longer than 200 bytes" in refused(zipped(path, {**files, WEIGHTS: bomb}))
    content = bytearray(zipped(path, {**files, WEIGHTS: bomb}).read_bytes())
    size = len(bomb).to_bytes(4, "little")
    assert content.count(size) == 2
    path.write_bytes(content.replace(size, (200).to_bytes(4, "little")))
    assert "is damaged" in refused(path)
    # Sizes below zero must not hide one.
    for least in (-5, -(10**8)):
        lies = {"bytes": least, "sha256": entry["sha256"]}
        said = resealed(folder, lambda said: said["files"].update(bomb=entry, less=lies))  # noqa: B023
        assert "its list of files is not one" in refused(zipped(path, {**files, MANIFEST: said, "bomb": bomb}))
    assert not list(scratch.iterdir())


def test_a_member_twice_nested_or_unlisted_is_refused(folder: Path, tmp_path: Path, scratch: Path) -> None:
    files, path = contents(folder), tmp_path / "b.zip"
    for name in ("../x", "/x", "a/b", "more", "sub/"):
        assert "holds other files" in refused(zipped(path, {**files, name: b"payload"}))
    zipped(path, files)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr(WEIGHTS, files[WEIGHTS])
    assert "holds other files" in refused(path)
    assert "holds no manifest.json" in refused(zipped(path, {f"bundle/{name}": data for name, data in files.items()}))
    assert not list(scratch.iterdir())
    assert not (tmp_path / "x").exists()


def test_a_member_that_is_a_link_stays_text(folder: Path, tmp_path: Path, scratch: Path) -> None:
    files, path = contents(folder), tmp_path / "b.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            if name == WEIGHTS:
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
                content = b"/etc/passwd"
            archive.writestr(info, content)
    assert "is truncated or altered: 11 bytes" in refused(path)
    assert not list(scratch.iterdir())


def test_an_encrypted_or_oddly_packed_member_is_refused(folder: Path, tmp_path: Path, scratch: Path) -> None:
    files, path = contents(folder), tmp_path / "b.zip"
    content = bytearray(zipped(path, files).read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    content[6] |= 1
    path.write_bytes(content)
    assert "encrypted" in refused(path)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        assert "neither stored nor deflated" in refused(path)
    assert not list(scratch.iterdir())


def test_what_is_no_zip_is_refused(tmp_path: Path, scratch: Path) -> None:
    path = tmp_path / "b.zip"
    assert "No such file" in refused(path)
    for content in (b"", b"what is this", b"PK\x05\x06" + bytes(18)):
        path.write_bytes(content)
        assert "is not a bundle" in refused(path)
    path.unlink()
    path.mkdir()
    assert "Is a directory" in refused(path)
    assert "is no bundle" in refused(tmp_path / "nowhere")
    assert not list(scratch.iterdir())


def test_a_folder_is_replaced_only_by_a_whole_one(
    folder: Path, whole: tuple[Config, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(folder)
    calls = iter([None, OSError(28, "No space left on device"), None, KeyboardInterrupt()])

    def full(descriptor: int) -> None:
        if error := next(calls):
            raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(LiteNmtError, match=r"the disk is full; what was saved before is whole\."):
            write(folder, (whole[0], {**whole[1], WEIGHTS: b"new"}))
        with pytest.raises(KeyboardInterrupt):
            write(folder, (whole[0], {**whole[1], WEIGHTS: b"new"}))
    assert contents(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    write(folder, (whole[0], {**whole[1], WEIGHTS: b"new"}))
    assert contents(folder)[WEIGHTS] == b"new"
    bundle.load(folder)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_only_a_bundle_is_replaced(
    whole: tuple[Config, dict[str, bytes]], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "old.zip").write_bytes(b"")
    config, files = whole
    bundle.save(tmp_path / "ours.zip", {}, config, ("de", "en"), files)
    for fine in (folder, *(tmp_path / name for name in ("new", "empty", "new.zip", "old.zip", "ours.zip"))):
        bundle.check_out(fine)
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "photos.zip").write_bytes(b"mine")
    (tmp_path / "folder.zip").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / MANIFEST).write_text('{"name": "a browser extension"}')
    for theirs in (tmp_path, *(tmp_path / name for name in ("file", "photos.zip", "folder.zip", "other"))):
        with pytest.raises(LiteNmtError, match="exists already and is no bundle; choose another"):
            bundle.check_out(theirs)
    monkeypatch.chdir(tmp_path / "empty")
    for nameless in (Path(), Path("..")):
        with pytest.raises(LiteNmtError, match="must end in a name of its own; choose another"):
            bundle.check_out(nameless)


def test_only_what_is_listed_is_run(folder: Path) -> None:
    pytest.importorskip("onnxruntime")
    opened = bundle.load(folder)
    engine = open_engine(opened)
    assert isinstance(engine, OnnxEngine)
    with pytest.raises(LiteNmtError, match=r"lists no beam\.onnx"):
        engine.session("beam.onnx")
    with pytest.raises(LiteNmtError, match=r"greedy\.onnx is damaged"):
        engine.session(GREEDY)
    bare = dataclasses.replace(opened, manifest={**opened.manifest, "files": {GREEDY: opened.files[GREEDY]}})
    with pytest.raises(LiteNmtError, match=r"lists no weights\.bin"):
        OnnxEngine(bare).session(GREEDY)
    (folder / GREEDY).write_bytes(b"")
    with pytest.raises(LiteNmtError, match="cannot open"):
        engine.session(GREEDY)
    with pytest.raises(LiteNmtError, match="no graph that this release can run"):
        open_engine(dataclasses.replace(opened, manifest={**opened.manifest, "files": {}}))
    with pytest.raises(LiteNmtError, match="runs on the CPU, not on cuda"):
        open_engine(opened, "cuda")
