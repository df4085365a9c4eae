"""Sequence-level distillation: a teacher translates the training side, and a student learns from that instead.

Kim and Rush 2016, section 3.2: the best hypothesis of the teacher's beam search stands for its whole distribution
over sentences. The corpus is worked off in blocks of lines. Each block's translations are a file written whole, so
that an interrupted run goes on at the first block that is missing, with any number of processes.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import itertools
import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lite_nmt.config import DecodeConfig
from lite_nmt.data.corpus import count_lines, read_lines, sides
from lite_nmt.data.duplicates import first_occurrences
from lite_nmt.data.encoded import Array
from lite_nmt.data.lines import chunks
from lite_nmt.decode.hypothesis import length_limit
from lite_nmt.decode.translator import Translator
from lite_nmt.errors import LiteNmtError
from lite_nmt.manifest import write_whole
from lite_nmt.train.processes import Processes

MANIFEST, RESULT, BLOCKS, NEW = "distill.json", "distilled.json", "blocks", "new.npy"
DROPPED = ("blank", "too long", "empty", "unfinished", "ratio")


@dataclass(frozen=True)
class Job:
    """What is to be done. All but the folders and the batch size decides the result.

    Attributes:
        teacher: the checkpoint's checksum.
        block: lines sorted by length at once, and lost at most where a process dies.
        max_ratio: longest to shortest side, in tokens with the end marker, beyond which a pair is dropped.
        keep_original: keep the corpus's own pairs beside the teacher's.
    """

    data: Path
    out: Path
    languages: tuple[str, str]
    teacher: str
    decode: DecodeConfig
    batch_tokens: int = 4096
    block: int = 20_000
    max_ratio: float = 4.0
    keep_original: bool = False

    def side(self, language: str) -> Path:
        """One side of the corpus."""
        return self.data / f"train.{language}"

    def block_file(self, number: int) -> Path:
        """Where a block's translations lie: a line for each source line, or a tab and why there is none."""
        return self.out / BLOCKS / f"{number:08d}"

    def manifest(self) -> dict[str, Any]:
        """What a resumed run must agree with, the text included."""
        read = self.languages if self.keep_original else self.languages[:1]
        return {
            "teacher": self.teacher,
            "languages": list(self.languages),
            "buffer": self.block,
            "max-ratio": self.max_ratio,
            "keep-original": self.keep_original,
            **{name.replace("_", "-"): value for name, value in dataclasses.asdict(self.decode).items()},
            **{self.side(language).name: _sha256(self.side(language)) for language in read},
        }


@dataclass(frozen=True)
class Result:
    """Counts of lines and pairs: ``lines`` = ``distilled`` + ``duplicates`` + all that was dropped.

    Attributes:
        kept: pairs written, the teacher's (``distilled``) and the corpus's own (``original``).
        duplicates: source lines that came before.
        seconds: of the last run, where it was resumed.
    """

    lines: int
    kept: int
    distilled: int
    original: int
    duplicates: int
    dropped: dict[str, int]
    seconds: float
    teacher: str


def distill(job: Job, translator: Translator, processes: Processes) -> Result | None:
    """Write ``train.*`` of ``job.out``, and copies of ``valid.*`` and ``test.*``, or go on with what is there.

    Returns:
        The counts, in the first of several processes.

    Raises:
        LiteNmtError: the corpus cannot be read, the folder is taken or was started otherwise, or nothing is left.
    """
    began = time.perf_counter()
    refusal = None
    if processes.first:
        try:
            _start(job)
        except (LiteNmtError, OSError) as error:
            refusal = error
    if processes.agree(refusal is not None):
        raise refusal or LiteNmtError("the first process could not start.")
    if not (job.out / MANIFEST).exists():
        raise LiteNmtError(f"{job.out / MANIFEST} is not there; several processes must share the folder.")
    if not (job.out / RESULT).exists():
        _translate(job, translator, processes)
    processes.wait()
    return _finish(job, began) if processes.first else None


def _start(job: Job) -> None:
    """Prepare the folder, or check that what is there is the same job."""
    if not job.data.is_dir():
        raise LiteNmtError(f"the data folder {job.data} does not exist.")
    if job.out.exists() and job.out.resolve() == job.data.resolve():
        raise LiteNmtError(f"{job.out} is the corpus itself; choose another --out.")
    source = job.side(job.languages[0])
    if job.keep_original:
        sides(job.data, "train", *job.languages)
    elif not count_lines(source):
        raise LiteNmtError(f"{source} is empty; there is nothing to translate.")
    wanted, path = job.manifest(), job.out / MANIFEST
    if path.exists():
        saved = _read_json(path)
        differing = [name for name in wanted.keys() | saved.keys() if saved.get(name) != wanted.get(name)]
        if differing:
            raise LiteNmtError(
                f"{job.out} was started with another {' and '.join(sorted(differing))}; run it again as it was "
                "started, or choose another --out."
            )
        return
    if job.out.is_dir() and any(entry.name != BLOCKS for entry in job.out.iterdir()):
        raise LiteNmtError(f"{job.out} is not empty; choose another --out.")
    shutil.rmtree(job.out / BLOCKS, ignore_errors=True)  # a start that was interrupted
    (job.out / BLOCKS).mkdir(parents=True)
    np.save(job.out / BLOCKS / NEW, first_occurrences(read_lines(source)))
    write_whole(path, json.dumps(wanted, indent=1).encode())


