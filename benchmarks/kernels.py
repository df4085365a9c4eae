"""The fused kernels beside everything else that computes the same, and beside attention: time, memory, bytes.

    PYTHONPATH=. python benchmarks/kernels.py --output benchmarks/results/kernels.md   # needs a CUDA device
    PYTHONPATH=. python benchmarks/kernels.py --check                                  # what can be checked without

Before a method is timed at a size, its output and gradients are compared with float64's; nothing is reported of one
that is wrong. Times are medians of what the device does, captured as a CUDA graph and replayed with the L2 cache
emptied before; a call's own, from Python, stands beside them. ``loop`` is a plain Python loop, as TaLK's Table 4 was
timed. Everything is B,T,C; a transposition that a method needs is inside its time.

All of it takes an hour or more. What the goals and Table 4 compare is measured first; what was measured is written on
the way, and the same command goes on after it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from banded_methods import Method, Problem, methods, reference
from machine import machine
from timing import copy_ms, measure
from torch import Tensor

from lite_nmt.errors import LiteNmtError

LENGTHS = (10, 30, 100, 300, 1000, 3000, 10_000)
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
LIMITS = {torch.float32: 1e-3, torch.bfloat16: 2e-2}  # others may use TF32 inside; ours does not
WHOLE = 1000  # steps of the longest attention whose float64 reference fits into memory
EVERY = 20  # seconds between two writings of what was measured
PEAK = 2**32  # bytes that the copy moves which says how fast the device's memory is
Row = dict[str, Any]
TABLE_4 = {  # TaLK Convolutions, Table 4: iterations a second in float32 on one RTX 2080 Ti, core operation only
    "self-attention, published": (4576, 3437, 102, None),
    "DynamicConv K=3, published": (3739, 3308, 443, 45),
    "DynamicConv K=31, published": (4535, 3860, 325, 29),
    "TaLK, published": (9686, 6126, 898, 92),
}
TABLE_4_LENGTHS = (10, 100, 1000, 10_000)
COMPARED = ("triton", "reference", "torch.compile of shift-sum", "prefix sum", "SDPA flash", "SDPA math")


def problems(shape: str, lengths: list[int], taps: list[int], spans: list[int], dtypes: list[str]) -> Iterator[Problem]:
    """TaLK's Table 4 (B=10, C=1024, H=16), or a batch of 4,096 tokens in a convolution of our own (C=248, H=4), there
    also with all that training adds."""
    for dtype in dtypes:
        for length in lengths:
            size = (10, length, 1024, 16) if shape == "paper" else (max(4096 // length, 1), length, 248, 4)
            for k in taps:
                for op in ("light", "dynamic", "talk"):
                    yield Problem(op, *size, k, DTYPES[dtype])
                    if shape == "ours":
                        yield Problem(op, *size, k, DTYPES[dtype], training=True)
            for k in (0, *taps):
                yield Problem("attention", *size, k, DTYPES[dtype])
            for k in spans:
                yield Problem("span", *size, k, DTYPES[dtype])
            for k in (0, *spans):
                yield Problem("causal attention", *size, k, DTYPES[dtype])


def described(problem: Problem, shape: str) -> Row:
    """A problem's fields, as they stand in each of its rows."""
    return {**dataclasses.asdict(problem), "dtype": str(problem.dtype).removeprefix("torch."), "shape": shape}


def gradients(method: Method, inputs: list[Tensor], upstream: Tensor) -> list[Tensor]:
    """The output, and the gradient of each input."""
    out = method(*inputs)
    return [out, *torch.autograd.grad(out, inputs, upstream)]


def wrong(problem: Problem, method: Method, device: str) -> str:
    """Why a method must not be reported: its distance from the reference in float64. Empty where it is right."""
    torch.manual_seed(0)
    inputs = problem.inputs(device)
    upstream = torch.randn_like(inputs[0])
    exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
    theirs = reference(dataclasses.replace(problem, dtype=torch.float64))
    found, expected = gradients(method, inputs, upstream), gradients(theirs, exact, upstream.double())
    off = max(float((a.double() - b).norm().detach() / b.norm().detach()) for a, b in zip(found, expected, strict=True))
    return "" if off < LIMITS[problem.dtype] else f"relative error {off:.1e}"


def gate(problem: Problem, name: str, method: Method, device: str) -> str:
    """Check a method at the size that is measured, or of attention at one whose float64 reference fits into memory."""
    small = problem
    if not problem.banded and problem.length > WHOLE:
        small = dataclasses.replace(problem, batch=min(problem.batch, 2), length=WHOLE)
        method = methods(small)[name]
    return wrong(small, method, device)


