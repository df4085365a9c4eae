"""Every form of the span's attention against a plain dense one, with all gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from lite_nmt.ops import adaptive_span
from lite_nmt.ops.adaptive_span import span_attend

Always = tuple[Tensor, Tensor] | None


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
    torch.manual_seed(length * 100 + past * 10 + wide)
    heads, r = 2, 3
    shapes = [(2, heads, length, r), *[(2, heads, past + length, r)] * 2, (wide, r)]
    tensors = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    tensors.append(torch.tensor([[wide + 2.4], [wide / 2 + 0.3]], dtype=torch.float64))  # how far each head sees
    tensors += [torch.randn(heads, persistent, r, dtype=torch.float64) for _ in range(2)] if persistent else []
    return [t.requires_grad_() for t in tensors]


def run(function: Callable[..., Tensor], tensors: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    mask = ((tensors[4] - torch.arange(len(tensors[3]))) / 2.5).clamp(0, 1)  # zero for one head before the other
    out = function(*tensors[:4], mask, tuple(tensors[5:]) or None)
    weight = torch.arange(out.numel(), dtype=out.dtype).view(out.shape).sin()
    return out, list(torch.autograd.grad((out * weight).sum(), tensors))


@pytest.mark.parametrize("persistent", [0, 4])
@pytest.mark.parametrize(
    ("length", "past", "wide"), [(1, 0, 1), (7, 0, 3), (7, 2, 20), (70, 5, 9), (67, 90, 81), (33, 200, 70)]
)
def test_forms_agree_with_the_dense_one(
    length: int, past: int, wide: int, persistent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors = made(length, past, wide, persistent)
    expected, gradients = run(dense, tensors)
    assert expected.isfinite().all()
    for form in ("_blocks", "_windows"):
        monkeypatch.setattr(adaptive_span, "_blocks", getattr(adaptive_span, form))
        found, theirs = run(span_attend, tensors)
        torch.testing.assert_close(found, expected)
        for ours, other in zip(theirs, gradients, strict=True):
            torch.testing.assert_close(ours, other)


def test_what_is_out_of_reach_is_not_read() -> None:
    q, k, v, places, _ = (t.detach() for t in made(40, 60, 8, 0))
    mask = torch.ones(2, 8, dtype=q.dtype)
    expected = span_attend(q, k, v, places, mask)
    k[:, :, : 60 - 7] = v[:, :, : 60 - 7] = torch.nan
    torch.testing.assert_close(span_attend(q, k, v, places, mask), expected, rtol=0, atol=0)


def test_products_are_those_within_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1,024 steps that see 32 each, no product is computed for more than two blocks' keys."""
    seen: list[tuple[int, ...]] = []
    inner = adaptive_span._softmax

    def note(q: Tensor, logits: Tensor, *rest: Any) -> Any:
        seen.append(tuple(logits.shape))
        return inner(q, logits, *rest)

    monkeypatch.setattr(adaptive_span, "_softmax", note)
    q, k, v = torch.randn(3, 1, 2, 1024, 4).unbind(0)
    span_attend(q, k, v, torch.randn(32, 4), torch.ones(2, 32))
    assert seen == [(1, 2, 32, 32, 63)]
