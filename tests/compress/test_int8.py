"""The int8 grid: what lies on it stays where it is, to the bit."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from lite_nmt.compress.int8 import dequantize_rows, quantize_rows
from lite_nmt.errors import LiteNmtError


def by_hand(row: list[float]) -> list[int]:
    scale = max(abs(w) for w in row) / 127
    return [round(w / scale) for w in row]  # Python rounds half to even


def test_codes_by_hand() -> None:
    rows = [[127.0, 1.5, 2.5, -0.4, -126.6], [0.3, -0.1, 0.0, 0.07, 0.2]]
    codes, scales = quantize_rows(np.array(rows, np.float32))
    assert codes.tolist() == [by_hand(row) for row in rows]
    assert codes[0].tolist() == [127, 2, 2, 0, -127]
    np.testing.assert_array_equal(scales, np.array([127, 0.3], np.float32) / np.float32(127), strict=True)


def assert_stays(codes: NDArray[np.int8], scales: NDArray[np.float32]) -> None:
    weights = dequantize_rows(codes, scales)
    again = quantize_rows(weights)
    np.testing.assert_array_equal(again[0], codes, strict=True)
    np.testing.assert_array_equal(again[1], scales, strict=True)
    largest = np.abs(weights).max(tuple(range(1, weights.ndim)))
    np.testing.assert_array_equal(scales, np.where(largest > 0, largest / np.float32(127), 1))


@pytest.mark.parametrize("exponent", [-40, -37, -36, -20, -3, 0, 5, 37])
def test_what_lies_on_the_grid_stays(exponent: int) -> None:
    random = np.random.default_rng(0)
    for shape in ((5000, 7), (500, 3, 5), (20, 1)):
        weights = (random.normal(0, 1, shape) * 10.0**exponent).astype(np.float32)
        weights[::9] = 0
        weights[random.random(shape) < 0.2] = 0
        codes, scales = quantize_rows(weights)
        assert (codes[weights == 0] == 0).all()
        assert set(np.unique(np.abs(codes.astype(int)).reshape(len(codes), -1).max(1))) <= {0, 127}
        error = np.abs(dequantize_rows(codes, scales) - weights).reshape(len(codes), -1).max(1)
        assert (error <= np.where(codes.reshape(len(codes), -1).any(1), 0.5001 * scales, 1.5e-36)).all()
        assert_stays(codes, scales)


def test_every_scale_stays() -> None:
    # All float32 numbers from 1 to 2; other powers of two behave alike.
    largest = (np.arange(2**23, dtype=np.uint32) | np.uint32(127 << 23)).view(np.float32)
    scales = largest / np.float32(127)
    np.testing.assert_array_equal(scales * np.float32(127) / np.float32(127), scales)


def test_all_codes_of_a_row_stay() -> None:
    codes = np.tile(np.arange(-127, 128, dtype=np.int8), (3000, 1))
    scales = np.random.default_rng(0).uniform(0.001, 1, 3000).astype(np.float32) / np.float32(127)
    assert_stays(codes, scales)


def test_extremes() -> None:
    limit = np.finfo(np.float32)
    tiny = np.array([[limit.smallest_subnormal, 0], [0, 0], [1e-36, -1e-37]], np.float32)
    codes, scales = quantize_rows(tiny)
    assert not codes.any()
    assert scales.tolist() == [1, 1, 1]
    for weight in (np.nan, np.inf, -np.inf):
        with pytest.raises(LiteNmtError, match="NaN or infinite"):
            quantize_rows(np.array([[1, weight]], np.float32))
    assert_stays(*quantize_rows(np.array([[3.3e38, -1]], np.float32)))


def test_it_does_not_need_pytorch() -> None:
    code = "import sys, lite_nmt.compress.int8; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
