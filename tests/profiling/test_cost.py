"""The closed form against the papers' printed tables, and against the models themselves."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from lite_nmt.config import CONVOLUTIONS, Config, from_dict, load_preset, preset_names
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
        model = TranslationModel(config)
    full = sum(p.numel() for p in model.parameters())
    tables = {id(table): table.numel() for table in (model.source.weight, model.target.weight)}
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