def results(problem: Problem, name: str, method: Method, repeats: int) -> list[Row]:
    """Forward alone, then both passes; or why there is nothing to report."""
    found: list[Row] = []
    try:
        if reason := gate(problem, name, method, "cuda"):
            raise LiteNmtError(reason)
        inputs = problem.inputs("cuda")
        upstream = torch.randn_like(inputs[0])

        def forward() -> None:
            with torch.no_grad():
                method(*inputs)

        found.append(measure(forward, repeats))
        found.append(measure(lambda: gradients(method, inputs, upstream), repeats))
    except Exception as error:  # whatever a contestant raises at a size that it does not take
        failed: Row = {"failed": str(error).split("\n")[0][:100] or type(error).__name__}
        found += [failed] * (2 - len(found))
    return found


def rows_of(problem: Problem, shape: str, name: str, repeats: int) -> Iterator[Row]:
    """One method of one problem."""
    torch.compiler.reset()
    copies = [{"copy_ms": copy_ms(problem.floor(both))} if problem.banded else {} for both in (False, True)]
    for both, found in enumerate(results(problem, name, methods(problem)[name], repeats)):
        yield {**described(problem, shape), "method": name, "backward": bool(both), **copies[both], **found}


def plan(args: argparse.Namespace) -> list[tuple[Problem, str, str]]:
    """Problem, shape and method of all that was asked for. What the goals and Table 4 compare comes first."""
    found = [
        (problem, shape, name)
        for shape in args.shapes
        for problem in problems(shape, args.lengths, args.taps, args.spans, args.dtypes)
        for name in methods(problem)
    ]

    def later(entry: tuple[Problem, str, str]) -> tuple[bool, ...]:
        problem, shape, name = entry
        compared = name in COMPARED and (problem.banded or (problem.op == "attention" and shape == "paper"))
        ours = shape != "paper"
        usual = problem.length in TABLE_4_LENGTHS
        return not compared, not usual, ours, ours and not problem.training, problem.length < WHOLE

    return sorted(found, key=later)


def run(args: argparse.Namespace, about: Row, rows: list[Row]) -> bool:
    """Measure what was asked for and is not among ``rows``, which grow; a method that cannot run, or is wrong, is a row
    that says so. Stops after ``args.minutes``.

    Returns:
        Whether that was all.

    Raises:
        RuntimeError: a method broke the device. That is among the rows; the same command goes on after it.
    """
    began = written = time.monotonic()
    done = {key_of(row) for row in rows}
    try:
        for problem, shape, name in plan(args):
            if key_of({**described(problem, shape), "method": name}) in done:
                continue
            if args.minutes and time.monotonic() - began > 60 * args.minutes:
                return False
            for row in rows_of(problem, shape, name, args.repeats):
                print(json.dumps(row), file=sys.stderr)
                rows.append(row)
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            if args.output and time.monotonic() - written > EVERY:
                write(args.output, about, rows)
                written = time.monotonic()
    finally:
        if args.output:
            write(args.output, about, rows)
    return True


def key_of(row: Row) -> tuple[Any, ...]:
    """What a row is of, but for its pass."""
    return tuple(row[name] for name in (*(field.name for field in dataclasses.fields(Problem)), "shape", "method"))


def write(output: Path, about: Row, rows: list[Row]) -> None:
    """The table, and raw rows beside it."""
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(report(about, rows) + "\n", encoding="utf-8")
    output.with_suffix(".json").write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")


def earlier(output: Path | None, about: Row) -> list[Row]:
    """The rows that an earlier call wrote, on the same machine.

    Raises:
        SystemExit: they were measured elsewhere, or otherwise.
    """
    found = output and output.with_suffix(".json")
    if not found or not found.exists():
        return []
    raw = json.loads(found.read_text(encoding="utf-8"))
    for name in ("device", "machine", "triton", "repeats"):
        if raw[name] != about[name]:
            raise SystemExit(
                f"{found} was measured with {name} = {raw[name]}, not {about[name]}; choose another --output."
            )
    about["copy_bytes_per_s"] = raw["copy_bytes_per_s"]
    rows: list[Row] = raw["rows"]
    return rows


def summary(about: Row, rows: list[Row]) -> list[str]:
    """Title, goals, and Table 4 redrawn."""
    speed = about["copy_bytes_per_s"]
    return [
        "# Fused kernels",
        "",
        f"`{about['command']}` on {about['device']}, {about['machine']}, Triton {about['triton']}. A copy of 2 GB "
        f"moves {speed / 1e12:.2f} TB/s. *floor*: the time of the bytes that must move, at that speed, as a share of "
        "the method's; *copy*: the time of a copy of as many bytes, likewise.",
        "",
        *goals(rows, speed),
        "",
        *table_4(rows),
    ]


