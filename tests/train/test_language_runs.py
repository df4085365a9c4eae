"""The task of language modelling: words, blocks, runs, their resumption, and perplexity."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lite_nmt.cli.main import main
from lite_nmt.config import Config, VocabularyConfig, from_dict, merge
from lite_nmt.data.text import Block, encode_text, gather, open_text, side_by_side
from lite_nmt.data.vocabulary import EOS, PAD, UNK, Vocabulary, train_vocabulary
from lite_nmt.errors import LiteNmtError
from lite_nmt.evaluate.perplexity import negative_log_likelihood
from lite_nmt.models import checkpoint
from lite_nmt.models.language import LanguageModel
from lite_nmt.train.metrics import read_metrics
from lite_nmt.train.run import train_model
from lite_nmt.train.trainer import Trainer

TEXT = ("txt", "txt")
TINY: dict[str, Any] = {
    "task": "lm",
    "model": {
        "width": 16,
        "cutoffs": [20, 40],
        "decoder": {"layers": 2, "mixer": "adaptive-span", "heads": 2, "ffn": 16, "span": 24, "ramp": 4},
    },
    "vocabulary": {"kind": "word", "target": 500},
    "train": {
        "steps": 12,
        "batch_tokens": 60,
        "block": 15,
        "lr": 5e-3,
        "warmup": 2,
        "label_smoothing": 0.0,
        "span_loss": 1e-4,
        "log_every": 1,
        "valid_every": 6,
        "save_every": 4,
        "average": 2,
        "threads": 1,
    },
}
Made = Callable[..., Config]


def tiny(decoder: dict[str, Any] | None = None, **recipe: Any) -> Config:
    own = {} if (decoder or {}).get("mixer", "adaptive-span") == "adaptive-span" else {"span_loss": 0.0}
    return from_dict(Config, merge(TINY, {"model": {"decoder": decoder or {}}, "train": {**own, **recipe}}))


@pytest.fixture(scope="module")
def data(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The generated corpus's English side as a text, an <unk> and a blank line in each."""
    folder = tmp_path_factory.mktemp("text")
    for split in ("train", "valid", "test"):
        lines = (corpus / f"{split}.en").read_text().splitlines()
        text = " \n".join(f" {line.rstrip('.')} . <unk> <unk> {i % 7} " for i, line in enumerate(lines))
        (folder / f"{split}.txt").write_text(f" \n{text} \n")
    return folder


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("trained") / "run"
    train_model(tiny(steps=80, valid_every=40, save_every=80), data, TEXT, run, device="cpu")
    return run


def words(text: list[str]) -> Vocabulary:
    return train_vocabulary(VocabularyConfig(kind="word", target=500), iter(text), iter(()), 1)


def test_words_are_numbered_by_frequency_and_kept_whole() -> None:
    vocabulary = words(["the a the Ärger's ① the", "a <unk> @-@ <unk> xﬁx", ""])
    assert vocabulary.encode_words(" the a the ") == [4, 5, 4, EOS]
    assert vocabulary.encode_words("") == [EOS]
    # Each unknown word is one, side by side or not; and so is the text's own <unk>.
    assert vocabulary.encode_words("<unk> <unk> nothing known a") == [UNK, UNK, UNK, UNK, 5, EOS]
    text = "the Ärger's ① @-@ xﬁx <unk> a"
    numbers = vocabulary.encode_words(text)
    assert len(set(numbers)) == 8
    assert vocabulary.decode([n for n in numbers if n != UNK]) == text.replace(" <unk>", "")
    again = Vocabulary(vocabulary.source_model, None)
    assert again.encode_words(text) == numbers


def test_a_small_vocabulary_keeps_the_most_frequent_words() -> None:
    text = ["e e e e e d d d d c c c b b a"]
    vocabulary = train_vocabulary(VocabularyConfig(kind="word", target=8), iter(text), iter(()), 1)
    assert vocabulary.encode_words("a b c d e") == [UNK, 7, 6, 5, 4, EOS]


