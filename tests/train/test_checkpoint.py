"""Checkpoints that are damaged, foreign, or could not be written."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lite_nmt.config import Config
from lite_nmt.errors import LiteNmtError
from lite_nmt.manifest import digest
from lite_nmt.models import checkpoint
from lite_nmt.train.run import train_model


@pytest.fixture
def model(tiny: Callable[..., Config], corpus: Path, tmp_path: Path) -> Path:
    return train_model(tiny(steps=1, valid_every=1000), corpus, ("de", "en"), tmp_path / "run", device="cpu").model


def edit(folder: Path, **changes: object) -> None:
    path = folder / checkpoint.MANIFEST
    changed = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({**changed, "sha256": digest(changed)}))


def test_round_trip(model: Path) -> None:
    saved = checkpoint.load(model)
    weights = checkpoint.named_weights(saved.model())
    assert all((weights[k] == v).all() for k, v in saved.weights().items())


@pytest.mark.parametrize("name", [checkpoint.WEIGHTS, "source.spm"])
def test_one_flipped_bit_is_refused(model: Path, name: str) -> None:
    content = bytearray((model / name).read_bytes())
    content[len(content) // 2] ^= 1
    (model / name).write_bytes(content)
    with pytest.raises(LiteNmtError, match=f"{name} is altered"):
        checkpoint.load(model)


def test_an_edited_manifest_is_refused(model: Path) -> None:
    path = model / checkpoint.MANIFEST
    path.write_text(path.read_text().replace('"relu"', '"swish"'))
    with pytest.raises(LiteNmtError, match=r"checkpoint\.json is altered"):
        checkpoint.load(model)


def test_a_checkpoint_that_stepped_aside_is_found(model: Path) -> None:
    model.rename(model.with_name(".model.old"))
    assert checkpoint.load(model).step == 1


def test_a_truncated_file_is_refused(model: Path) -> None:
    path = model / checkpoint.WEIGHTS
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(LiteNmtError, match="truncated or altered"):
        checkpoint.load(model)


def test_another_version_is_refused(model: Path) -> None:
    edit(model, version=99)
    with pytest.raises(LiteNmtError, match="checkpoint version 99; this release reads version 1"):
        checkpoint.load(model)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": "lite-nmt checkpoint", "version": 1}'])
def test_a_damaged_manifest_is_refused(model: Path, content: bytes) -> None:
    (model / checkpoint.MANIFEST).write_bytes(content)
    with pytest.raises(LiteNmtError):
        checkpoint.load(model)


def test_a_manifest_cannot_name_files_elsewhere(model: Path) -> None:
    manifest = json.loads((model / checkpoint.MANIFEST).read_text())
    edit(model, files={**manifest["files"], "../../secret": {"bytes": 1, "sha256": ""}})
    with pytest.raises(LiteNmtError, match="outside its folder"):
        checkpoint.load(model)


def test_weights_of_another_model_are_refused(model: Path) -> None:
    manifest = json.loads((model / checkpoint.MANIFEST).read_text())
    manifest["config"]["model"]["encoder"]["ffn"] = 24
    edit(model, config=manifest["config"])
    with pytest.raises(LiteNmtError, match="does not fit its configuration: encoder"):
        checkpoint.load(model).model()


def test_a_missing_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LiteNmtError, match="holds no checkpoint"):
        checkpoint.load(tmp_path)


def test_a_full_disk_leaves_the_previous_checkpoint_whole(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = checkpoint.load(model)
    before = {p.name: p.read_bytes() for p in model.iterdir()}

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LiteNmtError, match="the disk is full; what was saved before is whole"):
        checkpoint.save(model, saved.config, saved.languages, 2, {}, saved.vocabulary, saved.weights())
    assert {p.name: p.read_bytes() for p in model.iterdir()} == before
    assert [p.name for p in model.parent.iterdir() if "partial" in p.name] == []
