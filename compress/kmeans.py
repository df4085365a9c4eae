"""Codebooks by one-dimensional k-means (Han, Mao and Dally 2015, Deep Compression, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lite_nmt.errors import LiteNmtError

Floats = NDArray[np.floating[Any]]
Codes = NDArray[np.uint8]

INITS = ("linear", "density", "random")
MIN_BITS, MAX_BITS = 2, 8
# k-means sees the weights as a histogram, so that its time does not depend on how many there are. At 2 to 4 bits the
# squared error is within 1% of what Lloyd's iteration reaches on the weights themselves. At 8 bits it is up to 25%
# more, of an error that is a ten-thousandth of the variance.
BINS = 4096


@dataclass(frozen=True)
class Book:
    """Tensors that share a codebook: the weights of ``name`` are ``codebook[codes[name]]``.

    Attributes:
        bits: of one code.
        codebook: K values, at most 2**bits, float16 or float32. Where a weight is exactly zero, value 0 is zero, and
            code 0 stands for such weights alone.
        codes: for each tensor, in its shape.
    """

    bits: int
    codebook: Floats
    codes: dict[str, Codes]

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The tensors that the codes stand for."""
        values = self.codebook.astype(np.float32)
        return {name: values[codes] for name, codes in self.codes.items()}


def make_book(tensors: Mapping[str, Floats], bits: int, init: str = "linear") -> Book:
    """Cluster the weights of some tensors around at most 2**bits values; exact zeros stay exactly zero.

    Args:
        tensors: by name, of any shape.
        init: where the centroids start; see :func:`centroids`.

    Raises:
        LiteNmtError: bits are not 2 to 8, or a weight is not a number.
    """
    if not MIN_BITS <= bits <= MAX_BITS:
        raise LiteNmtError(f"bits is {bits}; a codebook takes {MIN_BITS} to {MAX_BITS}.")
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise LiteNmtError(f"{name} holds NaN or infinite weights; compress another checkpoint.")
    flat = np.concatenate([tensor.ravel() for tensor in tensors.values()])
    others = flat != 0
    zeros = not others.all()
    values = np.unique(stored(centroids(flat[others], 2**bits - zeros, init)))
    exact = values.astype(np.float64)
    codes = np.zeros(flat.shape, np.uint8)
    codes[others] = np.searchsorted((exact[1:] + exact[:-1]) / 2, flat[others]) + zeros
    ends = np.cumsum([tensor.size for tensor in tensors.values()])[:-1]
    parts = zip(tensors.items(), np.split(codes, ends), strict=True)
    return Book(
        bits=bits,
        codebook=np.concatenate([np.zeros(int(zeros), values.dtype), values]),
        codes={name: part.reshape(tensor.shape) for (name, tensor), part in parts},
    )


def stored(values: Floats) -> Floats:
    """Codebook values as they are stored: float16, or float32 where float16 would overflow or underflow."""
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    error = np.abs(half - values.astype(np.float64)).max(initial=0)
    return half if error <= 1e-3 * np.abs(values).max(initial=0) else values.astype(np.float32)


def centroids(values: Floats, k: int, init: str = "linear", seed: int = 0) -> NDArray[np.float64]:
    """At most ``k`` centroids of some numbers, ascending.

    Args:
        init: ``linear``, evenly spaced from the smallest to the largest; ``density``, evenly spaced in the
            distribution; ``random``, drawn from it (Deep Compression, section 3.2).
    """
    from sklearn.cluster import KMeans  # slow to import

    if init not in INITS:
        raise LiteNmtError(f"init is {init!r}; it must be one of {', '.join(INITS)}.")
    if not values.size:
        return np.empty(0)
    values = values.astype(np.float64)
    count, edges = np.histogram(values, BINS)
    total, _ = np.histogram(values, edges, weights=values)
    points, count = total[count > 0] / count[count > 0], count[count > 0]
    if len(points) <= k:
        return points
    if init == "linear":
        start = np.linspace(points[0], points[-1], k)
    elif init == "density":
        start = np.interp((np.arange(k) + 0.5) / k * count.sum(), count.cumsum() - count / 2, points)
    else:
        start = np.random.default_rng(seed).choice(points, k, replace=False, p=count / count.sum())
    fitted = KMeans(k, init=start[:, None], n_init=1, tol=0).fit(points[:, None], sample_weight=count)
    return np.sort(fitted.cluster_centers_[:, 0])
