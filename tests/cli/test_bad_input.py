"""Whatever is wrong with what a person gives: one plain sentence, exit code 1, nothing half-written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lite_nmt.cli.main import main


def corpus(folder: Path, german: str, english: str | None, split: str = "train") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{split}.de").write_text(german)
    if english is not None:
        (folder / f"{split}.en").write_text(english)
    return folder


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(a) for a in arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [line for line in captured.err.splitlines() if line.startswith("lite-nmt: error: ")]
    assert len(lines) == 1
    assert "Traceback" not in captured.err
    return lines[0]


@pytest.mark.parametrize(
    ("german", "english", "sentence"),
    [
        ("a\n", None, "train.en is missing; a corpus needs train.de and train.en."),
        ("a\nb\nc\n", "a\n", "train.de has 3 lines and"),
        ("", "", "are empty."),
        ("a\n", "b\n", "hold one pair; training needs at least two."),
        ("\n\n", "\n\n", "error"),
    ],
)
def test_a_corpus_that_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], german: str, english: str | None, sentence: str
) -> None:
    data = corpus(tmp_path / "data", german, english)
    out = tmp_path / "run"
    assert sentence in refused(capsys, "train", "--data", data, "--out", out)
    assert not (out / "run.json").exists()
    assert not list(out.rglob("*.partial"))


def test_a_missing_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(capsys, "train", "--data", tmp_path / "nowhere", "--out", tmp_path / "run")
    assert "the data folder" in error
    assert "does not exist" in error
    assert not (tmp_path / "run").exists() or not list((tmp_path / "run").iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = corpus(tmp_path / "data", "a\nb\n", "a\nb\n")
    (data / "train.en").chmod(0)
    assert "Permission denied" in refused(capsys, "train", "--data", data, "--out", tmp_path / "run")


def test_a_side_that_is_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = corpus(tmp_path / "data", "a\nb\n", None)
    (data / "train.en").mkdir()
    assert "cannot read" in refused(capsys, "train", "--data", data, "--out", tmp_path / "run")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--preset", "lite-transfomer-mobile"], "the nearest is lite-transformer-mobile"),
        (["--set", "train.steps=many"], "train.steps is 'many'; it must be a whole number."),
        (["--set", "model.dropout=2"], "model.dropout is 2.0; it must be between 0 and 0.99."),
        (["--set", "train.betas=[0.9]"], "train.betas is [0.9]; Adam takes two numbers."),
        (["--set", "nonsense"], "is not of the form key=value"),
        (["--set", "model.encoder.heads=5"], "model.encoder.heads = 5 does not divide"),
        (["--budget", "lots"], "--budget is 'lots'"),
        (["--budget", "100M", "--set", "model.width=64"], "--budget alone chooses model.width"),
        (["--preset", "wmt-transformer-big", "--budget", "500M"], "over the budget of 500M; the largest parts are"),
        (["--preset", "wmt-transformer-big", "--budget", "500M"], "parameters (paper count), over the limit of 10M"),
        (["--config", "nowhere.toml"], "cannot read nowhere.toml"),
        (["--set", "train.stop_on='bleu'", "--set", "train.valid_bleu=false"], "needs train.valid_bleu = true"),
        (["--device", "toaster"], "has no device 'toaster'"),
    ],
)
def test_settings_that_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    data = corpus(tmp_path / "data", "a\nb\n", "a\nb\n")
    assert sentence in refused(capsys, "train", "--data", data, "--out", tmp_path / "run", *arguments)
    assert not (tmp_path / "run").exists()


def test_a_recipe_that_needs_validation_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = corpus(tmp_path / "data", "a\nb\n", "a\nb\n")
    best = ["--set", "train.finish='best'"]
    assert "valid.de and .en, which are missing" in refused(
        capsys, "train", "--data", data, "--out", tmp_path / "run", *best
    )


def test_a_toml_file_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.toml").write_text("[model\nwidth = 3")
    arguments = ["train", "--data", tmp_path, "--out", tmp_path / "run", "--config", tmp_path / "bad.toml"]
    assert "bad.toml is not valid TOML" in refused(capsys, *arguments)


def test_a_pickle_is_never_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    torch.save({"weights": torch.zeros(1)}, tmp_path / "model.pt")
    assert "holds no checkpoint" in refused(capsys, "translate", tmp_path / "model.pt")
