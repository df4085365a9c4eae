"""The fused kernels beside everything else that computes the same, and beside attention: time, memory, bytes.

    python benchmarks/kernels.py --output benchmarks/results/kernels.md    # needs a CUDA device
    python benchmarks/kernels.py --check                                   # what can be checked without one

Before a method is timed at a size, its output and gradients are compared with float64's; nothing is reported of one
that is wrong. Times are medians of ``do_bench``, which empties the L2 cache before each call; up to 300 steps, where
launches are all there is, a CUDA graph's too. ``loop`` is a plain Python loop, as TaLK's Table 4 was timed. Everything
is B,T,C; a transposition that a method needs is inside its time.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from banded_methods import Method, Problem, methods
from machine import machine
from torch import Tensor

from lite_nmt.errors import LiteNmtError

LENGTHS = (10, 30, 100, 300, 1000, 3000, 10_000)
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
LIMITS = {torch.float32: 1e-3, torch.bfloat16: 2e-2}  # others may use TF32 inside; ours does not
GRAPHED = 300
TABLE_4 = {  # TaLK Convolutions, Table 4: iterations a second in float32 on one RTX 2080 Ti, core operation only
    "self-attention, published": (4576, 3437, 102, None),
    "DynamicConv K=3, published": (3739, 3308, 443, 45),
    "DynamicConv K=31, published": (4535, 3860, 325, 29),
    "TaLK, published": (9686, 6126, 898, 92),
}
TABLE_4_LENGTHS = (10, 100, 1000, 10_000)


def problems(shape: str, lengths: list[int], taps: list[int], spans: list[int], dtypes: list[str]) -> Iterator[Problem]:
    """TaLK's Table 4 (B=10, C=1024, H=16), or a batch of 4,096 tokens in a convolution of our own (C=248, H=4)."""
    for dtype in dtypes:
        for length in lengths:
            size = (10, length, 1024, 16) if shape == "paper" else (max(4096 // length, 1), length, 248, 4)
            for k in taps:
                for op in ("light", "dynamic", "talk", "attention"):
                    yield Problem(op, *size, k, DTYPES[dtype])
            for k in spans:
                for op in ("span", "causal attention"):
                    yield Problem(op, *size, k, DTYPES[dtype])


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
    reference = methods(dataclasses.replace(problem, dtype=torch.float64))["reference"]
    found, expected = gradients(method, inputs, upstream), gradients(reference, exact, upstream.double())
    off = max(float((a.double() - b).norm().detach() / b.norm().detach()) for a, b in zip(found, expected, strict=True))
    return "" if off < LIMITS[problem.dtype] else f"relative error {off:.1e}"


def gate(problem: Problem, name: str, device: str) -> str:
    """Check a method at the size that is measured, or one like it whose float64 reference fits into memory."""
    if problem.op.endswith("attention"):
        return ""  # another operator; PyTorch's own tests cover it
    small = dataclasses.replace(problem, batch=min(problem.batch, 2), length=min(problem.length, 300))
    return wrong(small, methods(small)[name], device)


def measure(problem: Problem, method: Method, backward: bool, repeats: int) -> dict[str, Any]:
    """Milliseconds (median, lowest and highest of the repeats), peak memory beside the inputs, and launches."""
    from triton.testing import do_bench, do_bench_cudagraph

    inputs = problem.inputs("cuda")
    upstream = torch.randn_like(inputs[0])

    def call() -> None:
        if backward:
            gradients(method, inputs, upstream)
        else:
            with torch.no_grad():
                method(*inputs)

    call()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    row: dict[str, Any] = {"memory": torch.cuda.max_memory_allocated() - before, "launches": launches(call)}
    times = [do_bench(call, warmup=10, rep=40, return_mode="median") for _ in range(repeats)]
    row["ms"], row["ms_low"], row["ms_high"] = statistics.median(times), min(times), max(times)
    row["loop_ms"] = loop(call)
    if problem.length <= GRAPHED and not backward:
        row["graph_ms"] = do_bench_cudagraph(call, rep=40, return_mode="median")
    return row


def loop(call: Callable[[], None], calls: int = 30) -> float:
    """Milliseconds a call in a Python loop that waits once, at its end."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(calls):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / calls * 1e3


def launches(call: Callable[[], None]) -> int:
    """Kernels that one call starts."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as recorded:
        call()
        torch.cuda.synchronize()
    return sum(str(e.device_type).endswith("CUDA") for e in recorded.events() or ())


def copy_speed() -> float:
    """Bytes a second that a device-to-device copy of 2 GB moves, reads and writes both counted."""
    from triton.testing import do_bench

    source = torch.empty(2**31, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return float(2 * source.numel() / do_bench(lambda: target.copy_(source), return_mode="median") * 1e3)


def run(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure all that was asked for; a method that cannot run, or is wrong, is a row that says so.

    Raises:
        LiteNmtError: the kernels are wrong.
    """
    rows = []
    for shape in args.shapes:
        for problem in problems(shape, args.lengths, args.taps, args.spans, args.dtypes):
            torch.compiler.reset()
            size = {**dataclasses.asdict(problem), "dtype": str(problem.dtype)[6:], "shape": shape}
            for name, method in methods(problem).items():
                for backward, found in enumerate(results(problem, name, method, args.repeats)):
                    rows.append({**size, "method": name, "backward": bool(backward), **found})
                    print(json.dumps(rows[-1]), file=sys.stderr)
                torch.cuda.empty_cache()
    return rows


def results(problem: Problem, name: str, method: Method, repeats: int) -> list[dict[str, Any]]:
    """Forward alone, then both passes; or why there is nothing to report."""
    try:
        if reason := gate(problem, name, "cuda"):
            raise LiteNmtError(reason)
        return [measure(problem, method, backward, repeats) for backward in (False, True)]
    except Exception as error:  # whatever a contestant raises at a size that it does not take
        if name == "triton":
            raise LiteNmtError(f"the kernels fail at {problem}: {error}; nothing is reported.") from error
        return [{"failed": str(error).split("\n")[0][:100]}] * 2


def report(rows: list[dict[str, Any]], speed: float) -> str:
    """All rows in Markdown, and Table 4 redrawn."""
    lines = [
        "| operator | B n C H K | dtype | pass | method | ms (lowest to highest) | graph ms | loop ms | of the floor "
        "| MB | launches |",
        "|---|---|---|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        size = " ".join(str(row[key]) for key in ("batch", "length", "channels", "heads", "taps"))
        head = (
            f"| {row['op']} | {size} | {row['dtype']} | {'both' if row['backward'] else 'forward'} | {row['method']} |"
        )
        if row.get("failed"):
            lines.append(f"{head} {row['failed']} | | | | | |")
            continue
        graph = f"{row['graph_ms']:.4f}" if "graph_ms" in row else ""
        lines.append(
            f"{head} {row['ms']:.4f} ({row['ms_low']:.4f} to {row['ms_high']:.4f}) | {graph} | {row['loop_ms']:.4f} | "
            f"{share(row, speed)} | {row['memory'] / 1e6:.1f} | {row['launches']} |"
        )
    return "\n".join([table_4(rows), "", "## All", "", *lines])


def share(row: dict[str, Any], speed: float) -> str:
    """How near a time is to that of the bytes that must move, at the speed of a copy."""
    fields = {field.name: row[field.name] for field in dataclasses.fields(Problem)}
    problem = Problem(**{**fields, "dtype": getattr(torch, row["dtype"])})
    if not problem.banded:
        return ""
    floor = problem.floor(row["backward"])
    return f"{floor / speed * 1e3 / row['ms']:.0%}"


def table_4(rows: list[dict[str, Any]]) -> str:
    """TaLK's Table 4 with our columns beside its own; where nothing was measured stands a dash."""
    wanted = {
        "self-attention, SDPA math": ("attention", None, "SDPA math"),
        "self-attention, SDPA flash (bf16)": ("attention", None, "SDPA flash"),
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
            and taps in (None, row["taps"])
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
    return "\n".join(lines)


def check() -> None:
    """Without a GPU: every method that a CPU runs is right, the floors are, and the report can be written."""
    torch.compiler.set_stance("force_eager")  # what is compiled is right if it is right as it stands
    for op in ("light", "dynamic", "talk", "span"):
        problem = Problem(op, 2, 67, 24, 4, 40 if op == "span" else 7, torch.float32)
        for name, method in methods(problem).items():
            if name == "triton":
                continue  # its own tests compare it, in the interpreter
            reason = wrong(problem, method, "cpu")
            print(f"{op}, {name}: {reason or 'right'}")
            if reason:
                raise LiteNmtError(f"{name} is no fair contestant: {reason}.")
    table = Problem("dynamic", 10, 1000, 1024, 16, 31, torch.bfloat16)
    elements, weights = 10 * 1000 * 1024, 10 * 1000 * 16 * 31
    assert table.floor(False) == 2 * (2 * elements + weights)
    assert table.floor(True) == 2 * (5 * elements + 3 * weights)
    sizes = [next(problems(shape, [n], [31], [], ["bf16"])) for shape in ("paper", "ours") for n in LENGTHS]
    assert all(size.channels % size.heads == 0 for size in sizes)
    text = table_4([])
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
    parser.add_argument("--output", type=Path, help="Markdown file to write; raw rows go beside it as JSON")
    args = parser.parse_args()
    if args.check:
        check()
        return
    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device: nothing was measured or written. --check runs what needs none.")
    torch.backends.cuda.matmul.allow_tf32 = False
    speed = copy_speed()
    rows = run(args)
    title = (
        f"# Fused kernels\n\n`python benchmarks/kernels.py {' '.join(sys.argv[1:])}` on "
        f"{torch.cuda.get_device_name()}, {machine()}. A copy moves {speed / 1e12:.2f} TB/s.\n\n"
    )
    text = title + report(rows, speed)
    print(text)
    if args.output:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(text + "\n", encoding="utf-8")
        raw = {"device": torch.cuda.get_device_name(), "machine": machine(), "copy_bytes_per_s": speed, "rows": rows}
        args.output.with_suffix(".json").write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
