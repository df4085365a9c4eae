"""``lite-nmt distill`` and ``lite-nmt train --teacher`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lite_nmt.cli.main import main
from lite_nmt.config import DecodeConfig
from lite_nmt.data.corpus import read_lines
from lite_nmt.decode.translator import Translator
from lite_nmt.models import checkpoint


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(a) for a in arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    [line] = [line for line in captured.err.splitlines() if line.startswith("lite-nmt: error: ")]
    return line


@pytest.fixture
def data(corpus: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for language in ("de", "en"):
        lines = (corpus / f"train.{language}").read_text().splitlines(keepends=True)
        (folder / f"train.{language}").write_text("".join(lines[:40]))
        (folder / f"valid.{language}").write_text("".join(lines[40:45]))
    return folder


def test_what_it_writes_can_be_trained_on(
    teacher: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ["distill", teacher, "--data", data, "--src", "de", "--tgt", "en", "--out", out, "--beam", 3]
    assert main([str(a) for a in [*arguments, "--max-ratio", 100, "--buffer", 25, "--json"]]) == 0
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert "2 of 2 blocks" in captured.err
    assert told["lines"] == 40
    assert told["teacher"] == checkpoint.load(teacher).checksum
    source = list(read_lines(out / "train.de"))
    assert len(source) == told["kept"] > 25
    assert list(read_lines(out / "train.en")) == Translator.load(teacher).translate(source, DecodeConfig(beam=3))
    model = (
        "{width = 16, cross_heads = 2, encoder = {layers = 1, heads = 2, ffn = 16}, decoder = {layers = 1, ffn = 8}}"
    )
    recipe = {"steps": 1, "valid_bleu": "false", "average": 0}
    settings = [f"--set=train.{key}={value}" for key, value in recipe.items()]
    run = ["train", "--data", out, "--out", tmp_path / "run", "--device", "cpu", f"--set=model={model}", *settings]
    assert main([*map(str, run), "--set=vocabulary.target=400"]) == 0


def test_plain_output_and_a_second_call(
    teacher: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(a) for a in ("distill", teacher, "--data", data, "--out", tmp_path / "out", "--keep-original")]
    assert main(arguments) == 0
    first = capsys.readouterr()
    kept = sum(1 for _ in read_lines(tmp_path / "out" / "train.en"))
    assert f"{kept} pairs from 40 lines" in first.out
    assert "40 of the corpus's own; 0 duplicate lines; dropped: " in first.out
    assert main(arguments) == 0
    second = capsys.readouterr()
    assert second.out == first.out
    assert "nothing to do" in second.err
    assert "another keep-original" in refused(capsys, *arguments[:-1])


def test_bad_input(teacher: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    work = ["distill", teacher, "--data", data, "--out", out]
    assert "holds no checkpoint" in refused(capsys, "distill", tmp_path, *work[2:])
    assert "does not exist" in refused(capsys, *work[:3], tmp_path / "nowhere", *work[4:])
    assert "is the corpus itself" in refused(capsys, *work[:5], data)
    assert "is not empty" in refused(capsys, *work[:5], tmp_path)
    assert "Not a directory" in refused(capsys, *work[:5], data / "train.de" / "below")
    assert "translates de to en, not en to de" in refused(capsys, *work, "--src", "en", "--tgt", "de")
    assert "--max-ratio is 0.5; it must be at least 1" in refused(capsys, *work, "--max-ratio", 0.5)
    assert "--max-ratio is nan" in refused(capsys, *work, "--max-ratio", "nan")
    assert "decode.beam is 0" in refused(capsys, *work, "--beam", 0)
    assert "no device 'toaster'" in refused(capsys, *work, "--device", "toaster")
    (data / "train.en").write_text("one\n")
    assert "has 40 lines and" in refused(capsys, *work, "--keep-original")
    (data / "train.de").write_text("")
    assert "train.de is empty" in refused(capsys, *work)
    (data / "train.de").unlink()
    assert "cannot read" in refused(capsys, *work)
    assert not out.exists()
    (data / "train.de").write_text("\n\n")
    assert "is of use: 2 are blank." in refused(capsys, *work)
    assert not list(out.glob("*train*"))


def test_teachers_that_train_refuses(
    teacher: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = ["train", "--data", data, "--out", tmp_path / "run", "--device", "cpu"]
    assert "holds no checkpoint" in refused(capsys, *work, "--teacher", tmp_path / "nowhere")
    assert "leave out vocabulary.target" in refused(
        capsys, *work, "--teacher", teacher, "--set", "vocabulary.target=99"
    )
    assert "the run has no teacher" in refused(capsys, *work, "--set", "train.distill_weight=0.5")
    assert "train.distill_temperature is 0.0" in refused(capsys, *work, "--set", "train.distill_temperature=0")
    assert not (tmp_path / "run").exists()
