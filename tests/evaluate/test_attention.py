"""What is noted of a model is what its mixers did, at their own inputs."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from lite_nmt.config import Config, from_dict
from lite_nmt.data.vocabulary import BOS, Vocabulary, train_vocabulary
from lite_nmt.decode.pytorch import PyTorchEngine, model_of
from lite_nmt.decode.translator import Translator
from lite_nmt.errors import LiteNmtError
from lite_nmt.evaluate.attention import CROSS, DECODER, ENCODER, distance, even, near, read
from lite_nmt.models.translation import TranslationModel
from lite_nmt.modules.convolution import Convolution, TalkTaps
from lite_nmt.modules.layer import EncoderLayer

TEXT = ["Ein Hund läuft über die Wiese .", "A dog runs across the meadow ."]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    config = from_dict(Config, {"vocabulary": {"target": 330}})
    return train_vocabulary(config.vocabulary, iter(TEXT[:1]), iter(TEXT[1:]), seed=1)


def translator(vocabulary: Vocabulary, encoder: dict[str, Any], decoder: dict[str, Any], **model: Any) -> Translator:
    shape = {"layers": 2, "heads": 2, "conv_heads": 2, "kernels": [3, 7], "ffn": 16}
    types = vocabulary.target.get_piece_size()
    table = {
        "model": {"width": 16, "cross_heads": 2, "encoder": shape | encoder, "decoder": shape | decoder, **model},
        "vocabulary": {"source": types, "target": types, "max_length": 64},
        "decode": {"beam": 2, "max_length": 5},
    }
    config = from_dict(Config, table)
    torch.manual_seed(1)
    return Translator(config, vocabulary, PyTorchEngine(TranslationModel(config)), ("de", "en"))


def test_distance_and_share() -> None:
    for length in (1, 2, 7):
        assert distance(torch.eye(length)) == 0
        assert near(torch.eye(length)) == 1
        assert distance(even(ENCODER, length)) == pytest.approx((length**2 - 1) / (3 * length))
        assert distance(even(DECODER, length)) == pytest.approx((length - 1) / 4)
    corner = torch.zeros(6, 6)
    corner[0, 5], corner[3, 0], corner[2, 2] = 2.0, 1.0, 1.0
    assert distance(corner) == pytest.approx((2 * 5 + 3) / 4)
    assert near(corner) == pytest.approx(0.5)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(
    ("encoder", "decoder", "branches"),
    [
        ({"mixer": "attention"}, {"mixer": "average"}, ["attention", "average"]),
        ({"mixer": "cnn"}, {"mixer": "dynamicconv"}, ["cnn", "dynamicconv"]),
        ({"mixer": "lightconv", "weight_norm": "tanh"}, {"mixer": "cnn"}, ["lightconv", "cnn"]),  # taps may be negative
        ({"mixer": "lsra"}, {"mixer": "lsra", "conv": "talk"}, ["attention", "lightconv", "attention", "talk"]),
        ({"mixer": "talk"}, {"mixer": "attention", "windows": [2]}, ["talk", "attention"]),
    ],
)
def test_maps_are_those_of_each_layer(
    vocabulary: Vocabulary, encoder: dict[str, Any], decoder: dict[str, Any], branches: list[str], norm: str
) -> None:
    model = translator(vocabulary, encoder, decoder, norm=norm)
    reading = read(model, "m", "Ein Hund", "A dog runs")
    assert [maps.branch for maps in reading.maps] == [*branches, "attention"]
    source = torch.tensor(vocabulary.encode_source(["Ein Hund"]))
    written = vocabulary.encode_target(["A dog runs"])[0]
    target = torch.tensor([[BOS, *written[:-1]]])
    keep = torch.ones_like(source, dtype=torch.bool)
    with torch.inference_mode():
        x = model_of(model.engine).source(source, torch.arange(source.shape[1]))
        for i, layer in enumerate(model_of(model.engine).encoder):
            assert isinstance(layer, EncoderLayer)
            mixer: Any = layer.mixer
            halves = layer.mix.enter(x).chunk(2, -1) if encoder["mixer"] == "lsra" else (layer.mix.enter(x),)
            parts = (mixer.attention, mixer.convolution) if encoder["mixer"] == "lsra" else (mixer,)
            for maps, part, half in zip(reading.of(ENCODER), parts, halves, strict=True):
                torch.testing.assert_close(maps.layers[i], part.weights(half, keep)[0].abs().mean(0))
            x = layer(x, keep)
        memory = model_of(model.engine).memory(model_of(model.engine).encode(source, keep))
        [cross] = reading.of(CROSS)
        torch.testing.assert_close(cross.layers[-1], model_of(model.engine).alignment(target, memory, keep)[0])
    for maps in reading.of(DECODER):
        assert not maps.layers.triu(1).any()
        assert (maps.layers.diagonal(dim1=1, dim2=2) > 0).all()
    labels = reading.labels(CROSS)
    assert "".join(labels[0]).replace("▁", " ") == " A dog runs</s>"
    assert "".join(labels[1]).replace("▁", " ") == " Ein Hund</s>"
    assert reading.labels(DECODER)[0] == ("<s>", *labels[0][:-1])
    # Nothing stays hooked to the model.
    assert not any(module._forward_pre_hooks for module in model_of(model.engine).modules())


@pytest.mark.parametrize(("bias", "share"), [(30.0, 1.0), (0.0, 0.5), (-30.0, 0.0)])
def test_windows_of_talk(vocabulary: Vocabulary, bias: float, share: float) -> None:
    model = translator(vocabulary, {"mixer": "lsra", "conv": "talk", "kernels": [4, 7]}, {"mixer": "talk"})
    for module in model_of(model.engine).modules():
        if isinstance(module, Convolution) and isinstance(module.producer, TalkTaps):
            torch.nn.init.zeros_(module.producer.offsets.weight)
            torch.nn.init.constant_(module.producer.offsets.bias, bias)
    reading = read(model, "m", "Ein Hund", "A dog")
    reaches = [maps.windows for maps in reading.maps]
    assert reaches[0] is None
    assert reaches[3] is None
    # K taps reach K - 1 steps: 2 and 3 to the left and 1 and 3 to the right, in the decoder all to the left.
    for windows, expected in zip(reaches[1:3], ([[2, 1], [3, 3]], [[2, 0], [6, 0]]), strict=True):
        assert windows is not None
        torch.testing.assert_close(windows, share * torch.tensor(expected).float()[:, None, :].expand(windows.shape))


def test_the_models_own_translation(vocabulary: Vocabulary) -> None:
    model = translator(vocabulary, {}, {})
    [translation] = model.translate_all(["Ein Hund"])
    reading = read(model, "m", " Ein\tHund ")
    assert reading.target == translation.text
    assert reading.written == (*translation.candidates[0].pieces, "</s>")


def test_refusals(vocabulary: Vocabulary) -> None:
    model = translator(vocabulary, {}, {"layers": 51})
    with pytest.raises(LiteNmtError, match=r"m has 51 layers; at most 50"):
        read(model, "m", "Ein Hund")
    model = translator(vocabulary, {}, {})
    for blank in ("", " \t\n"):
        with pytest.raises(LiteNmtError, match="the sentence is empty"):
            read(model, "m", blank)
        with pytest.raises(LiteNmtError, match="the target is empty"):
            read(model, "m", "Ein Hund", blank)
    with pytest.raises(LiteNmtError, match=r"the sentence has \d+ pieces; give one of at most 63"):
        read(model, "m", "Hund " * 64)
    with pytest.raises(LiteNmtError, match=r"the target has \d+ pieces; give one of at most 200"):
        read(model, "m", "Hund", "dog " * 201)
    talkative = dataclasses.replace(model.config.decode, max_length=201, min_length=201)
    model.config = dataclasses.replace(model.config, decode=talkative)
    with pytest.raises(LiteNmtError, match="m translates to 201 pieces; give a target of at most 200"):
        read(model, "m", "Hund")
    torch.nn.init.constant_(model_of(model.engine).target.weight, torch.nan)
    with pytest.raises(LiteNmtError, match="not finite numbers"):
        read(model, "m", "Hund", "dog")
