"""The kernels against the reference in float64: outputs and all gradients, at odd sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from lite_nmt.ops.dynamic_conv.api import dynamic_conv
from lite_nmt.ops.light_conv.api import light_conv
from lite_nmt.ops.talk_conv.api import talk_conv

LIMITS = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.5e-2}  # relative, in the Frobenius norm
OPS = ["light", "dynamic", "talk"]


@dataclass(frozen=True)
class Case:
    batch: int
    length: int
    heads: int
    shared: int
    taps: int
    padding: int
    dropout: float = 0.0
    bias: bool = False
    padded: bool = False
    dtype: torch.dtype = torch.float32


CASES = [
    Case(1, 1, 1, 16, 3, 1, dropout=0.1),  # one step
    Case(2, 5, 1, 51, 31, 30, dropout=0.3, bias=True, padded=True),  # fewer steps than taps, LSRA's odd heads
    Case(2, 37, 2, 25, 7, 3, padded=True),
    Case(1, 33, 2, 3, 1, 0, bias=True),  # one tap
    Case(1, 65, 1, 62, 4, 3, dropout=0.2),  # an even number of taps
    Case(1, 2, 5, 1, 7, 0),  # H = C, all taps ahead
    Case(1, 33, 1, 80, 33, 16, dropout=0.1, bias=True),  # more taps and channels than one tile holds
    Case(1, 17, 2, 64, 15, 7, padded=True),
]
HALF = [
    Case(1, 40, 2, 25, 7, 6, dropout=0.1, bias=True, padded=True, dtype=torch.float16),
    Case(1, 33, 1, 62, 31, 15, dropout=0.1, bias=True, padded=True, dtype=torch.bfloat16),
    Case(1, 34, 1, 128, 31, 15, dropout=0.1, bias=True, padded=True, dtype=torch.bfloat16),  # tiles twice as wide
]


def apart(tensor: Tensor) -> Tensor:
    """The same values inside a larger tensor of NaN, which whoever reads beyond the edge meets."""
    inside = tuple(slice(8, 8 + n) for n in tensor.shape)
    wide = torch.full([n + 16 for n in tensor.shape], float("nan"), dtype=tensor.dtype, device=tensor.device)
    wide[inside] = tensor
    return wide[inside]


def inputs(op: str, case: Case, device: str) -> dict[str, Tensor]:
    """What the operator differentiates, leaves all."""
    torch.manual_seed(0)
    made = {"x": torch.randn(case.batch, case.length, case.heads * case.shared)}
    rows = (case.batch, case.length, case.heads)
    if op == "talk":
        made["left"] = torch.rand(rows)
        if case.padding < case.taps - 1:
            made["right"] = torch.rand(rows)
    else:
        made["weight"] = torch.randn((case.heads, case.taps) if op == "light" else (*rows, case.taps))
    if case.bias:
        made["bias"] = torch.randn(case.heads * case.shared)
    return {name: apart(tensor.to(device, case.dtype)).requires_grad_() for name, tensor in made.items()}


def call(op: str, case: Case, given: dict[str, Tensor], impl: Any) -> Tensor:
    x, bias = given["x"], given.get("bias")
    lengths = torch.tensor([[case.length], [(case.length + 1) // 2]], device=x.device)[-case.batch :]
    keep = torch.arange(case.length, device=x.device) < lengths if case.padded else None
    seed = torch.tensor([-(2**40) + 17], device=x.device)
    rest = {"bias": bias, "keep": keep, "dropout": case.dropout, "seed": seed, "impl": impl}
    if op == "talk":
        ahead = case.taps - 1 - case.padding
        return talk_conv(x, given["left"], given.get("right"), case.padding, ahead, **rest)
    function: Callable[..., Tensor] = light_conv if op == "light" else dynamic_conv
    return function(x, given["weight"], case.padding, **rest)


def distance(ours: Tensor, theirs: Tensor) -> float:
    return float((ours.double().cpu() - theirs).norm() / theirs.norm().clamp(min=1e-12))


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("case", CASES + HALF, ids=str)
def test_equals_the_reference(op: str, case: Case, device: str) -> None:
    given = inputs(op, case, device)
    exact = {name: tensor.detach().double().cpu().requires_grad_() for name, tensor in given.items()}
    ours, theirs = call(op, case, given, "triton"), call(op, case, exact, "reference")
    assert ours.dtype == case.dtype
    upstream = apart(torch.randn(ours.shape).to(device, case.dtype))
    found = [ours, *torch.autograd.grad(ours, list(given.values()), upstream)]
    expected = [theirs, *torch.autograd.grad(theirs, list(exact.values()), upstream.double().cpu())]
    limit = LIMITS[case.dtype]
    for name, mine, reference in zip(["o", *given], found, expected, strict=True):
        # An offset's gradient is 0 where its box has nowhere to grow; then nothing is left to be relative to.
        if reference.norm() > 1e-9 or mine.norm() > 1e-6:
            assert distance(mine.detach(), reference.detach()) < limit, name


@pytest.mark.parametrize("op", OPS)
def test_two_runs_give_the_same_bits(op: str, device: str) -> None:
    case = Case(1, 40, 1, 25, 31, 3, dropout=0.1, bias=True)

    def run() -> list[Tensor]:
        given = inputs(op, case, device)
        out = call(op, case, given, "triton")
        return [out, *torch.autograd.grad(out.square().sum(), list(given.values()))]

    assert all(torch.equal(a, b) for a, b in zip(run(), run(), strict=True))


def test_each_seed_drops_other_taps(device: str) -> None:
    x, weight = torch.ones(2, 32, 2, device=device), torch.zeros(2, 32, 2, 4, device=device)
    torch.manual_seed(0)
    first, second = (dynamic_conv(x, weight, 3, dropout=0.25, impl="triton") for _ in range(2))
    assert not torch.equal(first, second)
    torch.manual_seed(0)
    assert torch.equal(first, dynamic_conv(x, weight, 3, dropout=0.25, impl="triton"))
    assert first[:, 3:].mean() == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("op", OPS)
def test_gradient_of_one_input_alone(op: str, device: str) -> None:
    case = Case(1, 9, 2, 16, 5, 2, bias=True)
    given = inputs(op, case, device)
    whole = torch.autograd.grad(call(op, case, given, "triton").sum(), list(given.values()))
    for (name, tensor), expected in zip(given.items(), whole, strict=True):
        alone = {n: t.detach().requires_grad_(n == name) for n, t in given.items()}
        call(op, case, alone, "triton").sum().backward()
        grad = alone[name].grad
        assert grad is not None, name
        assert torch.equal(grad, expected), tensor.shape


def test_offsets_may_be_halves_of_one_tensor(device: str) -> None:
    torch.manual_seed(0)
    x, both = torch.randn(2, 33, 6, device=device), torch.rand(2, 33, 4, device=device)

    def run(left: Tensor, right: Tensor) -> list[Tensor]:
        left, right = (tensor.detach().requires_grad_() for tensor in (left, right))
        out = talk_conv(x, left, right, 3, 2, impl="triton")
        return [out, *torch.autograd.grad(out.square().sum(), [left, right])]

    halves = both.chunk(2, -1)
    apart = run(*(half.contiguous() for half in halves))
    assert all(torch.equal(a, b) for a, b in zip(run(*halves), apart, strict=True))
    mixed = run(halves[0], halves[1].contiguous())
    assert all(torch.equal(a, b) for a, b in zip(mixed, apart, strict=True))


def test_offsets_on_the_box_edges(device: str) -> None:
    """At whole steps a box has two slopes. The kernels' is that of a box a little smaller."""
    case = Case(1, 12, 1, 16, 9, 4)
    given = inputs("talk", case, device)
    exact = {"x": given["x"].detach().double().cpu().requires_grad_()}
    for name in ("left", "right"):
        given[name] = (torch.arange(12, device=device) % 5 / 4).view(1, 12, 1).requires_grad_()
        exact[name] = (given[name].detach().double().cpu() - 1e-8).requires_grad_()
    found, expected = (
        torch.autograd.grad(call("talk", case, those, impl).square().sum(), list(those.values()))
        for those, impl in ((given, "triton"), (exact, "reference"))
    )
    assert all(distance(a, b) < 1e-5 for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("shape", [(0, 4, 6), (2, 0, 6)])
def test_nothing_in_nothing_out(shape: tuple[int, int, int], device: str) -> None:
    x = torch.zeros(shape, device=device, requires_grad=True)
    weight = torch.zeros(2, 3, device=device, requires_grad=True)
    out = light_conv(x, weight, 1, impl="triton")
    out.sum().backward()
    assert out.shape == shape
    assert weight.grad is not None
    assert not weight.grad.any()


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # what opcheck itself does
@pytest.mark.parametrize("op", OPS)
def test_is_a_sound_operator(op: str, device: str) -> None:
    """Its schema, its shapes without values, its gradient, and a compiled graph's view of it."""
    from lite_nmt.ops.band_triton import forward_op

    case = Case(1, 3, 2, 4, 3, 1)
    given = {name: tensor.detach().clone().requires_grad_() for name, tensor in inputs(op, case, device).items()}
    x, weight, right = given["x"], given.get("weight", given.get("left")), given.get("right")
    torch.library.opcheck(forward_op, (x, weight, right, None, None, None, op, 2, 3, 1, 0.0))


@pytest.mark.parametrize("op", OPS)
def test_compiles(op: str, device: str) -> None:
    case = Case(2, 9, 2, 25, 7, 3, dropout=0.1, padded=True)
    given = inputs(op, case, device)
    compiled = torch.compile(call, fullgraph=True, backend="inductor" if device == "cuda" else "aot_eager")
    out, expected = compiled(op, case, given, "triton"), call(op, case, given, "triton")
    assert torch.equal(out, expected)
    upstream = torch.randn_like(out)
    for mine, reference in zip(
        torch.autograd.grad(out, list(given.values()), upstream),
        torch.autograd.grad(expected, list(given.values()), upstream),
        strict=True,
    ):
        torch.testing.assert_close(mine, reference)
