"""The banded product against a naive loop, and TaLK's soft box against the paper's prefix sums, in float64."""

from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor

from lite_nmt.ops import banded as ops
from lite_nmt.ops.banded import banded, banded_step, normalize_taps, talk_taps
from lite_nmt.ops.talk_conv.api import talk_conv

# B, T, H, R, K, P, weights per step: T < K, T = 1, K = 1, even K, H = C, one head.
SHAPES = [
    (2, 5, 2, 3, 3, 1, True),
    (2, 5, 2, 3, 3, 1, False),
    (1, 1, 1, 4, 7, 6, True),
    (3, 4, 4, 1, 9, 4, False),
    (3, 4, 4, 1, 9, 0, True),
    (2, 6, 3, 2, 1, 0, True),
    (1, 7, 2, 2, 4, 2, False),
]


def naive(x: Tensor, weights: Tensor, padding: int) -> Tensor:
    """The definition, element by element."""
    batch, length, channels = x.shape
    heads, taps = weights.shape[-2:]
    rows = [
        sum(
            (
                weights[(b, t, h, k) if weights.dim() == 4 else (h, k)] * x[b, t + k - padding, c]
                for k in range(taps)
                if 0 <= t + k - padding < length
            ),
            start=x.new_zeros(()),
        )
        for b in range(batch)
        for t in range(length)
        for c in range(channels)
        for h in [c // (channels // heads)]
    ]
    return torch.stack(rows).view(batch, length, channels)


def inputs(shape: tuple[int, int, int, int, int, int, bool]) -> tuple[Tensor, Tensor, int]:
    batch, length, heads, shared, taps, padding, per_step = shape
    x = torch.randn(batch, length, heads * shared, dtype=torch.float64, requires_grad=True)
    size = (batch, length, heads, taps) if per_step else (heads, taps)
    return x, torch.randn(size, dtype=torch.float64, requires_grad=True), padding


def random_shapes(count: int) -> list[tuple[int, int, int, int, int, int, bool]]:
    draw = random.Random(0)
    shapes = []
    for _ in range(count):
        taps = draw.randint(1, 12)
        sizes = draw.randint(1, 3), draw.randint(1, 9), draw.randint(1, 4), draw.randint(1, 3)
        shapes.append((*sizes, taps, draw.randrange(taps), draw.random() < 0.5))
    return shapes


@pytest.mark.parametrize("limit", [0, 128], ids=["shifted", "matrix"])
@pytest.mark.parametrize("shape", SHAPES + random_shapes(8), ids=str)
def test_both_paths_equal_the_definition(
    shape: tuple[int, int, int, int, int, int, bool], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ops, "BAND_LIMIT", limit)
    torch.manual_seed(0)
    x, weights, padding = inputs(shape)
    expected = naive(x, weights, padding)
    torch.testing.assert_close(banded(x, weights, padding), expected, rtol=0, atol=1e-12)
    seed = torch.randn_like(expected)
    ours = torch.autograd.grad(banded(x, weights, padding), (x, weights), seed)
    theirs = torch.autograd.grad(expected, (x, weights), seed)
    for mine, reference in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, reference, rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", ["_windows", "_traced"])
@pytest.mark.parametrize("shape", SHAPES + random_shapes(8), ids=str)
def test_what_exporters_and_tracers_see_equals_the_definition(
    shape: tuple[int, int, int, int, int, int, bool], form: str
) -> None:
    x, weights, padding = inputs(shape)
    with torch.no_grad():
        found = getattr(ops, form)(x, weights, padding)
        torch.testing.assert_close(found, naive(x, weights, padding), rtol=0, atol=1e-12)


@pytest.mark.parametrize("limit", [0, 128], ids=["shifted", "matrix"])
@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
def test_gradients(
    shape: tuple[int, int, int, int, int, int, bool], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ops, "BAND_LIMIT", limit)
    torch.manual_seed(0)
    x, weights, padding = inputs(shape)
    assert torch.autograd.gradcheck(lambda x, w: banded(x, w, padding), (x, weights))


@pytest.mark.parametrize(("heads", "padding", "message"), [(4, 1, "6 channels"), (2, 3, "padding is 3"), (2, -1, "-1")])
def test_refuses_by_name(heads: int, padding: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        banded(torch.zeros(1, 4, 6), torch.zeros(heads, 3), padding)


@pytest.mark.parametrize("per_step", [True, False])
@pytest.mark.parametrize("taps", [1, 4, 9])
def test_one_step_is_the_last_column(taps: int, per_step: bool) -> None:
    torch.manual_seed(0)
    x, weights, padding = inputs((2, 6, 2, 3, taps, taps - 1, per_step))
    window = torch.nn.functional.pad(x, (0, 0, taps, 0))[:, -taps:]
    last = weights[:, -1] if per_step else weights
    torch.testing.assert_close(banded_step(window, last), banded(x, weights, padding)[:, -1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", ["softmax", "none", "sigmoid", "tanh", "l1", "l2"])
def test_normalisation(norm: str) -> None:
    torch.manual_seed(0)
    weights = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    taps = normalize_taps(weights, norm)
    sums = {"softmax": taps.sum(-1), "l1": taps.abs().sum(-1), "l2": taps.square().sum(-1)}
    if norm in sums:
        torch.testing.assert_close(sums[norm], torch.ones(2, 3, dtype=torch.float64), rtol=0, atol=1e-5)
    assert torch.autograd.gradcheck(lambda w: normalize_taps(w, norm), (weights,))
    assert normalize_taps(weights.bfloat16(), norm).dtype == torch.float32


def prefix_sums(x: Tensor, left: Tensor, right: Tensor | None, max_left: int, max_right: int) -> Tensor:
    """TaLK Convolutions, equations 2 to 8, for x: B T H R and a: B T H.

    S[0] = 0 and S[i] = x[1] + ... + x[i]; positions are real, i - a_l L and i + a_r R, clamped to the sentence;
    S between two integers is interpolated linearly; the sum is divided by L + R + 1.
    """
    batch, length, heads, _ = x.shape
    sums = torch.cat([torch.zeros_like(x[:, :1]), x.cumsum(1)], 1)
    here = torch.arange(1, length + 1, dtype=x.dtype)[None, :, None]

    def at(position: Tensor) -> Tensor:
        low = position.floor()
        part = (position - low).unsqueeze(-1)
        rows = [low.long().clamp(0, length), (low.long() + 1).clamp(0, length)]
        below, above = (sums.gather(1, r.unsqueeze(-1).expand(-1, -1, -1, x.shape[-1])) for r in rows)
        return (1 - part) * below + part * above

    ends = here if right is None else here + right * max_right
    return (at(ends.expand(batch, length, heads)) - at(here - left * max_left - 1)) / (max_left + max_right + 1)


@pytest.mark.parametrize(("max_left", "max_right"), [(3, 3), (7, 2), (1, 0), (4, 0), (31, 31), (0, 0)])
def test_soft_box_is_the_prefix_sum_form(max_left: int, max_right: int) -> None:
    torch.manual_seed(max_left)
    batch, length, heads, shared = 2, 11, 2, 3
    x = torch.randn(batch, length, heads * shared, dtype=torch.float64, requires_grad=True)
    left = torch.rand(batch, length, heads, dtype=torch.float64).requires_grad_()
    right = torch.rand(batch, length, heads, dtype=torch.float64).requires_grad_() if max_right else None
    ours = talk_conv(x, left, right, max_left, max_right)
    theirs = prefix_sums(x.unflatten(-1, (heads, shared)), left, right, max_left, max_right).flatten(-2)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    seed = torch.randn_like(ours)
    wanted = [x, left] + ([right] if right is not None else [])
    for mine, reference in zip(
        torch.autograd.grad(ours, wanted, seed), torch.autograd.grad(theirs, wanted, seed), strict=True
    ):
        torch.testing.assert_close(mine, reference, rtol=0, atol=1e-12)


def test_soft_box_keeps_half_precision_out() -> None:
    assert talk_taps(torch.rand(4).bfloat16(), None, 3, 0).dtype == torch.float32
