"""Starting from the weights of a checkpoint instead of random ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lite_nmt.config import Config
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint
from lite_nmt.models.checkpoint import Checkpoint


def starting_point(init: Path, config: Config, languages: tuple[str, str]) -> Checkpoint:
    """The checkpoint to start from.

    Raises:
        LiteNmtError: it is of another model, vocabulary or pair of languages than asked for. Dropout and the longest
            training pair may differ.
    """
    saved = checkpoint.load(init)
    if languages != saved.languages:
        theirs, asked = (" to ".join(pair) for pair in (saved.languages, languages))
        raise LiteNmtError(f"{init} translates {theirs}, not {asked}; leave out --src and --tgt, or --init.")
    its, ours = _fixed(saved.config.to_dict()), _fixed(config.to_dict())
    if differing := [key for key in its if its[key] != ours[key]]:
        key = differing[0]
        raise LiteNmtError(
            f"{key} is {ours[key]}, but {init} has {its[key]}; with --init the model and the vocabulary are the "
            "checkpoint's."
        )
    return saved


def _fixed(table: dict[str, Any], where: str = "") -> dict[str, Any]:
    """What weights and token numbers depend on, by the settings' full names."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{where}.{key}" if where else key
        if isinstance(value, dict):
            found |= _fixed(value, name)
        elif name.startswith(("model.", "vocabulary.")) and not key.endswith(("dropout", "max_length")):
            found[name] = value
    return found
