"""The kernels of the banded product, o[t] = sum_k a[t, k] x[t + k - P]: one forward, one backward, three makers of a.

A program owns ``STEP`` steps of one head of one sentence. The taps of a row are made where they lie in memory order,
``taps`` form, ROWS x TAPS: softmax, DropConnect and the soft box cost nothing for what lies outside the band. A gather
skews them into ``band`` form, ROWS x COLUMNS, whose product with a tile of x is a matrix product; the inverse gather
brings the gradient back. Kernels wider than TAPS go in chunks. All sums are float32. Each output is owned by one
program, so there are no atomics and two runs give the same bits. Nothing is saved for the backward: it makes the taps
and the random bits again.

``band_parts.py`` has the parts.
"""

from __future__ import annotations

import triton
import triton.language as tl

from lite_nmt.ops.band_parts import (
    DYNAMIC,
    LIGHT,
    TALK,
    channels_of,
    clamp,
    dot,
    load_tile,
    make_band,
    make_taps,
    present_steps,
    rising,
    soft_box,
    softmax,
    store_tile,
    talk_offsets,
)


@triton.jit(do_not_specialize=["T", "x_batch", "threshold"])  # what changes with the length of a batch
def band_forward(
    x_ptr,
    w_ptr,
    right_ptr,
    bias_ptr,
    keep_ptr,
    seed_ptr,
    o_ptr,
    T,
    row,
    x_batch,
    x_step,
    threshold,
    scale,
    MODE: tl.constexpr,
    H: tl.constexpr,
    R: tl.constexpr,
    P: tl.constexpr,
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
    """o: B T C. Grid: sentences x heads x SHARES, the last the fastest; tiles."""
    share = tl.program_id(0) % SHARES * SHARE
    head = tl.program_id(0) // SHARES % H
    b = (tl.program_id(0) // (SHARES * H)).to(tl.int64)
    start = tl.program_id(1) * STEP

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
    high, factor = there, there
    if MODE != TALK:
        high, factor = softmax(w_ptr, anchor, local, there, head, row, K, TAPS, CHUNKS)

    total = tl.zeros([ROWS, SHARE], tl.float32)
    for n in range(CHUNKS):
        band = make_band(
            w_ptr, right_ptr, seed_ptr, anchor, local, there, head, n * TAPS, high, factor, row, threshold, scale,
            j[None, :] - i[:, None], MODE, P, K, MADE, ROWS, TAPS,
        )  # fmt: skip
        source = start - P + n * TAPS
        present = present_steps(keep_ptr, b, source + j, T)
        x = load_tile(x_ptr, b * x_batch, source, present, head, share, x_step, R, COLUMNS, SHARE, VECTOR)
        total = dot(band.to(x.dtype), x, total, PRECISION, WIDEN)

    if bias_ptr is not None:
        begin, edge = channels_of(head, R, VECTOR)
        channel = share + tl.arange(0, SHARE)
        inside = (channel >= edge) & (channel < edge + R)
        total += tl.load(bias_ptr + begin + channel, mask=inside, other=0.0).to(tl.float32)[None, :]
    store_tile(o_ptr, total, b * T * H * R, start, mine, head, share, H, R, ROWS, SHARE, VECTOR)


@triton.jit
def _toward_band(
    g_ptr,
    x_ptr,
    keep_ptr,
    b,
    head,
    start,
    first,
    mine,
    T,
    x_batch,
    x_step,
    g_batch,
    g_step,
    R: tl.constexpr,
    P: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    SHARE: tl.constexpr,
    SHARES: tl.constexpr,
    VECTOR: tl.constexpr,
    PRECISION: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """One chunk of the gradient of the taps a: g[t] . x[t + k - P], in band form, ROWS x COLUMNS."""
    source = start - P + first
    present = present_steps(keep_ptr, b, source + tl.arange(0, COLUMNS), T)
    band = tl.zeros([ROWS, COLUMNS], tl.float32)
    for s in range(SHARES):
        g = load_tile(g_ptr, b * g_batch, start, mine, head, s * SHARE, g_step, R, ROWS, SHARE, VECTOR)
        x = load_tile(x_ptr, b * x_batch, source, present, head, s * SHARE, x_step, R, COLUMNS, SHARE, VECTOR)
        band = dot(g, tl.trans(x), band, PRECISION, WIDEN)
    return band


@triton.jit(do_not_specialize=["T", "x_batch", "g_batch", "threshold"])
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
    row,
    x_batch,
    x_step,
    g_batch,
    g_step,
    threshold,
    scale,
    MODE: tl.constexpr,
    H: tl.constexpr,
    R: tl.constexpr,
    P: tl.constexpr,
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
    tile, to be summed. Grid: sentences x heads, the last the fastest; tiles."""
    head = tl.program_id(0) % H
    b = (tl.program_id(0) // H).to(tl.int64)
    tile = b * tl.num_programs(1) + tl.program_id(1)
    start = tl.program_id(1) * STEP
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
        out = tile  # which row of the gradient is this program's
    else:
        MADE: tl.constexpr = ROWS
        SKEWED: tl.constexpr = COLUMNS
        anchor = b * T + start
        local = i
        there = mine
        out = anchor
    high, factor = there, there
    if MODE == TALK:
        left, right, by_left, by_right = talk_offsets(
            w_ptr, right_ptr, seed_ptr, anchor, local, there, head, row, threshold, scale, P, K
        )
        dleft = tl.zeros([ROWS], tl.float32)
        dright = tl.zeros([ROWS], tl.float32)
        for n in range(CHUNKS):
            d = _toward_band(
                g_ptr, x_ptr, keep_ptr, b, head, start, n * TAPS, mine, T, x_batch, x_step, g_batch, g_step,
                R, P, ROWS, COLUMNS, SHARE, SHARES, VECTOR, PRECISION, WIDEN,
            )  # fmt: skip
            index = j[None, :] - i[:, None]
            if CHUNKS > 1:  # which needs fewer registers
                d = tl.gather(d, (i[:, None] + tl.arange(0, TAPS)[None, :]) & (COLUMNS - 1), 1)
                index = tl.arange(0, TAPS)[None, :]
            low, up, inside = soft_box(left, right, index, n * TAPS, P, K, TAPS)
            dleft += tl.sum(tl.where(inside & rising(low), d * clamp(up), 0.0), 1)
            dright += tl.sum(tl.where(inside & rising(up), d * clamp(low), 0.0), 1)
        at = out * H + head + local * H
        tl.store(dw_ptr + at, (dleft * by_left * (1 / K)).to(dw_ptr.dtype.element_ty), mask=mine)
        if dright_ptr is not None:
            tl.store(dright_ptr + at, (dright * by_right * (1 / K)).to(dright_ptr.dtype.element_ty), mask=mine)
    else:
        high, factor = softmax(w_ptr, anchor, local, there, head, row, K, TAPS, CHUNKS)
        mean = tl.zeros(local.shape, tl.float32)  # sum_k p d, which softmax subtracts
        TURNS: tl.constexpr = 2 if CHUNKS > 1 else 1  # one chunk holds the whole row, and needs no turn for the sum
        for turn in tl.static_range(TURNS):
            for n in range(CHUNKS):
                d = _toward_band(
                    g_ptr, x_ptr, keep_ptr, b, head, start, n * TAPS, mine, T, x_batch, x_step, g_batch, g_step,
                    R, P, ROWS, COLUMNS, SHARE, SHARES, VECTOR, PRECISION, WIDEN,
                )  # fmt: skip
                index = i[:, None] + tl.arange(0, TAPS)[None, :]
                d = tl.where(mine[:, None], tl.gather(d, index & (COLUMNS - 1), 1), 0.0)
                p, m = make_taps(
                    w_ptr, seed_ptr, anchor, local, there, head, n * TAPS, high, factor, row, threshold, scale, K,
                    MADE, TAPS,
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
            g = load_tile(g_ptr, b * g_batch, start, mine, head, s * SHARE, g_step, R, ROWS, SHARE, VECTOR)
            sums = tl.sum(g.to(tl.float32), 0)[None, :]
            whole = tl.full([1], 1, tl.int1)
            store_tile(dbias_ptr, sums, b * 0, tile, whole, head, s * SHARE, H, R, 1, SHARE, VECTOR)

    # This tile's columns: dx[j] = sum_t a[t, j - t + P] g[t].
    present = present_steps(keep_ptr, b, start + i, T)
    for s in range(SHARES):
        total = tl.zeros([ROWS, SHARE], tl.float32)
        for n in range(CHUNKS):
            seer = start + P - n * TAPS - (TAPS - 1)  # the first of the steps that see these columns
            seen = (seer + j >= 0) & (seer + j < T)
            theirs, away, exist, their_high, their_factor = anchor, local, there, high, factor
            if MODE != LIGHT:
                theirs, away, exist = b * T + seer, j, seen
            if MODE == DYNAMIC:
                their_high, their_factor = softmax(w_ptr, theirs, away, exist, head, row, K, TAPS, CHUNKS)
            band = make_band(
                w_ptr, right_ptr, seed_ptr, theirs, away, exist, head, n * TAPS, their_high, their_factor, row,
                threshold, scale, i[None, :] - j[:, None] + TAPS - 1, MODE, P, K, SKEWED, COLUMNS, TAPS,
            )  # fmt: skip
            g = load_tile(g_ptr, b * g_batch, seer, seen, head, s * SHARE, g_step, R, COLUMNS, SHARE, VECTOR)
            total = dot(tl.trans(band).to(g.dtype), g, total, PRECISION, WIDEN)
        total = tl.where(present[:, None], total, 0.0)
        store_tile(dx_ptr, total, b * T * H * R, start, mine, head, s * SHARE, H, R, ROWS, SHARE, VECTOR)
