"""The kernels' benchmark checks itself without a GPU, and measures nothing there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]


def benchmark(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks/kernels.py"), *map(str, arguments)]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)


def test_its_contestants_are_right() -> None:
    done = benchmark("--check")
    assert done.returncode == 0, done.stderr
    assert "talk, prefix sum: right" in done.stdout
    assert "span, SDPA, T x T bias: right" in done.stdout
    assert "| TaLK, published | 9,686 | 6,126 | 898 | 92 |" in done.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="with a CUDA device it would measure")
def test_no_figure_without_a_gpu(tmp_path: Path) -> None:
    done = benchmark("--output", tmp_path / "kernels.md")
    assert done.returncode == 1
    assert "no CUDA device" in done.stderr
    assert not list(tmp_path.iterdir())
