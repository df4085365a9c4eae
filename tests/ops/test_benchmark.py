"""The kernels' benchmark checks itself without a GPU, and measures nothing there."""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program, on a device that takes a millisecond for everything."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    module = importlib.import_module("kernels")
    monkeypatch.setattr(module, "copy_ms", lambda size: 0.5)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    found = {"memory": 1, "launches": 2, "call_ms": 1.0, "loop_ms": 1.0, "captured": True}
    found |= {"ms": 1.0, "ms_low": 1.0, "ms_high": 1.0}

    def results(problem: Any, name: str, *rest: Any) -> list[dict[str, Any]]:
        if name == "unfold":
            return [{"failed": "no memory"}] * 2
        return [{**found, "launches": 12 if name == "reference" else 2}] * 2

    monkeypatch.setattr(module, "results", results)
    return module


def test_it_goes_on_where_it_was_stopped(kernels: Any, tmp_path: Path) -> None:
    out = tmp_path / "kernels.md"
    args = argparse.Namespace(
        shapes=["ours"], lengths=[1000], taps=[31], spans=[128], dtypes=["bf16"], repeats=1, minutes=1e-9, output=out
    )
    about = {"command": "c", "device": "d", "machine": "m", "triton": "t", "repeats": 1, "copy_bytes_per_s": 1e9}
    rows: list[dict[str, Any]] = []
    assert not kernels.run(args, about, rows)
    args.minutes = None
    assert kernels.run(args, about, rows)
    again = kernels.earlier(out, about)
    assert again == rows
    assert kernels.run(args, about, again)
    assert len(again) == len(rows)
    text = out.read_text()
    assert "| unfold | no memory |" in text
    assert "| times fewer launches than eager, training shapes | 5.0 | 6.0 | 3 |" in text
    assert "| times as fast as flash attention, n ≥ 100 | 1.00 | 1.00 | 6 |" in text
    with pytest.raises(SystemExit, match="measured with device = d, not other"):
        kernels.earlier(out, {**about, "device": "other"})


@pytest.mark.parametrize("program", ["kernels.py", "train.py"])
def test_starts_on_a_bare_machine(program: str) -> None:
    """With nothing but torch and what that brings."""
    blocked = ("sentencepiece", "sacrebleu", "rich", "matplotlib", "safetensors", "sklearn", "onnx", "zstandard")
    folder = ROOT / "benchmarks"
    code = (
        f"import runpy, sys; sys.modules.update(dict.fromkeys({blocked})); sys.path.insert(0, {str(folder)!r}); "
        f"sys.argv = ['x', '--help']; runpy.run_path({str(folder / program)!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--output" in done.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="with a CUDA device it would measure")
def test_no_figure_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.setattr(sys, "argv", ["kernels.py", "--output", str(tmp_path / "kernels.md")])
    with pytest.raises(SystemExit, match="no CUDA device"):
        importlib.import_module("kernels").main()
    assert not list(tmp_path.iterdir())
