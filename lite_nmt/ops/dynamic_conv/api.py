"""DynamicConv, whichever implementation computes it."""

from __future__ import annotations

from torch import Tensor

from lite_nmt.ops.dynamic_conv import reference
from lite_nmt.ops.implementation import Implementation, check, check_taps, drawn, use_triton


def dynamic_conv(
    x: Tensor,
    logits: Tensor,
    padding: int,
    *,
    bias: Tensor | None = None,
    keep: Tensor | None = None,
    dropout: float = 0.0,
    seed: Tensor | None = None,
    impl: Implementation = "auto",
) -> Tensor:
    """o[t] = sum_k D(softmax_k(w[t, h]))[k] x[t + k - P] + bias (Pay Less Attention, equation 6).

    Args:
        x: B T C; channels h R ... h R + R - 1 are head h's, R = C/H.
        logits: w, B T H K.
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
    check(x, check_taps(logits, tuple(x.shape[:2]), padding), bias, keep, dropout, seed, logits)
    seed = drawn(seed, x, dropout)
    if use_triton(impl, x, logits, bias):
        from lite_nmt.ops.dynamic_conv import triton

        return triton.dynamic_conv(x, logits, padding, bias, keep, dropout, seed)
    return reference.dynamic_conv(x, logits, padding, bias, keep, dropout, seed)
