"""Codebooks: what they hold, how well they fit, and that zero stays zero."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from lite_nmt.compress.kmeans import INITS, centroids, make_book, stored
from lite_nmt.errors import LiteNmtError


def drawn(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Weights as training leaves them: a peak, and tails heavier than a normal distribution's."""
    return (0.1 * np.random.default_rng(seed).standard_t(6, count)).astype(np.float32)


def error(values: NDArray[np.float32], centres: NDArray[np.float64]) -> float:
    nearest = np.abs(values[:, None] - centres[None, :]).min(1)
    return float((nearest**2).mean())


def lloyd(values: NDArray[np.float32], k: int) -> NDArray[np.float64]:
    """k-means on the weights themselves, from a linear start."""
    centres = np.linspace(values.min(), values.max(), k)
    for _ in range(1000):
        label = np.abs(values[:, None] - centres[None, :]).argmin(1)
        moved = np.array([values[label == i].mean() if (label == i).any() else c for i, c in enumerate(centres)])
        if np.abs(moved - centres).max() < 1e-9:
            break
        centres = moved
    return centres


def test_separate_clusters_are_found_exactly() -> None:
    values = np.repeat(np.array([-3.0, -1.0, 0.5, 4.0], np.float32), [5, 50, 500, 1])
    for init in INITS:
        np.testing.assert_allclose(centroids(values, 4, init), [-3, -1, 0.5, 4], rtol=1e-6)


@pytest.mark.parametrize("init", INITS)
def test_the_histogram_costs_little(init: str) -> None:
    values = drawn(4000)
    assert error(values, centroids(values, 8, init)) < 1.03 * error(values, lloyd(values, 8))


def test_more_bits_fit_better() -> None:
    weights = {"a": drawn(5000).reshape(50, 100)}
    errors = [float(((make_book(weights, b).weights()["a"] - weights["a"]) ** 2).mean()) for b in range(2, 9)]
    assert all(more < 0.5 * less for less, more in itertools.pairwise(errors))


def test_each_weight_takes_its_nearest_value() -> None:
    weights = {"a": drawn(3000).reshape(30, 100), "b": drawn(50, seed=1)}
    book = make_book(weights, 4)
    assert len(book.codebook) == 16
    assert book.codebook.dtype == np.float16
    for name, found in book.weights().items():
        nearest = np.abs(weights[name][..., None] - book.codebook.astype(np.float32)).min(-1)
        np.testing.assert_allclose(np.abs(found - weights[name]), nearest, atol=1e-6)


@pytest.mark.parametrize("init", INITS)
def test_zero_stays_zero_and_nothing_else_becomes_it(init: str) -> None:
    weights = drawn(2000)
    weights[np.abs(weights) < 0.05] = 0
    book = make_book({"a": weights}, 3, init)
    assert len(book.codebook) <= 8
    assert book.codebook[0] == 0
    np.testing.assert_array_equal(book.codes["a"] == 0, weights == 0)
    np.testing.assert_array_equal(book.weights()["a"] == 0, weights == 0)


def test_few_values_are_kept_as_they_are() -> None:
    weights = np.array([0, 0.5, -0.25, 0.5, 1], np.float32)
    np.testing.assert_array_equal(make_book({"a": weights}, 8).weights()["a"], weights)
    np.testing.assert_array_equal(make_book({"a": np.zeros((2, 3), np.float32)}, 2).weights()["a"], np.zeros((2, 3)))


def test_values_beyond_float16_are_stored_as_float32() -> None:
    assert stored(np.array([0.1, -2.0])).dtype == np.float16
    assert stored(np.array([0.1, 1e5])).dtype == np.float32
    assert stored(np.array([1e-9, -2e-9])).dtype == np.float32


@pytest.mark.parametrize("bits", [1, 9, 0])
def test_bits_out_of_range_are_refused(bits: int) -> None:
    with pytest.raises(LiteNmtError, match=f"bits is {bits}; a codebook takes 2 to 8"):
        make_book({"a": drawn(10)}, bits)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused_by_name(bad: float) -> None:
    with pytest.raises(LiteNmtError, match=r"decoder\.b holds NaN"):
        make_book({"a": drawn(10), "decoder.b": np.array([1, bad], np.float32)}, 8)


def test_an_unknown_start_is_refused() -> None:
    with pytest.raises(LiteNmtError, match="init is 'kmeans\\+\\+'"):
        centroids(drawn(100), 4, "kmeans++")
