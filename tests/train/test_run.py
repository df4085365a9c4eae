"""Whole runs: what is left behind, resumption, killed processes, several processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lite_nmt.cli.main import main
from lite_nmt.config import Config, from_dict, merge
from lite_nmt.decode.translator import Translator
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint
from lite_nmt.train.metrics import read_metrics
from lite_nmt.train.run import train_model
from lite_nmt.train.trainer import Trainer, saved_checkpoints
from lite_nmt.train.translation import TranslationTrainer

LANGUAGES = ("de", "en")
Tiny = Callable[..., Config]


def losses(run: Path) -> list[float]:
    return [line["loss"] for line in read_metrics(run) if "loss" in line]


def same_weights(a: Path, b: Path) -> bool:
    first, second = checkpoint.load(a).weights(), checkpoint.load(b).weights()
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


def test_a_run_leaves_all_that_it_promises(
    tiny: Tiny, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # whose state is the caller's
    result = train_model(tiny(keep=2), corpus, LANGUAGES, tmp_path / "run", device="cpu")
    assert result.step == 12
    saved = checkpoint.load(result.model)
    assert saved.languages == LANGUAGES
    assert saved.metrics["valid_nll"] == pytest.approx(result.metrics["valid_nll"])
    assert [p.name for p in saved_checkpoints(tmp_path / "run")] == ["step-00000008", "step-00000012"]
    lines = read_metrics(tmp_path / "run")
    assert [line["step"] for line in lines if "loss" in line] == list(range(1, 13))
    assert [line["step"] for line in lines if "valid_bleu" in line] == [6, 12]
    assert (tmp_path / "run" / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert list((tmp_path / "run" / "tensorboard").iterdir())
    spent = json.loads((tmp_path / "run" / "footprint.json").read_text())
    assert spent["hours"] > 0
    assert "W a device" in spent["assumed"]
    assert not [p for p in (tmp_path / "run").rglob("*") if "partial" in p.name]


@pytest.mark.parametrize(
    "recipe", [{}, {"accumulate": 2, "schedule": "cosine", "clip": 1.0}, {"precision": "bf16"}, {"precision": "fp16"}]
)
def test_a_resumed_run_is_the_same_bit_for_bit(
    tiny: Tiny, corpus: Path, tmp_path: Path, recipe: dict[str, object]
) -> None:
    train_model(tiny(**recipe), corpus, LANGUAGES, tmp_path / "whole", device="cpu")

    class Killed(Exception):
        pass

    seen = Trainer.update

    def dies(self: Trainer, group: object) -> None:
        if self.progress.step == 10:  # two steps beyond the last checkpoint
            raise Killed
        seen(self, group)  # type: ignore[arg-type]  # passed through

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "update", dies)
        with pytest.raises(Killed):
            train_model(tiny(**recipe), corpus, LANGUAGES, tmp_path / "broken", device="cpu")
    result = train_model(tiny(**recipe), None, LANGUAGES, tmp_path / "broken", resume=True, device="cpu")
    assert same_weights(result.model, tmp_path / "whole" / "model")
    assert losses(tmp_path / "broken") == losses(tmp_path / "whole")


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "lite_nmt", "train", *map(str, arguments)]


def settings(chosen: Config) -> list[str]:
    config = chosen.to_dict()
    return [f"--set={top}={json_to_toml(config[top])}" for top in ("model", "vocabulary", "train")]


def json_to_toml(value: object) -> str:
    """Inline TOML, which differs from JSON in its tables alone."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {json_to_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(json_to_toml, value)) + "]"
    return json.dumps(value)


