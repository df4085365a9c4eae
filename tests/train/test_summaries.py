"""The task of summarising: sources cut, runs, and what becomes of a text that is too long."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lite_nmt.cli.main import main
from lite_nmt.config import Config, from_dict, load_preset, merge
from lite_nmt.data.corpus import sides
from lite_nmt.data.encoded import Encoded, encode
from lite_nmt.data.vocabulary import EOS, Vocabulary
from lite_nmt.decode.translator import Translator
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint
from lite_nmt.train.run import train_model

STACK = {"layers": 1, "heads": 2, "conv_heads": 2, "kernels": [3], "ffn": 16}
TINY: dict[str, Any] = {
    "task": "summarize",
    "model": {"width": 16, "cross_heads": 2, "encoder": STACK, "decoder": STACK},
    "vocabulary": {"source": 300, "target": 300, "max_length": 12},
    "train": {"steps": 4, "batch_tokens": 200, "warmup": 1, "valid_every": 2, "average": 0, "threads": 1},
    "decode": {"beam": 2, "max_length": 9, "min_length": 2, "no_repeat_ngram": 3},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of 30 words, to be summed up by their second and third."""
    folder = tmp_path_factory.mktemp("texts")
    words = ["ash", "bay", "cat", "dew", "elk", "fir", "gum", "hay", "ink", "jay"]
    for split, count in (("train", 40), ("valid", 6), ("test", 5)):
        texts = [[words[(i * 7 + j * j) % 10] for j in range(30)] for i in range(count)]
        (folder / f"{split}.src").write_text("".join(" ".join(text) + "\n" for text in texts))
        (folder / f"{split}.tgt").write_text("".join(" ".join(text[1:3]) + "\n" for text in texts))
    references = [[line, "ash"] for line in (folder / "test.tgt").read_text().splitlines()]
    (folder / "test.tgt_all.jsonl").write_text("".join(json.dumps(texts) + "\n" for texts in references))
    return folder


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("summaries") / "run"
    train_model(from_dict(Config, TINY), data, ("src", "tgt"), out, device="cpu")
    return out


def test_sources_are_cut_and_targets_are_not(data: Path, run: Path, tmp_path: Path) -> None:
    vocabulary = Vocabulary.load(run / "vocabulary", joint=True)
    whole = encode(sides(data, "train", "src", "tgt"), vocabulary, tmp_path / "whole", None)
    cut = Encoded.open(run / "data" / "train")
    assert len(cut) == 40
    assert cut.left_out == {"empty": 0, "longer than max_length": 0}
    for i, start in enumerate(cut.source_starts[:-1]):
        tokens = cut.source[start : cut.source_starts[i + 1]].tolist()
        assert tokens == [*whole.source[whole.source_starts[i] :][:11].tolist(), EOS]
    assert (cut.target == whole.target).all()
    assert (Encoded.open(run / "data" / "valid").lengths()[0] == 12).all()


def test_a_run_says_its_rouge(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    names = {"valid_nll", "valid_rouge1", "valid_rouge2", "valid_rougeL"}
    assert any(names <= line.keys() for line in lines)
    assert not any("valid_bleu" in line for line in lines)


def test_what_lies_beyond_the_limit_is_not_read(data: Path, run: Path) -> None:
    model = Translator.load(run)
    text = (data / "test.src").read_text().splitlines()[0]
    with pytest.warns(UserWarning, match="longer than 11 pieces.*summarised by their beginning"):
        whole, other = model.translate_all([text, f"{text} cat cat cat"])
    [beginning] = model.translate_all([model.vocabulary.source.decode(list(whole.pieces[:11]))])
    assert whole.text == other.text == beginning.text
    assert 2 <= len(whole.candidates[0].pieces) <= 9


@pytest.mark.filterwarnings("default:lines longer")
def test_the_commands(data: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = [
        f"{table}.{key}={json.dumps(value)}"
        for table in ("train", "vocabulary", "decode")
        for key, value in TINY[table].items()
    ]
    sets += [
        f"model.{side}.{key}={json.dumps(value)}" for side in ("encoder", "decoder") for key, value in STACK.items()
    ]
    start = ["train", "--task", "summarize", "--data", str(data), "--src", "src", "--tgt", "tgt", "--device", "cpu"]
    options = [part for text in (*sets, "model.width=16", "model.cross_heads=2") for part in ("--set", text)]
    assert main([*start, "--out", str(tmp_path / "run"), *options]) == 0
    said = capsys.readouterr()
    assert ", validation ROUGE-1/2/L " in said.out
    assert f"Mult-Adds for 12 to {TINY['decode']['max_length']} tokens" in said.err
    assert main(["evaluate", str(run), "--data", str(data)]) == 0
    said = capsys.readouterr()
    assert "ROUGE-L" in said.out
    assert "nrefs:1|" in said.out
    assert "BLEU" not in said.out
    assert "summarised by their beginning" in said.err
    several = str(data / "test.tgt_all.jsonl")
    assert main(["evaluate", str(run), "--data", str(data), "--references", several, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["signature"].startswith("nrefs:2|")
    assert main(["evaluate", str(run), "--data", str(data), "--metric", "bleu"]) == 0
    assert "BLEU" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:lines longer")
def test_a_bundle_summarises_as_the_run(
    data: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    lines = (data / "test.src").read_text().splitlines()
    expected = Translator.load(run).translate(lines)
    for precision in ("fp32", "int8"):
        out = tmp_path / precision
        assert main(["export", str(run), "--out", str(out), "--precision", precision]) == 0
        assert ", ROUGE-L " in capsys.readouterr().out
        assert json.loads((out / "manifest.json").read_text())["rouge-l"]["sentences"] == 6
    assert Translator.load(tmp_path / "fp32").translate(lines) == expected
    assert main(["evaluate", str(out), "--data", str(data)]) == 0
    assert "ROUGE-2" in capsys.readouterr().out


def test_compression_says_its_rouge(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compress", str(run), "--out", str(tmp_path / "small"), "--bits", "8", "--bleu"]) == 0
    said = capsys.readouterr().out
    assert "ROUGE-1/2/L" in said
    assert "BLEU" not in said
    assert checkpoint.load(tmp_path / "small").metrics.keys() == {"valid_nll", *(f"valid_rouge{k}" for k in "12L")}


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"decode": {"max_length": 0, "min_length": 0}}, "decode.max_length is 0"),
        ({"train": {"stop_on": "bleu"}}, "summaries do not have"),
        ({"vocabulary": {"kind": "word"}}, "is for language models"),
    ],
)
def test_refusals(table: dict[str, Any], sentence: str) -> None:
    with pytest.raises(LiteNmtError, match=sentence):
        from_dict(Config, merge(TINY, table))


@pytest.mark.parametrize(("name", "longest"), [("transformer", 1000), ("lite-transformer", 1000), ("dynamicconv", 400)])
def test_presets(name: str, longest: int) -> None:
    config = load_preset(f"cnndm-{name}")
    assert (config.task, config.vocabulary.max_length, config.decode.no_repeat_ngram) == ("summarize", longest, 3)