def report(about: Row, rows: list[Row]) -> str:
    """:func:`summary`, and all rows, in Markdown."""
    speed = about["copy_bytes_per_s"]
    lines = [
        *summary(about, rows),
        "",
        "## All",
        "",
        "| operator | B n C H K | dtype | pass | method | ms (lowest to highest) | call ms | loop ms | floor | copy "
        "| MB | launches |",
        "|---|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        size = " ".join(str(row[key]) for key in ("batch", "length", "channels", "heads", "taps"))
        passes = "both" if row["backward"] else "forward"
        op = f"{row['op']}, training" if row["training"] else row["op"]
        head = f"| {op} | {size} | {row['dtype']} | {passes} | {row['method']} |"
        if row.get("failed"):
            lines.append(f"{head} {row['failed']} | | | | | | |")
            continue
        time = f"{row['ms']:.4f} ({row['ms_low']:.4f} to {row['ms_high']:.4f})" if row["captured"] else "not captured"
        near = [f"{share:.0%}" for share in shares(row, speed)] or ["", ""]
        lines.append(
            f"{head} {time} | {row['call_ms']:.4f} | {row['loop_ms']:.4f} | {' | '.join(near)} | "
            f"{row['memory'] / 1e6:.1f} | {row['launches']} |"
        )
    return "\n".join(lines)


def shares(row: Row, speed: float) -> list[float]:
    """How near a time is to that of the bytes that must move: at the speed of the largest copy, and of one as large."""
    fields = {field.name: row[field.name] for field in dataclasses.fields(Problem)}
    problem = Problem(**{**fields, "dtype": getattr(torch, row["dtype"])})
    if not problem.banded:
        return []
    return [problem.floor(row["backward"]) / speed * 1e3 / row["ms"], row["copy_ms"] / row["ms"]]


def goals(rows: list[Row], speed: float) -> list[str]:
    """What the kernels are meant to reach, and how far they are: the worst of all sizes."""
    done = {
        tuple(row[key] for key in ("shape", "op", "length", "taps", "dtype", "training", "backward", "method")): row
        for row in rows
        if not row.get("failed")
    }
    near, ahead, flash, fewer = [], [], [], []
    for (shape, op, length, taps, dtype, training, backward, method), row in done.items():
        if method != "triton" or op not in ("light", "dynamic", "talk"):
            continue
        others = {
            name: done.get((shape, where, length, k, dtype, training, backward, name))
            for where, k, name in (
                (op, taps, "torch.compile of shift-sum"),
                (op, taps, "reference"),
                ("attention", 0, "SDPA flash"),
            )
        }
        if length >= 1000 and backward:
            near.append(shares(row, speed)[0])
        if length >= 100 and (other := others["torch.compile of shift-sum"]):
            ahead.append(other["ms"] / row["ms"])
        if length >= 100 and (other := others["SDPA flash"]):
            flash.append(other["ms"] / row["ms"])
        if training and backward and (other := others["reference"]) and row["launches"]:
            fewer.append(other["launches"] / row["launches"])
    lines = ["## Goals, the worst size of each", "", "| goal | asked | found | sizes |", "|---|--:|--:|--:|"]
    for name, asked, found, form in (
        ("share of the byte floor, both passes, n ≥ 1,000", 0.8, near, "{:.0%}"),
        ("times as fast as torch.compile of the shift-sum, n ≥ 100", 1, ahead, "{:.2f}"),
        ("times as fast as flash attention, n ≥ 100", 1, flash, "{:.2f}"),
        ("times fewer launches than eager, training shapes", 5, fewer, "{:.1f}"),
    ):
        worst = form.format(min(found)) if found else "–"
        missed = f", {sum(value < asked for value in found)} below" if found and min(found) < asked else ""
        lines.append(f"| {name} | {form.format(asked)} | {worst} | {len(found)}{missed} |")
    return lines


def table_4(rows: list[Row]) -> list[str]:
    """TaLK's Table 4 with our columns beside its own; where nothing was measured stands a dash."""
    wanted = {
        "self-attention, SDPA math": ("attention", 0, "SDPA math"),
        "self-attention, SDPA flash (bf16)": ("attention", 0, "SDPA flash"),
        **{f"DynamicConv K={k}, {m}": ("dynamic", k, m) for k in (3, 31) for m in ("reference", "triton")},
        **{f"LightConv K={k}, triton": ("light", k, "triton") for k in (3, 31)},
        **{f"TaLK K=31, {m}": ("talk", 31, m) for m in ("prefix sum", "triton")},
    }
    measured: dict[str, tuple[float | None, ...]] = {}
    for label, (op, taps, method) in wanted.items():
        dtype = "bfloat16" if "bf16" in label else "float32"
        found = {
            row["length"]: 1e3 / row["loop_ms"]
            for row in rows
            if (row["op"], row["method"], row["dtype"], row["shape"]) == (op, method, dtype, "paper")
            and taps == row["taps"]
            and not row["training"]
            and not row["backward"]
            and not row.get("failed")
        }
        measured[label] = tuple(found.get(n) for n in TABLE_4_LENGTHS)
    lines = [
        "## TaLK Convolutions, Table 4: iterations a second (float32, B=10, d=1024, H=16, forward)",
        "",
        "Published on one RTX 2080 Ti; the others are this run's.",
        "",
        "| | " + " | ".join(f"n={n:,}" for n in TABLE_4_LENGTHS) + " |",
        "|---|" + "--:|" * len(TABLE_4_LENGTHS),
    ]
    for label, values in {**TABLE_4, **measured}.items():
        lines.append(f"| {label} | " + " | ".join("–" if v is None else f"{v:,.0f}" for v in values) + " |")
    return lines


def check() -> None:
    """Without a GPU: every method that a CPU runs is right, the floors are, and the report can be written."""
    torch.compiler.set_stance("force_eager")  # what is compiled is right if it is right as it stands
    rows: list[Row] = []
    for op in ("light", "dynamic", "talk", "span"):
        small = Problem(op, 2, 67, 24, 4, 40 if op == "span" else 7, torch.float32)
        large = Problem(op, 2, 300, 248, 4, 128 if op == "span" else 31, torch.bfloat16)
        for problem in (small, large, *([dataclasses.replace(large, training=True)] if small.banded else [])):
            for name, method in methods(problem).items():
                result = {"failed": "no device"}
                if name != "triton":  # its own tests compare it, in the interpreter
                    reason = wrong(problem, method, "cpu")
                    print(f"{op}, {name}: {reason or 'right'}")
                    if reason:
                        raise LiteNmtError(f"{name} is no fair contestant: {reason}.")
                rows.append({**described(problem, "ours"), "method": name, "backward": True, **result})
    table = Problem("dynamic", 10, 1000, 1024, 16, 31, torch.bfloat16)
    elements, weights = 10 * 1000 * 1024, 10 * 1000 * 16 * 31
    assert table.floor(False) == 2 * (2 * elements + weights)
    assert table.floor(True) == 2 * (5 * elements + 3 * weights)
    sizes = [next(problems(shape, [n], [31], [], ["bf16"])) for shape in ("paper", "ours") for n in LENGTHS]
    assert all(size.channels % size.heads == 0 for size in sizes)
    nothing = {"command": "--check", "device": "no device", "machine": machine(), "triton": "", "copy_bytes_per_s": 1.0}
    text = report(nothing, rows)
    assert all(f"{value:,}" in text for row in TABLE_4.values() for value in row if value)
    print(text)


def main() -> None:
    """Measure and write, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="run what needs no GPU, measure nothing")
    parser.add_argument("--shapes", nargs="+", choices=("paper", "ours"), default=["paper", "ours"])
    parser.add_argument("--lengths", nargs="+", type=int, default=list(LENGTHS))
    parser.add_argument("--taps", nargs="+", type=int, default=[3, 31])
    parser.add_argument("--spans", nargs="+", type=int, default=[128, 512], help="steps that the first head sees")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--minutes", type=float, help="begin no problem after so long; the same command goes on")
    parser.add_argument("--output", type=Path, help="Markdown file to write; raw rows go beside it as JSON")
    args = parser.parse_args()
    if args.check:
        check()
        return
    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device: nothing was measured or written. --check runs what needs none.")
    import triton

    torch.backends.cuda.matmul.allow_tf32 = False
    about: Row = {
        "command": f"python benchmarks/kernels.py {' '.join(sys.argv[1:])}",
        "device": torch.cuda.get_device_name(),
        "machine": machine(),
        "triton": triton.__version__,
        "repeats": args.repeats,
    }
    about["copy_bytes_per_s"] = PEAK / copy_ms(PEAK) * 1e3
    rows = earlier(args.output, about)
    whole = run(args, about, rows)
    print("\n".join(summary(about, rows)))
    if not whole:
        print(f"stopped after {args.minutes:g} minutes; the same command goes on with the rest.", file=sys.stderr)
    if ours := [row for row in rows if row.get("failed") and row["method"] == "triton" and row["op"] != "span"]:
        raise SystemExit(f"the kernels failed {len(ours)} times, the first: {ours[0]['failed']} at {ours[0]}.")


if __name__ == "__main__":
    main()
