"""Every shape fits, none could be wider, and the order is what was asked."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from lite_nmt.cli import search as cli
from lite_nmt.config import Config, from_dict, load_preset
from lite_nmt.errors import LiteNmtError
from lite_nmt.profiling import search
from lite_nmt.profiling.budget import BUDGET_PRESET, MOBILE_PARAMETERS, widest
from lite_nmt.profiling.cost import cost
from lite_nmt.profiling.predict import CortexA72
from lite_nmt.profiling.search import FAMILIES, KERNELS, Shape, as_json, fitting, ranked, shapes

BASE = load_preset(BUDGET_PRESET)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two depths and one ratio: 12 shapes of a family, 4 of the Transformer."""
    monkeypatch.setattr(search, "DEPTHS", ((3, 3), (6, 1)))
    monkeypatch.setattr(search, "FFN_RATIOS", (2,))


def test_the_command_line_knows_the_families() -> None:
    assert tuple(FAMILIES) == cli.FAMILIES


def test_shapes_are_all_different() -> None:
    found = list(shapes(tuple(FAMILIES)))
    assert len(found) == len(set(found)) == 13 * 3 * 2 * (4 * 3 + 1)
    depths = {(s.encoder_layers, s.decoder_layers) for s in found}
    assert {(6, 6), (8, 4), (10, 2), (12, 1), (10, 1), (6, 3), (6, 1)} <= depths


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("count", ["paper", "full"])
@pytest.mark.parametrize("family", FAMILIES)
def test_each_fits_and_none_could_be_wider(family: str, count: str) -> None:
    budget = 60_000_000
    found = dict(fitting(budget, [family], count))
    for shape in shapes([family]):
        if shape not in found:
            assert cost(shape.config(shape.widths()[0], BASE)).mult_adds(count) > budget
    assert len(found) > 1
    for shape, config in found.items():
        total = cost(config)
        assert total.mult_adds(count) <= budget
        widths = shape.widths()
        wider = cost(shape.config(widths[widths.index(config.model.width) + 1], BASE))
        assert wider.mult_adds(count) > budget


@pytest.mark.usefixtures("few")
def test_at_large_budgets_parameters_bind() -> None:
    for shape, config in fitting(10**9):
        assert cost(config).parameters() <= MOBILE_PARAMETERS
        widths = shape.widths()
        assert cost(shape.config(widths[widths.index(config.model.width) + 1], BASE)).parameters() > MOBILE_PARAMETERS


@pytest.mark.parametrize("shape", list(shapes(tuple(FAMILIES)))[::29], ids=str)
def test_a_shape_is_a_whole_configuration(shape: Shape) -> None:
    for width in shape.widths()[:4]:
        config = shape.config(width, BASE)
        assert from_dict(Config, config.to_dict()) == config
        model = config.model
        assert width % 8 == 0
        mixed = width // 2 if shape.family == "lite-transformer" else width
        for side, layers in ((model.encoder, shape.encoder_layers), (model.decoder, shape.decoder_layers)):
            assert (side.layers, side.mixer, side.ffn) == (layers, FAMILIES[shape.family], shape.ffn_ratio * width)
            assert mixed // side.heads >= 16
            assert mixed // side.conv_heads >= 16
            assert mixed % side.heads == 0
        assert model.cross_heads == shape.heads


def test_cost_grows_with_width() -> None:
    """What bisection relies on."""
    for shape in list(shapes(tuple(FAMILIES)))[::97]:
        totals = [cost(shape.config(width, BASE)) for width in shape.widths()[:12]]
        for figures in ([t.mult_adds() for t in totals], [t.parameters("full") for t in totals]):
            assert figures == sorted(set(figures))


def test_kernels_follow_the_papers() -> None:
    light = Shape("lightconv", 6, 6, 1, 4, "paper").config(128, BASE).model
    assert light.encoder.kernels == light.decoder.kernels == KERNELS["paper"] == (3, 7, 15, 31)
    talk = Shape("talk", 6, 6, 1, 4, "paper").config(128, BASE).model
    preset = load_preset("multi30k-talk").model
    assert (talk.encoder.kernels, talk.decoder.kernels) == (preset.encoder.kernels, preset.decoder.kernels)
    assert (talk.activation, light.activation) == ("swish", "relu")


