"""LightConv, whichever implementation computes it."""

from __future__ import annotations

from torch import Tensor

from lite_nmt.ops.implementation import Implementation, check, check_taps, drawn, use_triton
from lite_nmt.ops.light_conv import reference


def light_conv(
    x: Tensor,
    weight: Tensor,
    padding: int,
    *,
    bias: Tensor | None = None,
    keep: Tensor | None = None,
    dropout: float = 0.0,
    seed: Tensor | None = None,
    impl: Implementation = "auto",
) -> Tensor:
    """o[t] = sum_k D(softmax_k(w[h]))[k] x[t + k - P] + bias (Pay Less Attention, equations 4 and 5).

    Args:
        x: B T C; channels h R ... h R + R - 1 are head h's, R = C/H.
        weight: w, H K: logits of each head's taps.
        padding: P, how many taps lie to the left of the current step, 0 ... K-1.
        bias: C.
        keep: B T, bool; steps where it is false count as zero.
        dropout: D drops taps with this probability, and divides the others by its complement.
        seed: of D, one int64 on x's device; None draws one. The same seed drops the same taps.
        impl: "auto" takes the Triton kernels where they run.

    Returns:
        B T C, in the dtype of x. The kernels sum in float32.

    Raises:
        ValueError: a shape or a number does not fit, by name.
        LiteNmtError: ``impl`` cannot run here; the message says what can.
    """
    check(x, check_taps(weight, (), padding), bias, keep, dropout, seed, weight)
    seed = drawn(seed, x, dropout)
    if use_triton(impl, x, weight, bias):
        from lite_nmt.ops.light_conv import triton

        return triton.light_conv(x, weight, padding, bias, keep, dropout, seed)
    return reference.light_conv(x, weight, padding, bias, keep, dropout, seed)
