"""Runs that start from a checkpoint's weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lite_nmt.cli.main import main
from lite_nmt.compress.structured import Plan, save_structured
from lite_nmt.config import Config
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint
from lite_nmt.train.run import train_model
from lite_nmt.train.trainer import Trainer, saved_checkpoints

LANGUAGES = ("de", "en")
SETTINGS = ["train.steps=2", "train.valid_every=9", "train.valid_bleu=false"]


@pytest.fixture(scope="module")
def pruned(tiny: Callable[..., Config], corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model, pruned."""
    folder = tmp_path_factory.mktemp("start")
    train_model(tiny(steps=6), corpus, LANGUAGES, folder / "run", device="cpu")
    plan = Plan(heads=0.5, ffn=0.25, conv_channels=0.5, decoder_layers=1)
    return save_structured(checkpoint.load(folder / "run"), plan, folder / "pruned").folder


def command(out: Path, *arguments: object) -> list[str]:
    settings = [f"--set={setting}" for setting in SETTINGS]
    return ["train", "--out", str(out), "--device", "cpu", *settings, *map(str, arguments)]


def test_a_run_goes_on_where_the_checkpoint_ends(pruned: Path, corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert (
        main(command(run, "--data", corpus, "--init", pruned, "--set", "train.lr=0.0", "--set=model.dropout=0.2")) == 0
    )
    before, after = checkpoint.load(pruned), checkpoint.load(run)
    for name, tensor in before.weights().items():
        # Adam moves nothing at a rate of zero, and the warm-up's is 1e-7.
        torch.testing.assert_close(after.weights()[name], tensor, rtol=0, atol=1e-6)
    assert after.vocabulary.files() == before.vocabulary.files()
    assert after.config.vocabulary == before.config.vocabulary
    assert after.config.model.decoder.kept_heads == (1,)
    assert after.config.model.dropout == 0.2
    assert after.step == 2
    assert json.loads((run / "run.json").read_text())["init"] == str(pruned.resolve())


def test_it_resumes_before_and_after_its_first_checkpoint(
    pruned: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(command(tmp_path / "whole", "--data", corpus, "--init", pruned)) == 0
    run = tmp_path / "broken"
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "update", lambda self, group: (_ for _ in ()).throw(MemoryError))
        assert main(command(run, "--data", corpus, "--init", pruned)) == 1
    assert not saved_checkpoints(run)
    assert main(command(run, "--resume", "--init", pruned)) == 0
    ours, theirs = (checkpoint.load(folder).weights() for folder in (run, tmp_path / "whole"))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    moved = checkpoint.load(pruned).weights()
    assert not torch.equal(ours["target.weight"], moved["target.weight"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--set", "model.width=32"], "model.width is 32, but "),
        (["--set", "model.decoder.kept_heads=[2]"], "model.decoder.kept_heads is [2], but "),
        (["--set", "vocabulary.target=500"], "with --init the model and the vocabulary are the checkpoint's."),
        (["--src", "fr"], "translates de to en, not fr to en; leave out --src and --tgt, or --init."),
        (["--preset", "demo"], "--init brings its own settings; leave out --preset."),
        (["--budget", "1K"], "over the budget of 1K"),
    ],
)
def test_mismatches_are_one_sentence(
    pruned: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(command(tmp_path / "run", "--data", corpus, "--init", pruned, *arguments)) == 1
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_checkpoint_that_is_none(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(tmp_path / "run", "--data", corpus, "--init", tmp_path / "nowhere")) == 1
    assert "nowhere holds no checkpoint" in capsys.readouterr().err


def test_a_run_that_started_otherwise(
    pruned: Path, tiny: Callable[..., Config], corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train_model(tiny(steps=1), corpus, LANGUAGES, tmp_path / "run", device="cpu")
    assert main(command(tmp_path / "run", "--resume", "--init", pruned)) == 1
    assert "was started without --init; resume it without --init." in capsys.readouterr().err


def test_another_model_is_refused_from_python_too(
    pruned: Path, tiny: Callable[..., Config], corpus: Path, tmp_path: Path
) -> None:
    with pytest.raises(LiteNmtError, match=r"model\.encoder\.kept_heads is \[\], but "):
        train_model(tiny(), corpus, LANGUAGES, tmp_path / "run", device="cpu", init=pruned)
