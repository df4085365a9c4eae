"""Text in, text out, with a model that knows nothing: what is tested is the way there and back."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import lite_nmt
from lite_nmt.config import Config, DecodeConfig, ModelConfig, StackConfig, VocabularyConfig
from lite_nmt.data.vocabulary import BOS, Vocabulary, train_vocabulary
from lite_nmt.decode.pytorch import PyTorchEngine, model_of
from lite_nmt.decode.translator import Translator
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint
from lite_nmt.models.translation import TranslationModel

TEXT = [
    "Ein Hund läuft über die Wiese .",
    "A dog runs across the meadow .",
    "Zwei Kinder spielen im Park .",
    "Two children play in the park .",
]
LINES = ["Ein Hund", "", "Zwei Kinder spielen im Park . Ein Hund läuft .", "   ", "die Wiese", "Hund"]
NASTY = ["", " ", "\u200b", "😀👩‍👩‍👧", "дом house 家", "a\0b", "a\u2028b\nc\r", "\ud800", "x" * 300, "Hund " * 100]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    settings = VocabularyConfig(target=330)
    return train_vocabulary(settings, iter(TEXT[::2] * 5), iter(TEXT[1::2] * 5), seed=1)


@pytest.fixture(scope="module")
def config(vocabulary: Vocabulary) -> Config:
    types = vocabulary.target.get_piece_size()
    stack = StackConfig(layers=2, mixer="lsra", heads=2, conv_heads=2, kernels=(3,), ffn=16)
    return Config(
        ModelConfig(width=16, encoder=stack, decoder=stack, cross_heads=2),
        VocabularyConfig(source=types, target=types, max_length=16),
        decode=DecodeConfig(beam=3, max_length=6),
    )


@pytest.fixture(scope="module")
def model(config: Config) -> TranslationModel:
    torch.manual_seed(1)
    model = TranslationModel(config)
    with torch.no_grad():
        model.project.weight.mul_(3)
    return model


@pytest.fixture
def translator(config: Config, vocabulary: Vocabulary, model: TranslationModel) -> Translator:
    return Translator(config, vocabulary, PyTorchEngine(model), ("de", "en"))


@pytest.mark.filterwarnings("ignore:lines longer than")
@pytest.mark.parametrize("batch_tokens", [1, 20, 4096])
def test_order_is_kept(translator: Translator, batch_tokens: int) -> None:
    together = translator.translate(LINES, batch_tokens=batch_tokens)
    assert together == [translator.translate(line) for line in LINES]
    assert [bool(text) for text in together] == [bool(line.strip()) for line in LINES]
    assert len(set(together)) > 3


@pytest.mark.filterwarnings("ignore:lines longer than")
def test_one_line_for_each_whatever_it_holds(translator: Translator) -> None:
    texts = translator.translate(NASTY)
    assert len(texts) == len(NASTY)
    assert all(len(text.splitlines()) <= 1 for text in texts)
    assert texts[:3] == ["", "", ""]
    assert sum(map(bool, texts[3:])) > 3  # a model that knows nothing may well say nothing
    assert translator.translate([]) == []


def test_lines_may_come_one_by_one_and_a_text_is_no_list(translator: Translator) -> None:
    expected = translator.translate(["Hund", "die Wiese"])
    assert translator.translate(("Hund", "die Wiese")) == expected
    assert translator.translate(line for line in ("Hund", "die Wiese")) == expected
    with pytest.raises(LiteNmtError, match=r"each letter would be a line; give a list, or call translate\(\)"):
        translator.translate_all("Hund")


def test_generated_line_breaks_do_not_get_out(
    translator: Translator, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary, "decode", lambda tokens: "a\nb\u2028c")
    assert translator.translate("Hund") == "a b c"


def test_long_lines_are_translated_in_parts(translator: Translator, config: Config) -> None:
    line = "Ein Hund läuft über die Wiese . " * 30
    with pytest.warns(UserWarning, match="longer than 15 pieces") as caught:
        (translation,) = translator.translate_all([line], nbest=2, alignments=True)
    assert len(caught) == 1
    covered = len(translation.pieces)
    assert covered > 15 * 10
    for candidate in translation.candidates:
        assert candidate.alignment is not None
        assert [target for _, target in candidate.alignment] == list(range(len(candidate.pieces)))
        assert max(source for source, _ in candidate.alignment) >= covered - 15  # the last part was translated
    assert translation.candidates[0].score > translation.candidates[1].score


@pytest.mark.parametrize("line", ["x" * 5000, "Hund läuft " * 455, "😀" * 1250, "家" * 5000])
def test_five_thousand_characters(translator: Translator, line: str) -> None:
    with pytest.warns(UserWarning, match="in parts"):
        (translation,) = translator.translate_all([line], DecodeConfig(beam=1, max_length=4), alignments=True)
    alignment = translation.candidates[0].alignment
    assert alignment is not None
    assert alignment[-1][0] > len(translation.pieces) - 16


def test_lines_that_fit_are_left_whole(translator: Translator) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        translator.translate(LINES[:2])


def test_candidates(translator: Translator, model: TranslationModel, vocabulary: Vocabulary) -> None:
    translation, blank = translator.translate_all(["Ein Hund", ""], nbest=3, alignments=True)
    assert [c.text for c in blank.candidates] == [""]
    assert blank.candidates[0].pharaoh == ""
    assert len(translation.candidates) == 3
    scores = [c.score for c in translation.candidates]
    assert scores == sorted(scores, reverse=True)
    (source,) = vocabulary.encode_source(["Ein Hund"])
    x = torch.tensor([source])
    for candidate in translation.candidates:
        target = vocabulary.target.piece_to_id(list(candidate.pieces))
        with torch.no_grad():
            memory = model.memory(model.encode(x, x > 0))
            weights = model.alignment(torch.tensor([[BOS, *target]]), memory, x > 0)[0, : len(target), :-1]
        expected = [(int(row.argmax()), t) for t, row in enumerate(weights)]
        assert candidate.alignment == tuple(expected)
        assert candidate.pharaoh.split() == [f"{s}-{t}" for s, t in expected]
    (plain,) = translator.translate_all(["Ein Hund"])
    assert plain.candidates == (replace(translation.candidates[0], alignment=None),)


@pytest.mark.filterwarnings("ignore:lines longer than")
def test_load(translator: Translator, config: Config, vocabulary: Vocabulary, tmp_path: Path) -> None:
    weights = checkpoint.named_weights(model_of(translator.engine))
    checkpoint.save(tmp_path / "c", config, ("de", "en"), 1, {}, vocabulary, weights)
    loaded = lite_nmt.Translator.load(str(tmp_path / "c"), threads=torch.get_num_threads())
    assert loaded.translate(LINES) == translator.translate(LINES)
    assert loaded.languages == ("de", "en")
    with pytest.raises(LiteNmtError, match="no device 'gpu'"):
        Translator.load(tmp_path / "c", "gpu")
    with pytest.raises(LiteNmtError, match="holds no checkpoint"):
        Translator.load(tmp_path)


def test_importing_the_package_does_not_import_torch() -> None:
    code = "import sys, lite_nmt; assert lite_nmt.__version__; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(lite_nmt.__file__).parent.parent)
