"""A bundle: all that a device needs to translate, in one folder or .zip, read without PyTorch.

``manifest.json`` says what it is and lists each file with its size and checksum: the SentencePiece models, the
graphs, and the weights that the graphs share. A bundle may come from a stranger: nothing is read before its size and
checksum are right, and no name leads out of it.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lite_nmt.config import Config, from_dict
from lite_nmt.data.vocabulary import SOURCE_FILE, TARGET_FILE, Vocabulary
from lite_nmt.errors import LiteNmtError
from lite_nmt.manifest import read_manifest, seal, verify, write_folder, write_whole

FORMAT, VERSION = "lite-nmt bundle", 1
MANIFEST, WEIGHTS = "manifest.json", "weights.bin"
LARGEST_MANIFEST = 10_000_000  # bytes
LARGEST_RATIO = 100  # of a zip's content to the zip; a graph of pruned weights shrinks about tenfold


@dataclass(frozen=True)
class Bundle:
    """A bundle whose files have been verified.

    Attributes:
        folder: where its files lie; a zip's are there as long as this object is.
        manifest: all that it says of itself.
    """

    folder: Path
    manifest: Mapping[str, Any]
    config: Config
    languages: tuple[str, str]
    vocabulary: Vocabulary

    @property
    def files(self) -> Mapping[str, Any]:
        """What the manifest says of each file."""
        return self.manifest["files"]

    def size(self) -> int:
        """Bytes of all files, the manifest left out."""
        return sum(said["bytes"] for said in self.files.values())


def is_bundle(path: Path) -> bool:
    """Whether a path is meant as a bundle, and not as a checkpoint."""
    return path.suffix.lower() == ".zip" or (path / MANIFEST).exists()


def save(
    path: Path, about: Mapping[str, Any], config: Config, languages: tuple[str, str], files: Mapping[str, bytes]
) -> None:
    """Write a bundle, whole or not at all; as a zip where ``path`` ends in .zip.

    Args:
        about: what else its manifest says.
        files: by name.

    Raises:
        LiteNmtError: it cannot be written.
    """
    said = {
        "format": FORMAT,
        "version": VERSION,
        "languages": {"source": languages[0], "target": languages[1]},
        **about,
        "config": config.to_dict(),
    }
    files = {MANIFEST: seal(said, files, {}), **files}
    if path.suffix.lower() != ".zip":
        write_folder(path, files)
        return
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)  # the same bytes on every day
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content.getvalue())


def check_out(path: Path) -> None:
    """Refuse to write a bundle over what is none, or where nothing can be written.

    Raises:
        LiteNmtError: there is something else, or no such right.
    """
    if path.name in ("", ".."):
        raise LiteNmtError(f"cannot write {path}: it must end in a name of its own; choose another --out.")
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise LiteNmtError(f"cannot write {path}: {above} is no folder, or may not be written to.")
    if path.suffix.lower() == ".zip":
        theirs = path.exists() and not (path.is_file() and (not path.stat().st_size or _is_ours(path)))
    else:
        theirs = path.exists() and not (path.is_dir() and (not any(path.iterdir()) or _is_ours(path)))
    if theirs:
        raise LiteNmtError(f"{path} exists already and is no bundle; choose another --out.")


def _is_ours(path: Path) -> bool:
    try:
        _manifest(path)
    except LiteNmtError:
        return False
    return True


def load(path: Path) -> Bundle:
    """Open a bundle; a zip is unpacked into a temporary folder.

    Raises:
        LiteNmtError: it is missing, damaged, of another version, or not what it says.
    """
    if path.suffix.lower() != ".zip":
        return _verified(path, path, _manifest(path))
    folder = Path(tempfile.mkdtemp(prefix="lite-nmt-"))
    try:
        opened = _verified(path, folder, _unpack(path, folder))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(opened, shutil.rmtree, folder, ignore_errors=True)  # when Python ends, at the latest
    return opened


def _verified(path: Path, folder: Path, manifest: Mapping[str, Any]) -> Bundle:
    """What a manifest says, held against its files in ``folder``."""
    for name, said in manifest["files"].items():
        verify(folder, name, said)
    try:
        config = from_dict(Config, manifest["config"])
        languages = (str(manifest["languages"]["source"]), str(manifest["languages"]["target"]))
    except (KeyError, TypeError) as error:
        raise LiteNmtError(f"{path / MANIFEST} is damaged: it does not say {error}; take another copy.") from error
    needed = [SOURCE_FILE] if config.vocabulary.joint else [SOURCE_FILE, TARGET_FILE]
    for name in needed:
        if name not in manifest["files"]:
            raise LiteNmtError(f"{path / MANIFEST} is damaged: it does not list {name}.")
    vocabulary = Vocabulary.load(folder, config.vocabulary.joint)
    return Bundle(folder, manifest, config, languages, vocabulary)


def read_config(path: Path) -> Config:
    """What a bundle's manifest says of its model, without a look at its files."""
    return from_dict(Config, _manifest(path).get("config", {}))


