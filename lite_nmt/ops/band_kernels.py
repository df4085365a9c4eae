"""The kernels of the banded product, o[t] = sum_k a[t, k] x[t + k - P]: one forward, one backward, three makers of a.

A program owns ``STEP`` steps of one head of one sentence. The taps of a row are made where they lie in memory order,
``taps`` form, ROWS x TAPS: softmax, DropConnect and the soft box cost nothing for what lies outside the band. A gather
skews them into ``band`` form, ROWS x COLUMNS, whose product with a tile of x is a matrix product; the inverse gather
brings the gradient back. Kernels wider than TAPS go in chunks. All sums are float32. Each output is owned by one
program, so there are no atomics and two runs give the same bits. Nothing is saved for the backward: it makes the taps
and the random bits again.

Rows of taps are named by ``anchor``, the number b T + t of the first one, and ``local``, their distances from it.
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
def _logits(w_ptr, anchor, local, there, head, first, H, K: tl.constexpr, TAPS: tl.constexpr):
    """One chunk of the rows' logits, -inf beyond the last tap. A row that is not there has zeros, not garbage."""
    tap = first + tl.arange(0, TAPS)
    inside = tap < K
    at = local[:, None] * (H * K) + tap[None, :]
    w = tl.load(w_ptr + (anchor * H + head) * K + at, mask=there[:, None] & inside[None, :], other=0.0)
    return tl.where(inside[None, :], w.to(tl.float32), float("-inf"))


@triton.jit
def _logsumexp(w_ptr, anchor, local, there, head, H, K: tl.constexpr, TAPS: tl.constexpr, CHUNKS: tl.constexpr):
    """Of each row's K logits."""
    high = tl.full(local.shape, float("-inf"), tl.float32)
    total = tl.zeros(local.shape, tl.float32)
    for n in range(CHUNKS):
        w = _logits(w_ptr, anchor, local, there, head, n * TAPS, H, K, TAPS)
        new = tl.maximum(high, tl.max(w, 1))
        base = tl.where(new == float("-inf"), 0.0, new)
        total = total * tl.exp(high - base) + tl.sum(tl.exp(w - base[:, None]), 1)
        high = new
    return high + tl.log(total)


@triton.jit
def _offsets(w_ptr, right_ptr, seed_ptr, anchor, local, there, head, H, LEFT, RIGHT, threshold, scale):
    """TaLK's two reaches in steps, a_l L and a_r R, and what each offset a is multiplied by to become one."""
    by_left = tl.zeros(local.shape, tl.float32) + LEFT
    by_right = tl.zeros(local.shape, tl.float32) + RIGHT
    if seed_ptr is not None:
        a, b, _, _ = _bits(seed_ptr, anchor, local, head, tl.arange(0, 1))
        by_left *= tl.sum(_survivors(a, threshold, scale), 1)
        by_right *= tl.sum(_survivors(b, threshold, scale), 1)
    at = anchor * H + head + local * H
    left = tl.load(w_ptr + at, mask=there, other=0.0).to(tl.float32) * by_left
    right = tl.zeros(local.shape, tl.float32)
    if right_ptr is not None:
        right = tl.load(right_ptr + at, mask=there, other=0.0).to(tl.float32) * by_right
    return left, right, by_left, by_right


@triton.jit
def _box(left, right, first, LEFT, K: tl.constexpr, TAPS: tl.constexpr):
    """The two ramps of the soft box, ROWS x TAPS, before they are clamped to [0, 1]; and which taps exist."""
    tap = first + tl.arange(0, TAPS)
    distance = (tap - LEFT)[None, :].to(tl.float32)
    return distance + left[:, None] + 1, right[:, None] + 1 - distance, (tap < K)[None, :]


@triton.jit
def _clamp(ramp):
    return tl.minimum(tl.maximum(ramp, 0.0), 1.0)


@triton.jit
def _rising(ramp):
    """Where a clamped ramp has a slope. Its upper end is taken to have one, its lower end not: then just one tap has,
    and it is inside the band. PyTorch's releases differ: torch.clamp took both ends until it took neither."""
    return (ramp > 0.0) & (ramp <= 1.0)


