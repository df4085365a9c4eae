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
def _exp(x):
    """In two instructions, where tl.exp is five that keep the smallest numbers."""
    return tl.exp2(x * 1.4426950408889634)


@triton.jit
def _highest(w):
    """Of each row. Integers in the order of the numbers: those a GPU compares across a warp in one instruction."""
    bits = w.to(tl.int32, bitcast=True)
    most = tl.max(bits ^ ((bits >> 31) & 0x7FFFFFFF), 1)
    return (most ^ ((most >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def _summed(e):
    """Of each row of numbers in [0, 1], at most 32 of them; likewise."""
    return tl.sum((e * 67108864.0 + 0.5).to(tl.uint32), 1).to(tl.float32) * (1 / 67108864)  # 2^26


@triton.jit
def softmax(w_ptr, anchor, local, there, head, row, K: tl.constexpr, TAPS: tl.constexpr, CHUNKS: tl.constexpr):
    """What makes the taps of each row of K logits: exp(w - high) factor."""
    if CHUNKS == 1:
        w = _logits(w_ptr, anchor, local, there, head, 0, row, K, TAPS)
        high = _highest(w)
        total = _summed(_exp(w - high[:, None]))
    else:
        high = tl.full(local.shape, float("-inf"), tl.float32)
        total = tl.zeros(local.shape, tl.float32)
        for n in range(CHUNKS):
            w = _logits(w_ptr, anchor, local, there, head, n * TAPS, row, K, TAPS)
            new = tl.maximum(high, _highest(w))
            base = tl.where(new == float("-inf"), 0.0, new)
            total = total * _exp(high - base) + _summed(_exp(w - base[:, None]))
            high = new
    root = tl.rsqrt(total)  # one instruction, where a division is ten
    return high, root * root


@triton.jit
def talk_offsets(
    w_ptr,
    right_ptr,
    seed_ptr,
    anchor,
    local,
    there,
    head,
    row,
    threshold,
    scale,
    LEFT: tl.constexpr,
    K: tl.constexpr,
):
    """TaLK's two reaches in steps, a_l L and a_r R, and what each offset a is multiplied by to become one."""
    by_left = tl.zeros(local.shape, tl.float32) + LEFT
    by_right = tl.zeros(local.shape, tl.float32) + (K - 1 - LEFT)
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
def soft_box(left, right, index, first, LEFT: tl.constexpr, K: tl.constexpr, TAPS: tl.constexpr):
    """The two ramps of the soft box at the taps first + index of each row, before they are clamped to [0, 1]; and which
    of these taps are in the chunk."""
    inside = (index >= 0) & (index < TAPS) & (index + first < K)
    distance = (index + first - LEFT).to(tl.float32)
    return distance + (left[:, None] + 1), (right[:, None] + 1) - distance, inside


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
    seed_ptr,
    anchor,
    local,
    there,
    head,
    first,
    high,
    factor,
    row,
    threshold,
    scale,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    TAPS: tl.constexpr,
):
    """One chunk of the rows' softmax taps before DropConnect, and what that multiplies them by: ROWS x TAPS each."""
    w = _logits(w_ptr, anchor, local, there, head, first, row, K, TAPS)
    p = _exp(w - high[:, None]) * factor[:, None]
    m = tl.full([ROWS, TAPS], 1.0, tl.float32)
    if seed_ptr is not None:
        m = _dropconnect(seed_ptr, anchor, local, head, first, threshold, scale, ROWS, TAPS)
    return p, m


@triton.jit
def make_band(
    w_ptr,
    right_ptr,
    seed_ptr,
    anchor,
    local,
    there,
    head,
    first,
    high,
    factor,
    row,
    threshold,
    scale,
    index,
    MODE: tl.constexpr,
    LEFT: tl.constexpr,
    K: tl.constexpr,
    MADE: tl.constexpr,
    ROWS: tl.constexpr,
    TAPS: tl.constexpr,
):
    """One chunk of the rows' taps after DropConnect, skewed: entry (i, j) is tap first + index[i, j] of row i."""
    if MODE == TALK:
        left, right, _, _ = talk_offsets(
            w_ptr, right_ptr, seed_ptr, anchor, local, there, head, row, threshold, scale, LEFT, K
        )
        own = index if index.shape[1] <= TAPS else tl.arange(0, TAPS)[None, :]  # whichever is fewer numbers
        low, up, inside = soft_box(left, right, own, first, LEFT, K, TAPS)
        taps = tl.where(inside, clamp(low) * clamp(up) * (1 / K), 0.0)
    else:
        p, m = make_taps(
            w_ptr, seed_ptr, anchor, local, there, head, first, high, factor, row, threshold, scale, K, MADE, TAPS
        )
        taps = tl.broadcast_to(p * m, [ROWS, TAPS])
    if MODE == TALK and index.shape[1] <= TAPS:
        band = taps
    else:
        band = tl.where((index >= 0) & (index < TAPS), tl.gather(taps, index & (TAPS - 1), 1), 0.0)
    return band


@triton.jit
def channels_of(head, R: tl.constexpr, VECTOR: tl.constexpr):
    """Where a head's tiles begin, a multiple of VECTOR, and how many channels before the head's first that is."""
    begin = head * R // VECTOR * VECTOR
    return begin, head * R - begin


@triton.jit
def load_tile(
    ptr,
    batch,
    start,
    there,
    head,
    first,
    stride,
    R: tl.constexpr,
    ROWS: tl.constexpr,
    SHARE: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """Steps start ... start + ROWS - 1 of a part of one head's channels, ROWS x SHARE, zero where there are none.

    Where a head begins between two vectors, what its neighbours hold of those is loaded too, and left out here.
    """
    begin, edge = channels_of(head, R, VECTOR)
    stride = stride // VECTOR * VECTOR  # which it is; so said, the compiler knows
    channel = first + tl.arange(0, SHARE)
    base = ptr + batch // VECTOR * VECTOR + start.to(tl.int64) * stride + begin
    at = tl.arange(0, ROWS)[:, None] * stride + channel[None, :]
    if R % VECTOR == 0:
        tile = tl.load(base + at, mask=there[:, None] & (channel < R)[None, :], other=0.0)
    else:
        end = (edge + R + VECTOR - 1) // VECTOR * VECTOR
        tile = tl.load(base + at, mask=there[:, None] & (channel < end)[None, :], other=0.0)
        tile = tl.where(((channel >= edge) & (channel < edge + R))[None, :], tile, 0.0)
    return tile


@triton.jit
def store_tile(
    ptr,
    tile,
    batch,
    start,
    mine,
    head,
    first,
    H: tl.constexpr,
    R: tl.constexpr,
    ROWS: tl.constexpr,
    SHARE: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """The same part of one head's channels, into a tensor whose steps lie H R apart."""
    begin, edge = channels_of(head, R, VECTOR)
    channel = first + tl.arange(0, SHARE)
    at = tl.arange(0, ROWS)[:, None] * (H * R) + channel[None, :]
    inside = channel < R
    if R % VECTOR:
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
