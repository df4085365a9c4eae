"""What a figure was measured on."""

from __future__ import annotations

import platform
from pathlib import Path

import torch


def machine() -> str:
    """Processor, system and versions, in one line."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        name = f"{len(models)} cores of {models[0]}" if models else name
    return (
        f"{name}; {platform.system()} {platform.machine()}; Python {platform.python_version()}; "
        f"torch {torch.__version__}"
    )
