"""One engine in a process of its own, so that its memory is its own, told by its parent when to work.

It reads a JSON command a line and answers each with a JSON line. It imports nothing that its engine does not need.
"""

from __future__ import annotations

import dataclasses
import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from lite_nmt.config import Config, DecodeConfig, from_dict
from lite_nmt.data.lines import clean
from lite_nmt.data.vocabulary import TARGET_FILE, Vocabulary
from lite_nmt.decode.segments import join, parts
from lite_nmt.errors import LiteNmtError


class Subject(Protocol):
    """What is measured: token numbers in, closed by the end marker, and token numbers out."""

    config: Config
    vocabulary: Vocabulary

    def translate(self, sources: Sequence[list[int]], decode: DecodeConfig) -> list[list[int]]:
        """One batch."""
        ...

    def encode(self, source: list[int]) -> bool:
        """Run the encoder alone on one sentence; false where the engine has no such call."""
        ...


class Lite:
    """A bundle, or a checkpoint in PyTorch."""

    def __init__(self, path: str, threads: int) -> None:
        from lite_nmt.decode.translator import Translator

        translator = Translator.load(path, threads=threads)
        self.config, self.vocabulary, self.engine = translator.config, translator.vocabulary, translator.engine
        self.engine.search([[3]], dataclasses.replace(self.config.decode, min_length=0, max_length=1), 1)

    def translate(self, sources: Sequence[list[int]], decode: DecodeConfig) -> list[list[int]]:
        return [list(best.tokens) for [best] in self.engine.search(sources, decode, 1)]

    def encode(self, source: list[int]) -> bool:
        encode = getattr(self.engine, "encode", None)
        if encode is None:
            return False
        encode([source])
        return True


class Peer:
    """A Transformer in CTranslate2; ``path`` is ``FOLDER:COMPUTE_TYPE``, and the folder holds the converted ``model``,
    our vocabulary, and ``config.json``, the checkpoint's configuration."""

    def __init__(self, path: str, threads: int) -> None:
        from lite_nmt.bench.ctranslate2 import CTranslate2Model

        # It imports PyTorch for its converters where there is one; to run a model it needs none, and no memory for it.
        sys.modules["torch"] = None  # type: ignore[assignment]
        name, _, compute = path.rpartition(":")
        folder = Path(name)
        self.vocabulary = Vocabulary.load(folder, joint=not (folder / TARGET_FILE).exists())
        self.config = from_dict(Config, json.loads((folder / "config.json").read_text()))
        self.model = CTranslate2Model.load(folder / "model", compute, threads)

    def translate(self, sources: Sequence[list[int]], decode: DecodeConfig) -> list[list[int]]:
        return self.model.translate([source[:-1] for source in sources], decode, len(sources))

    def encode(self, source: list[int]) -> bool:
        return False


KINDS: dict[str, Callable[[str, int], Subject]] = {"lite": Lite, "ctranslate2": Peer}


def main() -> None:
    """``worker.py KIND PATH THREADS``; the first answer says how long loading took."""
    kind, path, threads = sys.argv[1:]
    start = time.perf_counter()
    subject = KINDS[kind](path, int(threads))
    decode = subject.config.decode
    _say(
        {"load_s": time.perf_counter() - start, "rss": _memory("VmRSS"), "torch": sys.modules.get("torch") is not None}
    )
    lines: list[str] = []
    sources: list[list[int]] = []
    for line in sys.stdin:
        asked = json.loads(line)
        match asked["do"]:
            case "prepare":
                decode, lines = dataclasses.replace(decode, **asked["decode"]), asked["lines"]
                sources, _ = _read(subject, lines)
                if not sources:
                    raise LiteNmtError("all lines are blank; there is nothing to translate.")
                _say({})
            case "translate":
                found, spent = _timed(lambda: _batched(subject, sources, asked["batch"], decode))  # noqa: B023
                _say({**spent, "tokens": sum(len(tokens) + 1 for tokens in found)})
            case "encode":
                known = subject.encode(sources[0])
                _, spent = _timed(lambda: [subject.encode(source) for source in sources])  # noqa: B023
                _say(spent if known else {})
            case "text":
                _say({"text": texts(subject, lines, 32, decode)})
            case "end":
                _say({"peak": _memory("VmHWM")})
                return


def texts(subject: Subject, lines: Sequence[str], size: int, decode: DecodeConfig) -> list[str]:
    """The translations of lines, long ones in parts as ``lite-nmt translate`` has them."""
    sources, runs = _read(subject, lines)
    found = [clean(subject.vocabulary.decode(tokens)) for tokens in _batched(subject, sources, size, decode)]
    return [join([found[part] for part, _ in run]) for run in runs]


def _read(subject: Subject, lines: Sequence[str]) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
    return parts(subject.vocabulary.encode_source(lines), subject.config, subject.vocabulary)


def _batched(subject: Subject, sources: Sequence[list[int]], size: int, decode: DecodeConfig) -> list[list[int]]:
    """Sentences of like length together, and back in their order."""
    order = sorted(range(len(sources)), key=lambda i: -len(sources[i])) if size > 1 else range(len(sources))
    found: list[list[int]] = [[] for _ in sources]
    for start in range(0, len(sources), size):
        rows = order[start : start + size]
        for i, tokens in zip(rows, subject.translate([sources[i] for i in rows], decode), strict=True):
            found[i] = tokens
    return found


def _timed(call: Any) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = call()
    return found, {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def _memory(what: str) -> int:
    """Bytes in memory: ``VmRSS`` now, ``VmHWM`` the most so far; only the latter where the system is not Linux."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith(what))) * 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
