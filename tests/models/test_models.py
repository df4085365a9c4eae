"""Every model family: one step at a time equals the whole sequence, padding changes nothing, and it trains."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lite_nmt.config import WEIGHT_NORMS, Config, from_dict
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.translation import TranslationModel

TYPES = 23
TOLERANCE = 1e-5

# What both stacks hold, and what the encoder alone holds instead.
FAMILIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "transformer": ({"mixer": "attention"}, {}),
    "windows": ({"mixer": "attention", "windows": [3, 4]}, {}),
    "all-attention": ({"mixer": "attention", "persistent": 7, "ffn": 0}, {}),
    "cnn": ({"mixer": "cnn"}, {}),
    "depthwise": ({"mixer": "lightconv", "conv_heads": 0, "weight_norm": "none"}, {}),
    "lightconv": ({"mixer": "lightconv"}, {}),
    "dynamicconv": ({"mixer": "dynamicconv"}, {}),
    "talk": ({"mixer": "talk"}, {}),
    "lsra-lightconv": ({"mixer": "lsra", "conv": "lightconv"}, {}),
    "lsra-dynamicconv": ({"mixer": "lsra", "conv": "dynamicconv"}, {}),
    "lsra-talk": ({"mixer": "lsra", "conv": "talk"}, {}),
    "average-decoder": ({"mixer": "average"}, {"mixer": "attention"}),
    "average": ({"mixer": "average"}, {}),
}
CONVOLUTIONS = [name for name, (stack, _) in FAMILIES.items() if stack["mixer"] not in ("attention", "average")]
SIZES = ([1], [2], [4], [41])  # one tap, even, and far more than any sentence here


def configure(
    family: str, model: dict[str, Any] | None = None, encoder: dict[str, Any] | None = None, **stack: Any
) -> Config:
    common = {"layers": 2, "heads": 2, "conv_heads": 2, "kernels": [3, 6], "ffn": 24}
    both, own = FAMILIES[family]
    decoder = {**common, **both, **stack}
    table = {"width": 16, "cross_heads": 2, "dropout": 0.1, **(model or {})}
    table |= {"encoder": {**decoder, **own, **(encoder or {})}, "decoder": decoder}
    return from_dict(Config, {"model": table, "vocabulary": {"source": TYPES, "target": TYPES}})


def cases() -> dict[str, Config]:
    found = {name: configure(name) for name in FAMILIES}
    for name in FAMILIES:
        found[f"{name}-pre"] = configure(name, {"norm": "pre", "tie": "output"})
        found[f"{name}-deep"] = configure(name, {"tie": "none"}, {"layers": 5}, layers=1)
    for name, sizes in itertools.product(CONVOLUTIONS, SIZES):
        found[f"{name}-k{sizes[0]}"] = configure(name, kernels=sizes)
    for sizes in SIZES:
        found[f"windows-k{sizes[0]}"] = configure("windows", windows=sizes)
        found[f"lsra-windows-k{sizes[0]}"] = configure("lsra-lightconv", windows=sizes)
    for name in CONVOLUTIONS:
        found[f"{name}-glu"] = configure(name, glu=True)
    for name, norm, outside in itertools.product(("lightconv", "dynamicconv"), WEIGHT_NORMS, (False, True)):
        suffix = f"{norm}-renormalize" if outside else norm
        found[f"{name}-{suffix}"] = configure(name, weight_norm=norm, renormalize=outside, glu=True)
        found[f"lsra-{name}-{suffix}"] = configure(f"lsra-{name}", weight_norm=norm, renormalize=outside)
    kept: dict[str, Any] = {"heads": 4, "kept_heads": [3, 1], "conv_widths": [6, 10], "ffn_widths": [5, 24]}
    for name in FAMILIES:
        found[f"{name}-pruned"] = configure(name, {"cross_heads": 4, "kept_cross_heads": [1, 3]}, **kept)
    return found


CASES = cases()


def build(config: Config, seed: int) -> TranslationModel:
    """A model in which nothing is zero: a bias that starts at 0 would hide its part in an error."""
    torch.manual_seed(seed)
    model = TranslationModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def sentences(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Three padded sources of random lengths, what of them is no padding, and their targets."""
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 13, (3,), generator=draw)
    keep = torch.arange(int(lengths.max())) < lengths[:, None]
    source = torch.randint(0, TYPES, keep.shape, generator=draw)
    steps = int(torch.randint(1, 13, (1,), generator=draw))
    return source, keep, torch.randint(0, TYPES, (3, steps), generator=draw)


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", CASES)
@torch.inference_mode()
def test_step_by_step_equals_the_whole_sequence(name: str) -> None:
    seed = len(name)
    model = build(CASES[name], seed)
    source, keep, target = sentences(seed)
    memory = model.memory(model.encode(source, keep))
    # Two hypotheses a sentence, side by side: the second reads its target backwards.
    beams = torch.stack([target, target.flip(1)], 1).flatten(0, 1)
    twice = {key: tensor.repeat_interleave(2, 0) for key, tensor in memory.items()}
    whole = model.project(model.decode(beams, twice, keep.repeat_interleave(2, 0)))
    assert whole.isfinite().all()
    state = model.initial_state(len(beams))
    names = state.keys()
    for position in range(target.shape[1]):
        given = {key: tensor.clone() for key, tensor in state.items()}
        # A plain number while decoding, a tensor in an exported graph.
        at = position if position % 2 else torch.tensor(position)
        scores, after = model.step(beams[:, position], at, state, memory, keep)
        close(scores, whole[:, position])
        assert after.keys() == names
        assert all(torch.equal(state[key], given[key]) for key in names), "a step changed the state it was given"
        state = after