def test_the_papers_own_shape_is_the_one_that_train_takes() -> None:
    """``lite-nmt train --budget`` widens 6+6 layers, ffn = width, 4 heads, the papers' kernels."""
    found = dict(fitting(100_000_000))
    taken, expected = found[Shape("lite-transformer", 6, 6, 1, 4, "paper")], widest(100_000_000)
    assert (taken.model.width, taken.train) == (expected.model.width, expected.train)
    assert cost(taken).mult_adds() == cost(expected).mult_adds()


class ByWidth:
    """A target on which the wider model is the faster one."""

    label, threads, caption = "invented ms", 2, "Invented."

    def predict(self, config: Config) -> float:
        return 1e6 / config.model.width


@pytest.mark.usefixtures("few")
def test_ranks() -> None:
    models = fitting(60_000_000, tuple(FAMILIES))
    fastest = ranked(models, ByWidth())
    assert len(fastest) == len(models)
    keys = [(c.milliseconds, -c.total.mult_adds()) for c in fastest]
    assert keys == sorted(keys)
    assert len({taken for taken, _ in keys}) < len(keys)  # so that ties were put in order too
    fullest = ranked(models, ByWidth(), by="mult-adds", count="full")
    full = [(-c.total.mult_adds("full"), c.milliseconds) for c in fullest]
    assert full == sorted(full)
    assert fullest != fastest


@pytest.mark.usefixtures("few")
def test_each_keeps_the_best_of_a_family_and_depths() -> None:
    models = fitting(60_000_000, ["lightconv", "transformer"])
    every, one, two = (ranked(models, CortexA72(), each=n) for n in (None, 1, 2))
    assert (len(every), len(one), len(two)) == (16, 4, 8)
    assert one[0] == every[0]
    for kept in one:
        alike = [
            c
            for c in every
            if (c.shape.family, c.shape.encoder_layers) == (kept.shape.family, kept.shape.encoder_layers)
        ]
        assert kept == alike[0]


@pytest.mark.usefixtures("few")
def test_names_and_plain_data() -> None:
    best = ranked(fitting(60_000_000, tuple(FAMILIES)), ByWidth())
    assert len({c.name for c in best}) == len(best)
    data = as_json(best, ByWidth())
    assert (data["threads"], data["milliseconds"], data["caption"]) == (2, "invented ms", "Invented.")
    row, first = data["shapes"][0], best[0]
    assert row["name"] == first.name
    assert row["mult_adds"] == {"paper": first.total.mult_adds(), "full": first.total.mult_adds("full")}
    assert (row["family"], row["width"], row["milliseconds"]) == (
        first.shape.family,
        first.config.model.width,
        first.milliseconds,
    )


@pytest.mark.usefixtures("few")
def test_settings_are_laid_under_every_shape() -> None:
    settings = [
        {"vocabulary": {"source": 500, "target": 500}, "train": {"lr": 0.5}, "model": {"encoder": {"glu": True}}}
    ]
    for _, config in fitting(60_000_000, overrides=settings):
        assert (config.vocabulary.target, config.train.lr) == (500, 0.5)
        assert (config.model.encoder.glu, config.model.decoder.glu) == (True, False)


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ({"model": {"width": 64}}, "model.width"),
        ({"model": {"activation": "swish"}}, "model.activation"),
        ({"model": {"decoder": {"layers": 1}}}, "model.decoder.layers"),
        ({"model": {"encoder": {"kernels": [3]}}}, "model.encoder.kernels"),
    ],
)
def test_what_the_search_chooses_cannot_be_set(setting: dict[str, Any], named: str) -> None:
    with pytest.raises(LiteNmtError, match=f"{named} is what the search chooses; leave it out of --set"):
        fitting(60_000_000, overrides=[setting])


@pytest.mark.usefixtures("few")
def test_nothing_fits() -> None:
    with pytest.raises(LiteNmtError, match="no shape of talk fits 1K Mult-Adds"):
        fitting(1000, ["talk"])


def test_needs_no_torch() -> None:
    code = (
        "import sys; from lite_nmt.cli.main import main; "
        "main(['search', '--budget', '3M', '--family', 'transformer', '--target', 'cortex-a72']); "
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
