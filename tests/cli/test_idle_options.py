"""Options that would do nothing beside the others, or with such a model, are refused before the work."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from lite_nmt.cli.main import main
from lite_nmt.config import Config, VocabularyConfig, from_dict
from lite_nmt.data.vocabulary import train_vocabulary
from lite_nmt.models import checkpoint
from lite_nmt.models.language import LanguageModel

TEXT = ["a man sees the dog .", "the dog sees a man , and runs ."]


def language_model(folder: Path, mixer: str, scale: float = 1.0) -> str:
    vocabulary = train_vocabulary(VocabularyConfig(kind="word", target=500), iter(TEXT), iter(()), 1)
    sizes = {"kind": "word", "target": vocabulary.target.get_piece_size()}
    decoder = {"layers": 1, "mixer": mixer, "heads": 2, "conv_heads": 2, "kernels": [3], "ffn": 16, "span": 9}
    table = {"task": "lm", "model": {"width": 16, "decoder": decoder}, "vocabulary": sizes, "train": {"block": 15}}
    config = from_dict(Config, table)
    torch.manual_seed(1)
    weights = {k: v.detach() * scale for k, v in checkpoint.named_weights(LanguageModel(config)).items()}
    checkpoint.save(folder, config, ("txt", "txt"), 1, {}, vocabulary, weights)
    return str(folder)


@pytest.fixture(scope="module")
def places(saved: str, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the names in braces below stand for."""
    folder = tmp_path_factory.mktemp("idle")
    (folder / "test.txt").write_text("".join(f"{line}\n" for line in TEXT))
    (folder / "short").write_text("Ein Hund\n")
    text, short = str(corpus / "test.en"), str(folder / "short")
    blocks, cache = (language_model(folder / mixer, mixer) for mixer in ("lightconv", "adaptive-span"))
    models = {"model": saved, "blocks": blocks, "cache": cache}
    return {**models, "lines": text, "short": short, "data": str(corpus), "text": str(folder)}


SCORE = "evaluate --hypotheses {lines} --references {lines} "
READ = "evaluate {model} --source {lines} --references {lines} "


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("generate {blocks} --seed 5", "--seed 5 is not for a temperature of 0, where nothing is drawn; leave it out."),
        ("generate {blocks} --top 5", "--top 5 is not for a temperature of 0"),
        ("generate {blocks} --top 1 --temperature 2", "--temperature 2.0 is not for --top 1"),
        (SCORE + "--batch-tokens 9", "--batch-tokens 9 is not for text files"),
        (SCORE + "--device cuda", "--device cuda is not for text files"),
        (SCORE + "--split dev", "--split dev is not for text files"),
        (SCORE + "--beam 0", "--beam 0 is not for text files"),
        (READ + "--split dev", "--split dev is not for --source"),
        (READ + "--context 3", "--context 3 is not for models that translate or summarise"),
        ("evaluate {blocks} --data {text} --no-stem", "--no-stem is not for language models"),
        ("evaluate {cache} --data {text} --batch-tokens 9", "--batch-tokens 9 is not for models that carry a cache"),
        ("export {blocks} --out x --sentences 5", "sentences is 5, which is not for language models; leave it out."),
        ("export {blocks} --out x --data {text}", "and a language model in fp32 is measured on no text; leave it out."),
        ("export {model} --out x --sentences 5", "sentences is 5, and there are no validation pairs; give --data."),
        ("export {model} --out x --data {text}", "has no valid pairs; give --data with valid.de and valid.en"),
        ("compress {model} --out x --data {text}", "has no valid pairs; give --data with valid.de and valid.en"),
        ("compress {model} --out x --encoder-layers 1", "would be removed; take larger shares"),
        ("profile {blocks} --src-len 7", "--src-len 7 is not for language models, which read one side, --tgt-len"),
        ("profile {model} --count full", "--count full is not for a report without --budget"),
        ("profile --reproduce --dim a=3", "--dim a=3 is not for --reproduce"),
        ("profile --reproduce --latency", "--latency is not for --reproduce"),
        ("bench {model} --data {data} --target cortex-a72 --rounds 7", "--rounds 7 is not for --target cortex-a72"),
        ("train --data {data} --out x --allow-over-budget", "--allow-over-budget is for a model over --budget"),
    ],
)
def test_refused(
    places: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([word.format(**places) for word in command.split()]) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert sentence in error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("compress {model} --out x --encoder-layers 1 --scope global", "--scope changes nothing"),
        ("search --budget 20M --top 2 --train-top 3 --data {data} --out x", "all 3 of --train-top are printed"),
    ],
)
def test_wrong_usage(places: dict[str, str], capsys: pytest.CaptureFixture[str], command: str, sentence: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([word.format(**places) for word in command.split()])
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "generate {blocks} --words 3 --temperature 1 --top 5 --seed 3",
        "translate {model} {short} --beam 1 --length-penalty 1 --scores",
        "translate {model} {short} --beam 1 --length-penalty 1 --penalty stepwise",
        "evaluate {blocks} --data {text} --batch-tokens 30",
    ],
)
def test_taken(places: dict[str, str], capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main([word.format(**places) for word in command.split()]) == 0
    capsys.readouterr()


def test_json_knows_no_infinity(places: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    diverged = language_model(tmp_path / "diverged", "lightconv", scale=1e3)
    assert main(["evaluate", diverged, "--data", places["text"], "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["perplexity"] is None
    assert math.isfinite(found["nll"])
