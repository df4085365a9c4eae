"""Which implementation of an operator runs: the plain PyTorch reference, or the fused Triton kernels."""

from __future__ import annotations

import functools
import importlib.util
from typing import Literal, get_args

import torch
from torch import Tensor

from lite_nmt.errors import LiteNmtError
from lite_nmt.ops.exporting import is_exporting

Implementation = Literal["auto", "reference", "triton"]
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
CAPABILITY = (8, 0)


def use_triton(impl: Implementation, x: Tensor, *others: Tensor | None, limit: str = "") -> bool:
    """Whether the Triton kernels compute an operator of these tensors.

    "auto" takes them where they run: a CUDA device of compute capability 8.0 or more, Triton installed, float32,
    float16 or bfloat16. While a graph is exported or traced it takes the reference, as on a CPU. ``limit`` is what the
    operator's own kernels cannot do of what is asked; empty where they can.

    Raises:
        LiteNmtError: ``impl`` is "triton", and they do not run here; or it is none of the three.
    """
    if impl == "reference":
        return False
    kind, index = x.device.type, x.device.index
    odd = [t.dtype for t in (x, *others) if t is not None and t.dtype not in DTYPES]
    watched = is_exporting() or (not torch.compiler.is_compiling() and torch._C._get_tracing_state())
    if impl == "auto":
        return kind == "cuda" and not odd and not watched and not limit and not obstacle(kind, index)
    if impl != "triton":
        raise LiteNmtError(f"impl is {impl!r}; it must be one of {', '.join(get_args(Implementation))}.")
    reason = obstacle(kind, index) or limit
    if odd:
        reason = f"a tensor is {odd[0]}, and the kernels take float32, float16 and bfloat16"
    if watched:
        reason = "a graph is being exported or traced, which must hold standard operators"
    if reason:
        raise LiteNmtError(f'impl is "triton", but {reason}; use impl = "reference" or "auto".')
    return True


def obstacle(kind: str, index: int | None) -> str:
    """Why the kernels do not run on a device; empty where they do."""
    return _obstacle(kind, index)


# What torch.compiler.assume_constant_result does, but for importing torch._dynamo: a second, at every start.
obstacle._dynamo_marked_constant = True  # type: ignore[attr-defined]


@functools.cache
def _obstacle(kind: str, index: int | None) -> str:
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed (on Linux: pip install 'lite-nmt[triton]')"
    from lite_nmt.ops.band_triton import INTERPRETED

    if INTERPRETED:
        return "" if kind == "cpu" else f"the tensors lie on {kind}, and Triton's interpreter takes those of a CPU"
    if kind != "cuda":
        return f"the tensors lie on {kind}, and the kernels need a CUDA device"
    if (found := torch.cuda.get_device_capability(index)) < CAPABILITY:
        return "the device has compute capability {}.{}, and the kernels need {}.{}".format(*found, *CAPABILITY)
    return ""


def check(
    x: Tensor,
    heads: int,
    bias: Tensor | None,
    keep: Tensor | None,
    dropout: float,
    seed: Tensor | None,
    weights: Tensor,
    right: Tensor | None = None,
) -> None:
    """What the three convolutions ask of the arguments that they share.

    Raises:
        ValueError: by name, with the value.
    """
    if x.dim() != 3 or not x.is_floating_point():
        raise ValueError(f"x is {x.dtype} of shape {tuple(x.shape)}; it must be floating-point, B T C")
    if heads < 1 or x.shape[-1] % heads:
        raise ValueError(f"{x.shape[-1]} channels cannot be shared by {heads} heads")
    if bias is not None and bias.shape != x.shape[-1:]:
        raise ValueError(f"bias has the shape {tuple(bias.shape)}; with {x.shape[-1]} channels it must be one row")
    if keep is not None and (keep.shape != x.shape[:2] or keep.dtype != torch.bool):
        raise ValueError(f"keep is {keep.dtype} of shape {tuple(keep.shape)}; it must be bool, {tuple(x.shape[:2])}")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout}; it must be at least 0 and below 1")
    if seed is not None and (seed.dtype != torch.int64 or seed.numel() != 1):
        raise ValueError(f"seed is {seed.dtype} of shape {tuple(seed.shape)}; it must be one int64")
    named = {"bias": bias, "keep": keep, "seed": seed, "the weights": weights, "right": right}
    for name, tensor in named.items():
        if tensor is not None and tensor.device != x.device:
            raise ValueError(f"x lies on {x.device} and {name} on {tensor.device}; they must lie on one device")


def check_taps(weights: Tensor, rows: tuple[int, ...], padding: int) -> int:
    """That weights have H heads of K taps for each row, and that the current step is among the taps.

    Returns:
        H.

    Raises:
        ValueError: by name, with the value.
    """
    shape = tuple(weights.shape)
    if len(shape) != len(rows) + 2 or shape[:-2] != rows:
        expected = "".join(f"{size} " for size in rows)
        raise ValueError(f"the weights have the shape {shape}; it must be {expected}H K")
    if not 0 <= padding < shape[-1]:
        raise ValueError(f"padding is {padding}; with {shape[-1]} taps it must be between 0 and {shape[-1] - 1}")
    return shape[-2]


def drawn(seed: Tensor | None, x: Tensor, dropout: float) -> Tensor | None:
    """The seed to drop by; where none is given, one from the generator of x's device. None where nothing is dropped.

    It is a tensor on that device, so that a captured CUDA graph drops others at each replay.
    """
    if not dropout:
        return None
    return torch.randint(2**62, (1,), device=x.device) if seed is None else seed
