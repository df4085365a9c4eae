"""How fast engines translate on this machine, taking turns, each in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from lite_nmt.errors import LiteNmtError


@dataclass(frozen=True)
class Entry:
    """What is to be measured.

    Attributes:
        kind, path: for ``worker.py``.
        bytes: of its files, vocabulary included.
        task: what its output is scored as.
    """

    name: str
    kind: str
    path: str
    bytes: int
    mult_adds: int
    task: str = "translate"


@dataclass(frozen=True)
class Spread:
    """Median and quartiles over the rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Of at least two values."""
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(middle, low, high)


@dataclass
class Result:
    """Of one entry. Milliseconds are a sentence's, one at a time, from token numbers to token numbers.

    Attributes:
        cpu_ms: processor time, which other work on the machine disturbs less than the clock.
        token_ms: of each target token, the end marker counted and the encoder left out, where it can be told.
        per_second: sentences, by batch size.
        rss, peak: bytes of memory after loading, and the most at any time.
        torch: whether PyTorch was loaded.
        bleu, rougeL: of translations, and of summaries, out of 100.
    """

    entry: Entry
    load_s: float
    rss: int
    torch: bool
    ms: Spread
    cpu_ms: Spread
    tokens: float
    peak: int = 0
    encode_ms: Spread | None = None
    token_ms: float | None = None
    per_second: dict[int, Spread] = field(default_factory=dict)
    bleu: float | None = None
    rougeL: float | None = None
    translations: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Plain data, the entry's among it."""
        return {**asdict(self.entry), **{k: v for k, v in asdict(self).items() if k != "entry"}}

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Self:
        """What :meth:`as_json` made."""
        own = dict(said)
        entry = Entry(**{field.name: own.pop(field.name) for field in fields(Entry)})
        for name in ("ms", "cpu_ms", "encode_ms"):
            own[name] = own[name] and Spread(**own[name])
        per_second = {int(size): Spread(**spread) for size, spread in own.pop("per_second").items()}
        return cls(entry, per_second=per_second, **own)

    def score(self, references: Sequence[str]) -> None:
        """Tell BLEU, or ROUGE-L of summaries, where what computes it is installed."""
        if self.entry.task == "summarize":
            if importlib.util.find_spec("rouge_score"):
                from lite_nmt.evaluate.rouge import rouge

                self.rougeL = rouge(self.translations, references).measures["rougeL"].value
        elif importlib.util.find_spec("sacrebleu"):
            from lite_nmt.evaluate.score import score

            self.bleu = score(self.translations, references).bleu


class Worker:
    """A process that holds one engine."""

    def __init__(self, entry: Entry, threads: int) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        command = [sys.executable, "-m", "lite_nmt.bench.worker", entry.kind, entry.path, str(threads)]
        self.entry = entry
        self.said = tempfile.TemporaryFile("w+")  # noqa: SIM115  # open till stop(); a pipe that nobody reads fills up
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, text=True, env=environment
        )
        self.loaded = self._answer()

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # what it died of is in the answer
            self.process.stdin.write(json.dumps({"do": do, **more}) + "\n")
            self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.communicate()
            self.said.seek(0)
            last = (self.said.read().strip().splitlines() or ["it said nothing"])[-1]
            self.stop()
            why = last.removeprefix("lite_nmt.errors.LiteNmtError: ")
            raise LiteNmtError(f"{self.entry.name} could not be measured: {why}")
        return dict(json.loads(line))

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()
        self.said.close()


def translations(entry: Entry, lines: Sequence[str], beam: int | None) -> list[str]:
    """What an engine makes of all lines; ``beam`` None is its own."""
    worker = Worker(entry, 1)
    worker.ask("prepare", decode={} if beam is None else {"beam": beam}, lines=list(lines))
    found: list[str] = worker.ask("text")["text"]
    worker.stop()
    return found


def measure(
    entries: Sequence[Entry],
    lines: Sequence[str],
    *,
    references: Sequence[str] | None = None,
    decode: Mapping[str, Any] | None = None,
    threads: int = 1,
    batches: Sequence[int] = (1, 32),
    rounds: int = 5,
    say: Callable[[str], None] = lambda text: None,
) -> list[Result]:
    """Measure engines in turns: in each round every one translates all lines at every batch size.

    Args:
        references: to score the translations of all lines by, where there are any.
        decode: search settings laid over each model's own.
        rounds: at least 2, after one that warms up.

    Raises:
        LiteNmtError: an engine cannot be loaded or fails.
    """
    with ExitStack() as stack:
        workers = []
        for entry in entries:
            workers.append(worker := Worker(entry, threads))
            stack.callback(worker.stop)
            worker.ask("prepare", decode=dict(decode or {}), lines=list(lines))
        taken: list[dict[Any, list[dict[str, Any]]]] = [{} for _ in workers]
        for number in range(rounds + 1):
            for worker, seen in zip(workers, taken, strict=True):
                found: dict[Any, dict[str, Any]] = {size: worker.ask("translate", batch=size) for size in batches}
                found["encode"] = worker.ask("encode")
                if number:
                    for key, answer in found.items():
                        seen.setdefault(key, []).append(answer)
            say(f"round {number} of {rounds}")
        results = []
        for worker, seen in zip(workers, taken, strict=True):
            result = _result(worker, seen, len(lines))
            result.translations = worker.ask("text")["text"]
            if references is not None:
                result.score(references)
            result.peak = worker.ask("end")["peak"]
            results.append(result)
    return results


def _result(worker: Worker, seen: Mapping[Any, list[dict[str, Any]]], count: int) -> Result:
    single = seen[1]

    def each(answers: Sequence[Mapping[str, float]], key: str) -> Spread:
        return Spread.of([answer[key] / count * 1e3 for answer in answers])

    tokens = single[0]["tokens"] / count
    encode = each(seen["encode"], "wall_s") if seen["encode"][0] else None
    ms = each(single, "wall_s")
    return Result(
        worker.entry,
        **worker.loaded,
        ms=ms,
        cpu_ms=each(single, "cpu_s"),
        tokens=tokens,
        encode_ms=encode,
        token_ms=(ms.median - encode.median) / tokens if encode else None,
        per_second={
            size: Spread.of([count / answer["wall_s"] for answer in answers])
            for size, answers in seen.items()
            if isinstance(size, int)
        },
    )


def folder_bytes(folder: Path) -> int:
    """Of all files in a folder, or of one file."""
    return sum(file.stat().st_size for file in ([folder] if folder.is_file() else folder.iterdir()) if file.is_file())
