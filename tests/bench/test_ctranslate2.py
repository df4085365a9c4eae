"""A converted Transformer against the original."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lite_nmt.bench.conversion import convert
from lite_nmt.bench.ctranslate2 import CTranslate2Model
from lite_nmt.bench.host import Worker
from lite_nmt.cli.bench import entries_of
from lite_nmt.config import Config, DecodeConfig, ModelConfig, StackConfig, VocabularyConfig
from lite_nmt.data.corpus import read_lines
from lite_nmt.data.vocabulary import EOS, PAD, Vocabulary, train_vocabulary
from lite_nmt.decode.hypothesis import length_limit
from lite_nmt.decode.search import search
from lite_nmt.decode.translator import Translator
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint
from lite_nmt.models.translation import TranslationModel

pytest.importorskip("ctranslate2")

ENCODER = StackConfig(layers=2, mixer="attention", heads=4, ffn=24)
DECODER = StackConfig(layers=1, mixer="attention", heads=2, ffn=20)
TRANSFORMER = ModelConfig(width=16, encoder=ENCODER, decoder=DECODER, cross_heads=2)
GREEDY = DecodeConfig(beam=1)
Save = Callable[..., Path]


@pytest.fixture(scope="session")
def vocabularies(corpus: Path) -> dict[bool, Vocabulary]:
    """A joint vocabulary, and one for each side."""

    def trained(joint: bool) -> Vocabulary:
        german, english = (read_lines(corpus / f"train.{language}") for language in ("de", "en"))
        return train_vocabulary(VocabularyConfig(joint=joint, source=380, target=400), german, english, seed=1)

    return {joint: trained(joint) for joint in (True, False)}


@pytest.fixture
def save(tmp_path: Path, vocabularies: dict[bool, Vocabulary]) -> Save:
    """Writes a checkpoint of random weights, every one of which matters, and returns its folder."""

    def write(model: ModelConfig, **decode: Any) -> Path:
        vocabulary = vocabularies[model.tie == "all"]
        sizes = vocabulary.source.get_piece_size(), vocabulary.target.get_piece_size()
        sides = VocabularyConfig(joint=model.tie == "all", source=sizes[0], target=sizes[1], max_length=30)
        config = Config(model, sides, decode=DecodeConfig(**decode))
        torch.manual_seed(1)
        built = TranslationModel(config)
        with torch.no_grad():
            for parameter in built.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
            built.project.weight.mul_(2)  # so that choices differ clearly
            built.project.weight[EOS].mul_(3)  # and translations end
        folder = tmp_path / "checkpoint"
        checkpoint.save(folder, config, ("de", "en"), 1, {}, vocabulary, checkpoint.named_weights(built))
        return folder

    return write


def sentences(types: int) -> list[list[int]]:
    draw = torch.Generator().manual_seed(2)
    lengths = torch.randint(1, 12, (20,), generator=draw).tolist()
    return [torch.randint(EOS + 1, types, (n,), generator=draw).tolist() for n in lengths]


def ours(folder: Path, sources: list[list[int]], decode: DecodeConfig) -> list[list[int]]:
    model, found = checkpoint.load(folder).model(), []
    for tokens in sources:
        source = torch.tensor([[*tokens, EOS]])
        found.append(list(search(model, source, source != PAD, decode)[0][0].tokens))
    return found


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize(("tie", "activation"), [("all", "relu"), ("output", "swish"), ("none", "relu")])
def test_greedy_translations_are_the_same(save: Save, tmp_path: Path, norm: str, tie: str, activation: str) -> None:
    folder = save(replace(TRANSFORMER, norm=norm, tie=tie, activation=activation))
    sources = sentences(types=380)
    convert(folder, tmp_path / "converted")
    model = CTranslate2Model.load(tmp_path / "converted")
    expected = ours(folder, sources, GREEDY)
    assert len({tuple(tokens) for tokens in expected}) > 10
    assert model.translate(sources, GREEDY) == expected
    assert model.translate(sources, GREEDY, batch=8) == expected


def test_beam_search_finds_the_same_where_it_ends_by_itself(save: Save, tmp_path: Path) -> None:
    folder = save(replace(TRANSFORMER, tie="none"))
    convert(folder, tmp_path / "converted")
    decode = DecodeConfig(beam=4, length_penalty=0.6)
    sources = sentences(types=380)
    expected = ours(folder, sources, decode)
    found = CTranslate2Model.load(tmp_path / "converted").translate(sources, decode)
    ended = [i for i, tokens in enumerate(expected) if len(tokens) < length_limit(len(sources[i]), decode)]
    assert len(ended) > 10
    assert [found[i] for i in ended] == [expected[i] for i in ended]


def test_int8_is_smaller(save: Save, tmp_path: Path) -> None:
    folder, sources = save(TRANSFORMER), sentences(types=380)
    sizes = {}
    for quantization in ("float32", "int8"):
        convert(folder, tmp_path / quantization, quantization)
        assert len(CTranslate2Model.load(tmp_path / quantization, quantization).translate(sources, GREEDY)) == 20
        sizes[quantization] = (tmp_path / quantization / "model.bin").stat().st_size
    assert sizes["int8"] < sizes["float32"] / 2


@pytest.mark.filterwarnings("ignore:lines longer than")
def test_it_is_measured_with_the_checkpoints_own_settings(save: Save, tmp_path: Path) -> None:
    folder = save(TRANSFORMER, beam=1, max_length=3)
    (tmp_path / "scratch").mkdir()
    lines = ["Der Hund schläft.", "Wir sehen ein Haus. " * 9]
    _, entry, _ = entries_of(str(folder), "ctranslate2", tmp_path / "scratch")
    expected = Translator.load(folder).translate(lines)
    (folder / "source.spm").unlink()  # a packed checkpoint has none
    worker = Worker(entry, 1)
    worker.ask("prepare", decode={}, lines=lines)
    assert worker.ask("text")["text"] == expected
    worker.stop()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (replace(TRANSFORMER, encoder=replace(ENCODER, mixer="lightconv")), "model.encoder.mixer"),
        (replace(TRANSFORMER, decoder=replace(DECODER, mixer="average")), "model.decoder.mixer"),
        (replace(TRANSFORMER, encoder=replace(ENCODER, windows=(3,))), "model.encoder.windows"),
        (replace(TRANSFORMER, encoder=replace(ENCODER, kept_heads=(3,))), "heads were pruned"),
        (replace(TRANSFORMER, cross_heads=4), "model.cross_heads is 4"),
    ],
)
def test_what_ctranslate2_does_not_know_is_refused(
    save: Save, tmp_path: Path, model: ModelConfig, message: str
) -> None:
    with pytest.raises(LiteNmtError, match=message):
        convert(save(model), tmp_path / "converted")
    assert not (tmp_path / "converted").exists()


def test_bad_arguments_are_refused(save: Save, tmp_path: Path) -> None:
    folder = save(TRANSFORMER)
    with pytest.raises(LiteNmtError, match="must be one of float32, int8"):
        convert(folder, tmp_path / "converted", "int3")
    with pytest.raises(LiteNmtError, match="File exists; name a new folder"):
        convert(folder, folder)
    with pytest.raises(LiteNmtError, match="cannot open"):
        CTranslate2Model.load(tmp_path / "nothing")
    convert(folder, tmp_path / "converted")
    with pytest.raises(LiteNmtError, match="cannot open"):
        CTranslate2Model.load(tmp_path / "converted", "int3")
    with pytest.raises(LiteNmtError, match='"power" alone'):
        CTranslate2Model.load(tmp_path / "converted").translate([[5]], DecodeConfig(penalty="gnmt"))
