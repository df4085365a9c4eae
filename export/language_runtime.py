"""A language model's bundle, read by ONNX Runtime, which needs numpy and onnxruntime alone, or by ExecuTorch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lite_nmt.decode.generate import Reader
from lite_nmt.errors import LiteNmtError
from lite_nmt.export.bundle import Bundle
from lite_nmt.export.runtime import PROGRAM, STEP, OnnxEngine, check_device

State = dict[str, np.ndarray]


def open_reader(bundle: Bundle, device: str = "cpu", threads: int | None = None) -> Reader:
    """What reads with a language model's bundle.

    Raises:
        LiteNmtError: the device is not the CPU, the bundle is no language model's, or it holds no graph that can be run
            here.
    """
    check_device(device)
    if bundle.config.task != "lm":
        raise LiteNmtError(f"{bundle.folder} is no language model, but made to {bundle.config.task}.")
    for name, reader in READERS.items():
        if name in bundle.files:
            return reader(bundle, threads)
    raise LiteNmtError(f"{bundle.folder} holds no graph that this release can run.")


class OnnxReader:
    """As :class:`~lite_nmt.decode.generate.Reader` says."""

    def __init__(self, bundle: Bundle, threads: int | None = None) -> None:
        self.session = OnnxEngine(bundle, threads).session(STEP)
        self.shapes = {value.name: value.shape for value in self.session.get_inputs()}

    def start(self) -> State:
        # What has no size yet is empty: the cache of attention that sees everything.
        states = {name: shape for name, shape in self.shapes.items() if name.startswith("state.")}
        return {
            name: np.zeros([1, *(size if isinstance(size, int) else 0 for size in shape[1:])], np.float32)
            for name, shape in states.items()
        }

    def read(self, token: int, position: int, state: State) -> tuple[np.ndarray, State]:
        feeds = {"token": np.array([token]), "position": np.array(position), **state}
        scores, *after = self.session.run(None, feeds)
        return scores[0], dict(zip(state, after, strict=True))


def _executorch(bundle: Bundle, threads: int | None = None) -> Reader:
    from lite_nmt.export.executorch_runtime import ExecutorchReader

    return ExecutorchReader(bundle.folder / PROGRAM, threads)


READERS: dict[str, Callable[..., Reader]] = {STEP: OnnxReader, PROGRAM: _executorch}  # of one file, the better first
