"""Trained models as points in a picture: their family, their Mult-Adds, their BLEU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lite_nmt.config import ModelConfig
from lite_nmt.errors import LiteNmtError
from lite_nmt.profiling.cost import cost

OTHER = "#999999"


class Family(NamedTuple):
    """Models of one mixer, and how they are drawn."""

    name: str
    colour: str
    marker: str


FAMILIES = {
    "attention": Family("Transformer", "#000000", "s"),
    "lsra": Family("Lite Transformer", "#0072B2", "o"),
    "lightconv": Family("LightConv", "#E69F00", "^"),
    "dynamicconv": Family("DynamicConv", "#D55E00", "v"),
    "talk": Family("TaLK", "#009E73", "D"),
    "average": Family("average attention", "#CC79A7", "P"),
    "cnn": Family("CNN", "#56B4E9", "X"),
}


@dataclass(frozen=True)
class Run:
    """A trained model; Mult-Adds for 30 to 30 tokens."""

    folder: Path
    family: Family
    languages: str
    mult_adds: int
    valid_bleu: float


def family(model: ModelConfig) -> Family:
    """What to call a model and how to draw it; one whose sides differ carries both names."""
    encoder, decoder = (FAMILIES.get(m, Family(m, OTHER, "*")) for m in (model.encoder.mixer, model.decoder.mixer))
    return encoder if encoder == decoder else Family(f"{encoder.name} + {decoder.name}", OTHER, "*")


def find_runs(folders: Iterable[Path]) -> tuple[list[Run], list[str]]:
    """Finished models of runs, and of folders that hold runs; and, in sentences, what to beware of.

    Raises:
        LiteNmtError: a folder is missing, a checkpoint is damaged, or no run has a validation BLEU.
    """
    from lite_nmt.models import checkpoint

    found: dict[Path, Run] = {}
    left_out = []
    for folder in _unfolded(folders):
        saved = checkpoint.load(folder) if _finished(folder) else None
        if saved is None or "valid_bleu" not in saved.metrics:
            left_out.append(str(folder))
            continue
        spent, bleu = cost(saved.config).mult_adds(), saved.metrics["valid_bleu"]
        run = Run(folder, family(saved.config.model), "-".join(saved.languages), spent, bleu)
        found.setdefault(saved.folder.resolve(), run)  # a run and its model are one
    if not found:
        raise LiteNmtError(f"no finished model with a validation BLEU is in {', '.join(left_out)}; name another run.")
    beware = [f"{folder} holds no finished model with a validation BLEU and is left out." for folder in left_out]
    languages = sorted({run.languages for run in found.values()})
    if len(languages) > 1:
        beware.append(f"the runs translate {', '.join(languages)}; their BLEU does not compare.")
    return list(found.values()), beware


def _unfolded(folders: Iterable[Path]) -> Iterator[Path]:
    """Each folder, or the runs in it where it is none itself."""
    from lite_nmt.train.prepare import SETTINGS

    def is_run(folder: Path) -> bool:
        return _finished(folder) or (folder / SETTINGS).exists()

    for folder in folders:
        if not folder.is_dir():
            raise LiteNmtError(f"there is no folder {folder}; name a run's, or one that holds runs.")
        inner = [f for f in sorted(folder.iterdir()) if is_run(f) and f.name[0] != "."]
        yield from [folder] if is_run(folder) or not inner else inner


def _finished(folder: Path) -> bool:
    from lite_nmt.models import checkpoint

    return checkpoint.find(folder) is not None or checkpoint.find(folder / "model") is not None
