"""Engines for the emulator's tests: see ``lite_nmt/bench/guest.py``."""

import os
import sys
from collections.abc import Callable


def reads(size: str) -> Callable[[str], str]:
    """Goes through so many bytes for each line."""
    data = bytes(range(256)) * (int(size) // 256)
    return lambda line: str(data.count(line.encode()))


def environment() -> Callable[[str], str]:
    """What a variable is set to, or a word on the machine."""

    def translate(line: str) -> str:
        return os.uname().machine if line == "machine" else os.environ.get(line, "")

    return translate


def onnx(path: str) -> Callable[[str], str]:
    """Runs a graph from a row of numbers to a row of numbers, rounded as int8 inference would never forgive."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def translate(line: str) -> str:
        rows = np.array([[float(word) for word in line.split()]], np.float32)
        return " ".join(f"{value:.4f}" for value in session.run(None, {"rows": rows})[0][0])

    return translate


def fails() -> Callable[[str], str]:
    """An engine with nothing to say but why."""
    sys.exit("the graph is broken")
