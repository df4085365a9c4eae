"""The banded product's kernels as PyTorch operators, with their gradients: what autograd and torch.compile see."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor

from lite_nmt.ops.band_kernels import band_backward, band_forward
from lite_nmt.ops.band_parts import DYNAMIC, LIGHT, TALK

FARTHEST = 2**25  # elements between two steps; a tile's own offsets are 32 bits
INTERPRETED: bool = triton.knobs.runtime.interpret
MODES = {"light": int(LIGHT), "dynamic": int(DYNAMIC), "talk": int(TALK)}


@dataclass(frozen=True)
class Tiling:
    """How one program cuts its share; field by field the kernels' constants of the same names."""

    STEP: int
    ROWS: int
    COLUMNS: int
    TAPS: int
    CHUNKS: int
    SHARE: int
    SHARES: int
    VECTOR: int


def tiling(taps: int, shared: int, aligned: int, most: int) -> Tiling:
    """For K taps and R channels a head: the smallest tiles that a matrix unit takes and a band half fills.

    ``STEP`` rows see ``STEP + TAPS - 1`` columns, at most ``COLUMNS``. Channels are loaded in vectors of ``VECTOR``,
    which divides ``aligned``, where steps begin; heads may begin elsewhere (LSRA's have 25, 51 and 62 channels), if no
    larger tile is needed for it. A tile has at most ``most`` channels.
    """
    chunk = min(32, max(8, triton.next_power_of_2(taps)))
    columns = 32 if chunk <= 8 else 64
    widest = triton.next_power_of_2(shared)
    reach = {v: shared + v - math.gcd(shared, v) for v in (8, 4, 2, 1) if aligned % v == 0}
    vector = next(v for v, needed in reach.items() if needed <= max(16, widest))
    share = min(most, max(16, widest))
    return Tiling(
        STEP=min(32, columns - chunk + 1),
        ROWS=32,
        COLUMNS=columns,
        TAPS=chunk,
        CHUNKS=triton.cdiv(taps, chunk),
        SHARE=share,
        SHARES=triton.cdiv(reach[vector], share),
        VECTOR=vector,
    )


def _warps(backward: bool, mode: str, shared: int, cut: Tiling, full: bool) -> int:
    """As few as hold the tiles in registers: what all warps do alike, indices and waiting, is then done less often."""
    if cut.CHUNKS > 1:
        return 8 if full or (backward and (mode == "dynamic" or cut.SHARE > 64)) else 4
    if full:
        if backward:
            return 8 if cut.TAPS > 8 or cut.SHARES > 1 else 4
        return 4 if cut.TAPS > 8 or cut.SHARES > 1 else 2
    if backward and cut.TAPS > 8:
        return 4 if mode == "dynamic" else 2
    return 1 if cut.SHARE <= 64 and shared % cut.VECTOR == 0 else 2


@functools.cache
def constants(
    backward: bool,
    mode: str,
    heads: int,
    shared: int,
    taps: int,
    padding: int,
    aligned: int,
    dtype: torch.dtype,
) -> dict[str, Any]:
    """All that is fixed when a kernel is compiled, launch options included.

    Args:
        aligned: a power of two that divides where steps begin; 8 for all beyond.
    """
    full = dtype is torch.float32
    cut = tiling(taps, shared, aligned, 64 if full else 128)
    return {
        "MODE": MODES[mode],
        "H": heads,
        "R": shared,
        "P": padding,
        "K": taps,
        **vars(cut),
        "PRECISION": "tf32x3" if dtype is torch.float32 else "ieee",  # never TF32 alone
        "WIDEN": INTERPRETED,
        "num_warps": _warps(backward, mode, shared, cut, full),
        "num_stages": 1,
        "enable_fp_fusion": True,
    }


def _unit(x: Tensor) -> Tensor:
    """With channels side by side; sentences may lie anywhere, and steps nearly so."""
    return x if x.stride(-1) == 1 and x.stride(1) <= FARTHEST else x.contiguous()


def _rows(weights: Tensor, right: Tensor | None) -> tuple[Tensor, Tensor | None, int]:
    """Both with rows evenly apart, as halves of one tensor are too; and how far that is."""
    if weights.dim() > 2 and weights[0, 0].is_contiguous():
        apart, row = weights.stride()[:2]
        if apart == len(weights[0]) * row and (right is None or right.stride() == weights.stride()):
            return weights, right, row
    weights, right = weights.contiguous(), None if right is None else right.contiguous()
    return weights, right, weights[0, 0].numel()


def _bytes(keep: Tensor | None) -> Tensor | None:
    return None if keep is None else keep.contiguous().view(torch.uint8)


def _dropping(dropout: float) -> tuple[int, float]:
    """The threshold of 31 random bits under which a tap is dropped, and what the others are multiplied by."""
    return round(dropout * 2**31), 1 / (1 - dropout)