@pytest.mark.parametrize("name", CASES)
@torch.inference_mode()
def test_a_sentence_alone_equals_itself_in_a_batch(name: str) -> None:
    seed = len(name) + 1
    model = build(CASES[name], seed)
    source, keep, target = sentences(seed)
    encoded = model.encode(source, keep)
    decoded = model.decode(target, model.memory(encoded), keep)
    for i in range(len(source)):
        mine = slice(i, i + 1)
        alone, there = source[mine][:, keep[i]], keep[mine][:, keep[i]]
        own = model.encode(alone, there)
        close(own, encoded[mine][:, keep[i]])
        close(model.decode(target[mine], model.memory(own), there), decoded[mine])


@pytest.mark.parametrize("name", FAMILIES)
def test_trains(name: str) -> None:
    config = configure(name, weight_dropout=0.1, glu=True)
    torch.manual_seed(0)
    model = TranslationModel(config).train()
    source, keep, _ = sentences(0)
    target = source[:, :6]
    inputs = F.pad(target, (1, 0))[:, :-1]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(50):
        scores = model.project(model(source, keep, inputs))
        loss = F.cross_entropy(scores.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-5:]) / 5 < 0.3 * losses[0]


@pytest.mark.parametrize("norm", WEIGHT_NORMS)
@pytest.mark.parametrize("renormalize", [False, True])
def test_gradients_reach_the_taps_under_each_normalisation(norm: str, renormalize: bool) -> None:
    for family in ("lightconv", "dynamicconv"):
        model = TranslationModel(configure(family, weight_norm=norm, renormalize=renormalize))
        source, keep, target = sentences(3)
        model(source, keep, target).square().sum().backward()
        gradients = [p.grad for n, p in model.named_parameters() if "producer" in n]
        assert gradients
        assert all(g is not None and g.isfinite().all() and g.any() for g in gradients)


@pytest.mark.parametrize(
    ("family", "sizes", "name", "held"),
    [
        ("windows", {"windows": [3, 5]}, "key", [2, 4]),
        ("windows", {"windows": [1, 4]}, "value", [0, 3]),
        ("cnn", {}, "inputs", [2, 5]),
        ("lightconv", {}, "inputs", [2, 5]),
        ("dynamicconv", {}, "inputs", [2, 5]),
        ("talk", {}, "inputs", [2, 5]),
        ("lsra-talk", {}, "convolution.inputs", [2, 5]),
        ("average", {}, "sum", None),
    ],
)
@torch.inference_mode()
def test_state_stays_small(family: str, sizes: dict[str, Any], name: str, held: list[int] | None) -> None:
    model = build(configure(family, **sizes), 0)
    source, keep, _ = sentences(0)
    memory = model.memory(model.encode(source, keep))
    state = model.initial_state(3)
    for position in range(9):
        _, state = model.step(torch.zeros(3, dtype=torch.long), position, state, memory, keep)
        for layer in range(2):
            tensor = state[f"{layer}.{name}"]
            if held is None:
                assert tensor.shape == (3, 16)
            else:
                assert tensor.shape[-2] <= held[layer]
    if held is not None:
        assert [state[f"{layer}.{name}"].shape[-2] for layer in range(2)] == held


@pytest.mark.parametrize("window", [1, 2, 3, 4])
@torch.inference_mode()
def test_a_window_hides_what_lies_outside(window: int) -> None:
    model = build(configure("windows", windows=[window], layers=1), 0)
    source = torch.randint(0, TYPES, (1, 10))
    keep = torch.ones_like(source, dtype=torch.bool)
    before = model.encode(source, keep)
    source[0, 5] = (source[0, 5] + 1) % TYPES
    changed = (model.encode(source, keep) - before).abs().amax(-1)[0] > 0
    right = window - 1 - window // 2
    assert changed.nonzero().flatten().tolist() == list(range(5 - right, 6 + window // 2))


@pytest.mark.parametrize("name", FAMILIES)
@torch.inference_mode()
def test_alignment_is_a_distribution_over_the_sentence(name: str) -> None:
    model = build(configure(name), 5)
    source, keep, target = sentences(5)
    alignment = model.alignment(target, model.memory(model.encode(source, keep)), keep)
    assert alignment.shape == (*target.shape, source.shape[1])
    close(alignment.sum(-1), torch.ones(target.shape))
    assert not alignment.masked_select(~keep[:, None, :]).any()


@pytest.mark.parametrize(
    ("model", "stack", "message"),
    [
        ({"width": 15}, {}, r"model\.width is 15; sinusoidal"),
        ({"cross_heads": 3}, {}, r"model\.width is 16.*model\.cross_heads = 3"),
        ({}, {"mixer": "attention", "heads": 3}, r"model\.width is 16.*model\.encoder\.heads = 3"),
        ({}, {"mixer": "talk", "conv_heads": 5}, r"model\.width is 16.*model\.encoder\.conv_heads = 5"),
        ({}, {"mixer": "lsra", "heads": 16}, r"half of model\.width is 8.*model\.encoder\.heads = 16"),
        ({"kept_cross_heads": [1, 3]}, {}, r"model\.kept_cross_heads holds 3, more than model\.cross_heads = 2"),
        ({}, {"kept_heads": [3]}, r"model\.encoder\.kept_heads holds 3, more than model\.encoder\.heads = 2"),
        ({}, {"conv_widths": [4, 5]}, r"model\.encoder\.conv_widths holds 5, which model\.encoder\.conv_heads = 2"),
        ({}, {"mixer": "lsra", "conv_heads": 3}, r"half of model\.width is 8.*model\.encoder\.conv_heads = 3"),
    ],
)
def test_heads_that_do_not_divide_are_refused(model: dict[str, Any], stack: dict[str, Any], message: str) -> None:
    with pytest.raises(LiteNmtError, match=message):
        configure("lightconv", model, **stack)
