"""The closed form against the papers' printed tables, and against the models themselves."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
import torch

from lite_nmt.config import CONVOLUTIONS, Config, from_dict, load_preset, preset_names
from lite_nmt.models.language import LanguageModel
from lite_nmt.models.translation import TranslationModel
from lite_nmt.profiling.cost import cost

# Lite Transformer, Tables 1 and 2 and Figure 5: what the paper prints, and what our convention gives.
ROWS = [
    # preset, printed Mult-Adds, ours; printed parameters, ours
    ("iwslt-transformer-63m", "63M", "63.13M", "2.8M", "2.836M"),
    ("iwslt-transformer-139m", "139M", "138.93M", "5.7M", "5.729M"),
    ("iwslt-transformer-215m", "215M", "215.14M", "8.5M", "8.544M"),
    ("iwslt-lightconv-52m", "52M", "52.54M", "2.5M", "2.541M"),
    ("iwslt-lightconv-115m", "115M", "116.42M", "5.1M", "5.064M"),
    ("iwslt-lightconv-204m", "204M", "205.36M", "8.4M", "8.423M"),
    ("iwslt-lite-transformer-54m", "54M", "54.71M", "2.8M", "2774704"),
    ("iwslt-lite-transformer-119m", "119M", "120.08M", "5.4M", "5428784"),
    ("iwslt-lite-transformer-209m", "209M", "210.80M", "8.9M", "8927664"),
    ("wmt-transformer-87m", "87M", "86.72M", "2.8M", "2.777M"),
    ("wmt-transformer-338m", "338M", "338.60M", "11.1M", "11.059M"),
    ("wmt-transformer-527m", "527M", "526.46M", "17.3M", "17.265M"),
    ("wmt-transformer-base", "", "1337.8M", "44.1M", "44.138M"),
    ("wmt-lite-transformer-90m", "90M", "90.66M", "2.9M", "2884400"),
    ("wmt-lite-transformer-360m", "360M", "360.61M", "11.7M", "11739792"),
    ("wmt-lite-transformer-527m", "527M", "528.75M", "17.3M", "17283616"),
]


def read(text: str) -> tuple[float, float]:
    """A printed figure, and half of its last digit."""
    digits, unit = (text[:-1], {"M": 1e6, "G": 1e9}[text[-1]]) if text[-1] in "MG" else (text, 1.0)
    places = len(digits.partition(".")[2])
    return float(digits) * unit, unit * 10.0**-places / 2


def check(value: float, ours: str, published: str) -> None:
    expected, half_digit = read(ours)
    assert value == pytest.approx(expected, rel=0, abs=half_digit)
    if published:
        printed, half_digit = read(published)
        assert value == pytest.approx(printed, rel=0.02, abs=half_digit)


@pytest.mark.parametrize(("preset", "published", "ours", "published_parameters", "parameters"), ROWS)
def test_table_rows(preset: str, published: str, ours: str, published_parameters: str, parameters: str) -> None:
    total = cost(load_preset(preset))
    check(total.mult_adds(), ours, published)
    check(total.parameters(), parameters, published_parameters)


@pytest.mark.parametrize(
    ("preset", "length", "published", "ours"),
    [
        # Lite Transformer, Table 4: 60 target tokens.
        ("cnndm-transformer", 30, "2.0G", "2.02G"),
        ("cnndm-transformer", 100, "3.6G", "3.64G"),
        ("cnndm-transformer", 1000, "29.9G", "29.88G"),
        ("cnndm-lite-transformer", 30, "0.8G", "0.801G"),
        ("cnndm-lite-transformer", 100, "1.5G", "1.458G"),
        ("cnndm-lite-transformer", 1000, "12.5G", "12.50G"),
    ],
)
def test_summarisation_rows(preset: str, length: int, published: str, ours: str) -> None:
    check(cost(load_preset(preset), length, 60).mult_adds(), ours, published)


@pytest.mark.parametrize(
    ("preset", "published"),
    [
        # Pay Less Attention, Tables 1 and 3; TaLK Convolutions, Table 1: parameters with the embeddings.
        ("wmt-dynamicconv", "213M"),
        ("wmt-transformer-big", "210M"),
        ("wmt-transformer-big-windows", "210M"),
        ("ablation-cnn", "208M"),
        ("ablation-depthwise", "195M"),
        ("ablation-depthwise-kernels", "195M"),
        ("ablation-depthwise-dropconnect", "195M"),
        ("ablation-depthwise-shared", "195M"),
        ("ablation-lightconv", "195M"),
        ("ablation-dynamicconv", "200M"),
        ("ablation-average-decoder", "260M"),
        ("ablation-average", "310M"),
        ("wmt-talk", "209M"),
    ],
)
def test_full_size_parameters(preset: str, published: str) -> None:
    assert cost(load_preset(preset)).parameters("full") == pytest.approx(read(published)[0], rel=0.005)


@pytest.mark.parametrize(("width", "hidden"), [("90m", "196.6M"), ("360m", "401.1M"), ("527m", "487.6M")])
def test_full_count_shows_the_output_projection(width: str, hidden: str) -> None:
    total = cost(load_preset(f"wmt-lite-transformer-{width}"))
    check(total.mult_adds("full") - total.mult_adds("paper"), hidden, "")


def check_parameters(config: Config) -> None:
    """Both counts against the model itself, built without memory."""
    with torch.device("meta"):
        model = LanguageModel(config) if config.task == "lm" else TranslationModel(config)
    full = sum(p.numel() for p in model.parameters())
    sides = (model.target,) if isinstance(model, LanguageModel) else (model.source, model.target)
    tables = {id(p): p.numel() for side in sides for p in side.parameters()}
    total = cost(config)
    assert total.parameters("full") == full
    assert total.parameters("paper") == full - sum(tables.values())


@pytest.mark.parametrize("preset", preset_names())
def test_parameters_of_each_preset(preset: str) -> None:
    check_parameters(load_preset(preset))


@pytest.mark.parametrize("mixer", ["attention", "average", "cnn", *CONVOLUTIONS, *(f"lsra-{c}" for c in CONVOLUTIONS)])
def test_parameters_of_each_combination(mixer: str) -> None:
    kind, _, conv = mixer.partition("-")
    for glu, heads, norm, tie, taps in itertools.product(
        (False, True), (0, 2), ("post", "pre"), ("all", "output", "none"), (1, 2, 3, 8)
    ):
        side: dict[str, Any] = {"mixer": kind, "heads": 2, "glu": glu, "conv_heads": heads, "kernels": [taps]}
        side |= {"layers": 1, "ffn": 12} | ({"conv": conv} if conv else {})
        model = {"width": 8, "cross_heads": 2, "norm": norm, "tie": tie}
        table = {**model, "encoder": {**side, "layers": 2}, "decoder": side}
        sizes = {"joint": tie == "all", "source": 11, "target": 11 if tie == "all" else 9}
        check_parameters(from_dict(Config, {"model": table, "vocabulary": sizes}))


@pytest.mark.parametrize("mixer", ["attention", "lsra"])
@pytest.mark.parametrize("ffn", [0, 12])
def test_parameters_with_persistent_vectors(mixer: str, ffn: int) -> None:
    side = {"mixer": mixer, "heads": 2, "conv_heads": 2, "layers": 2, "ffn": ffn, "persistent": 3}
    check_parameters(from_dict(Config, {"model": {"width": 8, "cross_heads": 2, "encoder": side, "decoder": side}}))


def test_small_language_models_need_the_same() -> None:
    presets = [name for name in preset_names() if name.startswith("wikitext2-")]
    assert len(presets) == 6
    spent = [cost(load_preset(name), target_length=128).mult_adds() for name in presets]
    assert spent == pytest.approx([176.16e6] * 6, rel=0.003)
    recipes = [dataclasses.replace(load_preset(name).train, span_loss=0.0) for name in presets]
    assert len(set(recipes)) == 1


@pytest.mark.parametrize("preset", ["multi30k-transformer", "multi30k-lightconv", "multi30k-talk", "ablation-cnn"])
def test_mult_adds_of_linear_layers_and_convolutions(preset: str) -> None:
    """What passes through the layers of a model, against the closed form less the products without weights."""
    config = load_preset(preset, {"model": {"width": 16, "cross_heads": 4}})
    model = TranslationModel(config).eval()
    source, target, counted = 7, 5, 0

    def count(layer: torch.nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        nonlocal counted
        weight = layer.get_parameter("weight")
        counted += output.numel() * weight[0].numel()

    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear | torch.nn.Conv1d):
            layer.register_forward_hook(count)
    tokens = torch.zeros(1, source, dtype=torch.long)
    keep = torch.ones_like(tokens, dtype=torch.bool)
    with torch.inference_mode():
        model.project(model(tokens, keep, tokens[:, :target]))
    width, products = config.model.width, 0
    for stack, steps in ((config.model.encoder, source), (config.model.decoder, target)):
        for i in range(stack.layers):
            if stack.mixer == "attention":
                products += 2 * steps * steps * width
            elif stack.mixer != "cnn":
                products += steps * stack.kernel(i) * width
    products += config.model.decoder.layers * 2 * source * target * width
    assert cost(config, source, target).mult_adds("full") == counted + products


def test_parts_sum_up() -> None:
    total = cost(load_preset("wmt-lite-transformer-90m"))
    assert sum(k.mult_adds for k in total.by_kind().values()) == total.mult_adds("full")
    assert sum(k.parameters for k in total.by_kind().values()) == total.parameters("full")


def test_activations_by_hand() -> None:
    """Every kind of part at sizes of which no two are alike, in float32 values."""

    def found(encoder: dict[str, Any], decoder: dict[str, Any], **model: Any) -> dict[str, int]:
        sides = {"encoder": {"layers": 1, **encoder}, "decoder": {"layers": 2, **decoder}}
        table = {"width": 8, "cross_heads": 2, **model, **sides}
        config = from_dict(Config, {"model": table, "vocabulary": {"source": 100, "target": 100}})
        return {part.name: part.activations // 4 for part in cost(config, 7, 5, batch=2, beam=3).parts}

    attention = {"mixer": "attention", "heads": 2, "ffn": 3}
    parts = found(attention, {**attention, "ffn": 40})
    source, target, width = 2 * 7, 2 * 3 * 5, 8  # rows of each side
    memory = 2 * 2 * source * width  # keys and values of two layers
    assert parts["encoder.0.mixer"] == source * (width + 4 * width)  # residual; query, key, value, result
    assert parts["encoder.0.ffn"] == source * (width + 3 + width)  # residual; inner, result
    assert parts["decoder.0.mixer"] == memory + target * 5 * width
    assert parts["decoder.0.cross"] == memory + target * 3 * width  # residual, query, result
    # The last layer's keys and values are made while the encoder's result and the other layer's wait.
    assert parts["decoder.1.cross"] == max(source * width * (1 + 4 + 2), memory + target * 3 * width)
    assert parts["decoder.1.ffn"] == memory + target * (width + 2 * 40)  # before and after the activation
    assert parts["decoder.1.feed.norm"] == memory + target * 3 * width
    assert parts["embedding"] == target * 3 * width
    assert parts["project"] == target * (width + 100)

    wide = found(attention, attention, width=200, cross_heads=4)
    assert wide["decoder.1.cross"] == max(source * 200 * 7, 4 * source * 200 + target * 600)
    long = cost(load_preset("demo"), 400, 2).parts
    width = load_preset("demo").model.width
    layers = load_preset("demo").model.decoder.layers
    last = next(part for part in long if part.name == f"decoder.{layers - 1}.cross")
    assert last.activations == 4 * 400 * width * (1 + 2 * layers + 2)
    assert next(part for part in long if part.name == "embedding").activations == 4 * 400 * 3 * width

    conv = {"kernels": [3], "conv_heads": 2, "ffn": 3}
    for mixer, glu, inside in (
        ("lightconv", False, 2 * width),  # before and after padding is zeroed
        ("lightconv", True, 3 * width),  # into and out of GLU
        ("dynamicconv", False, 2 * width + 6),  # input and result of the product, and its taps
        ("talk", True, 3 * width),
    ):
        parts = found({**conv, "mixer": mixer, "glu": glu}, attention, width=width, cross_heads=4)
        assert parts["encoder.0.mixer"] == source * (width + inside)
    parts = found({**conv, "mixer": "dynamicconv", "kernels": [31], "conv_heads": 4}, attention)
    assert parts["encoder.0.mixer"] == source * (8 + 8 + 2 * 4 * 31)  # taps before and after they are normalised
    parts = found({**conv, "mixer": "cnn", "glu": True}, attention)
    assert parts["encoder.0.mixer"] == source * 8 + 2 * max(8 * (7 + 2) + 7 * 16, 7 * 24)  # padded, result; GLU
    parts = found({**conv, "mixer": "average", "ffn": 40}, attention)
    assert parts["encoder.0.mixer"] == source * (8 + 8 + 2 * 40)
    parts = found({**conv, "mixer": "average"}, attention)
    assert parts["encoder.0.mixer"] == source * (8 + 5 * 8)
    parts = found({**conv, "mixer": "lsra", "heads": 2, "conv": "lightconv"}, attention)
    assert parts["encoder.0.mixer.attention"] == source * (8 + 4 * 4)
    assert parts["encoder.0.mixer.convolution"] == source * (8 + 4 + 2 * 4)  # attention's result waits
