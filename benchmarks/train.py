"""A training step of a Lite Transformer with the reference and with the fused kernels: tokens a second.

    PYTHONPATH=. python benchmarks/train.py --output benchmarks/results/train.md

On a CUDA device in bfloat16, each as PyTorch runs it, under ``torch.compile``, and as one CUDA graph. On a CPU the
kernels do not run: the reference alone is measured, in float32. The contestants take turns, a round each.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
from machine import machine, spread
from timing import graphed

from lite_nmt.config import load_preset
from lite_nmt.data.vocabulary import EOS
from lite_nmt.models.translation import TranslationModel
from lite_nmt.modules.kernels import use_kernels
from lite_nmt.ops.implementation import Implementation
from lite_nmt.train.loss import linear_cross_entropy

PRESETS = ("iwslt-lite-transformer-209m", "wmt-lite-transformer-527m")


def training_step(preset: str, impl: Implementation, compiled: bool, sentences: int, length: int) -> Callable[[], None]:
    """A function that makes one update of a fresh model on one batch of random tokens; some sources are shorter."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    config = load_preset(preset)
    torch.manual_seed(1)
    model = TranslationModel(config).to(device).train()
    use_kernels(model, impl)
    if compiled:
        model.compile()
    rate = torch.tensor(1e-4, device=device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, fused=True, capturable=device == "cuda")
    source, target = (
        torch.randint(EOS + 1, size, (sentences, length), device=device)
        for size in (config.vocabulary.source, config.vocabulary.target)
    )
    keep = torch.ones(sentences, length, dtype=torch.bool, device=device)
    keep[::5, -2:] = False

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype, enabled=device == "cuda"):
            hidden = model(source, keep, target).flatten(0, 1)
        loss, _ = linear_cross_entropy(hidden, model.project.weight, target.flatten(), 0.1, dtype)
        (loss / target.numel()).backward()
        optimizer.step()

    return step


def contestants(preset: str, sentences: int, length: int) -> dict[str, Callable[[], None] | str]:
    """Steps by name, each taken once; or why one cannot be taken."""
    implementations: tuple[Implementation, ...] = (
        ("reference", "triton") if torch.cuda.is_available() else ("reference",)
    )
    found: dict[str, Callable[[], None] | str] = {}
    for impl, compiled, captured in itertools.product(implementations, (False, True), (False, True)):
        if not torch.cuda.is_available() and (compiled or captured):
            continue
        name = impl + ", compiled" * compiled + ", CUDA graph" * captured
        try:
            step = training_step(preset, impl, compiled, sentences, length)
            step = graphed(step) if captured else step
            step()
            found[name] = step
        except Exception as error:  # whatever PyTorch raises where it cannot compile or capture
            found[name] = str(error).split("\n")[0][:100] or type(error).__name__
            print(f"  {name}: {found[name]}", file=sys.stderr)
    return found


def contest(steps: dict[str, Callable[[], None]], rounds: int, updates: int) -> dict[str, list[float]]:
    """Seconds an update; the first round warms up and is not counted."""

    def wait() -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(rounds + 1):
        print(f"  round {turn} of {rounds}", file=sys.stderr)
        for name, step in steps.items():
            wait()
            began = time.perf_counter()
            for _ in range(updates):
                step()
            wait()
            if turn:
                times[name].append((time.perf_counter() - began) / updates)
    return times


def main() -> None:
    """Measure, print, and write the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="+", default=list(PRESETS))
    parser.add_argument("--tokens", type=int, default=4096, help="a batch's, on each side")
    parser.add_argument("--length", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--updates", type=int, default=10, help="in a round")
    parser.add_argument("--output", type=Path, help="Markdown file to write; raw times go beside it as JSON")
    args = parser.parse_args()
    torch._dynamo.config.recompile_limit = 64  # beyond its own limit PyTorch would compile no further model, quietly
    sentences = max(args.tokens // args.length, 1)
    where = torch.cuda.get_device_name() if torch.cuda.is_available() else "a CPU, where only the reference runs"
    lines = [
        "# A training step with the fused kernels",
        "",
        f"`python benchmarks/train.py {' '.join(sys.argv[1:])}` on {where}; {machine()}.",
        f"Batches of {sentences} sentences of {args.length} tokens on each side.",
        "",
        "| model | | target tokens/s | quartiles | against the reference |",
        "|---|---|--:|--:|--:|",
    ]
    raw: dict[str, dict[str, list[float]]] = {}
    for preset in args.presets:
        print(preset, file=sys.stderr)
        steps = contestants(preset, sentences, args.length)
        ready = {name: step for name, step in steps.items() if not isinstance(step, str)}
        raw[preset] = contest(ready, args.rounds, args.updates)
        baseline = raw[preset].get("reference")
        for name, step in steps.items():
            if isinstance(step, str):
                lines.append(f"| {preset} | {name} | {step} | | |")
                continue
            middle, low, high = spread(raw[preset][name])
            rate, slow, fast = (sentences * args.length / t for t in (middle, high, low))
            ratio = f"{spread(baseline)[0] / middle:.2f}x" if baseline else ""
            lines.append(f"| {preset} | {name} | {rate:,.0f} | {slow:,.0f} to {fast:,.0f} | {ratio} |")
        write(args.output, lines, {"machine": f"{where}; {machine()}", "seconds": raw})
    print("\n".join(lines))


def write(output: Path | None, lines: list[str], raw: dict[str, Any]) -> None:
    """What there is so far, so that nothing is lost where a later preset fails."""
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text("\n".join(lines) + "\n", encoding="utf-8")
        output.with_suffix(".json").write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
