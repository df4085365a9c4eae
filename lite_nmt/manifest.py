"""Folders that are whole or not there: a manifest lists each file with its size and SHA-256.

The manifest holds a checksum of itself too. It tells damage, not forgery: whoever alters a file can renew it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lite_nmt.errors import LiteNmtError

NAME = re.compile(r"\w[\w.-]{0,99}", re.ASCII)  # of a file; it lies in the manifest's own folder


def seal(about: Mapping[str, Any], files: Mapping[str, bytes], details: Mapping[str, Any]) -> bytes:
    """The manifest of some files.

    Args:
        about: all else that it is to say; ``format`` and ``version`` among it.
        details: what is said of a file beside its size and checksum, by its name.
    """
    listed = {
        file: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), **details.get(file, {})}
        for file, content in files.items()
    }
    manifest = {**about, "files": listed}
    return json.dumps({**manifest, "sha256": digest(manifest)}, indent=1).encode()


def digest(manifest: Mapping[str, Any]) -> str:
    """Checksum of all that a manifest says, its own checksum left out."""
    said = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def read_manifest(path: Path, content: bytes, kind: str, version: int) -> dict[str, Any]:
    """Parse and check a manifest; its files are :func:`verify`'s.

    Args:
        path: where it comes from, for messages.
        kind: its ``format``.

    Raises:
        LiteNmtError: it is damaged, altered, of another version, or no manifest of this kind.
    """
    try:
        manifest = json.loads(content)
        saved = digest(manifest) if isinstance(manifest, dict) else None
    except (ValueError, RecursionError) as error:
        raise LiteNmtError(f"{path} is damaged: {error}; take another copy.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != kind:
        raise LiteNmtError(f"{path} does not describe a {kind}.")
    if manifest.get("version") != version:
        raise LiteNmtError(
            f"{path.parent} is of {kind.split()[-1]} version {manifest.get('version')!r}; this release reads version "
            f"{version}."
        )
    if manifest.get("sha256") != saved:
        raise LiteNmtError(f"{path} is altered: its checksum is not the one saved; take another copy.")
    files = manifest.get("files")
    if not isinstance(files, dict) or not all(map(_is_file, files.values())):
        raise LiteNmtError(f"{path} is damaged: its list of files is not one; take another copy.")
    for name in files:
        if not NAME.fullmatch(name):
            raise LiteNmtError(f"{path} names a file outside its folder: {name!r}.")
    return manifest


def _is_file(said: object) -> bool:
    if not isinstance(said, dict) or not isinstance(said.get("sha256"), str):
        return False
    return type(said.get("bytes")) is int and said["bytes"] >= 0


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder of files so that it is either whole or as it was.

    Everything goes to a folder beside it, is flushed to the disk and then renamed.

    Raises:
        LiteNmtError: it could not be written; a full disk is named as such.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, content in files.items():
            write_durably(partial / name, content)
        replace_folder(partial, folder)
    except OSError as error:
        why = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
        raise LiteNmtError(f"cannot save {folder}: {why}; what was saved before is whole.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is either whole or as it was."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        write_durably(partial, content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_durably(path: Path, content: bytes) -> None:
    """Write a file and wait until the disk has it."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_folder(new: Path, folder: Path) -> None:
    """Move a finished folder into place. A folder cannot be renamed over another, so the old one steps aside first;
    a reader finds it there if the process dies in between."""
    old = aside(folder)
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    new.rename(folder)
    # The name is on the disk only once its folder is.
    descriptor = os.open(folder.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    shutil.rmtree(old, ignore_errors=True)


def aside(folder: Path) -> Path:
    """Where :func:`replace_folder` leaves the old folder for a moment."""
    folder = folder.resolve()  # "." has no name to change
    return folder.with_name(f".{folder.name}.old") if folder.name else folder


def verify(folder: Path, name: str, expected: Mapping[str, Any]) -> None:
    """Hold a file against what its manifest says of it.

    Raises:
        LiteNmtError: it is missing, truncated or altered.
    """
    path = folder / name
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise LiteNmtError(f"{path} is not a file; take another copy.")
        size = found.st_size
        if size != expected["bytes"]:
            raise LiteNmtError(f"{path} is truncated or altered: {size} bytes, not {expected['bytes']}.")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise LiteNmtError(f"cannot read {path}: {error.strerror}.") from error
    if digest != expected["sha256"]:
        raise LiteNmtError(f"{path} is altered: its checksum is not the one saved; take another copy.")