def launch_forward(
    x: Tensor,
    weights: Tensor,
    right: Tensor | None,
    bias: Tensor | None,
    keep: Tensor | None,
    seed: Tensor | None,
    mode: str,
    heads: int,
    taps: int,
    padding: int,
    dropout: float,
) -> Tensor:
    batch, length, channels = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    x = _unit(x)
    weights, right, row = _rows(weights, right)
    aligned = math.gcd(8, channels, *x.stride()[:2])
    fixed = constants(False, mode, heads, channels // heads, taps, padding, aligned, x.dtype)
    grid = (batch * heads * fixed["SHARES"], triton.cdiv(length, fixed["STEP"]))
    with torch.cuda.device_of(x):  # Triton launches on the current device, wherever the tensors lie
        band_forward[grid](
            x,
            weights,
            right,
            None if bias is None else bias.contiguous(),
            _bytes(keep),
            seed,
            out,
            length,
            row,
            x.stride(0),
            x.stride(1),
            *_dropping(dropout),
            **fixed,
        )
    return out


forward_op = torch.library.custom_op("lite_nmt::band_forward", launch_forward, mutates_args=())


@forward_op.register_fake
def _(x: Tensor, *rest: Any) -> Tensor:
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


def launch_backward(
    grad: Tensor,
    x: Tensor,
    weights: Tensor,
    right: Tensor | None,
    bias: Tensor | None,
    keep: Tensor | None,
    seed: Tensor | None,
    mode: str,
    heads: int,
    taps: int,
    padding: int,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of x, weights, right and bias; empty for the last two where there is none."""
    batch, length, channels = x.shape
    dx, dweights, dright, dbias = _gradients(x, weights, right, bias)
    if not dx.numel():
        return dx, dweights.zero_(), dright.zero_(), dbias.zero_()
    grad, x = _unit(grad), _unit(x)
    weights, right, row = _rows(weights, right)
    aligned = math.gcd(8, channels, *x.stride()[:2], *grad.stride()[:2])
    fixed = constants(True, mode, heads, channels // heads, taps, padding, aligned, x.dtype)
    tiles = triton.cdiv(length, fixed["STEP"])
    by_tile = x.new_empty(batch * tiles, heads, taps, dtype=torch.float32) if mode == "light" else None
    bias_by_tile = None if bias is None else x.new_empty(batch * tiles, channels, dtype=torch.float32)
    with torch.cuda.device_of(x):
        band_backward[(batch * heads, tiles)](
            grad,
            x,
            weights,
            right,
            _bytes(keep),
            seed,
            dx,
            dweights if by_tile is None else by_tile,
            None if right is None else dright,
            bias_by_tile,
            length,
            row,
            x.stride(0),
            x.stride(1),
            grad.stride(0),
            grad.stride(1),
            *_dropping(dropout),
            **fixed,
        )
    if by_tile is not None:
        dweights = by_tile.sum(0).to(weights.dtype)
    if bias is not None and bias_by_tile is not None:
        dbias = bias_by_tile.sum(0).to(bias.dtype)
    return dx, dweights, dright, dbias


backward_op = torch.library.custom_op("lite_nmt::band_backward", launch_backward, mutates_args=())


def _gradients(
    x: Tensor, weights: Tensor, right: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    dx, dweights = (torch.empty(given.shape, dtype=given.dtype, device=x.device) for given in (x, weights))
    dright, dbias = (x.new_empty(0) if given is None else given.new_empty(given.shape) for given in (right, bias))
    return dx, dweights, dright, dbias


@backward_op.register_fake
def _(grad: Tensor, x: Tensor, weights: Tensor, right: Tensor | None, bias: Tensor | None, *rest: Any) -> Any:
    return _gradients(x, weights, right, bias)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:6])
    ctx.rest = inputs[6:]


def _gradient(backward: Callable[..., tuple[Tensor, Tensor, Tensor, Tensor]]) -> Callable[..., Any]:
    def formula(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        _, _, right, bias, _, _ = ctx.saved_tensors
        dx, dweights, dright, dbias = backward(grad, *ctx.saved_tensors, *ctx.rest)
        absent = (None,) * (2 + len(ctx.rest))
        return dx, dweights, None if right is None else dright, None if bias is None else dbias, *absent

    return formula


forward_op.register_autograd(_gradient(backward_op), setup_context=_setup)


class _Eager(torch.autograd.Function):
    """The same without PyTorch's registry, whose calls take longer than the kernels do for a short sentence."""

    forward = staticmethod(launch_forward)
    setup_context = staticmethod(_setup)
    backward: Any = staticmethod(torch.autograd.function.once_differentiable(_gradient(launch_backward)))


def forward(x: Tensor, *arguments: Any) -> Tensor:
    """:func:`launch_forward`, with gradients, for torch.compile as for everyone else."""
    plain = type(x) is Tensor and not torch.compiler.is_compiling()
    return (_Eager.apply if plain else forward_op)(x, *arguments)
