"""What a call costs on a CUDA device: time, memory and launches."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

Call = Callable[[], Any]


def graphed(call: Call) -> Call:
    """A call captured once, and replayed: one launch for all of its kernels."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            call()
    here = torch.cuda.current_stream()
    here.wait_stream(aside)
    graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
    try:
        with torch.cuda.graph(graph, pool=pool):
            call()
    except Exception:
        # PyTorch leaves a broken capture's stream and pool in use; then it can neither capture nor free memory again.
        torch.cuda.set_stream(here)
        with contextlib.suppress(AttributeError, RuntimeError):
            torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), pool)
        raise
    return graph.replay


def measure(call: Call, repeats: int) -> dict[str, Any]:
    """Milliseconds of the device's work, as a graph (median, lowest and highest of the repeats); of a call from Python;
    peak memory beside what was there; launches.

    What cannot be captured has no ``ms`` of its own: a call's time stands there, and ``captured`` is false.
    """
    call()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    row: dict[str, Any] = {"memory": torch.cuda.max_memory_allocated() - before, "launches": launches(call)}
    row["call_ms"] = flushed(call)
    row["loop_ms"] = loop(call, calls=max(3, min(30, int(500 / row["call_ms"]))))
    try:
        replay, row["captured"] = graphed(call), True
    except RuntimeError:  # it asks the device for a value on the way
        torch.cuda.synchronize()
        replay, row["captured"] = call, False
    times = [flushed(replay) for _ in range(repeats)]
    return {**row, "ms": statistics.median(times), "ms_low": min(times), "ms_high": max(times)}


def flushed(call: Call) -> float:
    """Median milliseconds of calls that each find the L2 cache emptied."""
    from triton.testing import do_bench

    return float(do_bench(call, warmup=10, rep=40, return_mode="median"))


def loop(call: Call, calls: int) -> float:
    """Milliseconds a call in a Python loop that waits once, at its end."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(calls):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / calls * 1e3


def launches(call: Call) -> int:
    """Kernels that one call starts."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as recorded:
        call()
        torch.cuda.synchronize()
    # A name that somebody gave to a stretch of the device's time is an event too.
    return sum(str(e.device_type).endswith("CUDA") and not e.is_user_annotation for e in recorded.events() or ())


def copy_ms(size: int) -> float:
    """Milliseconds of a copy on the device that moves ``size`` bytes, reads and writes both counted."""
    source = torch.empty(max(size // 2, 1), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return flushed(graphed(lambda: target.copy_(source)))
