"""One operator: o[t] = sum_k w[t, k] x[t + k - P], one band of K taps per head, shared by R = C/H channels.

LightConv, DynamicConv and TaLK differ only in what produces ``w``. Taps that fall outside the sequence
contribute nothing; callers zero the padded positions of ``x`` first, so that a sentence's result does not
depend on the batch it stands in.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from lite_nmt.ops.exporting import is_exporting

# Up to this many steps the band is laid out as a T x T matrix and multiplied (a few large products); beyond it
# the taps are shifted and summed, whose cost and memory are linear in T.
BAND_LIMIT = 128


def banded(x: Tensor, weights: Tensor, padding: int) -> Tensor:
    """Apply a band of weights to a sequence.

    Args:
        x: B T C.
        weights: B T H K, or H K where the taps are the same at every step. H divides C.
        padding: P, how many taps lie to the left of the current step (0 ... K-1).

    Returns:
        B T C in the dtype of x, o[b,t,h,r] = sum_k weights[b,t,h,k] * x[b,t+k-P,h,r], summed in float32 or better.
    """
    heads, taps = weights.shape[-2:]
    if x.shape[-1] % heads:
        raise ValueError(f"{x.shape[-1]} channels cannot be shared by {heads} heads")
    if not 0 <= padding < taps:
        raise ValueError(f"padding is {padding}; with {taps} taps it must be between 0 and {taps - 1}")
    if is_exporting():
        return _windows(x, weights, padding)
    if not torch.compiler.is_compiling() and torch._C._get_tracing_state():
        return _traced(x, weights, padding)  # whoever traces to count must see K taps, however they are computed
    # A compiled graph holds for every length, and a matrix for each channel would be mostly zeros.
    if torch.compiler.is_compiling() or x.shape[1] > BAND_LIMIT or heads == x.shape[-1]:
        return _shifted(x, weights, padding)
    return _as_matrix(x, weights, padding)


@torch.library.custom_op("lite_nmt::banded", mutates_args=())
def _traced(x: Tensor, weights: Tensor, padding: int) -> Tensor:
    return _shifted(x, weights, padding)


@_traced.register_fake
def _(x: Tensor, weights: Tensor, padding: int) -> Tensor:
    return torch.empty_like(x)


def _windows(x: Tensor, weights: Tensor, padding: int) -> Tensor:
    """In few standard operators, for every length: a depthwise convolution, or a product for each step's window."""
    heads, taps = weights.shape[-2:]
    batch, length, channels = x.shape
    weights = weights.to(x.dtype)
    if weights.dim() == 2:
        # As an image of height 1: ONNX Runtime's depthwise kernel for images is several times as fast as its other.
        image = x.unsqueeze(1).permute(0, 3, 1, 2)  # B C 1 T
        kernel = weights.repeat_interleave(channels // heads, 0)[:, None, None]
        alike = taps == 2 * padding + 1
        if not alike:
            image = F.pad(image, (padding, taps - 1 - padding))
        out = F.conv2d(image, kernel, padding=(0, padding if alike else 0), groups=channels)
        return out.permute(0, 2, 3, 1).squeeze(1)
    ahead = F.pad(x, (0, 0, padding, taps - 1 - padding))
    index = torch.arange(length, device=x.device).unsqueeze(1) + torch.arange(taps, device=x.device)  # T K
    windows = ahead.index_select(1, index.flatten()).view(batch, length, taps, heads, -1).transpose(2, 3)
    return torch.matmul(weights.unsqueeze(-2), windows).view(batch, length, channels)


def _shifted(x: Tensor, weights: Tensor, padding: int) -> Tensor:
    heads, taps = weights.shape[-2:]
    batch, length, channels = x.shape
    ahead = F.pad(x, (0, 0, padding, taps - 1 - padding)).view(batch, length + taps - 1, heads, channels // heads)
    weights = _accurate(weights)
    out = torch.zeros_like(ahead[:, :length], dtype=torch.promote_types(x.dtype, weights.dtype))
    for k in range(taps):
        out = out + ahead[:, k : k + length] * weights[..., k].unsqueeze(-1)
    return out.reshape(batch, length, channels).to(x.dtype)


def _as_matrix(x: Tensor, weights: Tensor, padding: int) -> Tensor:
    batch, length, channels = x.shape
    matrix = band_matrix(weights, length, padding)
    heads = weights.shape[-2]
    values = x.reshape(batch, length, heads, channels // heads).transpose(1, 2)  # B H T R
    return torch.matmul(matrix.to(x.dtype), values).transpose(1, 2).reshape(batch, length, channels)


def band_matrix(weights: Tensor, length: int, padding: int) -> Tensor:
    """The band laid out: row t, column j holds the weight with which step t takes step j.

    Args:
        weights: B T H K, or H K where the taps are the same at every step.
        length: T.
        padding: P, how many taps lie to the left of the current step.

    Returns:
        B H T T, or H T T. Taps that fall outside the sequence are left out.
    """
    taps = weights.shape[-1]
    steps = torch.arange(length, device=weights.device)
    tap = steps[None, :] - steps[:, None] + padding  # T T: the tap by which step t sees step j
    outside = (tap < 0) | (tap >= taps)
    tap = tap.clamp(0, taps - 1)
    if weights.dim() == 2:
        return weights[:, tap].masked_fill(outside, 0)
    index = tap[:, None, :].expand(*weights.shape[:3], length)
    return weights.gather(-1, index).masked_fill(outside[:, None, :], 0).transpose(1, 2)


def product(x: Tensor, taps: Tensor, padding: int, bias: Tensor | None, keep: Tensor | None) -> Tensor:
    """:func:`banded` of x, B T C, without the steps where ``keep``, B T, is false; and ``bias``, C, added."""
    if keep is not None:
        x = x.masked_fill(~keep.unsqueeze(-1), 0)
    out = banded(x, taps, padding)
    return out if bias is None else out + bias.to(out.dtype)


def banded_step(window: Tensor, weights: Tensor) -> Tensor:
    """One step of the causal product.

    Args:
        window: N K C, the last K inputs, the current one last.
        weights: N H K or H K.

    Returns:
        N C.
    """
    batch, taps, channels = window.shape
    heads = weights.shape[-2]
    if weights.dim() == 2:
        return (window * weights.repeat_interleave(channels // heads, 0).t()).sum(1)
    split = window.view(batch, taps, heads, channels // heads)
    return (split * weights.transpose(-1, -2).unsqueeze(-1)).sum(1).view(batch, channels)


def _accurate(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def normalize_taps(weights: Tensor, norm: str) -> Tensor:
    """Normalise K taps, last dimension, in float32 or better (Pay Less Attention, section 3 and Table 6)."""
    weights = _accurate(weights)
    match norm:
        case "softmax":
            return weights.softmax(-1)
        case "none":
            return weights
        case "sigmoid":
            return weights.sigmoid()
        case "tanh":
            return weights.tanh()
        case "l1":
            return weights / (weights.abs().sum(-1, keepdim=True) + 1e-6)
        case "l2":
            return weights / (weights.norm(dim=-1, keepdim=True) + 1e-6)
    raise ValueError(f"unknown tap normalisation {norm!r}")


def talk_taps(left: Tensor, right: Tensor | None, max_left: int, max_right: int) -> Tensor:
    """The soft box of TaLK Convolutions as taps of the banded product.

    w[d] = clamp(d + a_l L + 1, 0, 1) * clamp(a_r R + 1 - d, 0, 1) / (L + R + 1) for offsets d = -L ... R. Equal to
    the paper's prefix sums with interpolation (equations 2 to 8), without their loss of precision.

    Args:
        left: a_l in [0, 1], any shape.
        right: a_r in [0, 1], the same shape, or None where ``max_right`` is 0.

    Returns:
        The shape of ``left`` and K = L + R + 1 taps; use with ``padding`` = L.
    """
    left = _accurate(left)
    offset = torch.arange(-max_left, max_right + 1, device=left.device, dtype=left.dtype)
    taps = (offset + left.unsqueeze(-1) * max_left + 1).clamp(0, 1)
    if right is not None:
        taps = taps * (_accurate(right).unsqueeze(-1) * max_right + 1 - offset).clamp(0, 1)
    else:
        taps = taps * (1 - offset).clamp(0, 1)
    return taps / (max_left + max_right + 1)
