"""Every form of the span's attention against a plain dense one, with all gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.attention import flex_attention

from lite_nmt.errors import LiteNmtError
from lite_nmt.modules.adaptive_span import AdaptiveSpan
from lite_nmt.ops.adaptive_span import flex, reference
from lite_nmt.ops.adaptive_span.api import span_attend

Always = tuple[Tensor, Tensor] | None
SIZES = [(1, 0, 1), (7, 0, 3), (7, 2, 20), (70, 5, 9), (67, 90, 81), (33, 200, 70)]  # steps, those before, W


def dense(q: Tensor, k: Tensor, v: Tensor, places: Tensor, mask: Tensor, always: Always = None) -> Tensor:
    """The paper's order: softmax of everything in reach, times the mask, normalised again."""
    length, past = q.shape[2], k.shape[2] - q.shape[2]
    out = torch.zeros_like(q)
    for t in range(length):
        distance = past + t - torch.arange(k.shape[2])
        seen = (distance >= 0) & (distance < len(places))
        d = distance[seen]
        logits = torch.einsum("bhr,bhsr->bhs", q[:, :, t], k[:, :, seen] + places[d]) / q.shape[-1] ** 0.5
        m, values = mask[:, d].expand(len(q), -1, -1), v[:, :, seen]
        if always is not None:
            own = torch.einsum("bhr,hnr->bhn", q[:, :, t], always[0]) / q.shape[-1] ** 0.5
            logits, m = torch.cat([own, logits], -1), torch.cat([torch.ones_like(own), m], -1)
            values = torch.cat([always[1].expand(len(q), -1, -1, -1), values], 2)
        weights = logits.softmax(-1) * m
        out[:, :, t] = torch.einsum("bhs,bhsr->bhr", weights / weights.sum(-1, keepdim=True), values)
    return out


def made(length: int, past: int, wide: int, persistent: int) -> list[Tensor]:
    """Four heads: one sees all W steps, one about half, and two, whose z is 0, the ramp's few."""
    torch.manual_seed(length * 100 + past * 10 + wide)
    heads, r = 4, 3
    shapes = [(2, heads, length, r), *[(2, heads, past + length, r)] * 2, (wide, r)]
    tensors = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    tensors.append(torch.tensor([[wide + 2.4], [wide / 2 + 0.3], [2.5], [2.5]], dtype=torch.float64))
    tensors += [torch.randn(heads, persistent, r, dtype=torch.float64) for _ in range(2)] if persistent else []
    return [t.requires_grad_() for t in tensors]


