"""Checkpoints: a folder of weights, vocabulary and JSON, written whole or not at all, verified when read.

Weights are safetensors, or packed by ``lite-nmt compress``; the vocabulary beside packed weights is compressed too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from lite_nmt.compress import packing
from lite_nmt.compress.packing import Packed
from lite_nmt.config import Config, from_dict
from lite_nmt.data.encoded import Array
from lite_nmt.data.vocabulary import SOURCE_FILE, TARGET_FILE, Vocabulary
from lite_nmt.errors import LiteNmtError
from lite_nmt.export.bundle import is_bundle
from lite_nmt.manifest import aside, read_manifest, seal, verify, write_folder
from lite_nmt.models.language import LanguageModel
from lite_nmt.models.translation import TranslationModel

FORMAT, VERSION = "lite-nmt checkpoint", 1
MANIFEST, WEIGHTS, TRAINING = "checkpoint.json", "model.safetensors", "training.safetensors"
PACKED, XZ = "model.packed", ".xz"
M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint folder says of itself; weights are read when asked for."""

    config: Config
    languages: tuple[str, str]
    step: int
    metrics: dict[str, float]
    vocabulary: Vocabulary
    folder: Path
    checksum: str  # of the manifest, and so of every file that it lists
    packed: int | None = None  # bytes that packed weights take as float32; None where they are not packed

    def weights(self) -> dict[str, Tensor]:
        """The model's tensors by name, on the CPU."""
        if self.packed is None:
            return load_tensors(self.folder / WEIGHTS)
        path = self.folder / PACKED
        books = packing.unpack(_read(path), self.packed, str(path))
        return {name: torch.from_numpy(tensor) for book in books for name, tensor in book.weights().items()}

    def model(self, device: str | torch.device = "cpu") -> TranslationModel:
        """The model, ready to translate (dropout off).

        Raises:
            LiteNmtError: it is a language model.
        """
        if self.config.task == "lm":
            raise LiteNmtError(
                f"{self.folder} holds a language model, which does not translate; see `lite-nmt evaluate`."
            )
        return self._restored(TranslationModel(self.config), device)

    def language_model(self, device: str | torch.device = "cpu") -> LanguageModel:
        """The language model, ready to read (dropout off).

        Raises:
            LiteNmtError: it is a model that translates.
        """
        if self.config.task != "lm":
            raise LiteNmtError(f"{self.folder} holds a model made to {self.config.task}, not a language model.")
        return self._restored(LanguageModel(self.config), device)

    def _restored(self, model: M, device: str | torch.device) -> M:
        restore(model, self.weights(), self.folder)
        return model.to(device).eval()


