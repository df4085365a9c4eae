"""Trained once, in a folder of its own, and never mixed up with another run."""

from __future__ import annotations

import functools
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lite_nmt.config import Config
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint
from lite_nmt.profiling import contest as module
from lite_nmt.profiling.contest import Result, brief, contest, render
from lite_nmt.profiling.cost import cost
from lite_nmt.profiling.latency import measure
from lite_nmt.profiling.predict import CortexA72
from lite_nmt.profiling.search import Candidate, fitting, ranked

SMALL: list[dict[str, Any]] = [
    {
        "vocabulary": {"source": 400, "target": 400},
        "train": {"threads": 1, "batch_tokens": 300},
        "decode": {"max_length": 5},
    }
]


@pytest.fixture(scope="module")
def candidates() -> list[Candidate]:
    return ranked(fitting(8_000_000, ["lightconv", "talk"], overrides=SMALL), CortexA72(), each=1)[:2]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "measure", functools.partial(measure, repeats=5))


def enter(candidates: list[Candidate], corpus: Path, out: Path, steps: int = 2, **others: Any) -> list[Result]:
    settings = [*SMALL, *others.pop("settings", [])]
    languages = others.pop("languages", ("de", "en"))
    return list(contest(candidates, CortexA72(), corpus, languages, out, steps, settings, "cpu"))


def test_each_is_trained_once_and_compared(
    candidates: list[Candidate], corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = enter(candidates, corpus, tmp_path)
    assert [r.name for r in first] == [c.name for c in candidates]
    for result, candidate in zip(first, candidates, strict=True):
        saved = checkpoint.load(tmp_path / candidate.name)
        assert result.run == tmp_path / candidate.name
        assert saved.step == result.steps == 2
        assert saved.config.model == candidate.config.model
        assert (result.valid_bleu, result.valid_nll) == (saved.metrics["valid_bleu"], saved.metrics["valid_nll"])
        assert result.mult_adds_full == cost(saved.config).mult_adds("full")
        assert result.predicted_ms == CortexA72().predict(saved.config)
        assert result.measured.median > 0

    monkeypatch.setattr(module, "train_model", lambda *_, **__: pytest.fail("trained again"))
    again = enter(candidates, corpus, tmp_path)
    assert [replace(r, measured=first[0].measured) for r in again] == [
        replace(r, measured=first[0].measured) for r in first
    ]

    for others, named in (
        ({"steps": 3}, "another recipe"),
        ({"settings": [{"train": {"lr": 0.1}}]}, "another recipe"),
        ({"settings": [{"vocabulary": {"target": 401}}]}, "another vocabulary"),
        ({"settings": [{"model": {"dropout": 0.3}}]}, "another model"),
    ):
        with pytest.raises(LiteNmtError, match=f"trains with {named}; choose another --out"):
            enter(candidates, corpus, tmp_path, **others)

    console = Console(width=250, file=io.StringIO())
    console.print(render(first, CortexA72()))
    text = console.file.getvalue()  # type: ignore[attr-defined]  # it is the StringIO
    assert f"{first[1].valid_nll:.3f}" in text
    assert "after 2 updates" in text
    assert json.loads(json.dumps(first[0].as_json()))["run"] == str(first[0].run)


def test_an_interrupted_run_goes_on(
    candidates: list[Candidate], corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("lite_nmt.train.run.finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            enter(candidates[:1], corpus, tmp_path)
    run = tmp_path / candidates[0].name
    assert not (run / "model").exists()
    (result,) = enter(candidates[:1], corpus, tmp_path)
    assert result.steps == 2
    assert (run / "model").exists()


def test_data_without_validation_is_refused(candidates: list[Candidate], corpus: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for language in ("de", "en"):
        (data / f"train.{language}").write_bytes((corpus / f"train.{language}").read_bytes())
    with pytest.raises(LiteNmtError, match=r"valid.de is missing; a corpus needs valid.de and valid.en"):
        enter(candidates, data, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_brief_recipe(tiny: Any) -> None:
    base: Config = tiny(lr=0.5)
    found = brief(base, 250, [{"train": {"warmup": 7}}])
    recipe = found.train
    assert (recipe.steps, recipe.schedule, recipe.warmup, recipe.valid_every) == (250, "cosine", 7, 250)
    assert (recipe.lr, recipe.average, found.model) == (0.5, 0, base.model)
    assert brief(base, 1, []).train.warmup == 1
