"""What can be profiled: a preset, a configuration, a checkpoint, a bundle, an ONNX file."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_nmt.config import Config, from_dict, load_toml, merge, parse_setting, preset_names, preset_table
from lite_nmt.errors import LiteNmtError

if TYPE_CHECKING:
    from lite_nmt.models.checkpoint import Checkpoint

ENDINGS = (".toml", ".onnx", ".zip")
MANIFEST = "manifest.json"
MANIFEST_LIMIT = 10_000_000  # bytes; a longer one is no manifest of ours


@dataclass(frozen=True)
class Target:
    """``config`` is None for an ONNX file, which says nothing of its configuration."""

    name: str
    kind: str
    config: Config | None
    path: Path | None = None
    saved: Checkpoint | None = None


def find_target(text: str, settings: Sequence[str] = ()) -> Target:
    """Make out what is meant. The name of a preset wins over a folder of that name, which ``./name`` means.

    Args:
        settings: ``key=value``, laid over a preset or a configuration.

    Raises:
        LiteNmtError: there is no such thing, or it is damaged.
    """
    path = Path(text)
    overrides = [parse_setting(setting) for setting in settings]
    if text in preset_names() or not (path.exists() or path.suffix in ENDINGS):
        return Target(text, "preset", from_dict(Config, merge(preset_table(text), *overrides)))
    if path.suffix == ".toml":
        return Target(text, "configuration", from_dict(Config, merge(load_toml(path), *overrides)), path)
    if settings and path.exists():
        raise LiteNmtError("--set changes a preset or a configuration; what is trained or exported stays as it is.")
    if path.suffix == ".onnx":
        return Target(text, "ONNX graph", None, path)
    if (path.suffix == ".zip" and not path.is_dir()) or (path / MANIFEST).exists():
        return Target(text, "bundle", _bundle(path), path)
    if path.is_dir():
        from lite_nmt.models import checkpoint

        saved = checkpoint.load(path)
        return Target(text, "checkpoint", saved.config, path, saved)
    raise LiteNmtError(f"{text} is neither a .toml configuration, a .onnx graph nor a folder.")


def _bundle(path: Path) -> Config:
    """The configuration that a bundle's manifest holds."""
    try:
        with ExitStack() as stack:
            folder = path if path.is_dir() else zipfile.Path(stack.enter_context(zipfile.ZipFile(path)))
            with (folder / MANIFEST).open("rb") as file:
                content = file.read(MANIFEST_LIMIT + 1)
        if len(content) > MANIFEST_LIMIT:
            raise LiteNmtError(f"{path}: {MANIFEST} is over {MANIFEST_LIMIT:,} bytes long; that is no bundle.")
        manifest: Any = json.loads(content)
    except OSError as error:
        raise LiteNmtError(f"cannot read {path}: {error.strerror or f'it holds no {MANIFEST}'}.") from error
    except (ValueError, zipfile.BadZipFile, RuntimeError) as error:  # an encrypted one is a RuntimeError
        raise LiteNmtError(f"{path} is not a bundle: {error}.") from error
    if not isinstance(manifest, Mapping) or "config" not in manifest:
        raise LiteNmtError(f"{path} is not a bundle: its {MANIFEST} holds no configuration.")
    return from_dict(Config, manifest["config"])
