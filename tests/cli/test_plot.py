"""``lite-nmt plot``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lite_nmt.cli.main import main
from lite_nmt.config import Config
from lite_nmt.data.corpus import read_lines
from lite_nmt.data.vocabulary import Vocabulary, train_vocabulary
from lite_nmt.models import checkpoint
from lite_nmt.profiling.cost import cost

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def vocabulary(tiny: Callable[..., Config], corpus: Path) -> Vocabulary:
    source, target = (read_lines(corpus / f"train.{language}") for language in ("de", "en"))
    return train_vocabulary(tiny().vocabulary, source, target, seed=1)


@pytest.fixture
def model(tiny: Callable[..., Config], vocabulary: Vocabulary, tmp_path: Path) -> Callable[..., Path]:
    """Saves a run's model, without weights, which no picture needs."""

    def save(name: str, languages: tuple[str, str] = ("de", "en"), **metrics: float) -> Path:
        run = tmp_path / "runs" / name
        checkpoint.save(run / "model", tiny(), languages, 1, metrics, vocabulary, {})
        return run

    return save


def plot(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[list[Any], str]:
    """What was drawn, and what was said on stderr; both files are there."""
    assert main(["plot", *map(str, arguments), "--json"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    png, svg = map(Path, result["files"])
    assert png.read_bytes().startswith(PNG)
    assert b"<svg" in svg.read_bytes()
    return result["figures"], captured.err


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["plot", *map(str, arguments)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("lite-nmt: error: ")
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize("name", ["block", "block.png", "block.svg"])
def test_writes_both_files_and_says_so(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", "breakdown", "--out", str(tmp_path / name)]) == 0
    files = [str(tmp_path / "block.png"), str(tmp_path / "block.svg")]
    assert capsys.readouterr().out.splitlines() == files
    assert sorted(map(str, tmp_path.iterdir())) == files


def test_breakdown_of_one_layer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures, _ = plot(capsys, "breakdown", "--src-len", 10, "--out", tmp_path / "a")
    assert [f["name"] for f in figures] == ["Transformer, FFN 4d", "flattened, FFN d", "LSRA, FFN d"]
    assert figures[0]["by_kind"] == {"attention": 4 * 10 * 512**2 + 2 * 100 * 512, "ffn": 8 * 10 * 512**2}
    assert figures[0]["mult_adds"] == sum(figures[0]["by_kind"].values())
    assert ">Mult-Adds of one encoder layer of d = 512 channels for 10 tokens; LSRA" in (tmp_path / "a.svg").read_text()


def test_breakdown_of_presets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["cnndm-transformer", "cnndm-lite-transformer", "demo"]
    figures, _ = plot(capsys, "breakdown", *names, "--src-len", 100, "--tgt-len", 60, "--out", tmp_path / "a")
    assert [f["name"] for f in figures] == names
    assert figures[1]["mult_adds"] == 1_457_605_120
    assert "for 100 source and 60 target tokens" in (tmp_path / "a.svg").read_text()


def test_length(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures, _ = plot(capsys, "length", "--out", tmp_path / "a")
    assert len(figures) == 5
    talk = next(f for f in figures if f["preset"] == "multi30k-talk")
    assert len(talk["lengths"]) == len(talk["encoder_mult_adds"]) == len(talk["mult_adds"]) == 31
    assert talk["encoder_mult_adds"][-1] == 1000 * talk["encoder_mult_adds"][0]


def test_bleu_of_runs(
    tiny: Callable[..., Config], model: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = model("first", valid_bleu=12.5, valid_nll=3.0)
    model("second", valid_bleu=20.0)
    silent = model("silent", valid_nll=3.0)
    unfinished = tmp_path / "runs" / "unfinished"
    (unfinished / "best").mkdir(parents=True)
    (unfinished / "run.json").touch()
    (tmp_path / "runs" / "notes").mkdir()
    # A run, its model, and the folder around it are one point.
    figures, warnings = plot(capsys, "bleu", first, first / "model", tmp_path / "runs", "--out", tmp_path / "a")
    spent = cost(tiny()).mult_adds()
    assert figures == [
        {
            "run": str(tmp_path / "runs" / name),
            "family": "Lite Transformer",
            "languages": "de-en",
            "mult_adds": spent,
            "valid_bleu": bleu,
        }
        for name, bleu in (("first", 12.5), ("second", 20.0))
    ]
    left_out = "holds no finished model with a validation BLEU and is left out."
    assert warnings.splitlines() == [f"lite-nmt: warning: {run} {left_out}" for run in (silent, unfinished)]
    assert ">validation BLEU (greedy), de-en</text>" in (tmp_path / "a.svg").read_text()


def test_bleu_of_different_languages_is_warned_of(
    model: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = model("there", valid_bleu=10.0), model("back", ("en", "de"), valid_bleu=11.0)
    figures, warnings = plot(capsys, "bleu", *runs, "--out", tmp_path / "a")
    assert [f["languages"] for f in figures] == ["de-en", "en-de"]
    assert warnings == "lite-nmt: warning: the runs translate de-en, en-de; their BLEU does not compare.\n"


def test_bleu_without_any_run_left(
    model: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = model("silent")
    error = refused(capsys, "bleu", silent, "--out", tmp_path / "a")
    assert f"no finished model with a validation BLEU is in {silent}" in error
    (tmp_path / "empty").mkdir()
    assert str(tmp_path / "empty") in refused(capsys, "bleu", tmp_path / "empty", "--out", tmp_path / "a")
    assert "there is no folder" in refused(capsys, "bleu", tmp_path / "nowhere", "--out", tmp_path / "a")
    assert not list(tmp_path.glob("a.*"))


def test_a_damaged_run_is_refused(
    model: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = model("damaged", valid_bleu=10.0)
    (damaged / "model" / checkpoint.WEIGHTS).write_bytes(b"")
    assert "is truncated or altered" in refused(capsys, "bleu", damaged, "--out", tmp_path / "a")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["breakdown", "demmo", "--out", "a"], "there is no preset demmo; the nearest is demo"),
        (["breakdown", "--src-len", "1000000000000", "--out", "a"], "it must be between 1 and 1,000,000,000."),
        (["length", "--out", "a.pdf"], "--out is a.pdf, but pictures are written as .png and .svg"),
        (["length", "--out", "."], "--out is ., which is a folder"),
        (["length", "--out", "nowhere/a"], "cannot write nowhere/a.png: No such file or directory."),
    ],
)
def test_what_cannot_be_drawn(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(capsys, *arguments)
    assert not list(tmp_path.iterdir())


def test_both_files_or_neither(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.svg").mkdir()
    (tmp_path / "a.png").write_text("before")
    assert "cannot write" in refused(capsys, "breakdown", "--out", tmp_path / "a")
    assert (tmp_path / "a.png").read_text() == "before"
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "a.svg"}


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["pie", "--out", "a"],
        ["breakdown"],
        ["breakdown", "--tgt-len", "30", "--out", "a"],
        ["breakdown", "--src-len", "0", "--out", "a"],
        ["bleu", "--out", "a"],
        ["length", "demo", "--out", "a"],
    ],
)
def test_wrong_usage(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        main(["plot", *arguments])
    assert exit_.value.code == 2
