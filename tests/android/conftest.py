"""What Kotlin's tests are compiled and run with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from android_demo.tools.debian import ROOT
from android_demo.tools.fetch import CACHE, catalogue, fetch
from android_demo.tools.kotlin import COMPILER

LIBRARIES = ("kotlin-stdlib", "onnxruntime", "junit", "hamcrest")


@pytest.fixture(scope="session")
def libraries() -> list[Path]:
    """The jars of tests on this machine's JVM; the desktop's ONNX Runtime is one."""
    known = catalogue()
    needed = [alias for alias in (*COMPILER, *LIBRARIES) if not (CACHE / "maven" / known[alias].path).exists()]
    if needed or not (shutil.which("java") or (ROOT / "java").exists()):
        pytest.skip(f"needs {', '.join(needed) or 'java'}: python -m android_demo.tools.prepare")
    return [fetch(alias) for alias in LIBRARIES]