def test_kill_minus_nine_loses_no_more_than_the_steps_since_the_last_checkpoint(
    tiny: Tiny, corpus: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    arguments = [
        "--data",
        corpus,
        "--out",
        run,
        "--device",
        "cpu",
        *settings(tiny(steps=60, save_every=2, valid_every=1000)),
    ]
    process = subprocess.Popen(command(*arguments), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(saved_checkpoints(run)) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    steps = [line["step"] for line in read_metrics(run) if "loss" in line]
    newest = checkpoint.load(saved_checkpoints(run)[-1])  # verifies every checksum
    assert steps[-1] - newest.step <= 2
    done = subprocess.run(command(*arguments, "--resume"), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "resuming at step" in done.stderr
    train_model(tiny(steps=60, save_every=2, valid_every=1000), corpus, LANGUAGES, tmp_path / "whole", device="cpu")
    assert same_weights(run / "model", tmp_path / "whole" / "model")


def torchrun(*options: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", *options, "-m", "lite_nmt", "train"]


def test_two_processes_train_what_one_does_with_twice_the_accumulation(
    tiny: Tiny, corpus: Path, tmp_path: Path
) -> None:
    recipe = {"steps": 20, "valid_every": 10}
    two = tmp_path / "two"
    arguments = ["--data", corpus, "--out", two, "--device", "cpu", *settings(tiny(**recipe))]
    launch = torchrun("--standalone", "--nproc-per-node=2")
    done = subprocess.run([*launch, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    train_model(tiny(**recipe, accumulate=2), corpus, LANGUAGES, tmp_path / "one", device="cpu")
    assert len(losses(two)) == 20
    assert losses(two) == pytest.approx(losses(tmp_path / "one"), abs=1e-4)


def test_nodes_join_by_rendezvous(tiny: Tiny, corpus: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    node = torchrun("--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}")
    recipe = {"steps": 3, "valid_every": 1000}
    arguments = ["--data", corpus, "--out", tmp_path / "two", "--device", "cpu", *settings(tiny(**recipe))]
    nodes = [subprocess.Popen([*node, *map(str, arguments)], stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in nodes:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
    train_model(tiny(**recipe, accumulate=2), corpus, LANGUAGES, tmp_path / "one", device="cpu")
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=1e-4)


def test_a_refusal_is_said_once(tiny: Tiny, tmp_path: Path) -> None:
    launch = torchrun("--standalone", "--nproc-per-node=2")
    arguments = ["--data", tmp_path / "nowhere", "--out", tmp_path / "run", "--device", "cpu", *settings(tiny())]
    done = subprocess.run([*launch, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode != 0
    assert done.stderr.count("does not exist") == 1
    assert "gloo" not in done.stderr


def test_a_killed_worker_is_restarted_from_the_last_checkpoint(tiny: Tiny, corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    recipe = {"steps": 40, "save_every": 2, "valid_every": 1000}
    launch = torchrun("--standalone", "--nproc-per-node=2", "--max-restarts=1")
    arguments = ["--data", corpus, "--out", run, "--device", "cpu", *settings(tiny(**recipe))]
    process = subprocess.Popen(
        [*launch, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
    )
    deadline = time.monotonic() + 120
    while len(saved_checkpoints(run)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(children(process.pid)[-1], signal.SIGKILL)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output
    assert "resuming at step" in output
    train_model(tiny(**recipe, accumulate=2), corpus, LANGUAGES, tmp_path / "one", device="cpu")
    assert losses(run) == pytest.approx(losses(tmp_path / "one"), abs=1e-4)


def children(pid: int) -> list[int]:
    answer = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=True)
    return [int(line) for line in answer.stdout.split()]


def test_training_stops_when_validation_does_not_improve(tiny: Tiny, corpus: Path, tmp_path: Path) -> None:
    recipe = {"lr": 0.0, "warmup": 0, "valid_every": 1, "stop_on": "loss", "patience": 2, "finish": "best"}
    result = train_model(tiny(**recipe), corpus, LANGUAGES, tmp_path / "run", device="cpu")
    assert result.step == 3
    assert same_weights(result.model, tmp_path / "run" / "best")


def test_a_run_folder_is_not_overwritten(tiny: Tiny, corpus: Path, tmp_path: Path) -> None:
    train_model(tiny(steps=1), corpus, LANGUAGES, tmp_path / "run", device="cpu")
    with pytest.raises(LiteNmtError, match="already holds a run; add --resume"):
        train_model(tiny(steps=1), corpus, LANGUAGES, tmp_path / "run", device="cpu")


def test_nothing_to_resume_is_said(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(LiteNmtError, match="holds no run to resume"):
        train_model(tiny(), None, LANGUAGES, tmp_path / "run", resume=True, device="cpu")
    assert not (tmp_path / "run").exists()


def test_a_changed_recipe_is_kept_from_then_on(
    tiny: Tiny, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    train_model(tiny(steps=2), corpus, LANGUAGES, run, device="cpu")
    resume = ["train", "--out", str(run), "--device", "cpu", "--resume"]
    assert main([*resume, "--set", "train.steps=4"]) == 0
    assert main([*resume, "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out.splitlines()[-1])["step"] == 4
    assert "nothing to train: 4 of 4 updates are done" in captured.err
    for other, sentence in (
        (["--preset", "demo"], "trains another model"),
        (["--set", "model.dropout=0.5"], "trains another model"),
        (["--set", "vocabulary.kind=unigram"], "the vocabulary is made"),
        (["--set", "train.block=9"], "train.block is 9, which does nothing"),
        (["--src", "fr"], "was started with --src de"),
        (["--data", str(tmp_path)], "was started with --data"),
    ):
        assert main([*resume, *other]) == 1
        assert sentence in capsys.readouterr().err
    unigram = from_dict(Config, merge(tiny(steps=6).to_dict(), {"vocabulary": {"kind": "unigram"}}))
    with pytest.raises(LiteNmtError, match="has another vocabulary"):
        train_model(unigram, corpus, LANGUAGES, run, resume=True, device="cpu")


def test_an_early_stop_stays_stopped(tiny: Tiny, corpus: Path, tmp_path: Path) -> None:
    recipe = {"lr": 0.0, "warmup": 0, "valid_every": 1, "stop_on": "bleu", "patience": 1}
    assert train_model(tiny(**recipe), corpus, LANGUAGES, tmp_path / "run", device="cpu").step == 2
    assert train_model(tiny(**recipe), corpus, LANGUAGES, tmp_path / "run", resume=True, device="cpu").step == 2


def contents(folder: Path) -> dict[Path, tuple[int, bytes]]:
    """Every file, with when it was written."""
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.rglob("*") if p.is_file()}


def test_a_finished_run_stays_as_it_is(tiny: Tiny, corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = train_model(tiny(), corpus, LANGUAGES, run, device="cpu")
    before = contents(run)
    again = train_model(tiny(), None, LANGUAGES, run, resume=True, device="cpu")
    assert contents(run) == before
    assert (again.step, again.metrics) == (first.step, first.metrics)
    # Killed after the last step, and before there was a model, or in place of the one of fewer steps.
    kept = run.rename(tmp_path / "kept")
    for left in ("nothing", "older"):
        shutil.copytree(kept, run)
        shutil.rmtree(run / "model")
        if left == "older":
            shutil.copytree(run / "checkpoints" / "step-00000008", run / "model")
        assert train_model(tiny(), None, LANGUAGES, run, resume=True, device="cpu").metrics == first.metrics
        assert same_weights(run / "model", kept / "model")
        shutil.rmtree(run)
    # Another end of the same training is asked for.
    train_model(tiny(finish="last"), None, LANGUAGES, kept, resume=True, device="cpu")
    assert same_weights(kept / "model", kept / "checkpoints" / "step-00000012")


def test_what_was_told_before_the_first_checkpoint_is_told_once(
    tiny: Tiny, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "save", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train_model(tiny(), corpus, LANGUAGES, tmp_path / "run", device="cpu")
    train_model(tiny(), None, LANGUAGES, tmp_path / "run", resume=True, device="cpu")
    assert [line["step"] for line in read_metrics(tmp_path / "run") if "loss" in line] == list(range(1, 13))


@pytest.mark.parametrize(
    ("nll", "end", "best"),
    [
        pytest.param([5, 4, 4, 4, 3, 2, 2, 2, 2], 9, 6, id="better by what is asked now"),
        pytest.param([2, 4, 4, 4, 3, 3, 3, 1, 1], 7, 1, id="not better than the weights kept"),
    ],
)
def test_a_run_may_go_on_by_another_measure(
    tiny: Tiny, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nll: list[int], end: int, best: int
) -> None:
    """BLEU is best at once and never changes; the loss does."""
    run = tmp_path / "run"
    found = {"valid_bleu": 0.0}
    monkeypatch.setattr(
        TranslationTrainer, "measure", lambda self, bleu: {**found, "valid_nll": float(nll[self.progress.step - 1])}
    )
    recipe = {"steps": 9, "valid_every": 1, "patience": 3, "finish": "best"}
    assert train_model(tiny(**recipe, stop_on="bleu"), corpus, LANGUAGES, run, device="cpu").step == 4
    assert checkpoint.load(run / "best").step == 1
    assert train_model(tiny(**recipe, stop_on="loss"), None, LANGUAGES, run, resume=True, device="cpu").step == end
    assert checkpoint.load(run / "best").step == best
    assert checkpoint.load(run / "model").metrics["valid_nll"] == nll[end - 1]


def test_the_best_are_kept_from_when_they_are_asked_for(
    tiny: Tiny, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are the best of those that could be kept."""
    nll = [1.0, 4.0, 2.0, 3.0]
    monkeypatch.setattr(TranslationTrainer, "measure", lambda self, bleu: {"valid_nll": nll[self.progress.step - 1]})
    train_model(tiny(steps=1, valid_every=1), corpus, LANGUAGES, tmp_path / "run", device="cpu")
    recipe = tiny(steps=4, valid_every=1, finish="best")
    train_model(recipe, None, LANGUAGES, tmp_path / "run", resume=True, device="cpu")
    assert checkpoint.load(tmp_path / "run" / "best").step == 3


def test_what_an_interrupted_preparation_left_is_dropped(tiny: Tiny, corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "vocabulary").mkdir(parents=True)
    (run / "vocabulary" / "target.spm").write_bytes(b"stale")
    (run / "data" / "valid").mkdir(parents=True)
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("train.de", "train.en"):
        (bare / name).write_bytes((corpus / name).read_bytes())
    result = train_model(tiny(steps=1), bare, LANGUAGES, run, device="cpu")
    assert result.metrics == {}
    assert not (run / "data" / "valid").exists()
    assert sorted(p.name for p in result.model.iterdir()) == ["checkpoint.json", "model.safetensors", "source.spm"]


@pytest.mark.parametrize("vocabulary", [{"joint": False}, {"kind": "unigram"}])
def test_other_vocabularies_train_and_translate(
    tiny: Tiny, corpus: Path, tmp_path: Path, vocabulary: dict[str, object]
) -> None:
    config = tiny(steps=2)
    tie = "none" if vocabulary.get("joint") is False else "all"
    changed = merge(config.to_dict(), {"vocabulary": vocabulary, "model": {"tie": tie}})
    result = train_model(from_dict(Config, changed), corpus, LANGUAGES, tmp_path / "run", device="cpu")
    assert (result.model / "target.spm").exists() == (tie == "none")
    assert len(Translator.load(result.model).translate(["Der Hund schläft.", ""])) == 2


def test_budgets_warn_and_can_be_overruled(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Config] = []

    def stop(config: Config, *rest: object) -> None:
        asked.append(config)
        raise LiteNmtError("stop here")

    monkeypatch.setattr("lite_nmt.train.run.train_model", stop)
    arguments = [
        "train",
        "--data",
        str(corpus),
        "--out",
        str(tmp_path / "run"),
        "--preset",
        "wmt-lite-transformer-527m",
    ]
    assert main(arguments) == 1
    assert "warning: the model needs 528.75M Mult-Adds" in capsys.readouterr().err
    assert main([*arguments, "--budget", "100M"]) == 1
    assert len(asked) == 1
    assert main([*arguments, "--budget", "100M", "--allow-over-budget"]) == 1
    assert len(asked) == 2


def test_fp16_that_diverges_is_no_success(tiny: Tiny, corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(LiteNmtError, match="training diverged at step"):
        train_model(
            tiny(precision="fp16", lr=100.0, warmup=0, steps=60), corpus, LANGUAGES, tmp_path / "run", device="cpu"
        )


def test_speed_does_not_count_validation(tiny: Tiny, corpus: Path, tmp_path: Path) -> None:
    train_model(tiny(log_every=4, valid_every=3), corpus, LANGUAGES, tmp_path / "run", device="cpu")
    lines = [line for line in read_metrics(tmp_path / "run") if "loss" in line]
    tokens = [line["tokens_per_second"] * line["seconds"] for line in lines]
    assert max(tokens) < 2 * min(tokens)  # about as many tokens between any two lines


def test_compiled_training_gives_the_same_losses(tiny: Tiny, corpus: Path, tmp_path: Path) -> None:
    recipe = {"steps": 3, "valid_every": 1000}
    train_model(tiny(**recipe), corpus, LANGUAGES, tmp_path / "eager", device="cpu")
    train_model(tiny(**recipe, compile=True), corpus, LANGUAGES, tmp_path / "compiled", device="cpu")
    # Dropout draws other numbers there, so only the scale can be compared.
    assert losses(tmp_path / "compiled") == pytest.approx(losses(tmp_path / "eager"), rel=0.05)


def test_the_best_cannot_be_asked_for_afterwards(tiny: Tiny, corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train_model(tiny(steps=2), corpus, LANGUAGES, run, device="cpu")
    before = (run / "run.json").read_bytes()
    with pytest.raises(LiteNmtError, match=r'train.finish is "best", and .* kept no best weights'):
        train_model(tiny(steps=2, finish="best"), None, LANGUAGES, run, resume=True, device="cpu")
    assert (run / "run.json").read_bytes() == before
