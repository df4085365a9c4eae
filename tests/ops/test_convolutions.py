"""The three convolutions' references, the random bits they drop by, and what their interfaces refuse."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lite_nmt.errors import LiteNmtError
from lite_nmt.ops.dropconnect import dropconnect, philox
from lite_nmt.ops.dynamic_conv.api import dynamic_conv
from lite_nmt.ops.light_conv.api import light_conv
from lite_nmt.ops.talk_conv.api import talk_conv

ROOT = Path(__file__).parents[2]


def words(seed: int, *counter: int) -> list[int]:
    a, b, c = (torch.tensor(n) for n in counter)
    found: list[int] = philox(torch.tensor(seed), (a, b, c)).tolist()
    return found


def test_random_bits_are_philox() -> None:
    """The first is a published answer of Philox4x32-10."""
    assert words(0, 0, 0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert len({tuple(words(*those)) for those in [(1, 0, 0, 0), (2**32, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)]}) == 4


@pytest.mark.parametrize("shape", [(2, 50, 4, 31), (64, 1023)], ids=["each step", "all steps"])
def test_dropconnect_keeps_the_mean(shape: tuple[int, ...]) -> None:
    dropped = dropconnect(torch.ones(shape), 0.3, torch.tensor([5]))
    assert dropped.unique().tolist() == pytest.approx([0, 1 / 0.7])
    assert dropped.mean() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("op", ["light", "dynamic", "talk", "talk, causal"])
def test_gradients(op: str, dropout: float) -> None:
    torch.manual_seed(0)
    keep = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    rest: dict[str, Any] = {"keep": keep, "dropout": dropout, "seed": torch.tensor([3])}
    x, bias = torch.randn(2, 5, 4, dtype=torch.float64), torch.randn(4, dtype=torch.float64)

    def function(x: Tensor, bias: Tensor, *weights: Tensor) -> Tensor:
        if op == "light":
            return light_conv(x, weights[0], 1, bias=bias, **rest)
        if op == "dynamic":
            return dynamic_conv(x, weights[0], 2, bias=bias, **rest)
        right = weights[1] if op == "talk" else None
        return talk_conv(x, weights[0], right, 2, 1 if op == "talk" else 0, bias=bias, **rest)

    shapes: dict[str, list[tuple[int, ...]]] = {
        "light": [(2, 3)],
        "dynamic": [(2, 5, 2, 3)],
        "talk": [(2, 5, 2), (2, 5, 2)],
        "talk, causal": [(2, 5, 2)],
    }
    weights = [torch.rand(shape, dtype=torch.float64) for shape in shapes[op]]
    assert torch.autograd.gradcheck(function, [t.requires_grad_() for t in (x, bias, *weights)])


@pytest.mark.parametrize("shape", [(0, 4, 6), (2, 0, 6)])
@pytest.mark.parametrize("op", ["light", "dynamic", "talk"])
def test_nothing_in_nothing_out(op: str, shape: tuple[int, int, int]) -> None:
    x, rows = torch.zeros(shape), (*shape[:2], 2)
    weight = torch.zeros((2, 3) if op == "light" else rows if op == "talk" else (*rows, 3), requires_grad=True)
    out = talk_conv(x, weight, None, 2, 0) if op == "talk" else {"light": light_conv, "dynamic": dynamic_conv}[op](
        x, weight, 1, dropout=0.5, seed=torch.tensor([1])
    )  # fmt: skip
    out.sum().backward()
    assert out.shape == shape
    assert weight.grad is not None
    assert not weight.grad.any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("length", [100, 300], ids=["as a matrix", "shifted"])
def test_sums_are_float32(length: int, dtype: torch.dtype) -> None:
    """However many taps there are, what is off is the rounding of the inputs and of the output."""
    torch.manual_seed(0)
    x, weight = torch.randn(2, length, 8), torch.randn(2, length, 2, 31)
    out, exact = dynamic_conv(x.to(dtype), weight, 15), dynamic_conv(x.to(dtype).double(), weight.double(), 15)
    assert out.dtype == dtype
    assert (out.double() - exact).norm() / exact.norm() < 0.8 * torch.finfo(dtype).eps


X, W = torch.zeros(2, 4, 6), torch.zeros(2, 3)
OFFSETS = torch.zeros(2, 4, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: light_conv(X[0], W, 1), "B T C"),
        (lambda: light_conv(X.long(), W, 1), "x is torch.int64"),
        (lambda: light_conv(X, W[:0], 1), "by 0 heads"),
        (lambda: dynamic_conv(X, W[0], 1), r"must be 2 4 H K"),
        (lambda: light_conv(X, W, 1, dropout=0.1, seed=torch.tensor([1.0])), "seed is torch.float32"),
        (lambda: light_conv(X, W, 1, dropout=0.1, seed=torch.tensor([1, 2])), "must be one int64"),
        (lambda: light_conv(X, W.to("meta"), 1), "the weights on meta"),
        (lambda: light_conv(X, torch.zeros(4, 3), 1), "6 channels"),
        (lambda: light_conv(X, W, 3), "padding is 3"),
        (lambda: light_conv(X, W, 1, bias=torch.zeros(5)), "bias has"),
        (lambda: light_conv(X, W, 1, keep=torch.ones(2, 4)), "keep is torch.float32"),
        (lambda: light_conv(X, W, 1, dropout=1.0), "dropout is 1.0"),
        (lambda: dynamic_conv(X, torch.zeros(2, 3, 2, 3), 1), "weights have"),
        (lambda: talk_conv(X, OFFSETS[:, :3], None, 2, 0), "left has"),
        (lambda: talk_conv(X, OFFSETS, None, 2, 1), "right is None"),
        (lambda: talk_conv(X, OFFSETS, None, -1, 0), "max_left is -1"),
    ],
)
def test_refuses_by_name(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_an_explicit_choice_never_falls_back() -> None:
    with pytest.raises(LiteNmtError, match="one of auto, reference, triton"):
        light_conv(X, W, 1, impl="cuda")  # type: ignore[arg-type]  # that is what is tested
    reason = "on cpu" if importlib.util.find_spec("triton") else "not installed"
    with pytest.raises(LiteNmtError, match=reason):
        light_conv(X, W, 1, impl="triton")
    with pytest.raises(LiteNmtError, match=f"{reason}|float64"):
        light_conv(X.double(), W.double(), 1, impl="triton")


def test_their_import_is_quick() -> None:
    """torch._dynamo takes a second, which every command would pay."""
    code = "import sys, lite_nmt.ops.light_conv.api; sys.exit('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