def run(function: Callable[..., Tensor], tensors: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    mask = ((tensors[4] - torch.arange(len(tensors[3]))) / 2.5).clamp(0, 1)
    out = function(*tensors[:4], mask, always=tuple(tensors[5:]) or None)
    weight = torch.arange(out.numel(), dtype=out.dtype).view(out.shape).sin()
    return out, list(torch.autograd.grad((out * weight).sum(), tensors))


@pytest.mark.parametrize("persistent", [0, 4])
@pytest.mark.parametrize(("length", "past", "wide"), SIZES)
def test_forms_agree_with_the_dense_one(
    length: int, past: int, wide: int, persistent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors = made(length, past, wide, persistent)
    expected, gradients = run(dense, tensors)
    assert expected.isfinite().all()
    for form in ("_blocks", "_windows"):
        monkeypatch.setattr(reference, "_blocks", getattr(reference, form))
        found, theirs = run(span_attend, tensors)
        torch.testing.assert_close(found, expected)
        for ours, other in zip(theirs, gradients, strict=True):
            torch.testing.assert_close(ours, other)


@pytest.fixture
def on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """FlexAttention as PyTorch writes it without a compiler, every key beside every step; it has the gradients too, and
    refuses them on a CPU only because its kernels there lack them."""
    monkeypatch.setattr(flex_attention, "_validate_device", lambda *those: None)


def compiled(backend: str) -> Callable[..., Tensor]:
    return torch.compile(flex_attention.flex_attention, fullgraph=True, dynamic=True, backend=backend)


def flexed(q: Tensor, k: Tensor, v: Tensor, places: Tensor, mask: Tensor, always: Always) -> Tensor:
    return flex.span_attend(q, k, v, places, mask, always)


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # what torch.compile looks at
@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize(
    ("dtype", "limit", "backend", "sizes"),
    [
        (torch.float64, 1e-9, "eager", [(1, 0, 1), (7, 130, 20), (67, 90, 81)]),
        (torch.float32, 1e-5, "aot_eager", [(7, 130, 20)]),  # traced together with its gradients
    ],
)
def test_flex_attention_is_the_reference(
    dtype: torch.dtype, limit: float, backend: str, sizes: list[tuple[int, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flex, "fused", functools.cache(lambda: compiled(backend)))
    for size in sizes:
        for persistent in (0, 4):
            tensors = [t.detach().to(dtype).requires_grad_() for t in made(*size, persistent)]
            exact = [t.detach().double().requires_grad_() for t in tensors]
            found, theirs = run(flexed, tensors)
            expected, gradients = run(span_attend, exact)
            assert found.dtype == dtype
            for ours, other in zip([found, *theirs], [expected, *gradients], strict=True):
                assert (ours.double() - other).norm() <= limit * other.norm() + 1e-12, (size, persistent)


@pytest.mark.parametrize(("steps", "past", "count"), [(1, 0, 0), (300, 0, 0), (128, 511, 0), (300, 600, 40)])
def test_flex_attention_is_given_each_heads_own_blocks(steps: int, past: int, count: int) -> None:
    """All that hold something a head sees, and no others but at the end, where the last block is cut off."""
    spans = torch.tensor([512, 1, 129, 128])
    keys = count + past + steps
    far = torch.arange(keys - steps, keys).unsqueeze(1) - torch.arange(keys)
    seen = (torch.arange(keys) < count) | ((far >= 0) & (far < spans.view(-1, 1, 1)))
    found = flex.blocks(spans, steps, keys, count)
    whole = torch.zeros(4, *(n * flex.BLOCK for n in found.shape[1:]), dtype=torch.bool)
    whole[:, :steps, :keys] = seen
    needed = whole.unflatten(1, (-1, flex.BLOCK)).unflatten(3, (-1, flex.BLOCK)).any(4).any(2)
    rows = steps // flex.BLOCK
    assert not (needed & ~found).any()
    assert torch.equal(found[:, :rows], needed[:, :rows])


def test_what_is_out_of_reach_is_not_read() -> None:
    q, k, v, places, _ = (t.detach() for t in made(40, 60, 8, 0))
    mask = torch.ones(4, 8, dtype=q.dtype)
    expected = span_attend(q, k, v, places, mask)
    k[:, :, : 60 - 7] = v[:, :, : 60 - 7] = torch.nan
    torch.testing.assert_close(span_attend(q, k, v, places, mask), expected, rtol=0, atol=0)


def test_products_are_those_within_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1,024 steps, no product is computed for more than two blocks' keys, of the head's own reach."""
    seen: list[tuple[int, ...]] = []
    inner = reference._softmax

    def note(q: Tensor, logits: Tensor, *rest: Any) -> Any:
        seen.append(tuple(logits.shape))
        return inner(q, logits, *rest)

    monkeypatch.setattr(reference, "_softmax", note)
    q, k, v = torch.randn(3, 1, 3, 1024, 4).unbind(0)
    spans = torch.tensor([32, 256, 20])
    span_attend(q, k, v, torch.randn(256, 4), (torch.arange(256) < spans.unsqueeze(1)).float())
    assert sorted(seen) == [(1, 1, 8, 128, 383), (1, 2, 32, 32, 63)]


def given(dtype: torch.dtype = torch.float32, device: str = "cpu") -> list[Tensor]:
    shapes = [(2, 4, 5, 3), (2, 4, 9, 3), (2, 4, 9, 3), (6, 3), (4, 6)]
    return [torch.ones(shape, dtype=dtype, device=device) for shape in shapes]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({0: (4, 5, 3)}, "q has the shape"),
        ({1: (2, 4, 4, 3), 2: (2, 4, 4, 3)}, "5 steps or more"),
        ({2: (2, 4, 9, 2)}, "k and v have"),
        ({3: (6, 2)}, "places has"),
        ({4: (4, 5)}, "mask has the shape"),
    ],
)
def test_refuses_by_name(changed: dict[int, tuple[int, ...]], message: str) -> None:
    tensors = [torch.ones(changed.get(i, tuple(t.shape))) for i, t in enumerate(given())]
    with pytest.raises(ValueError, match=message):
        span_attend(*tensors)
    with pytest.raises(ValueError, match="persistent values have"):
        span_attend(*given(), always=(torch.ones(4, 2, 3), torch.ones(4, 2, 4)))


def test_an_explicit_choice_never_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LiteNmtError, match=r"tensors lie on cpu|not installed"):
        span_attend(*given(), impl="triton")
    mixer = AdaptiveSpan(8, 2, 4, 2)
    mixer.impl = "triton"
    with pytest.raises(LiteNmtError, match=r"tensors lie on cpu|not installed"):
        mixer(torch.zeros(1, 3, 8))
    # What it says where the device would do; "meta" stands for one.
    monkeypatch.setattr("lite_nmt.ops.implementation.obstacle", lambda *those: "")
    monkeypatch.setattr("lite_nmt.ops.adaptive_span.api.DEVICE", "meta")
    with pytest.raises(LiteNmtError, match="3 channels"):
        span_attend(*given(device="meta"), impl="triton")
    with pytest.raises(LiteNmtError, match="attention_dropout must be 0"):
        span_attend(*given(device="meta"), dropout=torch.nn.Dropout(0.1), impl="triton")
    with pytest.raises(LiteNmtError, match="float64"):
        span_attend(*given(torch.float64, "meta"), impl="triton")
