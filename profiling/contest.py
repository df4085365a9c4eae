"""The best shapes of a search trained briefly, each in a folder of its own, and compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from lite_nmt.config import Config, from_dict, merge
from lite_nmt.data.corpus import sides
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint
from lite_nmt.profiling.budget import quantity
from lite_nmt.profiling.cost import cost
from lite_nmt.profiling.latency import Spread, measure
from lite_nmt.profiling.machine import machine
from lite_nmt.profiling.predict import LENGTH, Target
from lite_nmt.profiling.search import Candidate
from lite_nmt.train.prepare import SETTINGS, Settings
from lite_nmt.train.run import train_model


@dataclass(frozen=True)
class Result:
    """What a shape is worth after a brief training, and what it costs with the vocabulary that came of the data."""

    name: str
    run: Path
    steps: int
    valid_bleu: float  # greedy
    valid_nll: float  # nats a token
    mult_adds: int
    mult_adds_full: int
    predicted_ms: float  # on the search's target
    measured: Spread  # here, a whole sentence

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "run": str(self.run)}


def brief(config: Config, steps: int, settings: Sequence[Mapping[str, Any]]) -> Config:
    """A recipe that ends after ``steps`` updates: warm-up over a tenth of them, cosine decay, the last weights.

    ``settings`` are laid over it.
    """
    recipe = {
        "steps": steps,
        "schedule": "cosine",
        "warmup": max(steps // 10, 1),
        "valid_every": steps,
        "save_every": max(steps // 4, 1),
        "keep": 1,
        "average": 0,
    }
    return from_dict(Config, merge(config.to_dict(), {"train": recipe}, *settings))


def contest(
    candidates: Sequence[Candidate],
    target: Target,
    data: Path,
    languages: tuple[str, str],
    out: Path,
    steps: int,
    settings: Sequence[Mapping[str, Any]] = (),
    device: str = "auto",
) -> Iterator[Result]:
    """Train each candidate below ``out``, and yield what came of it. A finished one is not trained again.

    Raises:
        LiteNmtError: the corpus has no validation side, or a folder holds a run of other data or settings.
    """
    sides(data, "valid", *languages)
    for candidate in candidates:
        run = out / candidate.name
        _train(brief(candidate.config, steps, settings), data, languages, run, device)
        saved = checkpoint.load(run)
        total = cost(saved.config)
        yield Result(
            candidate.name,
            run,
            saved.step,
            saved.metrics["valid_bleu"],
            saved.metrics["valid_nll"],
            total.mult_adds(),
            total.mult_adds("full"),
            target.predict(saved.config),
            measure(saved.model(), LENGTH, LENGTH, threads=target.threads).sentence,
        )


def _train(config: Config, data: Path, languages: tuple[str, str], run: Path, device: str) -> None:
    if (run / SETTINGS).exists():
        saved = Settings.load(run)
        before = (saved.data, saved.languages, saved.asked, saved.config.model, saved.config.train)
        now = (str(data.resolve()), languages, config.vocabulary, config.model, config.train)
        names = ("data", "languages", "vocabulary", "model", "recipe")
        if changed := [n for n, a, b in zip(names, before, now, strict=True) if a != b]:
            raise LiteNmtError(f"{run} trains with another {' and '.join(changed)}; choose another --out.")
        if checkpoint.find(run / "model"):
            return
    train_model(config, data, languages, run, resume=True, device=device)


def render(results: Sequence[Result], target: Target) -> Table:
    """A table for people."""
    table = Table(box=None, pad_edge=False, header_style="bold", caption_justify="left")
    table.caption = (
        f"BLEU (greedy) and loss (nats a token) on the validation side after {results[0].steps:,} updates: enough to "
        "compare, no more. Mult-Adds are fewer than above where the vocabulary came out smaller. Measured: median and "
        f"quartiles of a sentence on {machine()}, --threads {target.threads}."
    )
    table.add_column("folder", no_wrap=True)
    for name in ("BLEU", "loss", "Mult-Adds", "full", target.label, "measured ms", "quartiles"):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        table.add_row(
            result.name,
            f"{result.valid_bleu:.2f}",
            f"{result.valid_nll:.3f}",
            quantity(result.mult_adds),
            quantity(result.mult_adds_full),
            f"{result.predicted_ms:.1f}",
            f"{result.measured.median:.1f}",
            f"{result.measured.low:.1f} to {result.measured.high:.1f}",
        )
    return table
