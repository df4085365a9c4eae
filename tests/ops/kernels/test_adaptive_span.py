"""FlexAttention on the device against the reference in float64: outputs and all gradients, heads of different spans."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lite_nmt.modules.adaptive_span import AdaptiveSpan
from lite_nmt.modules.dropout import Dropout
from lite_nmt.ops.adaptive_span.api import span_attend

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="FlexAttention's gradients need a CUDA device"),
    pytest.mark.filterwarnings(
        "ignore:The .grad attribute of a Tensor that is not a leaf"
    ),  # torch.compile looks at it
]
LIMITS = {torch.float32: 1e-3, torch.float16: 5e-3, torch.bfloat16: 2e-2}  # float32 may be multiplied as TF32


def inputs(length: int, past: int, wide: int, persistent: int, r: int, dtype: torch.dtype) -> list[Tensor]:
    """q, k, v, places, z in steps, and persistent keys and values; two of the four heads see the ramp alone."""
    torch.manual_seed(0)
    shapes = [(2, 4, length, r), *[(2, 4, past + length, r)] * 2, (wide, r)]
    made = [torch.randn(shape) for shape in shapes] + [torch.tensor([[wide - 8.0], [wide / 2], [0.0], [0.0]])]
    made += [torch.randn(4, persistent, r) for _ in range(2)] if persistent else []
    return [tensor.to("cuda", dtype).requires_grad_() for tensor in made]


def run(tensors: list[Tensor], impl: str) -> list[Tensor]:
    exact = torch.promote_types(tensors[4].dtype, torch.float32)
    q, k, v, places, z, *persistent = tensors
    mask = ((8 + z.to(exact) - torch.arange(len(places), device="cuda")) / 8).clamp(0, 1)
    always = (persistent[0], persistent[1]) if persistent else None
    out = span_attend(q, k, v, places, mask, always=always, impl=impl)  # type: ignore[arg-type]  # one of three
    upstream = torch.arange(out.numel(), device="cuda").view(out.shape).sin().to(out.dtype)
    return [out.detach(), *torch.autograd.grad(out, tensors, upstream)]


@pytest.mark.parametrize("dtype", list(LIMITS))
@pytest.mark.parametrize("persistent", [0, 40])
@pytest.mark.parametrize(("length", "past", "wide", "r"), [(1, 20, 9, 16), (40, 0, 64, 62), (300, 299, 300, 32)])
def test_equals_the_reference(length: int, past: int, wide: int, r: int, persistent: int, dtype: torch.dtype) -> None:
    given = inputs(length, past, wide, persistent, r, dtype)
    found = run(given, "triton")
    expected = run([tensor.detach().double().requires_grad_() for tensor in given], "reference")
    for number, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        assert ours.dtype == dtype
        assert (ours.double() - theirs).norm() < LIMITS[dtype] * theirs.norm() + 1e-9, number


def test_two_runs_give_the_same_bits() -> None:
    given = inputs(300, 299, 300, 40, 32, torch.bfloat16)
    assert all(torch.equal(a, b) for a, b in zip(run(given, "triton"), run(given, "triton"), strict=True))


def test_lengths_and_spans_may_change_often() -> None:
    for step in range(1, 20):
        given = inputs(20 + 11 * step, 13 * step, 5 + 17 * step, step % 2, 16, torch.float32)
        run(given, "triton")


def test_a_mixer_takes_it_where_it_drops_nothing() -> None:
    torch.manual_seed(0)
    mixer = AdaptiveSpan(64, 2, 40, 8, persistent=3).cuda()
    with torch.no_grad():
        mixer.z.copy_(torch.tensor([0.6, 0.0]))
    x, past = torch.randn(2, 50, 64, device="cuda"), torch.randn(2, 20, 64, device="cuda")
    mixer.impl = "reference"
    expected = mixer(x, past=past)
    mixer.impl = "triton"
    with torch.autocast("cuda", torch.bfloat16):
        found = mixer(x, past=past)
    torch.testing.assert_close(found.float(), expected, rtol=0.1, atol=0.03)
    found.float().sum().backward()
    assert all(p.grad is not None for p in mixer.parameters())
    mixer.impl = "auto"
    mixer.drop = Dropout(0.1)
    mixer(x)  # by the reference
