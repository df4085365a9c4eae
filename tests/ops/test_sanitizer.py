"""On a GPU, no kernel reads or writes beyond its tensors, and none races."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.skipif(not shutil.which("compute-sanitizer"), reason="needs compute-sanitizer")
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_sanitizer(tool: str) -> None:
    pytest.importorskip("triton", reason="the kernels need triton")
    sanitizer = [
        "compute-sanitizer",
        "--tool",
        tool,
        "--error-exitcode",
        "9",
        "--kernel-name",
        "kernel_substring=band_",
    ]
    tests = [sys.executable, "-m", "pytest", "-q", "tests/ops/kernels/test_kernels.py", "-k", "equals_the_reference"]
    # One block of memory for each tensor, so that reads beyond its end are seen.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    done = subprocess.run([*sanitizer, *tests], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