@triton.jit
def _taps(
    w_ptr,
    right_ptr,
    seed_ptr,
    anchor,
    local,
    there,
    head,
    first,
    lse,
    H,
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
        left, right, _, _ = _offsets(
            w_ptr, right_ptr, seed_ptr, anchor, local, there, head, H, LEFT, RIGHT, threshold, scale
        )
        low, high, inside = _box(left, right, first, LEFT, K, TAPS)
        p = tl.where(inside, _clamp(low) * _clamp(high) / K, 0.0)
    else:
        p = tl.exp(_logits(w_ptr, anchor, local, there, head, first, H, K, TAPS) - lse[:, None])
        if seed_ptr is not None:
            m = _dropconnect(seed_ptr, anchor, local, head, first, threshold, scale, ROWS, TAPS)
    return p, m


@triton.jit
def _skewed(taps, index, ROWS: tl.constexpr, TAPS: tl.constexpr):
    """Taps form to band form: entry (i, j) is tap index[i, j] of row i, 0 where there is no such tap."""
    taps = tl.broadcast_to(taps, [ROWS, TAPS])
    band = tl.gather(taps, tl.minimum(tl.maximum(index, 0), TAPS - 1), 1)
    return tl.where((index >= 0) & (index < TAPS), band, 0.0)


@triton.jit
def _channels(head, R, VECTOR: tl.constexpr):
    """Where a head's tiles begin, a multiple of VECTOR, and how many channels before the head's first that is."""
    begin = head * R // VECTOR * VECTOR
    return begin, head * R - begin


@triton.jit
def _tile(
    ptr, batch, start, there, head, first, stride, R, ROWS: tl.constexpr, SHARE: tl.constexpr, VECTOR: tl.constexpr
):
    """Steps start ... start + ROWS - 1 of a part of one head's channels, ROWS x SHARE, zero where there are none.

    Where a head begins between two vectors, what its neighbours hold of those is loaded too, and left out here.
    """
    begin, edge = _channels(head, R, VECTOR)
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
def _store(
    ptr, tile, batch, start, mine, head, first, H, R, ROWS: tl.constexpr, SHARE: tl.constexpr, VECTOR: tl.constexpr
):
    """The same part of one head's channels, into a tensor whose steps lie H R apart."""
    begin, edge = _channels(head, R, VECTOR)
    channel = first + tl.arange(0, SHARE)
    at = tl.arange(0, ROWS)[:, None] * (H * R) + channel[None, :]
    inside = (channel >= edge) & (channel < edge + R)
    base = ptr + batch + start.to(tl.int64) * (H * R) + begin
    tl.store(base + at, tile.to(ptr.dtype.element_ty), mask=mine[:, None] & inside[None, :])


@triton.jit
def _present(keep_ptr, b, step, T):
    """Which steps are in the sentence."""
    there = (step >= 0) & (step < T)
    if keep_ptr is not None:
        there = there & (tl.load(keep_ptr + b * T + step, mask=there, other=0) != 0)
    return there


@triton.jit
def _dot(a, b, total, PRECISION: tl.constexpr, WIDEN: tl.constexpr):
    if WIDEN:  # the interpreter multiplies bfloat16's bit patterns
        a, b = a.to(tl.float32), b.to(tl.float32)
    return tl.dot(a, b, total, input_precision=PRECISION)


@triton.jit(do_not_specialize=["T", "threshold"])
def band_forward(
    x_ptr,
    w_ptr,
    right_ptr,
    bias_ptr,
    keep_ptr,
    seed_ptr,
    o_ptr,
    T,
    H,
    R,
    P,
    RIGHT,
    x_batch,
    x_step,
    threshold,
    scale,
    MODE: tl.constexpr,
    K: tl.constexpr,
    STEP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    TAPS: tl.constexpr,
    CHUNKS: tl.constexpr,
    SHARE: tl.constexpr,
    SHARES: tl.constexpr,
    VECTOR: tl.constexpr,
    PRECISION: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """o: B T C. Grid: sentences x tiles x heads x SHARES, the last the fastest."""
    share = tl.program_id(0) % SHARES * SHARE
    head = tl.program_id(0) // SHARES % H
    tile = tl.program_id(0) // SHARES // H
    tiles = tl.cdiv(T, STEP)
    b = (tile // tiles).to(tl.int64)
    start = tile % tiles * STEP

    i = tl.arange(0, ROWS)
    j = tl.arange(0, COLUMNS)
    mine = (i < STEP) & (start + i < T)
    if MODE == LIGHT:  # one row of taps serves all steps
        MADE: tl.constexpr = 1
        anchor = b * 0
        local = tl.zeros([1], tl.int32)
        there = local == 0
    else:
        MADE: tl.constexpr = ROWS
        anchor = b * T + start
        local = i
        there = mine
    lse = tl.zeros(local.shape, tl.float32)
    if MODE != TALK:
        lse = _logsumexp(w_ptr, anchor, local, there, head, H, K, TAPS, CHUNKS)

    total = tl.zeros([ROWS, SHARE], tl.float32)
    for n in range(CHUNKS):
        p, m = _taps(
            w_ptr, right_ptr, seed_ptr, anchor, local, there, head, n * TAPS, lse, H, P, RIGHT, threshold, scale,
            MODE, K, MADE, TAPS,
        )  # fmt: skip
        band = _skewed(p * m, j[None, :] - i[:, None], ROWS, TAPS)
        source = start - P + n * TAPS
        present = _present(keep_ptr, b, source + j, T)
        x = _tile(x_ptr, b * x_batch, source, present, head, share, x_step, R, COLUMNS, SHARE, VECTOR)
        total = _dot(band.to(x.dtype), x, total, PRECISION, WIDEN)

    if bias_ptr is not None:
        begin, edge = _channels(head, R, VECTOR)
        channel = share + tl.arange(0, SHARE)
        inside = (channel >= edge) & (channel < edge + R)
        total += tl.load(bias_ptr + begin + channel, mask=inside, other=0.0).to(tl.float32)[None, :]
    _store(o_ptr, total, b * T * H * R, start, mine, head, share, H, R, ROWS, SHARE, VECTOR)


@triton.jit
def _toward_taps(
    g_ptr,
    x_ptr,
    keep_ptr,
    b,
    head,
    start,
    first,
    mine,
    T,
    R,
    P,
    x_batch,
    x_step,
    g_batch,
    g_step,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    TAPS: tl.constexpr,
    SHARE: tl.constexpr,
    SHARES: tl.constexpr,
    VECTOR: tl.constexpr,
    PRECISION: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """One chunk of the gradient of the taps a: g[t] . x[t + k - P], in taps form, ROWS x TAPS."""
    i = tl.arange(0, ROWS)
    source = start - P + first
    present = _present(keep_ptr, b, source + tl.arange(0, COLUMNS), T)
    band = tl.zeros([ROWS, COLUMNS], tl.float32)
    for s in range(SHARES):
        g = _tile(g_ptr, b * g_batch, start, mine, head, s * SHARE, g_step, R, ROWS, SHARE, VECTOR)
        x = _tile(x_ptr, b * x_batch, source, present, head, s * SHARE, x_step, R, COLUMNS, SHARE, VECTOR)
        band = _dot(g, tl.trans(x), band, PRECISION, WIDEN)
    index = i[:, None] + tl.arange(0, TAPS)[None, :]
    return tl.where(mine[:, None], tl.gather(band, tl.minimum(index, COLUMNS - 1), 1), 0.0)


@triton.jit(do_not_specialize=["T", "threshold"])
def band_backward(
    g_ptr,
    x_ptr,
    w_ptr,
    right_ptr,
    keep_ptr,
    seed_ptr,
    dx_ptr,
    dw_ptr,
    dright_ptr,
    dbias_ptr,
    T,
    H,
    R,
    P,
    RIGHT,
    x_batch,
    x_step,
    g_batch,
    g_step,
    threshold,
    scale,
    MODE: tl.constexpr,
    K: tl.constexpr,
    STEP: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    TAPS: tl.constexpr,
    CHUNKS: tl.constexpr,
    SHARE: tl.constexpr,
    SHARES: tl.constexpr,
    VECTOR: tl.constexpr,
    PRECISION: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """dx: B T C. dw: B T H K (DYNAMIC), B T H (TALK), or one H K for each tile, to be summed (LIGHT). dbias: C for each
    tile, to be summed. Grid: sentences x tiles x heads, the last the fastest."""
    head = tl.program_id(0) % H
    tile = tl.program_id(0) // H
    tiles = tl.cdiv(T, STEP)
    b = (tile // tiles).to(tl.int64)
    start = tile % tiles * STEP
    i = tl.arange(0, ROWS)
    j = tl.arange(0, COLUMNS)
    mine = (i < STEP) & (start + i < T)

    # This tile's rows: the gradient of the taps, through DropConnect and softmax, or through the box.
    if MODE == LIGHT:
        MADE: tl.constexpr = 1
        SKEWED: tl.constexpr = 1
        anchor = b * 0
        local = tl.zeros([1], tl.int32)
        there = local == 0
        out = tile.to(tl.int64)  # which row of the gradient is this program's
    else:
        MADE: tl.constexpr = ROWS
        SKEWED: tl.constexpr = COLUMNS
        anchor = b * T + start
        local = i
        there = mine
        out = anchor
    lse = tl.zeros(local.shape, tl.float32)
    if MODE == TALK:
        left, right, by_left, by_right = _offsets(
            w_ptr, right_ptr, seed_ptr, anchor, local, there, head, H, P, RIGHT, threshold, scale
        )
        dleft = tl.zeros([ROWS], tl.float32)
        dright = tl.zeros([ROWS], tl.float32)
        for n in range(CHUNKS):
            d = _toward_taps(
                g_ptr, x_ptr, keep_ptr, b, head, start, n * TAPS, mine, T, R, P, x_batch, x_step, g_batch, g_step,
                ROWS, COLUMNS, TAPS, SHARE, SHARES, VECTOR, PRECISION, WIDEN,
            )  # fmt: skip
            low, high, inside = _box(left, right, n * TAPS, P, K, TAPS)
            dleft += tl.sum(tl.where(inside & _rising(low), d * _clamp(high), 0.0), 1)
            dright += tl.sum(tl.where(inside & _rising(high), d * _clamp(low), 0.0), 1)
        at = out * H + head + local * H
        tl.store(dw_ptr + at, (dleft * by_left / K).to(dw_ptr.dtype.element_ty), mask=mine)
        if dright_ptr is not None:
            tl.store(dright_ptr + at, (dright * by_right / K).to(dright_ptr.dtype.element_ty), mask=mine)
    else:
        lse = _logsumexp(w_ptr, anchor, local, there, head, H, K, TAPS, CHUNKS)
        mean = tl.zeros(local.shape, tl.float32)  # sum_k p d, which softmax subtracts
        TURNS: tl.constexpr = 2 if CHUNKS > 1 else 1  # one chunk holds the whole row, and needs no turn for the sum
        for turn in tl.static_range(TURNS):
            for n in range(CHUNKS):
                d = _toward_taps(
                    g_ptr, x_ptr, keep_ptr, b, head, start, n * TAPS, mine, T, R, P, x_batch, x_step, g_batch, g_step,
                    ROWS, COLUMNS, TAPS, SHARE, SHARES, VECTOR, PRECISION, WIDEN,
                )  # fmt: skip
                p, m = _taps(
                    w_ptr, right_ptr, seed_ptr, anchor, local, there, head, n * TAPS, lse, H, P, RIGHT, threshold,
                    scale, MODE, K, MADE, TAPS,
                )  # fmt: skip
                if MODE == LIGHT:
                    d = tl.sum(d, 0)[None, :]
                d *= m
                if turn == 0:
                    mean += tl.sum(p * d, 1)
                if turn == TURNS - 1:
                    tap = n * TAPS + tl.arange(0, TAPS)
                    dw = p * (d - mean[:, None])
                    at = dw_ptr + (out * H + head) * K + (local[:, None] * (H * K) + tap[None, :])
                    tl.store(at, dw.to(dw_ptr.dtype.element_ty), mask=there[:, None] & (tap < K)[None, :])

    if dbias_ptr is not None:
        for s in range(SHARES):
            g = _tile(g_ptr, b * g_batch, start, mine, head, s * SHARE, g_step, R, ROWS, SHARE, VECTOR)
            sums = tl.sum(g.to(tl.float32), 0)[None, :]
            whole = tl.full([1], 1, tl.int1)
            _store(dbias_ptr, sums, b * 0, tile, whole, head, s * SHARE, H, R, 1, SHARE, VECTOR)

    # This tile's columns: dx[j] = sum_t a[t, j - t + P] g[t].
    present = _present(keep_ptr, b, start + i, T)
    for s in range(SHARES):
        total = tl.zeros([ROWS, SHARE], tl.float32)
        for n in range(CHUNKS):
            seer = start + P - n * TAPS - (TAPS - 1)  # the first of the steps that see these columns
            seen = (seer + j >= 0) & (seer + j < T)
            if MODE == LIGHT:
                theirs, away, exist, their_lse = anchor, local, there, lse
            else:
                theirs, away, exist = b * T + seer, j, seen
                their_lse = tl.zeros([COLUMNS], tl.float32)
                if MODE == DYNAMIC:
                    their_lse = _logsumexp(w_ptr, theirs, away, exist, head, H, K, TAPS, CHUNKS)
            p, m = _taps(
                w_ptr, right_ptr, seed_ptr, theirs, away, exist, head, n * TAPS, their_lse, H, P, RIGHT, threshold,
                scale, MODE, K, SKEWED, TAPS,
            )  # fmt: skip
            band = _skewed(p * m, i[None, :] - j[:, None] + TAPS - 1, COLUMNS, TAPS)
            g = _tile(g_ptr, b * g_batch, seer, seen, head, s * SHARE, g_step, R, COLUMNS, SHARE, VECTOR)
            total = _dot(tl.trans(band).to(g.dtype), g, total, PRECISION, WIDEN)
        total = tl.where(present[:, None], total, 0.0)
        _store(dx_ptr, total, b * T * H * R, start, mine, head, s * SHARE, H, R, ROWS, SHARE, VECTOR)
