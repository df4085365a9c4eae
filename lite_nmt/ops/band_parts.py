"""What the kernels of the banded product are made of: random bits, the three makers of taps, tiles in and out.

Rows of taps are named by ``anchor``, the number b T + t of the first one, and ``local``, their distances from it; each
begins ``row`` numbers after the one before.
"""

from __future__ import annotations

import triton
import triton.language as tl

LIGHT: tl.constexpr = tl.constexpr(0)  # softmax_k(w[h])
DYNAMIC: tl.constexpr = tl.constexpr(1)  # softmax_k(w[b, t, h])
TALK: tl.constexpr = tl.constexpr(2)  # a soft box from two offsets a[b, t, h]


@triton.jit
def _bits(seed_ptr, anchor, local, head, quad):
    """Philox4x32-10 of the position itself: four words for each row (I) and four taps (Q), I Q each."""
    seed = tl.load(seed_ptr)
    zero = (local[:, None] * 0 + quad[None, :] * 0).to(tl.uint32)
    row = (anchor + local).to(tl.uint32)
    return tl.philox(seed, zero + quad[None, :].to(tl.uint32), zero + row[:, None], zero + head, zero)


@triton.jit
def _survivors(bits, threshold, scale):
    return tl.where((bits >> 1).to(tl.int32) >= threshold, scale, 0.0)


@triton.jit
def _dropconnect(seed_ptr, anchor, local, head, first, threshold, scale, ROWS: tl.constexpr, TAPS: tl.constexpr):
    """What each tap is multiplied by, ROWS x TAPS: 0 or 1/(1-p)."""
    a, b, c, d = _bits(seed_ptr, anchor, local, head, first // 4 + tl.arange(0, TAPS // 4))
    bits = tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), [ROWS, TAPS])  # tap 4q + i is word i
    return _survivors(bits, threshold, scale)


@triton.jit
def _logits(w_ptr, anchor, local, there, head, first, row, K: tl.constexpr, TAPS: tl.constexpr):
    """One chunk of the rows' logits, -inf beyond the last tap. A row that is not there has zeros, not garbage."""
    tap = first + tl.arange(0, TAPS)
    inside = tap < K
    at = local[:, None] * row + tap[None, :]
    w = tl.load(w_ptr + anchor * row + head * K + at, mask=there[:, None] & inside[None, :], other=0.0)
    return tl.where(inside[None, :], w.to(tl.float32), float("-inf"))


@triton.jit
def logsumexp(w_ptr, anchor, local, there, head, row, K: tl.constexpr, TAPS: tl.constexpr, CHUNKS: tl.constexpr):
    """Of each row's K logits."""
    high = tl.full(local.shape, float("-inf"), tl.float32)
    total = tl.zeros(local.shape, tl.float32)
    for n in range(CHUNKS):
        w = _logits(w_ptr, anchor, local, there, head, n * TAPS, row, K, TAPS)
        new = tl.maximum(high, tl.max(w, 1))
        base = tl.where(new == float("-inf"), 0.0, new)
        total = total * tl.exp(high - base) + tl.sum(tl.exp(w - base[:, None]), 1)
        high = new
    return high + tl.log(total)


@triton.jit
def talk_offsets(w_ptr, right_ptr, seed_ptr, anchor, local, there, head, row, LEFT, RIGHT, threshold, scale):
    """TaLK's two reaches in steps, a_l L and a_r R, and what each offset a is multiplied by to become one."""
    by_left = tl.zeros(local.shape, tl.float32) + LEFT
    by_right = tl.zeros(local.shape, tl.float32) + RIGHT
    if seed_ptr is not None:
        a, b, _, _ = _bits(seed_ptr, anchor, local, head, tl.arange(0, 1))
        by_left *= tl.sum(_survivors(a, threshold, scale), 1)
        by_right *= tl.sum(_survivors(b, threshold, scale), 1)
    at = anchor * row + head + local * row
    left = tl.load(w_ptr + at, mask=there, other=0.0).to(tl.float32) * by_left
    right = tl.zeros(local.shape, tl.float32)
    if right_ptr is not None:
        right = tl.load(right_ptr + at, mask=there, other=0.0).to(tl.float32) * by_right
    return left, right, by_left, by_right


@triton.jit
def soft_box(left, right, first, LEFT, K: tl.constexpr, TAPS: tl.constexpr):
    """The two ramps of the soft box, ROWS x TAPS, before they are clamped to [0, 1]; and which taps exist."""
    tap = first + tl.arange(0, TAPS)
    distance = (tap - LEFT)[None, :].to(tl.float32)
    return distance + left[:, None] + 1, right[:, None] + 1 - distance, (tap < K)[None, :]


