"""Translate on an emulated Cortex-A72 and count: instructions, bytes from memory, and the very translations.

The emulator is qemu-user with a plugin of ours (icount.c). It is exact about what is executed and says nothing of
time, so that a count is the same on any machine, busy or not. ``board.py`` makes an estimate of time of it.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import lite_nmt
from lite_nmt.errors import LiteNmtError

DEFAULT = Path("~/.cache/lite-nmt/cortex-a72").expanduser()
SETUP = "python -m lite_nmt.bench.sysroot"
LINE = 64  # bytes
CHECK = """
import importlib.metadata as metadata, json
import ctranslate2, numpy, onnxruntime, sentencepiece
print(json.dumps({name: metadata.version(name) for name in ("numpy", "onnxruntime", "sentencepiece", "ctranslate2")}))
"""


@dataclass(frozen=True)
class Emulator:
    """A folder that ``python -m lite_nmt.bench.sysroot`` made."""

    folder: Path

    @property
    def plugin(self) -> Path:
        """Counts; runs in the emulator."""
        return self.folder / "icount.so"

    @property
    def preload(self) -> Path:
        """Hides what a Raspberry Pi 4 lacks; runs in the guest."""
        return self.folder / "hwcap.so"

    def command(self) -> list[str]:
        """What to put before an arm64 program. It runs with the libraries it came with, not with this machine's."""
        qemu, sysroot = self.folder / "qemu", self.folder / "sysroot"
        libraries = f"{qemu}/lib/x86_64-linux-gnu:{qemu}/usr/lib/x86_64-linux-gnu"
        loader = f"{qemu}/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
        emulator = [f"{qemu}/usr/bin/qemu-aarch64", "-cpu", "cortex-a72", "-L", str(sysroot), "-seed", "1"]
        return [loader, "--library-path", libraries, *emulator]

    def versions(self) -> dict[str, str]:
        """Of the guest's wheels."""
        versions: dict[str, str] = json.loads((self.folder / "versions.json").read_text())
        return versions


@dataclass(frozen=True)
class Reading:
    """The plugin's counters at a mark, since the program began."""

    instructions: int
    dram_bytes: int  # L2 misses and write-backs, one core having the 1 MB to itself; 0 without the cache model
    dram_bytes_shared: int  # the same with 256 KB of L2


@dataclass(frozen=True)
class Run:
    """What came of a program in the emulator."""

    output: str
    marks: dict[int, Reading]


@dataclass(frozen=True)
class Counts:
    """What a sentence costs on one core, batch 1, averaged over the sentences."""

    instructions: float
    dram_bytes: float
    dram_bytes_shared: float
    spread: float  # (most − least) / mean of the instructions, over all passes of two processes
    load_instructions: float  # imports, loading, and what the first pass over the sentences costs more than others
    translations: tuple[str, ...]


def find_emulator(folder: Path | None = None) -> Emulator:
    """The emulator that was set up: in ``folder``, else in ``$LITE_NMT_CORTEX_A72``, else in the default place.

    Raises:
        LiteNmtError: there is none.
    """
    folder = (folder or Path(os.environ.get("LITE_NMT_CORTEX_A72") or DEFAULT)).absolute()
    if not (folder / "versions.json").exists():
        raise LiteNmtError(f"there is no emulated Cortex-A72 in {folder}; set it up with: {SETUP} --out {folder}")
    return Emulator(folder)


def run(
    emulator: Emulator,
    arguments: Sequence[str],
    *,
    text: str = "",
    cache: bool = False,
    path: Sequence[Path] = (),
    bytecode: bool = False,
) -> Run:
    """Run the guest's Python with a pinned environment, and count.

    Args:
        arguments: of Python.
        text: its stdin.
        cache: also model the data caches; 5 to 20 times slower.
        path: where it looks for modules besides the wheels.
        bytecode: keep compiled modules; what is compiled while counting is counted.

    Raises:
        LiteNmtError: the program failed, or needs an instruction that a Cortex-A72 lacks.
    """
    python = str(emulator.folder / "sysroot/usr/bin/python3.11")
    environment = {
        "HOME": "/nonexistent",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "ORT_DISABLE_TELEMETRY": "1",  # since 1.29 it reports to its maker, and the thread that does so is counted
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "PYTHONPATH": os.pathsep.join(map(str, [emulator.folder / "site", *path])),
        **({} if bytecode else {"PYTHONDONTWRITEBYTECODE": "1"}),
    }
    preload = ["-E", f"LD_PRELOAD={emulator.preload}"] if emulator.preload.exists() else []
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch, "log")
        plugin = ["-plugin", f"{emulator.plugin}{',cache=on' if cache else ''}", "-d", "plugin", "-D", str(log)]
        result = execute(emulator, [*preload, *plugin], [python, *arguments], text, environment)
        marks = {}
        for line in log.read_text().splitlines():
            what, number, *counters = line.split()
            instructions, misses, written, shared_misses, shared_written = map(int, counters)
            if what == "mark":
                marks[int(number)] = Reading(
                    instructions, (misses + written) * LINE, (shared_misses + shared_written) * LINE
                )
    return Run(result, marks)


