"""What can be profiled: a preset, a configuration, a checkpoint, a bundle, an ONNX file."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lite_nmt.config import Config, from_dict, load_toml, merge, parse_setting, preset_names, preset_table
from lite_nmt.errors import LiteNmtError

MANIFEST = "manifest.json"
MANIFEST_LIMIT = 10_000_000  # bytes; a longer one is no manifest of ours


@dataclass(frozen=True)
class Target:
    """``config`` is None for an ONNX file, which says nothing of its configuration."""

    name: str
    kind: str
    config: Config | None
    path: Path | None = None


def find_target(text: str, settings: Sequence[str] = ()) -> Target:
    """Make out what is meant. The name of a preset wins over a folder of that name, which ``./name`` means.

    Args:
        settings: ``key=value``, laid over a preset or a configuration.

    Raises:
        LiteNmtError: there is no such thing, or it is damaged.
    """
    path = Path(text)
    overrides = [parse_setting(setting) for setting in settings]
    if text in preset_names():
        return Target(text, "preset", from_dict(Config, merge(preset_table(text), *overrides)))
    if path.suffix == ".toml":
        return Target(text, "configuration", from_dict(Config, merge(load_toml(path), *overrides)), path)
    if settings and path.exists():
        raise LiteNmtError("--set changes a preset or a configuration; what is trained or exported stays as it is.")
    if path.suffix == ".onnx":
        return Target(text, "ONNX graph", None, path)
    if path.suffix == ".zip" or (path / MANIFEST).exists():
        return Target(text, "bundle", _bundle(path), path)
    if path.is_dir():
        from lite_nmt.models import checkpoint

        return Target(text, "checkpoint", checkpoint.load(path).config, path)
    if path.exists():
        raise LiteNmtError(f"{text} is neither a .toml configuration, a .onnx graph nor a folder.")
    preset_table(text)  # refuses it, and suggests the nearest name
    raise AssertionError


def _bundle(path: Path) -> Config:
    """The configuration that a bundle's manifest holds."""
    try:
        if path.is_dir():
            size, read = (path / MANIFEST).stat().st_size, (path / MANIFEST).read_bytes
        else:
            archive = zipfile.ZipFile(path)
            size, read = archive.getinfo(MANIFEST).file_size, lambda: archive.read(MANIFEST)
        if size > MANIFEST_LIMIT:
            raise LiteNmtError(f"{path}: {MANIFEST} is {size:,} bytes long; that is no bundle.")
        manifest: Any = json.loads(read())
    except OSError as error:
        raise LiteNmtError(f"cannot read {path}: {error.strerror}.") from error
    except (KeyError, ValueError, zipfile.BadZipFile, RecursionError) as error:
        raise LiteNmtError(f"{path} is not a bundle: {error}.") from error
    if not isinstance(manifest, Mapping) or "config" not in manifest:
        raise LiteNmtError(f"{path} is not a bundle: its {MANIFEST} holds no configuration.")
    return from_dict(Config, manifest["config"])
