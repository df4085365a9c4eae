"""A language model's bundle against its checkpoint, beyond what it has learned to see."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lite_nmt.cli.main import main
from lite_nmt.config import Config, VocabularyConfig, from_dict
from lite_nmt.data.vocabulary import UNK, train_vocabulary
from lite_nmt.decode.generate import generate
from lite_nmt.errors import LiteNmtError
from lite_nmt.evaluate.perplexity import negative_log_likelihood
from lite_nmt.evaluate.surprise import surprise
from lite_nmt.models import checkpoint
from lite_nmt.models.language import LanguageModel

TEXT = ["a man sees the dog .", "the dog sees a man , and runs ."]


def save(folder: Path, stack: dict[str, Any]) -> Path:
    """A checkpoint of two layers that has learnt nothing."""
    vocabulary = train_vocabulary(VocabularyConfig(kind="word", target=500), iter(TEXT), iter(()), 1)
    types = vocabulary.target.get_piece_size()
    table = {"width": 16, "cutoffs": [6], "decoder": {"layers": 2, "heads": 2, **stack}}
    sizes = {"kind": "word", "source": types, "target": types}
    config = from_dict(Config, {"task": "lm", "model": table, "vocabulary": sizes, "train": {"block": 15}})
    torch.manual_seed(1)
    model = LanguageModel(config)
    with torch.no_grad():
        for mixer, z in zip(model.spans(), ([0.09, 0.0], [0.33, 0.2]), strict=False):
            mixer.z.copy_(torch.tensor(z))
    checkpoint.save(folder, config, ("txt", "txt"), 1, {}, vocabulary, checkpoint.named_weights(model))
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Adaptive spans, of a run that goes on, and persistent vectors; one layer sees 5 steps, the other 10."""
    stack = {"mixer": "adaptive-span", "span": 20, "ramp": 3, "persistent": 3, "ffn": 0}
    return save(tmp_path_factory.mktemp("lm") / "model", stack)


