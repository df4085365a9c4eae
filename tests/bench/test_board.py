"""The estimate, by hand."""

from lite_nmt.bench.board import PI_4, estimate
from lite_nmt.bench.emulated import Counts


def test_estimate_is_the_formula() -> None:
    counts = Counts(150e6, 40e6, 80e6, 0.0, 0, ())
    found = estimate(counts)
    assert found.board is PI_4
    assert round(found.milliseconds, 9) == 100 + 10  # 150M / 1.5 GHz, and 40 MB at 4 GB/s
    assert round(found.sentences_per_second, 9) == round(4 / (0.1 + 4 * 0.02), 9)
