"""What a run tells: a progress bar with the loss, ``metrics.jsonl``, TensorBoard, and a picture at the end."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from lite_nmt.manifest import write_whole


def quality(found: Mapping[str, float]) -> str:
    """What a validation says of the model's own words, if anything: ``BLEU 38.02``, ``ROUGE-1/2/L 30.1/9.5/25.0``."""
    if "valid_bleu" in found:
        return f"BLEU {found['valid_bleu']:.2f}"
    if "valid_rouge1" in found:
        return "ROUGE-1/2/L " + "/".join(f"{found[f'valid_rouge{kind}']:.1f}" for kind in "12L")
    return ""


class Metrics:
    """Collects figures between two log lines. Only the first of several processes shows and writes them."""

    def __init__(self, run: Path, first: bool = True) -> None:
        self.run, self.first, self.log_every = run, first, 1
        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.bar: Progress | None = None
        self.task = TaskID(0)
        self.sums: torch.Tensor | None = None
        self.tokens = 0
        self.since = time.perf_counter()
        self.writer: Any = None

    @contextlib.contextmanager
    def open(self, log_every: int) -> Iterator[None]:
        """Write to the run folder while training; draw the curves at the end, also of a run that was interrupted."""
        self.log_every = log_every
        if not self.first:
            yield
            return
        with contextlib.suppress(ImportError):  # an extra; metrics.jsonl holds the same figures
            from torch.utils.tensorboard import SummaryWriter

            self.writer = SummaryWriter(str(self.run / "tensorboard"))
        try:
            yield
        finally:
            if self.writer is not None:
                self.writer.close()
            try:
                draw(read_metrics(self.run), self.run / "curves.png")
            except OSError as error:  # the run is worth more than its picture, and so is the error that ended it
                self.say(f"curves.png was not drawn: {error.strerror}")

    @contextlib.contextmanager
    def progress(self, steps: int, done: int) -> Iterator[None]:
        """Show a bar while training. On something other than a terminal, each log line is a line of text."""
        self.since = time.perf_counter()
        if not self.first or not self.console.is_terminal:
            yield
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=self.console) as self.bar:
            self.task = self.bar.add_task("training", total=steps, completed=done)
            yield
        self.bar = None

    def update(self, step: int, sums: torch.Tensor, tokens: int, rate: float, norm: torch.Tensor) -> None:
        """Take note of one update; ``sums`` are loss and negative log-likelihood over ``tokens`` tokens, in nats."""
        self.sums = sums if self.sums is None else self.sums + sums
        self.tokens += tokens
        if self.bar is not None:
            self.bar.update(self.task, completed=step)
        if step % self.log_every:
            return
        now = time.perf_counter()
        loss, nll = (self.sums / self.tokens).tolist()
        line = {
            "step": step,
            "loss": loss,
            "nll": nll,
            "lr": rate,
            "gradient_norm": float(norm),
            "seconds": now - self.since,
            "tokens_per_second": self.tokens / (now - self.since),
        }
        self.sums, self.tokens, self.since = None, 0, now
        self.write(line)
        speed = line["tokens_per_second"]
        self.show(step, f"loss {loss:.3f} ppl {math.exp(min(nll, 50)):.1f} {speed:,.0f} tokens/s")

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Time spent in here does not count against training speed."""
        began = time.perf_counter()
        yield
        self.since += time.perf_counter() - began

    def validated(self, step: int, found: Mapping[str, float]) -> None:
        """Take note of one validation."""
        self.write({"step": step, **found})
        score = f", {quality(found)}" if quality(found) else ""
        span = f", mean span {found['mean_span']:.1f}" if "mean_span" in found else ""
        self.say(f"step {step}: validation ppl {math.exp(min(found['valid_nll'], 50)):.2f}{score}{span}")

    def show(self, step: int, text: str) -> None:
        """Put a line beside the bar, or below the last one where there is no bar."""
        if self.bar is not None:
            self.bar.update(self.task, description=text)
        elif self.first:
            self.console.print(f"step {step}: {text}")

    def say(self, text: str) -> None:
        """One line to the person who waits, on stderr."""
        if self.first:
            self.console.print(text)

    def write(self, line: Mapping[str, float]) -> None:
        """Append one line to ``metrics.jsonl``, and the same to TensorBoard."""
        if not self.first:
            return
        with (self.run / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if self.writer is not None:
            for key, value in line.items():
                if key != "step":
                    self.writer.add_scalar(key, value, line["step"])

    def rewind(self, step: int) -> None:
        """Drop what a killed run wrote after the checkpoint that it resumes from."""
        if not self.first:
            return
        kept = [line for line in read_metrics(self.run) if line["step"] <= step]
        text = "".join(json.dumps(line) + "\n" for line in kept)
        write_whole(self.run / "metrics.jsonl", text.encode())


def read_metrics(run: Path) -> list[dict[str, float]]:
    """All whole lines of a run's ``metrics.jsonl``."""
    path = run / "metrics.jsonl"
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            lines.append(json.loads(text))
        except ValueError:
            print(f"{path}: a line that was not written whole is left out", file=sys.stderr)
    return lines


def draw(lines: list[dict[str, float]], path: Path) -> None:
    """Loss, and validation BLEU where there is any, over updates."""
    from matplotlib.figure import Figure

    from lite_nmt.figures import encode

    figure = Figure(figsize=(7, 4), layout="constrained")
    axis = figure.subplots()
    for key, label in (("nll", "training"), ("valid_nll", "validation")):
        points = [(line["step"], line[key]) for line in lines if key in line]
        if points:
            axis.plot(*zip(*points, strict=True), label=label, marker="." if key == "valid_nll" else None)
    axis.set_xlabel("updates")
    axis.set_ylabel("negative log-likelihood, nats a token")
    axis.grid(alpha=0.3)
    bleu = [(line["step"], line["valid_bleu"]) for line in lines if "valid_bleu" in line]
    handles, labels = axis.get_legend_handles_labels()
    if bleu:
        right = axis.twinx()
        right.plot(*zip(*bleu, strict=True), color="tab:green", marker=".", label="validation BLEU")
        right.set_ylabel("BLEU")
        more = right.get_legend_handles_labels()
        handles, labels = handles + more[0], labels + more[1]
    if handles:
        axis.legend(handles, labels, loc="center right")
    write_whole(path, encode(figure, "png"))