@triton.jit
def clamp(ramp):
    return tl.minimum(tl.maximum(ramp, 0.0), 1.0)


@triton.jit
def rising(ramp):
    """Where a clamped ramp has a slope. Its upper end is taken to have one, its lower end not: then just one tap has,
    and it is inside the band. PyTorch's releases differ: torch.clamp took both ends until it took neither."""
    return (ramp > 0.0) & (ramp <= 1.0)


@triton.jit
def make_taps(
    w_ptr,
    right_ptr,
    seed_ptr,
    anchor,
    local,
    there,
    head,
    first,
    lse,
    row,
    LEFT,
    RIGHT,
    threshold,
    scale,
    MODE: tl.constexpr,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    TAPS: tl.constexpr,
):
    """One chunk of the rows' taps before DropConnect, and what that multiplies them by: ROWS x TAPS each."""
    m = tl.full([ROWS, TAPS], 1.0, tl.float32)
    if MODE == TALK:
        left, right, _, _ = talk_offsets(
            w_ptr, right_ptr, seed_ptr, anchor, local, there, head, row, LEFT, RIGHT, threshold, scale
        )
        low, high, inside = soft_box(left, right, first, LEFT, K, TAPS)
        p = tl.where(inside, clamp(low) * clamp(high) / K, 0.0)
    else:
        p = tl.exp(_logits(w_ptr, anchor, local, there, head, first, row, K, TAPS) - lse[:, None])
        if seed_ptr is not None:
            m = _dropconnect(seed_ptr, anchor, local, head, first, threshold, scale, ROWS, TAPS)
    return p, m


@triton.jit
def skewed(taps, index, ROWS: tl.constexpr, TAPS: tl.constexpr):
    """Taps form to band form: entry (i, j) is tap index[i, j] of row i, 0 where there is no such tap."""
    taps = tl.broadcast_to(taps, [ROWS, TAPS])
    band = tl.gather(taps, tl.minimum(tl.maximum(index, 0), TAPS - 1), 1)
    return tl.where((index >= 0) & (index < TAPS), band, 0.0)


@triton.jit
def channels_of(head, R, VECTOR: tl.constexpr):
    """Where a head's tiles begin, a multiple of VECTOR, and how many channels before the head's first that is."""
    begin = head * R // VECTOR * VECTOR
    return begin, head * R - begin


@triton.jit
def load_tile(
    ptr, batch, start, there, head, first, stride, R, ROWS: tl.constexpr, SHARE: tl.constexpr, VECTOR: tl.constexpr
):
    """Steps start ... start + ROWS - 1 of a part of one head's channels, ROWS x SHARE, zero where there are none.

    Where a head begins between two vectors, what its neighbours hold of those is loaded too, and left out here.
    """
    begin, edge = channels_of(head, R, VECTOR)
    stride = stride // VECTOR * VECTOR  # which it is; so said, the compiler knows
    channel = first + tl.arange(0, SHARE)
    end = (edge + R + VECTOR - 1) // VECTOR * VECTOR
    base = ptr + batch // VECTOR * VECTOR + start.to(tl.int64) * stride + begin
    at = tl.arange(0, ROWS)[:, None] * stride + channel[None, :]
    tile = tl.load(base + at, mask=there[:, None] & (channel < end)[None, :], other=0.0)
    if VECTOR > 1:
        tile = tl.where(((channel >= edge) & (channel < edge + R))[None, :], tile, 0.0)
    return tile


@triton.jit
def store_tile(
    ptr, tile, batch, start, mine, head, first, H, R, ROWS: tl.constexpr, SHARE: tl.constexpr, VECTOR: tl.constexpr
):
    """The same part of one head's channels, into a tensor whose steps lie H R apart."""
    begin, edge = channels_of(head, R, VECTOR)
    channel = first + tl.arange(0, SHARE)
    at = tl.arange(0, ROWS)[:, None] * (H * R) + channel[None, :]
    inside = (channel >= edge) & (channel < edge + R)
    base = ptr + batch + start.to(tl.int64) * (H * R) + begin
    tl.store(base + at, tile.to(ptr.dtype.element_ty), mask=mine[:, None] & inside[None, :])


@triton.jit
def present_steps(keep_ptr, b, step, T):
    """Which steps are in the sentence."""
    there = (step >= 0) & (step < T)
    if keep_ptr is not None:
        there = there & (tl.load(keep_ptr + b * T + step, mask=there, other=0) != 0)
    return there


@triton.jit
def dot(a, b, total, PRECISION: tl.constexpr, WIDEN: tl.constexpr):
    if WIDEN:  # the interpreter multiplies bfloat16's bit patterns
        a, b = a.to(tl.float32), b.to(tl.float32)
    return tl.dot(a, b, total, input_precision=PRECISION)
