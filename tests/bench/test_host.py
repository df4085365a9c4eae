"""Engines measured in turns, on models too small for the figures to mean anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lite_nmt.bench.host import Entry, Result, Spread, Worker, folder_bytes, measure, translations
from lite_nmt.cli.bench import _print
from lite_nmt.decode.segments import parts
from lite_nmt.decode.translator import Translator
from lite_nmt.errors import LiteNmtError

LINES = ["Der Hund schläft.", "Wir sehen ein Haus.", "ja", "Die Katze läuft über die Wiese."]
REFERENCES = ["The dog sleeps.", "We see a house.", "yes", "The cat runs across the meadow."]


def entry(name: str, path: Path) -> Entry:
    return Entry(name, "lite", str(path), folder_bytes(path), 1000)


def test_bundle_and_checkpoint_side_by_side(exported: Path, teacher: Path) -> None:
    said: list[str] = []
    entries = [entry("bundle", exported), entry("PyTorch", teacher)]
    results = measure(
        entries, LINES, references=REFERENCES, decode={"beam": 1}, batches=(1, 2), rounds=2, say=said.append
    )
    assert said == ["round 0 of 2", "round 1 of 2", "round 2 of 2"]
    expected = Translator.load(teacher)
    decode = expected.config.decode.__class__(beam=1)
    for result, of in zip(results, entries, strict=True):
        assert result.entry == of
        assert result.translations == expected.translate(LINES, decode)
        assert result.torch == (of.name == "PyTorch")
        assert result.load_s > 0
        assert 0 < result.rss <= result.peak
        for spread in (result.ms, result.cpu_ms, *result.per_second.values()):
            assert 0 < spread.low <= spread.median <= spread.high
        assert result.per_second.keys() == {1, 2}
        assert result.tokens >= 1
        assert result.bleu is not None
        assert 0 <= result.bleu <= 100
        shown = json.loads(json.dumps(result.as_json()))
        assert shown["name"] == of.name
        assert shown["ms"].keys() == {"median", "low", "high"}
        assert "entry" not in shown
        assert Result.from_json(shown) == result
    bundle, pytorch = results
    assert bundle.encode_ms is not None
    assert bundle.token_ms is not None
    assert bundle.encode_ms.median > 0
    assert (pytorch.encode_ms, pytorch.token_ms) == (None, None)


def test_summaries_are_scored_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rouge_score")
    times = Spread(1.0, 1.0, 1.0)
    shown = {}
    for task in ("translate", "summarize"):
        of = Entry("name", "lite", "path", 1, 1, task)
        result = Result(of, 0.1, 1, False, times, times, 1.0, per_second={1: times, 32: times})
        result.translations = REFERENCES
        result.score(REFERENCES)
        shown[task] = result
    assert shown["translate"].bleu == pytest.approx(100)
    assert shown["summarize"].rougeL == pytest.approx(100)
    for task, columns in (("translate", "BLEU"), ("summarize", "ROUGE-L")):
        _print([shown[task]], 1)
        assert f"MB {columns} ms" in " ".join(capsys.readouterr().out.split())
    _print(list(shown.values()), 1)
    assert "MB BLEU ROUGE-L ms" in " ".join(capsys.readouterr().out.split())


def test_long_lines_are_measured_as_they_are_translated(exported: Path, teacher: Path) -> None:
    model = Translator.load(teacher)
    lines = [" ".join(LINES * 8), "", LINES[0]]
    [tokens] = model.vocabulary.encode_source(lines[:1])
    assert len(tokens) > 2 * model.config.vocabulary.max_length
    with pytest.warns(UserWarning, match="translated in parts"):
        expected = model.translate_all(lines)
    for path in (exported, teacher):
        assert translations(entry("it", path), lines, None) == [translation.text for translation in expected]
    worker = Worker(entry("bundle", exported), 1)
    worker.ask("prepare", decode={}, lines=lines[:1])
    counted = worker.ask("translate", batch=1)["tokens"]
    [said] = expected[0].candidates
    assert counted == len(said.pieces) + len(parts([tokens], model.config, model.vocabulary)[0])  # the end markers
    with pytest.raises(LiteNmtError, match=r"bundle could not be measured: all lines are blank; there is nothing"):
        worker.ask("prepare", decode={}, lines=["", " "])


def test_a_worker_that_fails_is_one_sentence(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(LiteNmtError) as caught:
        measure([entry("none", tmp_path)], LINES, rounds=2)
    assert str(caught.value).startswith(f"none could not be measured: {tmp_path} holds no checkpoint: ")
    with pytest.raises(LiteNmtError) as caught:
        measure([entry("b", exported)], LINES, decode={"beam": 999}, rounds=2)
    assert str(caught.value).startswith("b could not be measured: decode.beam is 999; among the ")
    worker = Worker(entry("b", exported), 1)
    worker.process.kill()
    worker.process.wait()
    with pytest.raises(LiteNmtError, match="b could not be measured: it said nothing"):
        worker.ask("prepare", decode={}, lines=LINES)


def test_a_spread_is_median_and_quartiles() -> None:
    assert Spread.of([4.0, 1.0, 3.0, 2.0, 5.0]) == Spread(3.0, 2.0, 4.0)
    assert Spread.of([1.0, 3.0]) == Spread(2.0, 1.5, 2.5)


def test_the_size_is_that_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(5))
    (tmp_path / "b").write_bytes(bytes(7))
    (tmp_path / "folder").mkdir()
    assert folder_bytes(tmp_path) == 12
    assert folder_bytes(tmp_path / "b") == 7
