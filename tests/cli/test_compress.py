"""``lite-nmt compress``: what it writes is a checkpoint; what it refuses, it refuses in one sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from lite_nmt.cli.main import main
from lite_nmt.compress.int8 import quantize_rows
from lite_nmt.compress.sensitivity import BITS, SPARSITIES
from lite_nmt.models import checkpoint
from lite_nmt.profiling.cost import cost


def text(*arguments: object) -> list[str]:
    return [str(argument) for argument in arguments]


def done(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[str, str]:
    assert main(text("compress", *arguments)) == 0
    return capsys.readouterr()


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(text("compress", *arguments)) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    errors = [line for line in captured.err.splitlines() if line.startswith("lite-nmt: error: ")]
    assert len(errors) == 1
    assert "Traceback" not in captured.err
    return errors[0]


def test_compress_then_translate(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "small"
    options = ("--prune", 0.4, "--bits", 4, "--bits", "target=6", "--finetune-steps", 3)
    table, _ = done(capsys, trained, "--out", out, *options)
    rows = [line for line in table.splitlines() if "(paper)" in line]
    names = ["as trained", "pruned", "pruned, fine-tuned", "codebooks", "codebooks, fine-tuned", "packed"]
    assert [row[:22].strip() for row in rows] == names
    assert all("validation ppl" in row for row in rows)
    size = sum(path.stat().st_size for path in out.iterdir())
    assert f"{out}: {size:,} bytes, " in table
    (tmp_path / "in.de").write_text("Der Hund schläft.\n\nWir sehen ein Haus.\n")
    assert main(text("translate", out, tmp_path / "in.de", "--output", tmp_path / "out.en")) == 0
    assert len((tmp_path / "out.en").read_text().splitlines()) == 3
    weights = checkpoint.load(out).weights()
    assert len(weights["target.weight"].unique()) == 64
    assert len(weights["decoder.0.cross.q.weight"].unique()) == 16
    assert not [path for path in tmp_path.iterdir() if "partial" in path.name]


def test_int8_is_a_checkpoint_that_every_verb_reads(
    trained: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "small"
    table, _ = done(capsys, trained, "--out", out, "--int8", "--finetune-steps", 3)
    rows = [line for line in table.splitlines() if "(paper)" in line]
    assert [row[:22].strip() for row in rows] == ["as trained", "int8", "int8, fine-tuned", "packed"]
    assert "validation ppl" in rows[-1]
    assert json.loads((out / "checkpoint.json").read_text())["files"]["model.packed"]["kind"] == "int8"
    for name, weights in checkpoint.load(out).weights().items():
        if name == "target.weight":
            codes, scales = quantize_rows(weights.numpy())
            torch.testing.assert_close(torch.from_numpy(codes * scales[:, None]), weights, rtol=0, atol=0)
    (tmp_path / "in.de").write_text("Der Hund schläft.\n")
    assert main(text("translate", out, tmp_path / "in.de")) == 0
    assert main(text("evaluate", out, "--data", corpus)) == 0
    assert main(text("profile", out)) == 0


def test_json_is_what_was_written(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "small"
    printed, progress = done(capsys, trained, "--out", out, "--bleu", "--json")
    result: dict[str, Any] = json.loads(printed)
    assert result["model"] == str(out)
    assert result["files"] == {path.name: path.stat().st_size for path in out.iterdir()}
    assert result["bytes"] == sum(result["files"].values())
    assert result["before"] == sum(path.stat().st_size for path in (trained / "model").iterdir())
    first, last = result["stages"][0], result["stages"][-1]
    saved = checkpoint.load(out)
    assert saved.metrics == {"valid_nll": last["nll"], "valid_bleu": last["bleu"]}
    dense = checkpoint.load(trained)
    assert first["nll"] == pytest.approx(dense.metrics["valid_nll"])
    assert (saved.languages, saved.step, saved.config) == (dense.languages, dense.step, dense.config)
    counted = [w for name, w in dense.weights().items() if name != "target.weight"]
    assert first["paper_bytes"] == 4 * sum(int((w != 0).sum()) for w in counted)
    assert "packed" in progress


def test_a_checkpoint_without_its_run_is_compressed_without_a_word_on_quality(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(trained / "model", tmp_path / "model")
    table, _ = done(capsys, tmp_path / "model", "--out", tmp_path / "small", "--bits", 5)
    assert "ppl" not in table
    assert checkpoint.load(tmp_path / "small").metrics == {}


def test_curves_then_a_size(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done(capsys, trained, "--out", tmp_path / "whole")
    target = sum(path.stat().st_size for path in (tmp_path / "whole").iterdir()) - 5000
    aim = ("--target-size", target)
    plan, progress = done(capsys, trained, "--out", tmp_path / "curves", "--sensitivity", "--sentences", 3, *aim)
    assert {path.name for path in (tmp_path / "curves").iterdir()} == {"sensitivity.json", "sensitivity.png"}
    layers = [line.split()[0] for line in plan.splitlines() if " bits " in line]
    assert "decoder.1.mixer.convolution" in layers
    assert len(layers) == len(set(layers)) == 2 * 3 + 2 * 4 + 1
    assert "15 of 15: " in progress
    curves = tmp_path / "curves" / "sensitivity.json"
    printed, _ = done(capsys, trained, "--out", tmp_path / "small", "--curves", curves, *aim, "--json")
    assert json.loads(printed)["bytes"] <= target
    printed, _ = done(capsys, trained, "--out", tmp_path / "good", "--curves", curves, "--target-loss", 9, "--json")
    assert json.loads(printed)["stages"][-1]["zeros"] > 0.5
    refusal = refused(capsys, trained, "--out", tmp_path / "none", "--curves", curves, "--target-size", "10K")
    assert "no allocation" in refusal
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--bits", "9"], "bits is 9; a codebook takes 2 to 8."),
        (["--bits", "1"], "bits is 1; a codebook takes 2 to 8."),
        (["--bits", "four"], "--bits is 'four'; give a number"),
        (["--bits", "4.5"], "--bits is '4.5'; give a number"),
        (["--prune", "1.5"], "prune is 1.5; it must be at least 0 and below 1."),
        (["--prune", "-0.5"], "prune is -0.5; it must be at least 0 and below 1."),
        (["--prune", "encoder.0=nan"], "prune of encoder.0 is nan"),
        (["--prune", "half"], "--prune is 'half'; give a number"),
        (["--bits", "encodr.0=4"], "the model has no layer encodr.0; the nearest is encoder.0."),
        (["--bits", "xyz=4"], "the model has no layer xyz; the nearest is "),
        (["--finetune-steps", "5", "--finetune-lr", "-1"], "--finetune-lr is -1; it must be above 0"),
        (["--data", "nowhere", "--bleu"], "the data folder nowhere does not exist."),
        (["--device", "toaster"], "has no device 'toaster'"),
        (["--curves", "nowhere.json", "--target-size", "1M"], "cannot read nowhere.json"),
        (["--curves", "CURVES", "--target-size", "1M"], "curves are of another model"),
        (["--curves", "CURVES", "--target-loss", "nan"], "curves are of another model"),
    ],
)
def test_what_cannot_be_done_is_refused(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], sentence: str
) -> None:
    point = {"nll": 1, "error": 0}
    every: dict[str, Any] = {"weights": 0, "pruned": {str(share): point for share in SPARSITIES}}
    every |= {"quantised": {str(bits): point for bits in BITS}, "bytes": dict.fromkeys(map(str, BITS), 0)}
    (tmp_path / "curves.json").write_text(json.dumps({"whole": {"nll": 1}, "layers": {}, "together": every}))
    options = [option.replace("CURVES", str(tmp_path / "curves.json")) for option in options]
    assert sentence in refused(capsys, trained, "--out", tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", [["--bleu"], ["--sensitivity"], ["--finetune-steps", "5"]])
def test_a_model_without_pairs(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: list[str]
) -> None:
    shutil.copytree(trained / "model", tmp_path / "model")
    error = refused(capsys, tmp_path / "model", "--out", tmp_path / "out", *option)
    assert "lies in no run with" in error
    assert "give --data with" in error


def test_what_exists_is_not_overwritten(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path, tmp_path / "file", trained):
        assert "exists already; choose another --out." in refused(capsys, trained, "--out", place)
    assert (tmp_path / "file").read_text() == "mine"
    assert "Not a directory" in refused(capsys, trained, "--out", tmp_path / "file" / "out")


def test_the_current_folder_is_not_replaced(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ". exists already; choose another --out." in refused(capsys, trained.resolve(), "--out", ".")
    assert tmp_path.is_dir()
    assert not list(tmp_path.iterdir())


def test_a_compressed_model_is_not_compressed_again(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done(capsys, trained, "--out", tmp_path / "small")
    error = refused(capsys, tmp_path / "small", "--out", tmp_path / "smaller")
    assert "is compressed already; compress the checkpoint that it was made from." in error


def test_nan_weights(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = checkpoint.load(trained)
    weights = saved.weights()
    weights["encoder.0.ffn.inner.weight"][0, 0] = torch.nan
    checkpoint.save(tmp_path / "nan", saved.config, saved.languages, 1, {}, saved.vocabulary, weights)
    error = refused(capsys, tmp_path / "nan", "--out", tmp_path / "out")
    assert "encoder.0.ffn.inner.weight holds NaN" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--target-size", "1M"],
        ["--target-loss", "0.1"],
        ["--curves", "x.json"],
        ["--curves", "x.json", "--target-size", "1M", "--bits", "4"],
        ["--curves", "x.json", "--target-size", "1M", "--target-loss", "1"],
        ["--sensitivity", "--bits", "4"],
        ["--sensitivity", "--finetune-steps", "4"],
        ["--int8", "--bits", "8"],
        ["--int8", "--share", "layer"],
        ["--int8", "--init", "random"],
        ["--int8", "--sensitivity"],
        ["--int8", "--curves", "x.json", "--target-size", "1M"],
        ["--int8", "--ffn", "0.5"],
        ["--finetune-steps", "0"],
        ["--init", "best"],
        ["--finetune-lr", "0.1"],
        ["--importance", "loss"],
        ["--scope", "global"],
        ["--sentences", "5"],
        ["--sensitivity", "--share", "layer"],
        ["--heads", "0.5", "--init", "random"],
        ["--heads", "0.5", "--bleu"],
        ["--heads", "0.5", "--data", "somewhere"],
        ["--heads", "0.5", "--device", "cuda"],
    ],
)
def test_wrong_usage(trained: Path, tmp_path: Path, options: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(text("compress", trained, "--out", tmp_path / "out", *options))
    assert stopped.value.code == 2
    assert not (tmp_path / "out").exists()


def test_shorter_matrices_are_a_checkpoint_to_train_on(
    trained: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = cost(checkpoint.load(trained).config)
    printed, _ = done(capsys, trained, "--out", tmp_path / "less", "--ffn", 0.5, "--decoder-layers", 1, "--json")
    after = cost(checkpoint.load(tmp_path / "less").config)
    assert json.loads(printed)["after"] == {"mult_adds": after.mult_adds(), "parameters": after.parameters()}
    assert after.mult_adds() < 0.8 * before.mult_adds()
    assert main(text("train", "--init", tmp_path / "less", "--data", corpus, "--out", tmp_path / "run", "--set",
                     "train.steps=2")) == 0  # fmt: skip
    capsys.readouterr()
    target = round(0.9 * before.mult_adds())
    line, _ = done(capsys, trained, "--out", tmp_path / "loss", "--mult-adds", target, "--importance", "loss")
    assert "train it a little" in line
    assert cost(checkpoint.load(tmp_path / "loss").config).mult_adds() <= target
    with pytest.raises(SystemExit, match="2"):
        main(text("compress", trained, "--out", tmp_path / "both", "--ffn", 0.5, "--bits", 4))
    assert "the share of FFN channels to remove is 1.5" in refused(
        capsys, trained, "--out", tmp_path / "x", "--ffn", 1.5
    )
