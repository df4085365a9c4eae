"""Plain int8: each weight a whole number of steps of its own row, the grid that integer matrix products read.

Importing this needs numpy, not PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lite_nmt.compress.kmeans import Floats
from lite_nmt.errors import LiteNmtError

TOP = 127  # -128 is not used, so that the grid is symmetric
_SMALLEST = np.finfo(np.float32).smallest_normal


def quantize_rows(weights: Floats) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Round weights to the grid of their row: w ~ scale * code, scale = max|row| / 127, ties to the even code.

    Weights that lie on such a grid are left as they are, to the bit: of ``scale * code``, in float32, this returns
    the same codes and scales. The largest code of a row is 127, and float32(127 * scale) / 127 is scale again for
    all scales that are themselves a float32 number divided by 127. (It is not for every scale: where 127 * scale
    falls halfway between two numbers, both give a neighbour of scale. But then no number gives scale.)

    A row of zeros, or of numbers below 1.5e-36, whose scale would be subnormal, has codes of zero and a scale of 1.

    Args:
        weights: two or more dimensions; a row is all that has the same first index (an output channel, a token).

    Returns:
        Codes from -127 to 127 in the weights' shape, and a scale for each row, above zero.

    Raises:
        LiteNmtError: a weight is NaN, or infinite or next to it.
    """
    weights = weights.astype(np.float32, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.abs(weights).max(axis=tuple(range(1, weights.ndim)), initial=0)
        scales: NDArray[np.float32] = largest / TOP
        finite = np.isfinite(scales * TOP).all()
    if not finite:
        raise LiteNmtError("the weights hold NaN or infinite numbers; quantise another checkpoint.")
    empty = scales < _SMALLEST
    codes = np.rint(weights / _by_row(np.where(empty, np.float32(np.inf), scales), weights)).astype(np.int8)
    scales[empty] = 1
    return codes, scales


def dequantize_rows(codes: NDArray[np.int8], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """scale * code, in the codes' shape."""
    return codes.astype(np.float32) * _by_row(scales, codes)


def _by_row(scales: NDArray[np.float32], like: Floats | NDArray[np.int8]) -> NDArray[np.float32]:
    return scales.reshape(-1, *(1,) * (like.ndim - 1))


@dataclass(frozen=True)
class Rows:
    """A tensor in int8, as :func:`quantize_rows` makes it."""

    name: str
    codes: NDArray[np.int8]
    scales: NDArray[np.float32]

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """What the codes stand for."""
        return {self.name: dequantize_rows(self.codes, self.scales)}


@dataclass(frozen=True)
class Plain:
    """Tensors beside it that stay as they are: biases, norms, taps."""

    tensors: dict[str, NDArray[np.float32]]

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The tensors."""
        return self.tensors
