"""Engines in turns: bundles of ours beside a Transformer in CTranslate2, on this machine and on an emulated Cortex-A72.

    python benchmarks/engines.py --data DIR --transformer RUN NAME=BUNDLE ... --output benchmarks/results/engines.md

Every engine translates the test side of DIR greedily and with beam 4. The emulated core is left out where it has not
been set up (docs/bench-arm.md). A picture of BLEU over milliseconds goes beside the table.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from machine import machine

from lite_nmt.bench.board import estimate
from lite_nmt.bench.emulated import count, differences, find_emulator
from lite_nmt.bench.host import Entry, Result, measure, translations
from lite_nmt.cli.bench import entries_of
from lite_nmt.data.corpus import read_lines
from lite_nmt.errors import LiteNmtError
from lite_nmt.evaluate.score import score
from lite_nmt.profiling.budget import quantity

BEAMS = (1, 4)


def on_host(entries: list[Entry], source: list[str], references: list[str], args: argparse.Namespace) -> list[Result]:
    """Speed over the first sentences, BLEU over all."""
    results = []
    for beam in BEAMS:
        found = measure(entries, source[: args.sentences], decode={"beam": beam}, rounds=args.rounds, say=say)
        for result in found:
            result.bleu = score(translations(result.entry, source, beam), references).bleu
        results += found
    return results


def on_a72(entries: list[Entry], source: list[str], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Instructions and bytes, of what runs there; nothing where there is no emulator."""
    try:
        emulator = find_emulator()
    except LiteNmtError as error:
        say(str(error))
        return []
    rows = []
    for beam in BEAMS:
        for entry in entries:
            say(f"counting {entry.name}, beam {beam}")
            arguments = [entry.kind, entry.path, str(beam)]
            try:
                counts = count(emulator, "lite_nmt.bench.guest:subject", arguments, source[: args.emulated])
            except LiteNmtError as error:  # ExecuTorch's Python package wants PyTorch, which is not there
                say(f"{entry.name} is left out: {error}")
                continue
            here = translations(entry, source[: args.emulated], beam)
            differ = differences(here, counts.translations)
            row = {"name": entry.name, "beam": beam, **dataclasses.asdict(counts), "differ": len(differ)}
            row.pop("translations")
            rows.append(row | {"estimate": dataclasses.asdict(estimate(counts))})
    return rows


def picture(results: list[Result], path: Path) -> None:
    """BLEU over milliseconds."""
    import matplotlib.pyplot as plt

    from lite_nmt.figures import STYLE

    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7, 6), layout="constrained")
        for i, name in enumerate(dict.fromkeys(result.entry.name for result in results)):
            own = [result for result in results if result.entry.name == name]
            points = [(result.ms.median, result.bleu or 0) for result in own]
            axes.plot(*zip(*points, strict=True), "o-", color=f"C{i}", label=name)
        axes.set_xscale("log")
        for axis in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
            axis("{x:g}")
        axes.set_xlabel("ms a sentence, one at a time, one thread (greedy, then beam 4)")
        axes.set_ylabel("test BLEU")
        figure.legend(loc="outside lower center", ncols=2, fontsize="small")
        figure.savefig(path, dpi=150)


def tables(results: list[Result], a72: list[dict[str, Any]], args: argparse.Namespace) -> str:
    """Markdown."""
    text = [
        "# Engines on multi30k",
        "",
        "`python benchmarks/engines.py --data DIR --transformer NAME=RUN NAME=BUNDLE ... --output FILE` on "
        f"{args.machine or machine()}.",
        "",
        f"One thread, {args.sentences} sentences of test 2016, from token numbers to token numbers, {args.rounds} "
        "rounds in turns after one that warms up; medians with quartiles. BLEU is of all 1,000 sentences. CPU ms is "
        "processor time, which other work on the machine disturbs less.",
        "",
        "| engine | beam | Mult-Adds | MB | BLEU | ms | CPU ms | encode ms | sentences/s, one | 32 at a time | load s "
        "| RSS, peak MB |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for i, result in enumerate(results):
        entry, ms, cpu = result.entry, result.ms, result.cpu_ms
        text.append(
            f"| {entry.name} | {BEAMS[i * len(BEAMS) // len(results)]} | {quantity(entry.mult_adds)} "
            f"| {entry.bytes / 1e6:.2f} | **{result.bleu:.2f}** | **{ms.median:.2f}** [{ms.low:.2f}, {ms.high:.2f}] "
            f"| {cpu.median:.2f} [{cpu.low:.2f}, {cpu.high:.2f}] "
            f"| {f'{result.encode_ms.median:.2f}' if result.encode_ms else ''} "
            f"| {result.per_second[1].median:.0f} | {result.per_second[32].median:.0f} | {result.load_s:.2f} "
            f"| {result.rss / 1e6:.0f}, {result.peak / 1e6:.0f} |"
        )
    text += ["", f"![BLEU over milliseconds]({args.output.with_suffix('.png').name})"]
    if args.models:
        text += ["", args.models]
    if a72:
        text += [
            "",
            "## Cortex-A72, emulated",
            "",
            f"Counted a sentence, over {args.emulated}, text to text, batch 1. Milliseconds and sentences a second are "
            "an estimate for a Raspberry Pi 4 ([formula](../../docs/bench-arm.md#the-estimate)), not a measurement. "
            "*Differ*: translations that are not the host's.",
            "",
            "| engine | beam | M instructions | spread | DRAM, MB | ms, one core | sentences/s, four | differ |",
            "|---|--:|--:|--:|--:|--:|--:|--:|",
        ]
        for row in a72:
            guess = row["estimate"]
            text.append(
                f"| {row['name']} | {row['beam']} | **{row['instructions'] / 1e6:.1f}** | {row['spread']:.3%} "
                f"| {row['dram_bytes'] / 1e6:.2f} | {guess['milliseconds']:.1f} "
                f"| {guess['sentences_per_second']:.0f} | {row['differ']} |"
            )
    return "\n".join(text) + "\n"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundles", nargs="+", metavar="NAME=BUNDLE")
    parser.add_argument("--transformer", action="append", default=[], metavar="NAME=RUN", help="for CTranslate2")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--emulated", type=int, default=20, help="sentences on the emulated core; 0 leaves it out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", metavar="TEXT", help="what the models are, for the reader of the table")
    parser.add_argument("--machine", help="what to call the machine, if it is not this one's plain description")
    parser.add_argument("--output", type=Path, required=True, help="Markdown file; figures and picture go beside it")
    args = parser.parse_args()
    source, references = (list(read_lines(args.data / f"test.{language}")) for language in ("de", "en"))
    with tempfile.TemporaryDirectory() as scratch:
        entries = []
        for given, peer in [*((b, None) for b in args.bundles), *((t, "ctranslate2") for t in args.transformer)]:
            name, _, target = given.partition("=")
            for entry in entries_of(target, peer, Path(scratch), pytorch=False):
                engine = entry.name.rpartition(", ")[2]
                entries.append(dataclasses.replace(entry, name=f"{name}, {engine}" if peer else name))
        results = on_host(entries, source, references, args)
        a72 = on_a72(entries, source, args) if args.emulated else []
    args.output.write_text(tables(results, a72, args), encoding="utf-8")
    picture(results, args.output.with_suffix(".png"))
    host = [{key: value for key, value in result.as_json().items() if key != "path"} for result in results]
    record = {"host": host, "cortex-a72": a72}
    args.output.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
