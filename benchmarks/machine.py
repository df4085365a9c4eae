"""What a figure was measured on."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import torch

from lite_nmt.profiling import machine as profiling


def machine() -> str:
    """Processor, system, versions and threads, in one line."""
    return f"{profiling.machine()}, {torch.get_num_threads()} threads"


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return middle, low, high