def restore(model: nn.Module, weights: Mapping[str, Tensor | Array], origin: Path | str) -> None:
    """Load weights into a model built from the same configuration.

    Args:
        origin: what they are of, for who is told that they do not fit.
    """
    expected = {name: tuple(p.shape) for name, p in named_weights(model).items()}
    found = {name: tuple(t.shape) for name, t in weights.items()}
    if expected != found:
        name = min(k for k in expected.keys() | found.keys() if expected.get(k) != found.get(k))
        raise LiteNmtError(
            f"{origin} does not fit its configuration: {name} is {found.get(name, 'missing')}, "
            f"expected {expected.get(name, 'nothing')}."
        )
    with torch.no_grad():
        for name, parameter in named_weights(model).items():
            parameter.copy_(torch.as_tensor(weights[name]))


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Parameters by name, each shared one once."""
    return dict(model.named_parameters())


def save(
    folder: Path,
    config: Config,
    languages: tuple[str, str],
    step: int,
    metrics: Mapping[str, float],
    vocabulary: Vocabulary,
    weights: Mapping[str, Tensor] | Packed,
    training: Mapping[str, Tensor] | None = None,
) -> None:
    """Write a checkpoint so that ``folder`` is either whole or as it was.

    Raises:
        LiteNmtError: it could not be written; a full disk is named as such.
    """
    details: dict[str, dict[str, Any]] = {}  # of the files that are stored smaller
    if isinstance(weights, Mapping):
        files = {WEIGHTS: safetensors.torch.save({k: v.detach().cpu().contiguous() for k, v in weights.items()})}
        files |= vocabulary.files()
    else:
        files, details[PACKED] = (
            {PACKED: weights.content},
            {"expanded_bytes": weights.expanded_bytes, "kind": weights.kind},
        )
        for name, content in vocabulary.files().items():
            files[name + XZ], details[name + XZ] = packing.squeeze_file(content), {"expanded_bytes": len(content)}
    if training is not None:
        files[TRAINING] = safetensors.torch.save({k: v.detach().cpu().contiguous() for k, v in training.items()})
    about = {
        "format": FORMAT,
        "version": VERSION,
        "step": step,
        "languages": {"source": languages[0], "target": languages[1]},
        "metrics": dict(metrics),
        "config": config.to_dict(),
    }
    write_folder(folder, {**files, MANIFEST: seal(about, files, details)})


def find(folder: Path) -> Path | None:
    """Where a checkpoint lies: in its folder, or aside, waiting for a new one that never came; None if nowhere."""
    return next((place for place in (folder, aside(folder)) if (place / MANIFEST).exists()), None)


def load(path: Path) -> Checkpoint:
    """Open a checkpoint folder, or the finished model of a run folder; sizes and checksums are verified.

    Raises:
        LiteNmtError: it is missing, of another version, truncated or altered.
    """
    folder = find(path) or find(path / "model") or path / "model"
    manifest = _manifest(folder, path)
    files = manifest["files"]
    for name, content in files.items():
        verify(folder, name, content)
    languages = manifest["languages"]
    config = from_dict(Config, manifest["config"])
    source = _vocabulary(folder, SOURCE_FILE, files)
    target = None if config.vocabulary.joint else _vocabulary(folder, TARGET_FILE, files)
    return Checkpoint(
        config=config,
        languages=(str(languages["source"]), str(languages["target"])),
        step=int(manifest["step"]),
        metrics=dict(manifest["metrics"]),
        vocabulary=Vocabulary(source, target),
        folder=folder,
        checksum=str(manifest["sha256"]),
        packed=files[PACKED]["expanded_bytes"] if PACKED in files else None,
    )


def _vocabulary(folder: Path, name: str, files: Mapping[str, Any]) -> bytes:
    """A SentencePiece model, expanded where it is compressed."""
    if name in files:
        return _read(folder / name)
    if name + XZ not in files:
        raise LiteNmtError(f"{folder / MANIFEST} is damaged: it does not list {name}.")
    path = folder / (name + XZ)
    return packing.expand_file(_read(path), files[path.name]["expanded_bytes"], str(path))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise LiteNmtError(f"cannot read {path}: {error.strerror}.") from error


def _manifest(folder: Path, asked: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        content = path.read_bytes()
    except OSError as error:
        if asked.exists() and is_bundle(asked):
            raise LiteNmtError(f"{asked} is a bundle; take the checkpoint that it was exported from.") from error
        raise LiteNmtError(f"{asked} holds no checkpoint: {path}: {error.strerror}.") from error
    manifest = read_manifest(path, content, FORMAT, VERSION)
    missing = {"config", "languages", "step", "metrics"} - manifest.keys()
    if missing or not _well_formed(manifest):
        what = f"it does not say {', '.join(sorted(missing))}" if missing else "its entries are not what they should be"
        raise LiteNmtError(f"{path} is damaged: {what}; take another checkpoint.")
    return manifest


def _well_formed(manifest: Mapping[str, Any]) -> bool:
    # The checksum is no signature: whoever altered the file may have renewed it.
    files, languages, metrics = manifest["files"], manifest["languages"], manifest["metrics"]
    return (
        len({WEIGHTS, PACKED} & files.keys()) == 1
        and all(_is_size(f.get("expanded_bytes")) for n, f in files.items() if n == PACKED or n.endswith(XZ))
        and isinstance(languages, dict)
        and {"source", "target"} <= languages.keys()
        and isinstance(metrics, dict)
        and isinstance(manifest["step"], int)
    )


def _is_size(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**40


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file; never a pickle."""
    try:
        return safetensors.torch.load_file(path)
    except OSError as error:
        raise LiteNmtError(f"cannot read {path}: {error.strerror or error}.") from error
    except safetensors.SafetensorError as error:
        raise LiteNmtError(f"{path} is not a whole safetensors file: {error}.") from error
