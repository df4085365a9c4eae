"""What can be profiled: a preset, a configuration, a checkpoint, a bundle, an ONNX file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_nmt.config import Config, from_dict, load_toml, merge, parse_setting, preset_names, preset_table
from lite_nmt.errors import LiteNmtError
from lite_nmt.export import bundle
from lite_nmt.idle import refuse_idle, refuse_uncounted

if TYPE_CHECKING:
    from lite_nmt.models.checkpoint import Checkpoint

ENDINGS = (".toml", ".onnx", ".zip")


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
        LiteNmtError: there is no such thing, it is damaged, or a setting changes nothing.
    """
    path = Path(text)
    if text in preset_names() or not (path.exists() or path.suffix in ENDINGS):
        return Target(text, "preset", _changed(preset_table(text), settings))
    if path.suffix == ".toml":
        return Target(text, "configuration", _changed(load_toml(path), settings), path)
    if settings and path.exists():
        raise LiteNmtError("--set changes a preset or a configuration; what is trained or exported stays as it is.")
    if path.suffix == ".onnx":
        return Target(text, "ONNX graph", None, path)
    if bundle.is_bundle(path):
        return Target(text, "bundle", bundle.read_config(path), path)
    if path.is_dir():
        from lite_nmt.models import checkpoint

        saved = checkpoint.load(path)
        return Target(text, "checkpoint", saved.config, path, saved)
    raise LiteNmtError(f"{text} is neither a .toml configuration, a .onnx graph nor a folder.")


def _changed(table: dict[str, Any], settings: Sequence[str]) -> Config:
    overrides = [parse_setting(setting) for setting in settings]
    config = from_dict(Config, merge(table, *overrides))
    refuse_uncounted(*overrides)
    refuse_idle(config, *overrides)
    return config
