"""Structured pruning: what is left computes what the whole model does with the removed units masked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lite_nmt.compress.importance import Importance, LossIncrease, WeightNorm
from lite_nmt.compress.structured import Plan, save_structured, structured
from lite_nmt.compress.units import Group, groups, only_layers, resized, sliced
from lite_nmt.config import Config, from_dict
from lite_nmt.data.encoded import Encoded
from lite_nmt.decode.translator import Translator
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint
from lite_nmt.models.translation import TranslationModel
from lite_nmt.profiling.cost import cost

TYPES = 19
FAMILIES: dict[str, dict[str, Any]] = {
    "transformer": {"mixer": "attention", "windows": [3, 4]},
    "cnn": {"mixer": "cnn"},
    "average": {"mixer": "average"},
    **{kind: {"mixer": kind} for kind in ("lightconv", "dynamicconv", "talk")},
    **{f"{kind}-glu": {"mixer": kind, "glu": True} for kind in ("lightconv", "dynamicconv", "talk")},
    **{f"{kind}-depthwise": {"mixer": kind, "conv_heads": 0} for kind in ("lightconv", "dynamicconv", "talk")},
    **{f"lsra-{kind}": {"mixer": "lsra", "conv": kind} for kind in ("lightconv", "dynamicconv", "talk")},
}


def model_of(family: str, **model: Any) -> tuple[Config, dict[str, Tensor]]:
    """A configuration and weights, none of them zero."""
    stack = {"layers": 3, "heads": 4, "conv_heads": 2, "kernels": [3, 2, 4], "ffn": 10, **FAMILIES[family]}
    table = {"width": 16, "cross_heads": 4, "encoder": stack, "decoder": stack, **model}
    config = from_dict(Config, {"model": table, "vocabulary": {"source": TYPES, "target": TYPES}})
    torch.manual_seed(1)
    weights = checkpoint.named_weights(TranslationModel(config))
    return config, {name: (p + 0.1 * torch.randn_like(p)).detach() for name, p in weights.items()}


def loaded(config: Config, weights: Mapping[str, Tensor]) -> TranslationModel:
    model = TranslationModel(config).eval().double()
    checkpoint.restore(model, {name: w.double() for name, w in weights.items()}, Path("a test"))
    return model


@torch.inference_mode()
def output(model: TranslationModel) -> Tensor:
    draw = torch.Generator().manual_seed(2)
    source, target = (torch.randint(0, TYPES, (2, n), generator=draw) for n in (7, 5))
    keep = torch.arange(7) < torch.tensor([[7], [4]])
    return model.project(model(source, keep, target))


def mask(model: TranslationModel, group: Group, kept: Tensor) -> None:
    """Zero the other channels as they pass, without touching a weight."""
    alive = torch.zeros(group.channels, dtype=torch.float64)
    alive[kept] = 1
    module = model.get_submodule(group.module)
    if group.kind == "conv_channels":  # before the taps are made of them
        inner, factor = module.get_submodule("inner"), 2 if module.glu else 1
        inner.register_forward_hook(lambda _, inputs, x: x * alive.repeat(factor))
    else:
        module.get_submodule("out").register_forward_pre_hook(lambda _, inputs: (inputs[0] * alive,))


def some(group: Group) -> Tensor:
    """Channels of every unit but the first and, where there are four, the third."""
    _, channels = group.ranked(torch.rand(group.units if group.kind == "heads" else group.channels))
    return channels[[i for i in range(group.units) if i not in (0, 2)]].flatten().sort().values


@pytest.mark.parametrize("family", FAMILIES)
def test_slices_equal_masks_for_every_kind_of_unit(family: str) -> None:
    config, weights = model_of(family)
    kinds = {group.kind for group in groups(config)}
    assert ("conv_channels" in kinds) == (family not in ("transformer", "cnn", "average"))
    for kind in sorted(kinds):
        kept = {group: some(group) for group in groups(config) if group.kind == kind}
        whole = loaded(config, weights)
        before = output(whole)
        for group, channels in kept.items():
            mask(whole, group, channels)
        counts = {g: len(c) // (g.channels // g.heads if kind == "heads" else g.heads) for g, c in kept.items()}
        smaller = resized(config, counts)
        ours, theirs = output(loaded(smaller, sliced(weights, kept))), output(whole)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
        assert (before - theirs).abs().max() > 1e-3, "the mask did nothing"
        assert cost(smaller).mult_adds() < cost(config).mult_adds()


@pytest.mark.parametrize("scope", ["layer", "global"])
@pytest.mark.parametrize("family", ["lsra-dynamicconv", "talk-depthwise", "lightconv-glu"])
def test_a_whole_plan_equals_masks(family: str, scope: str) -> None:
    config, weights = model_of(family)
    plan = Plan(heads=0.3, ffn=0.4, conv_channels=0.5, scope=scope)
    smaller, left = structured(config, weights, plan)
    found = {group.module: group for group in groups(smaller)}
    whole = loaded(config, weights)
    removed = 0
    for group, score in zip(groups(config), WeightNorm().units(config, weights, groups(config)), strict=True):
        lost = group.units - found[group.module].units
        removed += lost * (group.kind == "ffn")
        mask(whole, group, group.ranked(score)[1][lost:].flatten())
        if scope == "layer":
            assert lost == round(getattr(plan, group.kind) * group.units)
    assert removed == 0.4 * 10 * 6
    torch.testing.assert_close(output(loaded(smaller, left)), output(whole), rtol=0, atol=1e-12)


def test_the_norm_is_of_all_weights_that_go() -> None:
    config, weights = model_of("lsra-dynamicconv")
    among = groups(config)
    for group, score in zip(among, WeightNorm().units(config, weights, among), strict=True):
        unit = 1
        width = group.channels // group.heads
        own = range(unit * width, unit * width + width) if group.kind == "heads" else [unit]
        without = sliced(weights, {group: torch.tensor([c for c in range(group.channels) if c not in own])})
        energy = [sum(float(w.double().square().sum()) for w in part.values()) for part in (weights, without)]
        assert float(score[unit]) == pytest.approx(energy[0] - energy[1], rel=1e-3)


def pairs() -> Encoded:
    draw = np.random.default_rng(3)
    starts = np.arange(0, 41, 5)
    source, target = (draw.integers(4, TYPES, 40).astype(np.int32) for _ in range(2))
    return Encoded(source, starts, target, starts, {})


def test_the_estimated_loss_is_the_slope_of_the_measured_one() -> None:
    config, weights = model_of("lsra-lightconv")
    among = groups(config)
    every = pairs()
    measure = LossIncrease(
        Encoded(every.source[:5], every.source_starts[:2], every.target[:5], every.target_starts[:2], {})
    )
    scores = measure.units(config, weights, among)
    for i in (0, 2, len(among) - 1):
        group, step = among[i], 1e-2
        width = group.channels // group.heads if group.kind == "heads" else 1
        name = f"{group.module}.out.weight"
        losses = []
        for sign in (1, -1):
            moved = weights[name].clone()
            moved[:, width : 2 * width] *= 1 + sign * step
            losses.append(measure.loss(config, {**weights, name: moved}))
        slope = abs(losses[0] - losses[1]) / (2 * step)
        assert float(scores[i][1]) == pytest.approx(slope, rel=0.02, abs=2e-3)


class Fixed:
    """Layers are worth what a list says, in turn."""

    def __init__(self, *rounds: list[float]) -> None:
        self.rounds = list(rounds)

    def units(self, config: Config, weights: Mapping[str, Tensor], among: Any) -> list[Tensor]:
        raise AssertionError("no units were to be removed")

    def layers(self, config: Config, weights: Mapping[str, Tensor], side: str) -> list[float]:
        return self.rounds.pop(0)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_least_important_layers_go_one_by_one(norm: str) -> None:
    config, weights = model_of("lsra-lightconv", norm=norm, kept_cross_heads=[4, 4, 4])
    smaller, left = structured(config, weights, Plan(decoder_layers=1), Fixed([3.0, 1.0, 2.0], [0.5, 0.7]))
    assert (smaller.model.encoder, smaller.model.decoder.layers) == (config.model.encoder, 1)
    assert smaller.model.decoder.kernels == (4,)
    assert smaller.model.kept_cross_heads == (4,)
    whole = loaded(config, weights)
    whole.decoder = nn.ModuleList([whole.decoder[2]])
    assert torch.equal(output(loaded(smaller, left)), output(whole))


def test_a_layer_is_as_important_as_the_loss_without_it() -> None:
    config, weights = model_of("talk")
    measure = LossIncrease(pairs())
    expected = [measure.loss(*only_layers(config, weights, "encoder", kept)) for kept in ([1, 2], [0, 2], [0, 1])]
    assert len(set(expected)) == 3
    assert measure.layers(config, weights, "encoder") == expected
    by_norm = WeightNorm().layers(config, weights, "decoder")
    weights = {name: 2 * w if name.startswith("decoder.1.") else w for name, w in weights.items()}
    assert WeightNorm().layers(config, weights, "decoder") == pytest.approx([by_norm[0], 4 * by_norm[1], by_norm[2]])


@pytest.mark.parametrize("measure", [None, LossIncrease(pairs())], ids=["norm", "loss"])
@pytest.mark.parametrize("scope", ["layer", "global"])
def test_a_target_is_met_with_as_little_as_needed(scope: str, measure: Importance | None) -> None:
    config, weights = model_of("lsra-lightconv")
    target = round(0.8 * cost(config).mult_adds())
    smaller, left = structured(config, weights, Plan(mult_adds=target, scope=scope), measure)
    unit = max(
        cost(config).mult_adds() - cost(resized(config, {g: g.units - 1})).mult_adds()
        for g in groups(config)
        if g.units > 1
    )
    together = len(groups(config)) if scope == "layer" else 1  # units that may go at once
    assert target - together * unit < cost(smaller).mult_adds() <= target
    output(loaded(smaller, left))
    same, _ = structured(config, weights, Plan(mult_adds=10**9, scope=scope))
    assert same == config


def test_pruned_twice_is_pruned_once_more() -> None:
    config, weights = model_of("lsra-talk")
    once = structured(config, weights, Plan(heads=0.5, ffn=0.5))
    twice, left = structured(*once, Plan(heads=0.5, decoder_layers=2))
    assert twice.model.decoder.kept_heads == twice.model.kept_cross_heads == (1, 1)
    assert twice.model.encoder.kept_heads == (1, 1, 1)
    assert twice.model.decoder.ffn_widths == (5, 5)
    output(loaded(twice, left))


@pytest.mark.parametrize(
    ("family", "plan", "sentence"),
    [
        ("talk", {"heads": 0.9}, r"removing 0\.9 of the attention heads leaves none of 4 in decoder\.0\.cross"),
        ("talk", {"heads": 0.9, "scope": "global"}, "leaves a module without any; remove fewer"),
        ("cnn", {"conv_channels": 0.5}, "the model has no convolution channels that could be removed"),
        ("talk", {"ffn": 1.0}, "the share of FFN channels to remove is 1; it must be at least 0 and below 1"),
        ("talk", {"ffn": float("nan")}, "the share of FFN channels to remove is nan"),
        ("talk", {"decoder_layers": 0}, "the decoder is to keep 0 layers; at least one must stay"),
        ("talk", {"encoder_layers": 4}, "the encoder is to keep 4 layers, but it has 3"),
        ("talk", {"mult_adds": 1000}, r"with one unit left in each module the model still needs .*, over 1K"),
        ("talk", {"mult_adds": 1000, "scope": "global"}, "with one unit left"),
        ("talk", {"scope": "nowhere"}, "scope is 'nowhere'; it must be one of layer, global"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(family: str, plan: dict[str, Any], sentence: str) -> None:
    with pytest.raises(LiteNmtError, match=sentence):
        structured(*model_of(family), Plan(**plan))


def test_one_unit_may_be_left_of_each() -> None:
    config, weights = model_of("lsra-lightconv")
    smaller, left = structured(config, weights, Plan(heads=0.8, ffn=0.9, conv_channels=0.75))
    assert {group.units for group in groups(smaller)} == {1}
    output(loaded(smaller, left))


def test_a_pruned_checkpoint_translates(tiny: Callable[..., Config], saved: str, tmp_path: Path) -> None:
    whole = checkpoint.load(Path(saved))
    pruned = save_structured(whole, Plan(heads=0.5, ffn=0.5, conv_channels=0.5), tmp_path / "pruned")
    assert pruned.config == dataclasses.replace(whole.config, model=pruned.config.model)
    assert pruned.config.model.encoder.ffn_widths == (8,)
    assert (pruned.metrics, pruned.step, pruned.languages) == ({}, whole.step, whole.languages)
    assert cost(pruned.config).parameters() < cost(whole.config).parameters()
    held = sum(tensor.numel() for tensor in pruned.weights().values())
    assert held == cost(pruned.config).parameters("full")
    assert len(Translator.load(tmp_path / "pruned").translate(["Ein Hund ."])) == 1