def test_a_bundle_does_what_the_checkpoint_does(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    from lite_nmt.export import bundle
    from lite_nmt.export.language import check
    from lite_nmt.export.language_runtime import OnnxReader

    out = tmp_path / "bundle.zip"
    assert main(["export", str(saved), "--out", str(out)]) == 0
    reader = OnnxReader(bundle.load(out))
    assert check(checkpoint.load(saved).language_model(), reader, 12) < 1e-5
    state = reader.start()
    assert {name: x.shape for name, x in state.items()} == {
        f"state.{i}.{name}": (1, 2, wide - 1, 8) for i, wide in enumerate((5, 10)) for name in ("key", "value")
    }
    _, after = reader.read(5, 0, state)
    assert {name: x.shape for name, x in after.items()} == {name: x.shape for name, x in state.items()}
    capsys.readouterr()
    said = []
    for model in (saved, out):
        for options in ([], ["--temperature", "0.8", "--top", "5", "--seed", "3"]):
            assert main(["generate", str(model), "--prompt", "the dog", "--words", "30", *options]) == 0
            said.append(capsys.readouterr().out)
    assert said[:2] == said[2:]
    assert said[0].startswith("the dog ")
    assert said[0] != said[1]
    for wrong, sentence in (
        (["--precision", "int8"], "there is none; give --data"),
        (["--precision", "int8", "--data", str(tmp_path / "none")], "cannot read"),
        (["--precision", "kmeans"], "must be fp32 or int8"),
        (["--shortlist", "5"], "shortlist is 5, which is not for language models"),
    ):
        assert main(["export", str(saved), "--out", str(out), *wrong]) == 1
        assert sentence in capsys.readouterr().err


def test_a_bundle_is_evaluated(
    saved: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    bare: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """As its checkpoint is, without PyTorch."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    (tmp_path / "test.txt").write_text("".join(f"{line}\n" for line in TEXT * 3))
    blocks = save(tmp_path / "blocks", {"mixer": "lsra", "conv_heads": 2, "kernels": [3], "ffn": 16})
    for model, ways in ((saved, [[]]), (blocks, [[], ["--block", "7"], ["--block", "8", "--context", "5"]])):
        out = tmp_path / f"{model.name}.zip"
        assert main(["export", str(model), "--out", str(out)]) == 0
        for way in ways:
            capsys.readouterr()
            assert main(["evaluate", str(model), "--data", str(tmp_path), "--json", *way]) == 0
            expected = json.loads(capsys.readouterr().out)
            ran = bare("evaluate", out, "--data", tmp_path, "--json", *way)
            assert (ran.stderr, ran.returncode) == ("", 0)
            found = json.loads(ran.stdout)
            del expected["seconds"], found["seconds"]
            assert found == pytest.approx(expected, rel=1e-5)
            assert found["tokens"] == 3 * sum(len(line.split()) + 1 for line in TEXT)
    assert bare("generate", out, "--words", "3").returncode == 0
    out = tmp_path / "model.zip"
    for wrong, sentence in (
        (["--device", "cuda"], "runs on the CPU, not on cuda"),
        (["--context", "3"], "leave out --context"),
        (["--batch-tokens", "7"], "--batch-tokens 7 is not for bundles of language models"),
        (["--block", "7"], "--block 7 is not for bundles of models that carry a cache"),
        (["--beam", "2"], "--beam 2 is not for language models"),
        (["--split", "none"], "cannot read"),
    ):
        refused = bare("evaluate", out, "--data", tmp_path, *wrong)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert sentence in refused.stderr
    assert main(["translate", str(out)]) == 1
    assert "lite-nmt generate and evaluate run it" in capsys.readouterr().err


@pytest.mark.parametrize("to", ["executorch", "all"])
def test_a_bundle_of_an_executorch_program(
    to: str, saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("onnx", "onnxscript", "onnxruntime", "executorch"):
        pytest.importorskip(package)
    from lite_nmt.export import bundle
    from lite_nmt.export.language_runtime import OnnxReader, open_reader

    (tmp_path / "test.txt").write_text("".join(f"{line}\n" for line in TEXT * 3))
    out = tmp_path / "bundle.zip"
    assert main(["export", str(saved), "--to", to, "--out", str(out)]) == 0
    opened = bundle.load(out)
    graphs = {"step.onnx", "weights.bin"} if to == "all" else set()
    assert opened.files.keys() == {"source.spm", "model.pte"} | graphs
    assert isinstance(open_reader(opened), OnnxReader) == (to == "all")
    found = []
    for model in (saved, out):
        capsys.readouterr()
        assert main(["evaluate", str(model), "--data", str(tmp_path), "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["nll"])
        assert main(["generate", str(model), "--prompt", "the dog", "--words", "30"]) == 0
        found.append(capsys.readouterr().out)
    assert found[2] == pytest.approx(found[0], rel=1e-5)
    assert found[3] == found[1]


def test_what_graphs_cannot_carry_is_refused(tmp_path: Path) -> None:
    for package in ("onnx", "onnxscript"):
        pytest.importorskip(package)
    from lite_nmt.export.language import export_language_model

    model = save(tmp_path / "model", {"mixer": "lightconv", "conv_heads": 2, "kernels": [1], "ffn": 16})
    with pytest.raises(LiteNmtError, match="a window or kernel of 1 remembers nothing"):
        export_language_model(checkpoint.load(model), tmp_path / "out")


@pytest.mark.filterwarnings("default")
def test_positions_that_a_model_never_saw_are_warned_of(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only with them, and only where the model knows positions."""
    (tmp_path / "test.txt").write_text(f"{TEXT[0]}\n")
    talk = save(tmp_path / "model", {"mixer": "talk", "conv_heads": 2, "kernels": [3], "ffn": 16})
    generate_, evaluate = (
        ["generate", "--prompt", "the dog", "--words"],
        ["evaluate", "--data", str(tmp_path), "--block"],
    )
    for command, most in ((generate_, 13), (evaluate, 15)):
        for model, more, warned in ((talk, 0, False), (talk, 1, True), (saved, 1, False)):
            assert main([*command, str(most + more), str(model)]) == 0
            said = "warning: the model is to read 16 words in a row and was trained on 15" in capsys.readouterr().err
            assert said == warned


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lite_nmt.evaluate.surprise.OFTEN", 4)
    said: list[str] = []
    surprise(Counting(), [4] * 9, None, say=said.append)
    assert said == ["read 4 of 9 words", "read 8 of 9 words"]


def test_int8(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    from lite_nmt.export import language, precision

    monkeypatch.setattr(precision, "SMALLEST", 8)  # so that a tiny model has something to round
    (tmp_path / "valid.txt").write_text("".join(f"{line}\n" for line in TEXT * 9))
    command = ["export", str(saved), "--precision", "int8", "--data", str(tmp_path), "--out"]
    assert main([*command, str(tmp_path / "bundle"), "--json"]) == 0
    nll = json.loads(capsys.readouterr().out)["nll"]
    words = sum(len(line.split()) + 1 for line in TEXT) * 9
    assert nll["words"] == words
    assert 0 < abs(nll["value"] - nll["checkpoint"]) <= language.LOSS
    model, tokens = (
        checkpoint.load(saved).language_model(),
        np.array(language.find_text(checkpoint.load(saved), tmp_path)),
    )
    assert nll["checkpoint"] == pytest.approx(negative_log_likelihood(model, tokens, 16) / words, abs=1e-3)
    assert main(["generate", str(tmp_path / "bundle"), "--words", "5"]) == 0
    monkeypatch.setattr(language, "LOSS", -1.0)
    assert main([*command, str(tmp_path / "worse")]) == 1
    assert "int8 costs" in capsys.readouterr().err
    assert not (tmp_path / "worse").exists()


class Counting:
    """Scores that say which tokens were read."""

    def start(self) -> list[int]:
        return []

    def read(self, token: int, position: int, state: list[int]) -> tuple[np.ndarray, list[int]]:
        assert position == len(state)
        scores = np.zeros(9, np.float32)
        scores[4 + len(state) % 5], scores[UNK] = 1, 5
        return scores, [*state, token]


def test_words_are_drawn_as_asked() -> None:
    assert list(generate(Counting(), [7, 8], 4)) == [6, 7, 8, 4]
    drawn = [list(generate(Counting(), [7], 200, temperature=1.0, seed=seed)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert UNK not in drawn[0]
    assert len(set(drawn[0])) > 5
    assert list(generate(Counting(), [7, 8], 4, temperature=2.0, top=1)) == [6, 7, 8, 4]


def test_spans_are_drawn(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["visualize", str(saved), "--out", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["spans"] == [pytest.approx([1.8, 0]), pytest.approx([6.6, 4])]
    assert (tmp_path / "spans.png").read_bytes().startswith(b"\x89PNG")
    assert b"span, steps" in (tmp_path / "spans.svg").read_bytes()
    assert main(["visualize", str(saved), "a sentence"]) == 1
    assert "takes no sentence" in capsys.readouterr().err


@pytest.mark.parametrize("verb", [["translate"], ["compress", "--out", "x"]])
def test_what_is_for_translation_says_so(
    verb: list[str], saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([verb[0], str(saved), *verb[1:]]) == 1
    assert "a language model" in capsys.readouterr().err