def _translate(job: Job, translator: Translator, processes: Processes) -> None:
    """Translate this process's share of the blocks that are missing."""
    new = np.load(job.out / BLOCKS / NEW, mmap_mode="r")
    count = -(-len(new) // job.block)
    before, began = _done(job), time.perf_counter()
    for number, lines in enumerate(chunks(read_lines(job.side(job.languages[0])), job.block)):
        path = job.block_file(number)
        if number % processes.count != processes.rank or path.exists():
            continue
        told = translate_block(job, translator, lines, new[number * job.block :][: len(lines)])
        write_whole(path, "".join(text + "\n" for text in told).encode())
        if processes.first:
            done = _done(job)  # all processes' blocks
            speed = (done - before) * job.block / (time.perf_counter() - began)
            left = datetime.timedelta(seconds=round(max(count - done, 0) * job.block / speed))
            print(f"{done:,} of {count:,} blocks, {speed:,.1f} lines/s, {left} left", file=sys.stderr)


def _done(job: Job) -> int:
    return sum(1 for _ in (job.out / BLOCKS).glob("[0-9]*"))


def translate_block(job: Job, translator: Translator, lines: Sequence[str], new: Array) -> list[str]:
    """For each line its translation, or a tab and why there is none; cleaned text holds no tab."""
    longest = translator.config.vocabulary.max_length - 1
    lengths = [len(tokens) for tokens in translator.vocabulary.source.encode(list(lines))]
    told = [
        "\tblank" if not length else "\tduplicate" if not unseen else "\ttoo long" if length > longest else ""
        for length, unseen in zip(lengths, new, strict=True)
    ]
    asked = [i for i, reason in enumerate(told) if not reason]
    found = translator.translate_all([lines[i] for i in asked], job.decode, job.batch_tokens)
    for i, best in zip(asked, (translation.candidates[0] for translation in found), strict=True):
        short, long = sorted((lengths[i] + 1, len(best.pieces) + 1))
        if not best.text.strip():
            told[i] = "\tempty"
        elif len(best.pieces) >= length_limit(lengths[i], job.decode):
            told[i] = "\tunfinished"  # search ended it, not the model: most often a loop
        else:
            told[i] = "\tratio" if long > job.max_ratio * short else best.text
    return told


def _finish(job: Job, began: float) -> Result:
    """Join the blocks into a corpus that ``lite-nmt train`` takes."""
    if (job.out / RESULT).exists():
        print(f"nothing to do: {job.out} is done", file=sys.stderr)
        return Result(**_read_json(job.out / RESULT))
    fresh = first_occurrences(f"{source}\t{target}" for _, source, target in _pairs(job) if target)
    counts: Counter[str] = Counter()
    partial = [job.out / f".train.{language}.partial" for language in job.languages]
    with partial[0].open("wb") as sources, partial[1].open("wb") as targets:
        remaining = iter(fresh)
        for kind, source, target in _pairs(job):
            if target and not next(remaining):
                continue
            counts[kind] += 1
            if target:
                sources.write(f"{source}\n".encode())
                targets.write(f"{target}\n".encode())
        for file in (sources, targets):
            file.flush()
            os.fsync(file.fileno())
    kept = counts["distilled"] + counts["original"]
    if not kept:
        for path in partial:
            path.unlink()
        reasons = " and ".join(f"{counts[why]} are {why}" for why in DROPPED if counts[why])
        raise LiteNmtError(f"no translation of {job.side(job.languages[0])} is of use: {reasons}.")
    for path, language in zip(partial, job.languages, strict=True):
        path.replace(job.out / f"train.{language}")
        for split in ("valid", "test"):
            if (job.data / f"{split}.{language}").exists():
                shutil.copyfile(job.data / f"{split}.{language}", job.out / f"{split}.{language}")
    result = Result(
        lines=len(np.load(job.out / BLOCKS / NEW, mmap_mode="r")),
        kept=kept,
        distilled=counts["distilled"],
        original=counts["original"],
        duplicates=counts["duplicate"],
        dropped={why: counts[why] for why in DROPPED},
        seconds=time.perf_counter() - began,
        teacher=job.teacher,
    )
    write_whole(job.out / RESULT, json.dumps(dataclasses.asdict(result), indent=1).encode())
    shutil.rmtree(job.out / BLOCKS)
    return result


def _pairs(job: Job) -> Iterator[tuple[str, str, str]]:
    """Kind, source and target of every pair in the corpus's order, and the reason alone of each that is missing."""
    source, target = map(job.side, job.languages)
    originals = read_lines(target) if job.keep_original else itertools.repeat("")
    for number, lines in enumerate(chunks(zip(read_lines(source), originals, strict=False), job.block)):
        path = job.block_file(number)
        if not path.exists():
            raise LiteNmtError(f"{path} is missing; run again, and let all processes share the folder.")
        told = path.read_text(encoding="utf-8").split("\n")[:-1]
        if len(told) != len(lines):
            raise LiteNmtError(f"{path} is damaged: {len(told)} lines, not {len(lines)}; remove it and run again.")
        for (text, original), translation in zip(lines, told, strict=True):
            if translation.startswith("\t"):
                yield translation[1:], "", ""
            else:
                yield "distilled", text, translation
            if original.strip() and text.strip():
                yield "original", text, original


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        read = dict[str, Any](json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise LiteNmtError(f"cannot read {path} ({error}); choose another --out.") from error
    return read