def test_blocks_hold_the_text_one_step_behind_it(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("a b c\n\nd e\n")
    vocabulary = words(["a b c d e"])
    encode_text(tmp_path / "x.txt", vocabulary, tmp_path / "x")
    tokens = open_text(tmp_path / "x")
    a, b, c, d, e = (vocabulary.encode_words(w)[0] for w in "abcde")
    assert tokens.tolist() == [a, b, c, EOS, EOS, d, e, EOS]
    blocks = [gather(tokens, block, torch.device("cpu")) for block in side_by_side(8, 3, 2)]
    read, due = (torch.cat(parts, 1).tolist() for parts in zip(*blocks, strict=True))
    assert due == [[a, b, c], [EOS, EOS, d], [e, EOS, PAD]]
    assert read == [[EOS, a, b], [c, EOS, EOS], [d, e, EOS]]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"accumulate": 2, "optimizer": "sgd", "lr": 0.1, "schedule": "cosine", "clip": 0.25},
        {"batch_tokens": 1500, "block": 500},  # begins again every other update
        {"precision": "bf16"},
    ],
)
def test_a_resumed_run_is_the_same_bit_for_bit(data: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    """Its caches too; the model's dropout is on."""
    train_model(tiny(**change), data, TEXT, tmp_path / "whole", device="cpu")

    class Killed(Exception):
        pass

    seen = Trainer.update

    def dies(self: Trainer, group: Any) -> None:
        if self.progress.step == 10:  # two steps beyond the last checkpoint
            raise Killed
        seen(self, group)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "update", dies)
        with pytest.raises(Killed):
            train_model(tiny(**change), data, TEXT, tmp_path / "broken", device="cpu")
    result = train_model(tiny(**change), None, TEXT, tmp_path / "broken", resume=True, device="cpu")
    first, second = (checkpoint.load(run) for run in (result.model, tmp_path / "whole" / "model"))
    theirs = second.weights()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in first.weights().items())
    losses = [[line["loss"] for line in read_metrics(tmp_path / run) if "loss" in line] for run in ("broken", "whole")]
    assert losses[0] == losses[1]


def test_a_run_learns_and_says_what_its_spans_became(trained: Path, data: Path) -> None:
    lines = read_metrics(trained)
    assert lines[-1]["valid_nll"] < lines[0]["nll"] - 1
    assert 0 < lines[-1]["mean_span"] < 24
    saved = checkpoint.load(trained)
    model = saved.language_model()
    spans = saved.config.model.decoder.spans
    assert [mixer.sees() for mixer in model.spans()] == list(spans)
    assert spans == tuple(math.ceil(4 + 24 * float(m.z.detach().max())) for m in model.spans())
    with pytest.raises(LiteNmtError, match="holds a language model, which does not translate"):
        saved.model()


