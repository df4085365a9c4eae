"""TaLK Convolutions, whichever implementation computes it."""

from __future__ import annotations

from torch import Tensor

from lite_nmt.ops.implementation import Implementation, check, drawn, use_triton
from lite_nmt.ops.talk_conv import reference


def talk_conv(
    x: Tensor,
    left: Tensor,
    right: Tensor | None,
    max_left: int,
    max_right: int,
    *,
    bias: Tensor | None = None,
    keep: Tensor | None = None,
    dropout: float = 0.0,
    seed: Tensor | None = None,
    impl: Implementation = "auto",
) -> Tensor:
    """o[t] = sum of x from step t - D(a_l) L to step t + D(a_r) R, both ends soft, by L + R + 1 (TaLK, equations 2-8).

    The taps are :func:`lite_nmt.ops.banded.talk_taps`'.

    Args:
        x: B T C; channels of one head side by side.
        left: a_l, B T H, in [0, 1].
        right: a_r, the same shape, or None where ``max_right`` is 0.
        max_left, max_right: L and R, in steps.
        bias: C.
        keep: B T, bool; steps where it is false count as zero.
        dropout: D drops offsets with this probability, and divides the others by its complement.
        seed: of D, one int64 on x's device; None draws one. The same seed drops the same offsets.
        impl: "auto" takes the Triton kernels where they run.

    Returns:
        B T C, in the dtype of x. The kernels sum in float32.

    Raises:
        ValueError: a shape or a number does not fit, by name.
        LiteNmtError: ``impl`` cannot run here; the message says what can.
    """
    check(x, left.shape[-1] if left.dim() else 0, bias, keep, dropout, seed, left, right)
    if left.shape[:-1] != x.shape[:2]:
        raise ValueError(f"left has the shape {tuple(left.shape)}; it must be {tuple(x.shape[:2])} and H heads")
    if min(max_left, max_right) < 0:
        raise ValueError(f"max_left is {max_left} and max_right {max_right}; neither may be negative")
    if (right is None) != (max_right == 0) or (right is not None and right.shape != left.shape):
        found = None if right is None else tuple(right.shape)
        raise ValueError(f"right is {found} and max_right {max_right}; give it, like left, exactly where that is not 0")
    seed = drawn(seed, x, dropout)
    if use_triton(impl, x, left, right, bias):
        from lite_nmt.ops.talk_conv import triton

        return triton.talk_conv(x, left, right, max_left, max_right, bias, keep, dropout, seed)
    return reference.talk_conv(x, left, right, max_left, max_right, bias, keep, dropout, seed)