def _manifest(path: Path) -> dict[str, Any]:
    if path.suffix.lower() == ".zip":
        with _open(path) as archive:
            content = _member(archive, MANIFEST, LARGEST_MANIFEST, path)
    else:
        content = _read_manifest(path)
    return read_manifest(path / MANIFEST, content, FORMAT, VERSION)


def _read_manifest(folder: Path) -> bytes:
    try:
        with (folder / MANIFEST).open("rb") as file:
            content = file.read(LARGEST_MANIFEST + 1)
    except OSError as error:
        raise LiteNmtError(f"{folder} is no bundle: {folder / MANIFEST}: {error.strerror}.") from error
    if len(content) > LARGEST_MANIFEST:
        raise LiteNmtError(f"{folder / MANIFEST} is over {LARGEST_MANIFEST:,} bytes long; that is no manifest.")
    return content


def _unpack(path: Path, folder: Path) -> dict[str, Any]:
    """Write a zip's listed files to a folder, each no longer than the manifest says."""
    with _open(path) as archive:
        content = _member(archive, MANIFEST, LARGEST_MANIFEST, path)
        manifest = read_manifest(path / MANIFEST, content, FORMAT, VERSION)
        total = sum(said["bytes"] for said in manifest["files"].values())
        if total > LARGEST_RATIO * path.stat().st_size:
            raise LiteNmtError(
                f"{path} says that it holds {total:,} bytes, over {LARGEST_RATIO} times its own size; it is no bundle."
            )
        if sorted(archive.namelist()) != sorted([MANIFEST, *manifest["files"]]):
            raise LiteNmtError(f"{path} holds other files than its {MANIFEST} lists, or one twice; take another copy.")
        for name, said in manifest["files"].items():
            (folder / name).write_bytes(_member(archive, name, said["bytes"], path))
    return manifest


def _open(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except OSError as error:
        raise LiteNmtError(f"cannot read {path}: {error.strerror}.") from error
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise LiteNmtError(f"{path} is not a bundle: {error}.") from error


def _member(archive: zipfile.ZipFile, name: str, most: int, path: Path) -> bytes:
    try:
        if archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise LiteNmtError(f"{path} is damaged: {name} is neither stored nor deflated; take another copy.")
        with archive.open(name) as file:
            content = file.read(most + 1)
    except KeyError as error:
        raise LiteNmtError(f"{path} is not a bundle: it holds no {name}.") from error
    except (zipfile.BadZipFile, OSError, RuntimeError, ValueError, EOFError, zlib.error) as error:
        # An encrypted one is a RuntimeError.
        raise LiteNmtError(f"{path} is damaged: {name}: {error}; take another copy.") from error
    if len(content) > most:
        raise LiteNmtError(f"{path} is damaged: {name} is longer than {most:,} bytes; take another copy.")
    return content
