"""The kernels' benchmark checks itself without a GPU, and measures nothing there."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]


def test_its_contestants_are_right() -> None:
    command = [sys.executable, str(ROOT / "benchmarks/kernels.py"), "--check"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "talk, prefix sum: right" in done.stdout
    assert "span, SDPA, T x T bias: right" in done.stdout
    assert "| TaLK, published | 9,686 | 6,126 | 898 | 92 |" in done.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="with a CUDA device it would measure")
def test_no_figure_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.setattr(sys, "argv", ["kernels.py", "--output", str(tmp_path / "kernels.md")])
    with pytest.raises(SystemExit, match="no CUDA device"):
        importlib.import_module("kernels").main()
    assert not list(tmp_path.iterdir())