def execute(
    emulator: Emulator, options: Sequence[str], program: Sequence[str], text: str, environment: dict[str, str]
) -> str:
    """Run an arm64 program and give back what it printed.

    Raises:
        LiteNmtError: it failed; the last line it complained with, or the instruction that a Cortex-A72 lacks.
    """

    def start(*options: str) -> subprocess.CompletedProcess[str]:
        command = [*emulator.command(), *options, *program]
        return subprocess.run(command, input=text, env=environment, capture_output=True, encoding="utf-8")

    result = start(*options)
    if result.returncode == -signal.SIGILL:
        with tempfile.TemporaryDirectory() as scratch:
            # Code is listed when it is about to be executed for the first time, and this ends with the culprit.
            log = Path(scratch, "log")
            start("-d", "in_asm", "-D", str(log))
            culprit = " ".join(log.read_bytes()[-200:].decode(errors="replace").strip().splitlines()[-1].split())
        raise LiteNmtError(f"the bundle or its runtime uses an instruction that Cortex-A72 lacks: {culprit}.")
    if result.returncode:
        lines = result.stderr.strip().splitlines() or [f"exit code {result.returncode}"]
        raise LiteNmtError(f"the program failed in the emulator: {lines[-1]}")
    return result.stdout


def count(
    emulator: Emulator,
    engine: str,
    arguments: Sequence[str],
    sentences: Sequence[str],
    *,
    passes: int = 3,
    path: Sequence[Path] = (),
) -> Counts:
    """Translate the sentences one by one, on one thread, and count what one costs.

    A pass over the sentences is counted from mark to mark, after one that warms up; so neither start nor loading
    are in it. The cache model runs in a process of its own, whose instructions say how reproducible they are.

    Args:
        engine: ``module:function``, see ``guest.py``; ``lite_nmt.bench.guest:subject`` for a bundle.
        arguments: the function's.
        passes: that count.
        path: where the engine's module is, if it is not in this package.

    Raises:
        LiteNmtError: as ``run``; or there are no sentences.
    """
    if not sentences:
        raise LiteNmtError("there are no sentences to translate.")
    with tempfile.TemporaryDirectory() as scratch:
        # Only this package: whatever else is installed beside it is for another processor.
        Path(scratch, "lite_nmt").symlink_to(Path(lite_nmt.__file__).parent)
        runs = [
            run(
                emulator,
                ["-m", "lite_nmt.bench.guest", engine, str(number), *arguments],
                text=json.dumps(list(sentences)),
                cache=cache,
                path=[Path(scratch), *path],
            )
            for number, cache in ((passes, False), (1, True))
        ]
    plain, cached = runs
    totals = [
        one.marks[number + 1].instructions - one.marks[number].instructions
        for one in runs
        for number in range(2, max(one.marks))
    ]
    if plain.output != cached.output:
        raise LiteNmtError("two runs in the emulator gave different translations; the engine is not deterministic.")
    before, after = cached.marks[2], cached.marks[3]
    mean = statistics.fmean(totals)
    return Counts(
        mean / len(sentences),
        (after.dram_bytes - before.dram_bytes) / len(sentences),
        (after.dram_bytes_shared - before.dram_bytes_shared) / len(sentences),
        (max(totals) - min(totals)) / mean,
        plain.marks[2].instructions - plain.marks[0].instructions - mean,
        tuple(json.loads(plain.output)),
    )


@dataclass(frozen=True)
class Difference:
    """A sentence that the emulated core translates otherwise than this machine."""

    number: int  # from 1
    here: str
    there: str


def differences(here: Sequence[str], there: Sequence[str]) -> list[Difference]:
    """Where the translations differ; both are of the same sentences."""
    pairs = enumerate(zip(here, there, strict=True), 1)
    return [Difference(number, one, other) for number, (one, other) in pairs if one != other]
