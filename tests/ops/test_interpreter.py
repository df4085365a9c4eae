"""Starts the kernels' tests in Triton's interpreter, which must be chosen before Triton is imported: in a process of
their own, so that no other test meets it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(torch.cuda.is_available(), reason="with a CUDA device the kernels' tests run on it")
def test_kernels_in_the_interpreter() -> None:
    pytest.importorskip("triton", reason="the kernels need triton")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/ops/kernels"]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
