"""The figures behind the pictures, and what the pictures show of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lite_nmt.config import ModelConfig, StackConfig, load_preset
from lite_nmt.figures import encode
from lite_nmt.profiling import plots
from lite_nmt.profiling.cost import cost
from lite_nmt.profiling.runs import FAMILIES, Run, family


def run(mixer: str, mult_adds: int, bleu: float, languages: str = "de-en") -> Run:
    stack = StackConfig(mixer=mixer)
    return Run(Path(mixer), family(ModelConfig(encoder=stack, decoder=stack)), languages, mult_adds, bleu)


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def points(axes: Axes) -> list[list[tuple[float, float]]]:
    return [[(x, y) for x, y in np.asarray(line.get_xydata()).tolist()] for line in axes.lines]


def test_one_block_of_each_kind() -> None:
    # N = 30, d = 512: 4Nd^2 + 2N^2d and 2 * 4Nd^2 (Lite Transformer, section 3).
    attention = 4 * 30 * 512**2 + 2 * 30**2 * 512
    half = 4 * 30 * 256**2 + 2 * 30**2 * 256
    convolution = 30 * (256 * 512 + 256**2 + 31 * 256 + 256 * 4 * 31)
    assert plots.blocks() == {
        "Transformer, FFN 4d": {"attention": attention, "ffn": 8 * 30 * 512**2},
        "flattened, FFN d": {"attention": attention, "ffn": 2 * 30 * 512**2},
        "LSRA, FFN d": {"attention": half, "convolution": convolution, "ffn": 2 * 30 * 512**2},
    }


def test_presets_sum_to_their_cost() -> None:
    names = ["multi30k-talk", "wmt-lite-transformer-90m"]
    found = plots.presets(names, 100, 20)
    assert list(found) == names
    for name in names:
        assert sum(found[name].values()) == cost(load_preset(name), 100, 20).mult_adds()
    assert set(found["multi30k-talk"]) == {"convolution", "cross-attention", "ffn"}


def test_the_models_compared_cost_the_same_at_30_tokens() -> None:
    spent = [cost(load_preset(name)).mult_adds() for name in plots.EQUAL]
    assert max(spent) < 1.01 * min(spent)
    assert len({family(load_preset(name).model) for name in plots.EQUAL}) == 5


def test_growth_is_linear_in_convolutions_and_quadratic_with_attention() -> None:
    assert (plots.LENGTHS[0], plots.LENGTHS[-1]) == (10, 10_000)
    for model in plots.growth():
        config = load_preset(model.preset)
        assert model.whole[20] == cost(config, 1000, 1000).mult_adds()
        times = model.encoder[-1] / model.encoder[20]  # from 1,000 to 10,000 tokens
        if config.model.encoder.mixer in ("attention", "lsra"):
            assert times > 50
        else:
            assert times == 10
        assert model.whole[-1] / model.whole[20] > 50  # of the cross-attention


@pytest.mark.parametrize(
    ("encoder", "decoder", "name"),
    [
        ("lsra", "lsra", "Lite Transformer"),
        ("talk", "talk", "TaLK"),
        ("attention", "average", "Transformer + average attention"),
        ("unheard of", "unheard of", "unheard of"),
    ],
)
def test_families(encoder: str, decoder: str, name: str) -> None:
    model = ModelConfig(encoder=StackConfig(mixer=encoder), decoder=StackConfig(mixer=decoder))
    assert family(model).name == name


def test_colours_and_markers_differ() -> None:
    assert len({f.colour for f in FAMILIES.values()}) == len({f.marker for f in FAMILIES.values()}) == 7
    assert len(set(plots.KINDS.values())) == len(plots.KINDS)


def test_breakdown_draws_each_part_to_scale() -> None:
    bars = {"one": {"ffn": 60, "attention": 40}, "two": {"ffn": 30, "unheard of": 20}}
    figure = plots.draw_breakdown(bars, "caption")
    [axes] = figure.axes
    drawn = [(p.get_x(), p.get_width()) for p in axes.patches if isinstance(p, Rectangle) and p.get_width()]
    assert drawn == [(0, 40), (40, 60), (0, 30), (30, 20)]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["one", "two"]
    assert {"attention\n40", "FFN\n60", "FFN\n30", "unheard of\n20", "100", "50"} <= set(texts(axes))
    assert not figure.legends  # every kind is named in its bar


def test_breakdown_has_a_legend_where_a_name_finds_no_room() -> None:
    figure = plots.draw_breakdown({"one": {"ffn": 98_000_000, "attention": 2_000_000}}, "caption")
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["attention", "FFN"]
    assert texts(figure.axes[0]) == ["", "FFN\n98M", "100M"]


def test_breakdown_of_absurd_figures() -> None:
    figure = plots.draw_breakdown(plots.presets(["demo"], 10**9, 10**9), "caption")
    assert len(encode(figure, "png")) > 1000


def test_growth_is_drawn_per_token_and_named() -> None:
    models = plots.growth()
    left, right = plots.draw_growth(models).axes
    for axes, passes in ((left, [m.encoder for m in models]), (right, [m.whole for m in models])):
        assert axes.get_xscale() == axes.get_yscale() == "log"
        for line, spent in zip(points(axes), passes, strict=True):
            assert line == [(n, s / n) for n, s in zip(plots.LENGTHS, spent, strict=True)]
        assert texts(axes) == ["Transformer", "Lite Transformer", "LightConv", "DynamicConv", "TaLK"]


def test_bleu_joins_the_models_of_a_family() -> None:
    found = [run("lsra", 300, 33.0), run("attention", 200, 29.0), run("lsra", 100, 30.0)]
    [axes] = plots.draw_bleu(found).axes
    assert points(axes) == [[(100, 30), (300, 33)], [(200, 29)]]
    assert texts(axes) == ["Lite Transformer", "Transformer"]
    assert axes.get_ylabel() == "validation BLEU (greedy), de-en"
    [axes] = plots.draw_bleu([*found, run("talk", 200, 30.0, "en-de")]).axes
    assert axes.get_ylabel() == "validation BLEU (greedy)"


def test_small_differences_look_small() -> None:
    [axes] = plots.draw_bleu([run("lsra", 1_000_000, 30.0), run("talk", 1_001_000, 30.1)]).axes
    low, high = axes.get_xlim()
    assert high - low == pytest.approx(0.4 * 1_001_000)
    assert axes.get_ylim() == pytest.approx((29.05, 31.05))


def test_names_are_moved_apart_in_order() -> None:
    assert plots._apart([0.5, 0.9, 0.1], 0.05) == [0.5, 0.9, 0.1]
    low, high, middle = plots._apart([0.3, 0.32, 0.31], 0.05)
    assert (low, middle, high) == pytest.approx((0.26, 0.31, 0.36), abs=1e-6)


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_same_picture_has_the_same_bytes(kind: str) -> None:
    def draw() -> Figure:
        return plots.draw_bleu([run("lsra", 100, 30.0), run("talk", 200, 31.0)])

    assert encode(draw(), kind) == encode(draw(), kind)


def test_svg_holds_text_as_text_and_no_date() -> None:
    content = encode(plots.draw_bleu([run("lsra", 100, 30.0)]), "svg").decode()
    assert ">Lite Transformer</text>" in content
    assert "<dc:date>" not in content
