"""Artefacts of Maven Central, each pinned: its version in gradle/libs.versions.toml, its SHA-256 in artifacts.lock.

They land in ``android_demo/.cache/maven``, laid out as Maven does. A file already there is taken if its sum is right,
so that a machine without a network can be given one by hand.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tomllib
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from lite_nmt.errors import LiteNmtError

DEMO = Path(__file__).resolve().parent.parent
CACHE = DEMO / ".cache"
CATALOGUE = DEMO / "gradle/libs.versions.toml"
LOCK = DEMO / "gradle/artifacts.lock"
CENTRAL = os.environ.get("LITE_NMT_MAVEN", "https://repo.maven.apache.org/maven2")  # or a mirror of it
CHUNK = 1 << 20


@dataclass(frozen=True)
class Artefact:
    """One file of Maven Central."""

    group: str
    name: str
    version: str

    @property
    def path(self) -> str:
        """Where Maven's layout has it."""
        kind = "aar" if self.name.endswith("-android") else "signature" if "api-level" in self.name else "jar"
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}/{self.name}-{self.version}.{kind}"

    def __str__(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"


def catalogue() -> dict[str, Artefact]:
    """All artefacts by their alias in the catalogue."""
    table = tomllib.loads(CATALOGUE.read_text())
    found = {}
    for alias, entry in table["libraries"].items():
        group, name = entry["module"].split(":")
        found[alias] = Artefact(group, name, table["versions"][entry["version"]["ref"]])
    return found


def version(name: str) -> str:
    """One entry of the catalogue's ``[versions]``."""
    return str(tomllib.loads(CATALOGUE.read_text())["versions"][name])


def fetch(alias: str) -> Path:
    """The file of a library of the catalogue, downloaded if it is not there yet.

    Raises:
        LiteNmtError: the download failed, or what came is not what artifacts.lock says.
    """
    artefact = catalogue()[alias]
    expected = _locked(artefact)
    target = CACHE / "maven" / artefact.path
    target.parent.mkdir(parents=True, exist_ok=True)
    file = target if target.exists() else _download(artefact, target)
    found = _sum(file)
    if found != expected:
        file.unlink()
        raise LiteNmtError(f"{artefact} has the SHA-256 {found}, not {expected} as in {LOCK.name}; it was thrown away.")
    return file.replace(target)


def _locked(artefact: Artefact) -> str:
    for line in LOCK.read_text().splitlines():
        digest, name = line.split()
        if name == str(artefact):
            return digest
    raise LiteNmtError(f"{artefact} is not in {LOCK.name}; add a line 'SHA-256 {artefact}'.")


def _download(artefact: Artefact, target: Path) -> Path:
    """Into a file beside ``target``, going on where an earlier attempt stopped."""
    part = target.with_name(f"{target.name}.part")
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(f"{CENTRAL}/{artefact.path}", headers={"Range": f"bytes={have}-"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            have = have if answer.status == 206 else 0  # or it is the whole file again
            size = have + int(answer.headers["Content-Length"])
            with part.open("ab" if have else "wb") as file:
                while chunk := answer.read(CHUNK):
                    have += file.write(chunk)
                    _progress(f"\r{artefact}: {have / 1e6:.1f} of {size / 1e6:.1f} MB")
        _progress("\n")
    except urllib.error.HTTPError as error:
        if error.code == 416:  # there is no more of it
            return part
        raise LiteNmtError(
            f"Maven Central, as it is reached from here, answers {error.code} for {artefact}; if you have the file, put"
            f" it at {target}."
        ) from error
    except OSError as error:
        raise LiteNmtError(
            f"the download of {artefact} stopped ({error}); run again to go on, or put the file at {target}."
        ) from error
    if have < size:
        raise LiteNmtError(f"the download of {artefact} stopped at {have} of {size} bytes; run again to go on.")
    return part


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(text, end="", file=sys.stderr, flush=True)


def _sum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
