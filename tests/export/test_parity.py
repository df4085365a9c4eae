"""The gate: a graph that does not do what the model does is not written."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lite_nmt.export.export as exporting
from lite_nmt.config import DecodeConfig
from lite_nmt.data.encoded import Encoded
from lite_nmt.data.vocabulary import EOS
from lite_nmt.decode.engine import Alignment, Engine
from lite_nmt.decode.hypothesis import Hypothesis
from lite_nmt.decode.pytorch import PyTorchEngine
from lite_nmt.decode.translator import Translator
from lite_nmt.errors import LiteNmtError
from lite_nmt.evaluate.score import score
from lite_nmt.export import bundle, parity
from lite_nmt.export.bundle import WEIGHTS, Bundle
from lite_nmt.export.export import export
from lite_nmt.export.runtime import OnnxEngine
from lite_nmt.models import checkpoint
from lite_nmt.models.checkpoint import Checkpoint
from lite_nmt.train.pairs import find_pairs

pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def origin(teacher: Path) -> Checkpoint:
    return checkpoint.load(teacher)


@pytest.fixture(scope="module")
def opened(exported: Path) -> Bundle:
    return bundle.load(exported)


@pytest.fixture(scope="module")
def pairs(origin: Checkpoint, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Encoded:
    found = find_pairs(origin, "valid", corpus, tmp_path_factory.mktemp("pairs"))
    assert found is not None
    return found.first(6)


def serve(opened: Bundle, monkeypatch: pytest.MonkeyPatch, change: float = 0.0) -> None:
    """Spare the tracing: export's graphs are these, with weights that are off by some share."""
    files = {name: (opened.folder / name).read_bytes() for name in opened.files}
    weights = np.frombuffer(files[WEIGHTS], np.float32) * np.float32(1 + change)
    files[WEIGHTS] = weights.tobytes()
    monkeypatch.setattr(exporting, "export_graphs", lambda *_: {})
    monkeypatch.setattr(exporting, "serialize", lambda _: files)