def evaluated(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, float]:
    assert main(["evaluate", *map(str, arguments), "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_perplexity_is_that_of_the_whole_text_at_once(
    trained: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cache makes the size of blocks irrelevant."""
    found = evaluated(capsys, trained, "--data", data)
    saved = checkpoint.load(trained)
    numbers = [n for line in (data / "test.txt").read_text().splitlines() for n in saved.vocabulary.encode_words(line)]
    due = torch.tensor(numbers)
    read = torch.cat([torch.tensor([EOS]), due[:-1]]).unsqueeze(0)
    model = saved.language_model()
    with torch.inference_mode():
        own = model.project(model(read)[0])[0].gather(1, due[:, None])
    assert found["tokens"] == len(numbers)
    assert found["nll"] == pytest.approx(-float(own.mean()), abs=1e-5)
    assert evaluated(capsys, trained, "--data", data, "--block", 7)["nll"] == pytest.approx(found["nll"], abs=1e-5)
    assert main(["evaluate", str(trained), "--data", str(data), "--context", "3"]) == 1
    assert "leave out --context" in capsys.readouterr().err


@pytest.mark.parametrize(("block", "context"), [(8, 0), (8, 5), (8, 7), (50, 3), (6, 4)])
@torch.inference_mode()
def test_a_context_window_scores_each_word_once(block: int, context: int) -> None:
    torch.manual_seed(0)
    model = LanguageModel(tiny({"mixer": "attention"})).eval()
    tokens = np.random.default_rng(0).integers(4, 60, 37).astype(np.int32)
    found = negative_log_likelihood(model, tokens, block, context, rows=3)
    step, total = block - context, 0.0
    for begin in range(0, 37, step):
        first, end = max(begin - context, 0), min(begin + step, 37)
        read, due = gather(tokens, Block(np.array([first]), 0, end - first), torch.device("cpu"))
        scores = model.project(model(read)[0])[0].log_softmax(-1).gather(1, due[0, :, None])
        total -= float(scores[begin - first :].sum())
    assert found == pytest.approx(total, rel=1e-5)


def test_the_command_line_trains_and_refuses(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = [f"--set=train.{key}={value}" for key, value in (("steps", 2), ("batch_tokens", 60), ("block", 15))]
    settings += ["--set=model.cutoffs=[20]", "--set=model.width=16", "--set=model.decoder.layers=1"]
    command = ["train", "--task", "lm", "--data", str(data), "--out", str(tmp_path / "run"), "--device", "cpu"]
    assert main([*command, "--preset", "wikitext2-all-attention", *settings]) == 0
    out, progress = capsys.readouterr()
    assert "validation perplexity" in out
    assert re.search(r"^train\.txt: [\d,]+ tokens \([\d,]+ unknown, \d+\.\d%\)$", progress, re.MULTILINE)
    assert main(["translate", str(tmp_path / "run")]) == 1
    assert main(["train", "--resume", "--task", "summarize", "--out", str(tmp_path / "run")]) == 1
    assert "--task is summarize, but" in capsys.readouterr().err
    (tmp_path / "blank").mkdir()
    for split in ("train", "valid"):
        (tmp_path / "blank" / f"{split}.txt").write_text(" <unk>\n\n")
    for wrong, message in (
        (["--preset", "demo"], "--task is lm, but demo is for translate"),
        (["--src", "de", *settings], "--src is for translation"),
        (["--data", str(tmp_path), *settings], "train.txt is missing"),
        (["--data", str(tmp_path / "blank"), *settings], "holds no word"),
        ([*settings, "--set=train.block=61"], "train.batch_tokens is 60, less than train.block = 61"),
        ([*settings, "--set=vocabulary.joint=false"], "vocabulary.joint is false"),
        ([*settings, "--set=decode.beam=2"], "decode.beam is 2, which does nothing where task is"),
        (["--set=train.batch_tokens=900000", *settings[:1], *settings[3:]], "too few for"),
    ):
        assert main([*command, "--out", str(tmp_path / "other"), *wrong]) == 1
        assert message in capsys.readouterr().err


def test_perplexity_of_what_diverged_and_of_unknown_words(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from lite_nmt.evaluate.surprise import perplexity

    assert perplexity(2.7e8) == float("inf")
    assert perplexity(0) == 1
    run = tmp_path / "run"
    train_model(tiny(steps=2), data, TEXT, run, device="cpu")
    assert main(["evaluate", str(run), "--data", str(data), "--split", "valid"]) == 0
    assert " unknown)" in capsys.readouterr().out
    assert main(["evaluate", str(run), "--data", str(data), "--max-length", "0"]) == 1
    assert "--max-length 0 is not for language models" in capsys.readouterr().err
    assert main(["compress", str(run), "--out", str(tmp_path / "small"), "--heads", "0.5"]) == 1
    assert "is a language model" in capsys.readouterr().err
    assert not (tmp_path / "small").exists()


def test_several_processes_share_what_is_carried(data: Path, tmp_path: Path) -> None:
    """Each holds the caches of its own batches, and a checkpoint those of all."""
    train_model(tiny(accumulate=2, steps=4), data, TEXT, tmp_path / "run", device="cpu")
    state = checkpoint.load_tensors(tmp_path / "run" / "checkpoints" / "step-00000004" / checkpoint.TRAINING)
    held = {name: tensor for name, tensor in state.items() if name.startswith("carried.")}
    assert sorted(held) == [f"carried.{number}.{layer}" for number in range(2) for layer in range(2)]
    assert all(tensor.shape[0] == 4 and tensor.any() for tensor in held.values())
    settings = (tmp_path / "run" / "run.json").read_bytes()
    for wrong, message in (
        (tiny(accumulate=2, steps=6, batch_tokens=120), "train.batch_tokens is 120, and .* began with"),
        (tiny(steps=6), "train.accumulate is 1, and .* began with 2"),
        (tiny(accumulate=2, steps=6, block=5), "train.block is 5, and .* began with"),
    ):
        with pytest.raises(LiteNmtError, match=message):
            train_model(wrong, None, TEXT, tmp_path / "run", True, "cpu")
    assert (tmp_path / "run" / "run.json").read_bytes() == settings  # what is refused changes nothing
