"""The kernels' tests run on a CUDA device; without one, in Triton's interpreter, which wants a process of its own:
``tests/ops/test_interpreter.py`` starts it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch

READY = torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1"
collect_ignore_glob = [] if READY else ["test_*.py"]


@pytest.fixture
def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def poisoned() -> Iterator[None]:
    """Memory comes filled with NaN, so that what a kernel does not write shows."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
