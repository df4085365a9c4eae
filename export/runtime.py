"""A bundle's graphs, run by ONNX Runtime. This needs numpy and onnxruntime, and not PyTorch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lite_nmt.config import DecodeConfig
from lite_nmt.data.vocabulary import EOS, PAD
from lite_nmt.decode.engine import Alignment, Engine, pad
from lite_nmt.decode.hypothesis import Hypothesis, check, ranked
from lite_nmt.errors import LiteNmtError
from lite_nmt.export.bundle import WEIGHTS, Bundle

ENCODER, STEP, GREEDY, BEAM = "encoder.onnx", "step.onnx", "greedy.onnx", "beam.onnx"
BEGIN, ADVANCE = "begin.onnx", "advance.onnx"  # the beam search, for callers who take its steps themselves
PROGRAM = "model.pte"


def open_engine(bundle: Bundle, device: str = "cpu", threads: int | None = None) -> Engine:
    """What runs a bundle.

    Raises:
        LiteNmtError: the device is not the CPU, or the bundle holds no graph that can be run here.
    """
    check_device(device)
    if bundle.config.task == "lm":
        raise LiteNmtError(f"{bundle.folder} is a language model; lite-nmt generate and evaluate run it.")
    if GREEDY in bundle.files:
        return OnnxEngine(bundle, threads)
    if PROGRAM in bundle.files:
        from lite_nmt.export.executorch_runtime import ExecutorchEngine

        return ExecutorchEngine(bundle.folder / PROGRAM, threads)
    raise LiteNmtError(f"{bundle.folder} holds no graph that this release can run.")


def check_device(device: str) -> None:
    """Refuse all but the CPU.

    Raises:
        LiteNmtError: it is another.
    """
    if device != "cpu":
        raise LiteNmtError(f"a bundle runs on the CPU, not on {device}; for other devices take the checkpoint.")


class OnnxEngine:
    """One call of a whole search's graph for each batch.

    What the graph was exported with stays: n-gram blocking, the kind of length penalty.
    """

    def __init__(self, bundle: Bundle, threads: int | None = None) -> None:
        self.bundle, self.threads = bundle, threads
        self._sessions: dict[str, Any] = {}

    def session(self, name: str) -> Any:
        """An ONNX Runtime session of one of the bundle's graphs, opened when it is first asked for.

        Raises:
            LiteNmtError: the graph cannot be read.
        """
        if name not in self._sessions:
            # From 1.29 on it reports to its maker unless told not to before it is imported.
            os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
            import onnxruntime

            for needed in (name, WEIGHTS):
                if needed not in self.bundle.files:
                    raise LiteNmtError(f"{self.bundle.folder} lists no {needed}; take another copy.")
            path = self.bundle.folder / name
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            options.intra_op_num_threads = self.threads or 0
            try:
                confine(path.read_bytes(), name)
                self._sessions[name] = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
            except OSError as error:
                raise LiteNmtError(f"cannot read {path}: {error.strerror}.") from error
            except LiteNmtError:
                raise
            except Exception as error:  # ONNX Runtime's have no common class
                raise LiteNmtError(f"ONNX Runtime {onnxruntime.__version__} cannot open {path}: {error}") from error
        return self._sessions[name]

    def search(self, sources: Sequence[Sequence[int]], decode: DecodeConfig, nbest: int) -> list[list[Hypothesis]]:
        """As :class:`Engine` says."""
        check(decode, nbest)
        fixed = self.bundle.config.decode
        for name in ("no_repeat_ngram", "penalty"):
            asked, has = getattr(decode, name), getattr(fixed, name)
            if asked != has:
                raise LiteNmtError(f"decode.{name} is {asked}; this bundle was exported with {has}.")
        among = self.bundle.manifest.get("shortlist", {}).get("least", self.bundle.config.vocabulary.target - EOS)
        if decode.beam > among // 2:
            raise LiteNmtError(
                f"decode.beam is {decode.beam}; among the {among:,} types that this bundle chooses from it must be at "
                f"most {among // 2}."
            )
        feeds = {
            "source": np.array(pad(sources), np.int64),
            "max_length": np.array(decode.max_length, np.int64),
            "min_length": np.array(decode.min_length, np.int64),
            "length_penalty": np.array(decode.length_penalty, np.float32),
        }
        if decode.beam > 1:
            feeds["beam"] = np.array(decode.beam, np.int64)
        found = self._run(BEAM if decode.beam > 1 else GREEDY, ("target", "score", "logprob"), feeds)
        return [ranked(_hypotheses(*row))[:nbest] for row in zip(*found, strict=True)]

    def encode(self, sources: Sequence[Sequence[int]]) -> None:
        """Run the encoder alone, to see what it takes."""
        self._run(ENCODER, None, {"source": np.array(pad(sources), np.int64)})

    def _run(self, name: str, outputs: Sequence[str] | None, feeds: Mapping[str, object]) -> Any:
        session = self.session(name)
        try:
            return session.run(outputs, feeds)
        except Exception as error:  # ONNX Runtime's have no common class
            raise LiteNmtError(f"ONNX Runtime cannot run {self.bundle.folder / name}: {error}") from error

    def align(
        self, sources: Sequence[Sequence[int]], hypotheses: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Alignment]]:
        """No graph gives its attention away."""
        raise LiteNmtError("a bundle gives no alignments; take the checkpoint that it was exported from.")


def _hypotheses(target: np.ndarray, score: np.ndarray, logprob: np.ndarray) -> list[Hypothesis]:
    """Of one sentence: W T, W and W; where fewer than W ended, scores are minus infinity."""
    there = score != -np.inf
    rows = zip(target[there].tolist(), score[there].tolist(), logprob[there].tolist(), strict=True)
    return [Hypothesis(tuple(t for t in tokens if t != PAD), s, p) for tokens, s, p in rows]


# Which messages of an ONNX file hold others, by the numbers of their fields, down to a tensor's external data.
_INSIDE = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}


def confine(graph: bytes, name: str) -> None:
    """Refuse a graph whose weights lie anywhere but in the bundle's own file.

    ONNX names each external tensor's file in an entry with the key ``location``. The whole file is read, as protobuf
    has many ways to write the same.

    Raises:
        LiteNmtError: it names another file, or is not whole.
    """
    waiting = [("model", memoryview(graph))]
    while waiting:
        kind, message = waiting.pop()
        said: dict[int, bytes] = {}
        for number, value in _fields(message, name):
            if kind == "entry":
                said[number] = bytes(value)  # of several, the last one counts
            elif number in _INSIDE[kind]:
                waiting.append((_INSIDE[kind][number], value))
        if said.get(1) == b"location" and said.get(2) != WEIGHTS.encode():
            raise LiteNmtError(f"{name} wants weights from outside its bundle; take another copy.")


def _fields(message: memoryview, name: str) -> Iterator[tuple[int, memoryview]]:
    """Fields of a protobuf message that are bytes, text or messages."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while shift < 70:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value
        raise IndexError

    try:
        while at < len(message):
            tag = number()
            match tag & 7:
                case 0:
                    number()
                case 1 | 5:
                    at += 8 if tag & 7 == 1 else 4
                case 2:
                    size = number()
                    yield tag >> 3 & 2**29 - 1, message[at : at + size]
                    at += size
                case _:
                    raise IndexError
        if at > len(message):
            raise IndexError
    except IndexError as error:
        raise LiteNmtError(f"{name} is damaged: it is no whole ONNX graph; take another copy.") from error