def test_the_right_graph_passes(
    origin: Checkpoint, opened: Bundle, pairs: Encoded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(opened, monkeypatch)
    said: list[str] = []
    made = export(origin, tmp_path / "out", pairs=pairs, say=said.append)
    assert made.manifest["bleu"]["sentences"] == 6
    assert said[-2:] == ["6 translations agree", "translated 6 of 6 validation sentences"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert parity.check_logits(origin.model(), OnnxEngine(opened)) < parity.LOGITS


@pytest.mark.parametrize("change", [0.01, float("nan")])
def test_scores_that_differ_are_refused(
    change: float,
    origin: Checkpoint,
    opened: Bundle,
    pairs: Encoded,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    serve(opened, monkeypatch, change)
    for name in ("out", "out.zip"):
        with pytest.raises(LiteNmtError, match=r"at step 1 of 1 random sentences a score differs by .*nothing was"):
            export(origin, tmp_path / name, pairs=pairs)
    assert not list(tmp_path.iterdir())


def test_translations_that_differ_are_refused(
    origin: Checkpoint, opened: Bundle, pairs: Encoded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(opened, monkeypatch, -0.4)
    monkeypatch.setattr(parity, "check_logits", lambda *_: 0.0)
    for given in (pairs, None):
        with pytest.raises(LiteNmtError, match=r"disagrees with the model at beam 1: '.*' is '.*' \(-?\d+\.\d+\) to"):
            export(origin, tmp_path / "out", pairs=given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_a_loss_of_bleu_is_refused(
    precision: str,
    origin: Checkpoint,
    opened: Bundle,
    pairs: Encoded,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model knows nothing, so that BLEU is told to fall."""
    serve(opened, monkeypatch)
    marks = iter([20.0, 20.31])
    real = parity.quality

    def marked(*arguments: Any) -> Any:
        return dataclasses.replace(real(*arguments), measures={"bleu": next(marks)})

    monkeypatch.setattr(parity, "quality", marked)
    monkeypatch.setattr(exporting, "describe", lambda *_: {})
    shortlist: Any = None if precision == "int8" else _Listed()
    with pytest.raises(LiteNmtError, match=r"loses 0\.31 BLEU on 6 validation pairs \(20\.00 after 20\.31\)"):
        export(origin, tmp_path / "out", precision=precision, pairs=pairs, shortlist=shortlist)
    assert not list(tmp_path.iterdir())
    marks = iter([20.0, 20.29])
    assert (
        export(origin, tmp_path / "out", precision=precision, pairs=pairs, shortlist=shortlist).manifest["bleu"][
            "value"
        ]
        == 20.0
    )


class _Listed:
    table = np.zeros((2, 2), np.int32)
    bytes = 16

    def least(self) -> int:
        return 8


class Other:
    """An engine that changes one translation of another's."""

    def __init__(self, engine: PyTorchEngine, beam: int, shift: float) -> None:
        self.engine, self.beam, self.shift = engine, beam, shift

    def search(self, sources: Sequence[Sequence[int]], decode: DecodeConfig, nbest: int) -> list[list[Hypothesis]]:
        found = self.engine.search(sources, decode, nbest)
        if decode.beam == self.beam:
            best = found[1][0]
            found[1] = [Hypothesis((*best.tokens, EOS + 9), best.score + self.shift, best.logprob)]
        return found

    def align(
        self, sources: Sequence[Sequence[int]], hypotheses: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Alignment]]:
        raise NotImplementedError


def test_the_first_disagreement_is_shown(origin: Checkpoint, opened: Bundle, pairs: Encoded) -> None:
    reference, given = PyTorchEngine(origin.model()), [pairs.pair(i)[0] for i in range(len(pairs))]
    text = opened.vocabulary.source.decode(given[1][:-1])
    for beam in (1, 2):
        [ours] = reference.search([given[1]], dataclasses.replace(opened.config.decode, beam=beam), 1)[0]
        for shift in (0.1, float("nan"), float("-inf")):
            with pytest.raises(LiteNmtError) as caught:
                parity.check_translations(reference, Other(reference, beam, shift), opened, given)
            said = str(caught.value)
            assert f"at beam {beam}: {text!r} is {opened.vocabulary.decode(ours.tokens)!r} ({ours.score:.4f})" in said
        # As good to within rounding: the order of the two is nobody's fault.
        parity.check_translations(reference, Other(reference, beam, 0.5 * parity.TIE), opened, given)


class Short:
    """An engine that takes no more than the longest training source, as an ExecuTorch program does."""

    def __init__(self, engine: Engine, most: int) -> None:
        self.engine, self.most = engine, most

    def search(self, sources: Sequence[Sequence[int]], decode: DecodeConfig, nbest: int) -> list[list[Hypothesis]]:
        assert max(map(len, sources)) <= self.most
        return self.engine.search(sources, decode, nbest)

    def align(
        self, sources: Sequence[Sequence[int]], hypotheses: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Alignment]]:
        raise NotImplementedError


@pytest.mark.filterwarnings("ignore:lines longer than")
def test_long_validation_sources_are_translated_as_lines_are(
    origin: Checkpoint, opened: Bundle, corpus: Path, tmp_path: Path
) -> None:
    for language in ("de", "en"):
        lines = (corpus / f"valid.{language}").read_text(encoding="utf-8").splitlines()[:12]
        (tmp_path / f"valid.{language}").write_text(f"{' '.join(lines)}\n{lines[0]}\n", encoding="utf-8")
    long = find_pairs(origin, "valid", tmp_path, tmp_path / "scratch")
    assert long is not None
    most = origin.config.vocabulary.max_length
    assert int(long.lengths()[0].max()) > 2 * most
    engine, reference = Short(OnnxEngine(opened), most), PyTorchEngine(origin.model())
    parity.check_translations(reference, engine, opened, [long.pair(i)[0] for i in range(2)])
    lines, references = ((tmp_path / f"valid.{x}").read_text(encoding="utf-8").splitlines() for x in ("de", "en"))
    texts = Translator(opened.config, opened.vocabulary, reference, opened.languages).translate(lines)
    said: list[str] = []
    found = parity.quality(engine, opened, long, said.append)
    assert found.measures == {"bleu": pytest.approx(score(texts, references).bleu)}
    assert said == ["translated 2 of 2 validation sentences"]
