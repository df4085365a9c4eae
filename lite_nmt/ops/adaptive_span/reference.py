"""Attention to the last W steps, with a mask and an embedding for each distance (Sukhbaatar et al. 2019).

A[t, t-d] = softmax_d(q[t] . (k[t-d] + p[d]) / sqrt(R) + log m[d]): the paper's mask, m in [0, 1], multiplies after the
softmax, which is then normalised again; that is the same as adding log m before it. What lies W or
more steps back is neither read nor computed; on a CPU, W is that of heads that see about as far, not the layer's.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from lite_nmt.ops.exporting import is_exporting

NONE = float("-inf")


def span_attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    places: Tensor,
    mask: Tensor,
    always: tuple[Tensor, Tensor] | None,
    dropout: Callable[[Tensor], Tensor] | None,
) -> Tensor:
    """See :func:`lite_nmt.ops.adaptive_span.api.span_attend`."""
    # Whoever counts or exports must see W keys a step, however they are computed.
    if is_exporting() or torch._C._get_tracing_state():
        return _attend(_windows, q, k, v, places, mask, always, dropout)
    if q.device.type != "cpu" or torch.compiler.is_compiling():  # where to ask for values is to wait
        return _attend(_blocks, q, k, v, places, mask, always, dropout)
    groups = _groups(mask)
    if len(groups) == 1:
        return _attend(_blocks, q, k, v, places, mask, always, dropout)
    parts = []
    for heads, wide in groups:
        theirs = None if always is None else (always[0][heads], always[1][heads])
        those = (q[:, heads], k[:, heads], v[:, heads], places[:wide], mask[heads, :wide])
        parts.append(_attend(_blocks, *those, theirs, dropout))
    order = torch.tensor([head for heads, _ in groups for head in heads])
    return torch.cat(parts, 1)[:, order.argsort()]


def reach(mask: Tensor) -> Tensor:
    """How many steps each head sees, H: up to the last that its mask leaves something of."""
    return ((mask > 0) * torch.arange(1, mask.shape[1] + 1, device=mask.device)).amax(1)


def _groups(mask: Tensor) -> list[tuple[list[int], int]]:
    """Heads that see about as far, within a factor of two, and how far the farthest of them does."""
    far: list[int] = reach(mask.detach()).tolist()
    groups: dict[int, list[int]] = {}
    for head, steps in enumerate(far):
        groups.setdefault((max(steps, 64) - 1).bit_length(), []).append(head)
    return [(heads, max(far[head] for head in heads)) for heads in groups.values()]


def _attend(
    form: Callable[..., Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    places: Tensor,
    mask: Tensor,
    always: tuple[Tensor, Tensor] | None,
    dropout: Callable[[Tensor], Tensor] | None,
) -> Tensor:
    past = min(k.shape[2] - q.shape[2], len(places) - 1)
    k, v = (x[:, :, x.shape[2] - q.shape[2] - past :] for x in (k, v))
    q = q * q.shape[-1] ** -0.5
    # B H T W, the farthest first, as keys are.
    bias = q @ places.flip(0).t() + log_mask(mask.flip(1)).unsqueeze(1)
    return form(q, k, v, bias, past, always, dropout)


def log_mask(mask: Tensor) -> Tensor:
    """log m, with no gradient where m is 0."""
    return mask.clamp_min(torch.finfo(mask.dtype).tiny).log().masked_fill(mask <= 0, NONE)


def _windows(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor,
    past: int,
    always: tuple[Tensor, Tensor] | None,
    dropout: Callable[[Tensor], Tensor] | None,
) -> Tensor:
    """Each step's own W keys, gathered: in few standard operators, for every length."""
    length, wide = bias.shape[2:]
    missing = wide - 1 - past
    step, slot = torch.arange(length, device=q.device).unsqueeze(1), torch.arange(wide, device=q.device)
    index = step + slot  # T W, into what is padded in front
    k, v = (F.pad(x, (0, 0, missing, 0)).index_select(2, index.flatten()).unflatten(2, index.shape) for x in (k, v))
    logits = (q.unsqueeze(-2) @ k.transpose(-1, -2)).squeeze(-2) + bias
    weights, more = _softmax(q, logits.masked_fill(index < missing, NONE), always, dropout)
    return (weights.unsqueeze(-2) @ v).squeeze(-2) + more


def _blocks(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor,
    past: int,
    always: tuple[Tensor, Tensor] | None,
    dropout: Callable[[Tensor], Tensor] | None,
) -> Tensor:
    """L steps at a time against the L+W-1 that they see together: few large products, and none out of reach."""
    length, wide = bias.shape[2:]
    size = min(length, max(32, wide // 2))
    beyond = -length % size
    q, bias = (F.pad(x, (0, 0, 0, beyond)).unflatten(2, (-1, size)) for x in (q, bias))  # B H T/L L ...
    missing = wide - 1 - past
    k, v = (F.pad(x, (0, 0, missing, beyond)).unfold(2, size + wide - 1, size) for x in (k, v))  # B H T/L R L+W-1
    # Row i of a block sees columns i ... i+W-1: a row that is longer by L, laid out one shorter, moves right by one.
    skewed = F.pad(bias, (0, size), value=NONE).flatten(-2)[..., : size * (size + wide - 1)]
    logits = q @ k + skewed.unflatten(-1, (size, -1))
    if missing:  # the text begins within reach
        first = torch.arange(k.shape[2], device=q.device).unsqueeze(1) * size
        there = first + torch.arange(size + wide - 1, device=q.device) >= missing
        logits = logits.masked_fill(~there.unsqueeze(1), NONE)
    weights, more = _softmax(q, logits, always, dropout)
    return (weights @ v.transpose(-1, -2) + more).flatten(2, 3)[:, :, :length]


def _softmax(
    q: Tensor, logits: Tensor, always: tuple[Tensor, Tensor] | None, dropout: Callable[[Tensor], Tensor] | None
) -> tuple[Tensor, Tensor | float]:
    """The weights of the text's keys, and what the persistent values add."""
    count = 0
    if always is not None:
        key, value = (x if q.dim() == 4 else x.unsqueeze(1) for x in always)  # H (1) N R
        logits = torch.cat([q @ key.transpose(-1, -2), logits], -1)
        count = key.shape[-2]
    weights = logits.softmax(-1, dtype=torch.promote_types(q.dtype, torch.float32)).to(q.dtype)
    if dropout is not None:
        weights = dropout(weights)
    return weights[..., count:], weights[..., :count] @ value if count else 0.0
