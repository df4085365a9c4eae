"""The kernels compile for GPUs that are not here, with matrix and vector instructions, and spill no registers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_default_configurations(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="the kernels need triton")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, str(ROOT / "tests/ops/ahead_of_time.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 10
    for kernel in found:
        assert kernel["local_bytes"] == 0, kernel
        assert kernel["mma"], kernel
        assert kernel["vector_loads"], kernel
