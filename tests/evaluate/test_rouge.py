"""ROUGE against rouge-score itself, and against figures worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rouge_score.rouge_scorer import RougeScorer

from lite_nmt.cli.main import main
from lite_nmt.errors import LiteNmtError
from lite_nmt.evaluate.rouge import MEASURES, rouge

SUMMARIES = ["the police killed the gunman", "A model of cats.", ""]
REFERENCES = ["police kill the gunman", "Models of dogs and cats", "nothing was said"]


@pytest.mark.parametrize("stem", [True, False])
def test_equal_to_rouge_score(stem: bool) -> None:
    found = rouge(SUMMARIES, REFERENCES, stem)
    scorer = RougeScorer(MEASURES, use_stemmer=stem)
    each = [scorer.score(target, summary) for target, summary in zip(REFERENCES, SUMMARIES, strict=True)]
    for name in MEASURES:
        assert found.measures[name].value == pytest.approx(100 * sum(one[name].fmeasure for one in each) / 3)
    assert f"stem:{'yes' if stem else 'no'}|" in found.signature
    assert found.summaries == 3


def test_by_hand() -> None:
    # 4 of 5 and of 4 words, "killed" by its stem; 3 of 4 and of 3 pairs; police kill the gunman in order.
    found = rouge(SUMMARIES[:1], REFERENCES[:1]).measures
    assert found["rouge1"].value == pytest.approx(100 * 2 * (4 / 5) * (4 / 4) / (4 / 5 + 4 / 4))
    assert found["rougeL"].value == found["rouge1"].value
    assert found["rouge2"].value == pytest.approx(100 * 2 * (3 / 4) * (3 / 3) / (3 / 4 + 3 / 3))
    assert found["rouge1"].spread is None  # of one summary
    half = rouge(["yes", "no"] * 8, ["yes", "yes"] * 8).measures["rouge1"]
    assert half.value == 50
    assert half.spread == pytest.approx(1.96 * 50 * (16 / 15) ** 0.5 / 16**0.5)


def test_the_best_of_several_references_counts() -> None:
    found = rouge(["the cat sat", "a dog"], [["the dog", "the cat sat"], ["a dog"]])
    assert [measure.value for measure in found.measures.values()] == [100, 100, 100]
    assert found.signature.startswith("nrefs:1-2|best:each|")


def test_refusals() -> None:
    with pytest.raises(LiteNmtError, match="3 summaries and 2 references"):
        rouge(SUMMARIES, REFERENCES[:2])
    with pytest.raises(LiteNmtError, match="no summaries"):
        rouge([], [])
    with pytest.raises(LiteNmtError, match="ROUGE reads nothing else"):
        rouge(["Привет мир"], ["Привет мир"])
    with pytest.raises(LiteNmtError, match="summary 2 has no reference"):
        rouge(SUMMARIES, ["a", [], "b"])


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "sum").write_text("".join(text + "\n" for text in SUMMARIES))
    (tmp_path / "ref").write_text("".join(text + "\n" for text in REFERENCES))
    (tmp_path / "ref.jsonl").write_text("".join(json.dumps(["no", text]) + "\n" for text in REFERENCES))
    return tmp_path


def test_the_command(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = ["evaluate", "--metric", "rouge", "--hypotheses", str(files / "sum"), "--references"]
    assert main([*start, str(files / "ref")]) == 0
    said = capsys.readouterr().out
    found = rouge(SUMMARIES, REFERENCES)
    for kind in "12L":
        assert f"ROUGE-{kind}  {found.measures[f'rouge{kind}'].value:5.2f}  ± " in said
    assert found.signature in said
    assert main([*start, str(files / "ref.jsonl"), "--no-stem", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["measures"]["rouge1"]["value"] == rouge(SUMMARIES, REFERENCES, stem=False).measures["rouge1"].value
    assert said["signature"].startswith("nrefs:2|")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--references", "ref.jsonl"], "--metric rouge alone takes"),
        (["--references", "ODD.JSONL", "--metric", "rouge"], "line 2 of"),
        (["--references", "short", "--metric", "rouge"], "has 3 lines and"),
        (["--references", "odd.jsonl", "--metric", "rouge"], "line 2 of"),
        (["--references", "empty.jsonl", "--metric", "rouge"], "line 1 of"),
    ],
)
def test_bad_references(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: list[str], sentence: str
) -> None:
    monkeypatch.chdir(files)
    Path("short").write_text("one\n")
    for name in ("odd.jsonl", "ODD.JSONL"):
        Path(name).write_text('["a"]\n{"a": 1}\n["b"]\n')
    Path("empty.jsonl").write_text('[]\n["a"]\n["b"]\n')
    assert main(["evaluate", "--hypotheses", "sum", *options]) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--metric", "rouge", "--lowercase"], ["--no-stem"]])
def test_options_of_the_other_metric(files: Path, capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(["evaluate", "--hypotheses", str(files / "sum"), "--references", str(files / "ref"), *options])
