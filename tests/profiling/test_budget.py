"""Budgets: read, checked, and filled."""

from __future__ import annotations

import pytest

from lite_nmt.config import load_preset, preset_names
from lite_nmt.errors import LiteNmtError
from lite_nmt.profiling.budget import (
    BUDGET_PRESET,
    MOBILE_PARAMETERS,
    WIDTH_STEP,
    breaches,
    flattened,
    parse_budget,
    quantity,
    widest,
)
from lite_nmt.profiling.cost import cost


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("100M", 100_000_000),
        ("0.5g", 500_000_000),
        (" 300K ", 300_000),
        ("54710400", 54_710_400),
        ("2.01M", 2_010_000),
        ("1.001M", 1_001_000),
    ],
)
def test_parse(text: str, value: int) -> None:
    assert parse_budget(text) == value


@pytest.mark.parametrize("text", ["", "0M", "-5M", "100 M B", "many", "0.1", "nanM"])
def test_parse_refuses(text: str) -> None:
    with pytest.raises(LiteNmtError, match="--budget is"):
        parse_budget(text)


@pytest.mark.parametrize(
    ("value", "text"), [(54_710_400, "54.71M"), (1.5e9, "1.5G"), (100e6, "100M"), (2000, "2K"), (12, "12"), (0, "0")]
)
def test_quantity(value: float, text: str) -> None:
    assert quantity(value) == text


def test_breaches_name_the_figure_and_the_largest_parts() -> None:
    assert breaches(load_preset("wmt-lite-transformer-90m")) == []
    adds, parameters = breaches(load_preset("wmt-lite-transformer-527m"))
    assert "needs 528.75M Mult-Adds (paper count" in adds
    assert "over the budget of 500M" in adds
    assert "cross-attention" in adds
    assert "output projection" not in adds
    assert "holds 17.28M parameters (paper count), over the limit of 10M" in parameters
    assert "embedding" not in parameters


def test_full_count_breaks_what_the_paper_count_hides() -> None:
    config = load_preset("wmt-lite-transformer-90m")
    assert not breaches(config, 100_000_000)
    (sentence,) = breaches(config, 100_000_000, "full")
    assert "the largest parts are output projection 196.61M" in sentence


@pytest.mark.parametrize("budget", ["54M", "100M", "300M", "500M"])
@pytest.mark.parametrize("count", ["paper", "full"])
def test_widest_fits_and_the_next_width_does_not(budget: str, count: str) -> None:
    limit = parse_budget(budget)
    config = widest(limit, count)
    total = cost(config)
    assert total.mult_adds(count) <= limit
    assert total.parameters(count) <= MOBILE_PARAMETERS
    wider = load_preset(BUDGET_PRESET, flattened(config.model.width + WIDTH_STEP))
    assert breaches(wider, limit, count)
    assert config.model.encoder.ffn == config.model.decoder.ffn == config.model.width


def test_widest_takes_settings() -> None:
    deep = widest(100_000_000, "paper", {"model": {"encoder": {"layers": 10}, "decoder": {"layers": 1}}})
    assert (deep.model.encoder.layers, deep.model.decoder.layers) == (10, 1)
    assert deep.model.width > widest(100_000_000).model.width


def test_widest_passes_over_widths_that_the_heads_do_not_divide() -> None:
    config = widest(100_000_000, "paper", {"model": {"cross_heads": 3, "encoder": {"heads": 3}}})
    assert config.model.width == 216


def test_widest_refuses() -> None:
    with pytest.raises(LiteNmtError, match="no Lite Transformer fits 1K Mult-Adds"):
        widest(1000)
    with pytest.raises(LiteNmtError, match=r"model\.encoder\.heads = 10007"):
        widest(100_000_000, "paper", {"model": {"encoder": {"heads": 10007}}})


@pytest.mark.parametrize("preset", [name for name in preset_names() if name.startswith("mobile-")])
def test_mobile_presets_fill_their_budget(preset: str) -> None:
    config = load_preset(preset)
    budget = parse_budget(preset.split("-")[1])
    assert 0.98 * budget <= cost(config).mult_adds() <= budget
    # 500M Mult-Adds at 30 tokens cannot be spent on fewer than 16M parameters; the preset says so.
    assert (cost(config).parameters() <= MOBILE_PARAMETERS) == ("over 10M" not in config.description)
    for stack in (config.model.encoder, config.model.decoder):
        assert config.model.width // 2 // stack.heads % 16 == 0
        assert config.model.width // 2 // stack.conv_heads % 16 == 0
    assert config.model.width // config.model.cross_heads % 16 == 0


def test_multi30k_presets_differ_in_the_model_alone() -> None:
    configs = [load_preset(name) for name in preset_names() if name.startswith("multi30k-")]
    assert len(configs) == 5
    recipes = [(c.train, c.vocabulary, c.decode) for c in configs]
    assert recipes == 5 * recipes[:1]
    spent = [cost(c).mult_adds() for c in configs]
    assert max(spent) < 1.005 * min(spent)
    assert 53e6 <= min(spent) <= max(spent) <= 55e6


def test_demo_is_of_the_100m_class() -> None:
    config = load_preset("demo")
    assert 85e6 <= cost(config).mult_adds() <= 100e6
    assert config.model.encoder.mixer == "lsra"
