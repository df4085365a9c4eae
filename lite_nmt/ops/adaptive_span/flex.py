"""Attention with adaptive spans by FlexAttention, which PyTorch compiles to Triton kernels.

The kernels are told which blocks of 128 keys each head needs of its own, so that a head of a short span costs little
beside one of a long span. What depends on the distance is added to the logits from a tensor that is made before, B H T
W: an element of it belongs to one step and one key, so its gradient is the sum of one number, and though
FlexAttention adds with atomics, two runs give the same bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from lite_nmt.ops.adaptive_span.reference import log_mask, reach

BLOCK = 128  # steps and keys; FlexAttention's own
OPTIONS = {"BACKEND": "TRITON"}  # not the form for few steps, nor another package's
# Spans change as long as a model learns. One compilation serves most lengths, but a size of 1, and two sizes that are
# the same, ask for another. PyTorch's own limit is 8 in a process; then it would refuse.
COMPILATIONS = 64


@functools.cache
def fused() -> Callable[..., Tensor]:
    """FlexAttention as one kernel a pass."""
    return torch.compile(flex_attention, fullgraph=True, dynamic=True)


def span_attend(
    q: Tensor, k: Tensor, v: Tensor, places: Tensor, mask: Tensor, always: tuple[Tensor, Tensor] | None
) -> Tensor:
    """See :func:`lite_nmt.ops.adaptive_span.api.span_attend`."""
    q = q * q.shape[-1] ** -0.5
    bias = q @ places.t() + log_mask(mask).unsqueeze(1)  # B H T W
    count = 0
    if always is not None:
        count = always[0].shape[1]
        k, v = (
            torch.cat([ours.to(own.dtype).expand(len(own), -1, -1, -1), own], 2)
            for ours, own in zip(always, (k, v), strict=True)
        )
    spans = reach(mask)
    here = torch.arange(k.shape[2] - q.shape[2], k.shape[2], device=q.device)  # each step's own key

    def seen(b: Tensor, h: Tensor, t: Tensor, j: Tensor) -> Tensor:
        far = here[t] - j
        return (j < count) | ((far >= 0) & (far < spans[h]))

    def score(logit: Tensor, b: Tensor, h: Tensor, t: Tensor, j: Tensor) -> Tensor:
        far = torch.minimum(here[t] - j, spans[h] - 1).clamp(min=0)
        return torch.where(j < count, logit, logit + bias[b, h, t, far])

    needed = blocks(spans, q.shape[2], k.shape[2], count)
    which = BlockMask.from_kv_blocks(
        needed.sum(-1, dtype=torch.int32).unsqueeze(0),
        needed.int().argsort(dim=-1, descending=True, stable=True).int().unsqueeze(0),
        BLOCK_SIZE=BLOCK,
        mask_mod=seen,
        seq_lengths=(q.shape[2], k.shape[2]),
    )
    call = functools.partial(fused(), score_mod=score, block_mask=which, scale=1.0, kernel_options=OPTIONS)
    if torch.compiler.is_compiling():  # into a larger graph
        return call(q, k, v)
    with torch._dynamo.config.patch(recompile_limit=COMPILATIONS):
        return call(q, k, v)


def blocks(spans: Tensor, steps: int, keys: int, count: int) -> Tensor:
    """Which blocks of keys each head needs for each block of steps, H T/128 S/128.

    It is made of the heads' spans on their device: without a T x S mask, and without waiting.
    """
    step, key = (torch.arange(0, n, BLOCK, device=spans.device) for n in (steps, keys))
    here = step.unsqueeze(1) + keys - steps
    nearest = here - (key + BLOCK - 1)
    farthest = here + BLOCK - 1 - key
    return (key < count) | ((farthest >= 0) & (nearest < spans.view(-1, 1, 1)))
