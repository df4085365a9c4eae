"""``lite-nmt bench``: how fast bundles and checkpoints translate, on this machine, an emulated one or another one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lite_nmt.cli.console import say, show
from lite_nmt.cli.options import positive, refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lite_nmt.bench.board import Estimate
    from lite_nmt.bench.emulated import Counts, Difference
    from lite_nmt.bench.host import Entry, Result, Spread
    from lite_nmt.config import Config


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser(
        "bench",
        help="measure speed, memory and BLEU or ROUGE of bundles and checkpoints",
        description="Measure engines in turns: bundles run in their own engine, checkpoints in PyTorch.",
    )
    parser.add_argument("targets", nargs="+", metavar="BUNDLE", help="a bundle, or a run or checkpoint")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="translate and score SPLIT.* of this folder"
    )
    parser.add_argument("--split", default="test", help="(%(default)s)")
    parser.add_argument("--sentences", type=positive, metavar="N", help="the first N (200; emulated 20)")
    parser.add_argument("--threads", type=positive, default=1, metavar="N", help="(%(default)s)")
    parser.add_argument("--beam", type=positive, metavar="B", help="default: each model's own")
    parser.add_argument("--rounds", type=positive, default=5, metavar="N", help="turns of each (%(default)s)")
    parser.add_argument(
        "--vs",
        choices=("ctranslate2",),
        help="also run each Transformer checkpoint that is given in this engine, in float32 and int8",
    )
    parser.add_argument(
        "--target", default="host", metavar="WHERE", help="host, cortex-a72 (emulated), or ssh:user@host (%(default)s)"
    )
    parser.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    """Measure."""
    from lite_nmt.errors import LiteNmtError

    if not args.json:
        import rich  # noqa: F401  # for the table; better missed now than when all is measured
    if args.rounds < 2:
        raise LiteNmtError("--rounds is 1; a spread needs at least 2.")
    if args.target == "host":
        return _host(args)
    if args.target == "cortex-a72":
        return _emulated(args)
    if args.target.startswith("ssh:"):
        return _board(args)
    raise LiteNmtError(f"--target is {args.target!r}; it must be host, cortex-a72 or ssh:user@host.")


def _host(args: argparse.Namespace) -> int:
    import json
    import tempfile

    from lite_nmt.bench.host import measure

    lines, references = _text(args, 200)
    with tempfile.TemporaryDirectory() as scratch:
        entries = _entries(args, Path(scratch), pytorch=True)
        decode = {} if args.beam is None else {"beam": args.beam}
        results = measure(
            entries, lines, references=references, decode=decode, threads=args.threads, rounds=args.rounds, say=say
        )
    if args.json:
        about = {"threads": args.threads, "sentences": len(lines), "beam": args.beam, "rounds": args.rounds}
        print(json.dumps({**about, "results": [result.as_json() for result in results]}))
    else:
        _print(results, args.threads)
    return 0


def _emulated(args: argparse.Namespace) -> int:
    import json
    import tempfile
    from dataclasses import asdict

    from lite_nmt.bench.board import estimate
    from lite_nmt.bench.emulated import count, differences, find_emulator
    from lite_nmt.bench.host import translations

    refuse(args, f"--target {args.target}, which counts once and on one thread", ("rounds", "threads"))
    emulator = find_emulator()
    lines, _ = _text(args, 20)
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for entry in _entries(args, Path(scratch), pytorch=False):
            say(f"counting {entry.name}")
            beam = [] if args.beam is None else [str(args.beam)]
            counts = count(emulator, "lite_nmt.bench.guest:subject", [entry.kind, entry.path, *beam], lines)
            here = translations(entry, lines, args.beam)
            rows.append((entry, counts, estimate(counts), differences(here, counts.translations)))
    if args.json:
        shown = [
            {**asdict(entry), **asdict(counts), "estimate": asdict(guess), "differences": [asdict(d) for d in differ]}
            for entry, counts, guess, differ in rows
        ]
        print(json.dumps({"sentences": len(lines), "versions": emulator.versions(), "results": shown}))
    else:
        _print_emulated(rows, len(lines))
    return 0


def _board(args: argparse.Namespace) -> int:
    import json
    import tempfile
    from dataclasses import replace

    from lite_nmt.bench.host import Result
    from lite_nmt.bench.ssh import measure
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.export.bundle import is_bundle

    if args.vs or len(args.targets) > 1 or not is_bundle(Path(args.targets[0])):
        raise LiteNmtError(f"{args.target} measures one bundle; give one, and no --vs.")
    lines, references = _text(args, 200)
    given = [f"--threads={args.threads}", f"--rounds={args.rounds}", f"--sentences={len(lines)}"]
    given += [f"--beam={args.beam}"] if args.beam else []
    with tempfile.TemporaryDirectory() as scratch:
        for language, side in zip(_about(args.targets[0])[1], (lines, references), strict=True):
            Path(scratch, f"test.{language}").write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
        report = measure(args.target, Path(args.targets[0]), given, data=Path(scratch))
    [result] = map(Result.from_json, report["results"])
    here = Path(args.targets[0])  # it had another name there, and nobody to score it
    result.entry = replace(result.entry, name=f"{here.name}, {args.target}", path=str(here.resolve()))
    result.score(references)
    if args.json:
        print(json.dumps({**report, "results": [result.as_json()]}))
    else:
        _print([result], args.threads)
    return 0


def _text(args: argparse.Namespace, most: int) -> tuple[list[str], list[str]]:
    """What to translate, and its references."""
    from lite_nmt.data.lines import read_lines
    from lite_nmt.errors import LiteNmtError

    languages = [_about(target)[1] for target in args.targets]
    for target, pair in zip(args.targets, languages, strict=True):
        if pair != languages[0]:
            raise LiteNmtError(
                f"{target} translates {pair[0]} to {pair[1]}, and {args.targets[0]} {languages[0][0]} to "
                f"{languages[0][1]}; measure them apart."
            )
    sides = []
    for language in languages[0]:
        path = args.data / f"{args.split}.{language}"
        with path.open("rb") as stream:
            sides.append(list(read_lines(stream, str(path)))[: args.sentences or most])
    source, references = sides
    if not source:
        raise LiteNmtError(f"{args.data / args.split}.{languages[0][0]} is empty; there is nothing to translate.")
    if len(source) != len(references):
        raise LiteNmtError(
            f"{args.data} has {len(source)} and {len(references)} sentences in {args.split}.*; make them agree."
        )
    return source, references


def _about(target: str) -> tuple[Config, tuple[str, str], Path]:
    """Configuration, languages and files of a bundle or checkpoint."""
    from lite_nmt.export import bundle

    if bundle.is_bundle(Path(target)):
        opened = bundle.load(Path(target))
        return opened.config, opened.languages, Path(target)
    from lite_nmt.models import checkpoint

    saved = checkpoint.load(Path(target))
    return saved.config, saved.languages, saved.folder


def _entries(args: argparse.Namespace, scratch: Path, pytorch: bool) -> list[Entry]:
    """Of all targets; refused where there is nothing to measure, or to compare with."""
    from lite_nmt.errors import LiteNmtError

    entries = [entry for target in args.targets for entry in entries_of(target, args.vs, scratch, pytorch)]
    if args.vs and all(entry.kind != args.vs for entry in entries):
        raise LiteNmtError(
            f"{', '.join(args.targets)}: no checkpoint of a Transformer for --vs {args.vs}; give the run of one too."
        )
    if not entries:
        raise LiteNmtError(f"{', '.join(args.targets)}: no bundle; PyTorch is not on the emulated core, export first.")
    return entries


def entries_of(target: str, peer: str | None, scratch: Path, pytorch: bool = True) -> list[Entry]:
    """What a target is measured as: itself, and where asked for in CTranslate2."""
    import json

    from lite_nmt.bench.host import Entry, folder_bytes
    from lite_nmt.export.bundle import is_bundle
    from lite_nmt.profiling.cost import cost

    config, _, files = _about(target)
    mult_adds = cost(config).mult_adds()
    engine = "bundle" if is_bundle(Path(target)) else "PyTorch"
    name, path = f"{Path(target).name}, {engine}", str(Path(target).resolve())
    entries = [Entry(name, "lite", path, folder_bytes(files), mult_adds, config.task)]
    if engine == "PyTorch" and not pytorch:
        entries = []
    if peer and engine == "PyTorch" and config.model.encoder.mixer == config.model.decoder.mixer == "attention":
        from lite_nmt.bench.conversion import QUANTIZATIONS, convert
        from lite_nmt.models import checkpoint

        for compute in QUANTIZATIONS:
            folder = scratch / f"{len(list(scratch.iterdir()))}"
            convert(Path(target), folder / "model", compute)
            vocabulary = checkpoint.load(Path(target)).vocabulary.files()
            for file, content in vocabulary.items():
                (folder / file).write_bytes(content)
            (folder / "config.json").write_text(json.dumps(config.to_dict()))
            name = f"{Path(target).name}, CTranslate2 {compute}"
            size = folder_bytes(folder / "model") + sum(map(len, vocabulary.values()))
            entries.append(Entry(name, "ctranslate2", f"{folder}:{compute}", size, mult_adds, config.task))
    return entries


def _print(results: Sequence[Result], threads: int) -> None:
    from rich.table import Table

    from lite_nmt.profiling.budget import quantity

    table = Table(box=None, pad_edge=False, header_style="bold", caption_justify="left")
    table.caption = (
        f"ms, CPU ms: of a sentence, one at a time, median and quartiles; {threads} thread{'s' * (threads > 1)}; "
        "from token numbers to token numbers."
    )
    table.add_column("engine", no_wrap=True)
    measures = {"BLEU": [result.bleu for result in results], "ROUGE-L": [result.rougeL for result in results]}
    measures = {name: values for name, values in measures.items() if any(value is not None for value in values)}
    columns = ("ms", "CPU ms", "encode ms", "ms/token", "sent./s, 1", "sent./s, 32", "load s", "RSS MB", "peak MB")
    for name in ("Mult-Adds", "MB", *measures, *columns):
        table.add_column(name, justify="right", no_wrap=True)
    for i, result in enumerate(results):
        table.add_row(
            result.entry.name,
            quantity(result.entry.mult_adds),
            f"{result.entry.bytes / 1e6:.2f}",
            *("" if values[i] is None else f"{values[i]:.2f}" for values in measures.values()),
            _spread(result.ms),
            _spread(result.cpu_ms),
            f"{result.encode_ms.median:.2f}" if result.encode_ms else "",
            f"{result.token_ms:.3f}" if result.token_ms else "",
            *(f"{result.per_second[size].median:.0f}" for size in (1, 32)),
            f"{result.load_s:.2f}",
            f"{result.rss / 1e6:.0f}",
            f"{result.peak / 1e6:.0f}",
        )
    show(table)


def _print_emulated(rows: Sequence[tuple[Entry, Counts, Estimate, list[Difference]]], count: int) -> None:
    from rich.table import Table

    from lite_nmt.profiling.budget import quantity

    table = Table(box=None, pad_edge=False, header_style="bold", caption_justify="left")
    table.caption = (
        f"Counted a sentence, over {count}, batch 1, text to text. ms and sentences/s are an estimate for a Raspberry "
        "Pi 4 (docs/bench-arm.md), not a measurement."
    )
    table.add_column("engine", no_wrap=True)
    for name in (
        "Mult-Adds",
        "MB",
        "M instructions",
        "spread",
        "DRAM MB",
        "ms, 1 core",
        "sent./s, 4 cores",
        "as on the host",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for entry, counts, guess, differ in rows:
        table.add_row(
            entry.name,
            quantity(entry.mult_adds),
            f"{entry.bytes / 1e6:.2f}",
            f"{counts.instructions / 1e6:.1f}",
            f"{counts.spread:.3%}",
            f"{counts.dram_bytes / 1e6:.2f}",
            f"{guess.milliseconds:.1f}",
            f"{guess.sentences_per_second:.0f}",
            f"all {count}" if not differ else f"{count - len(differ)} of {count}",
        )
    show(table)


def _spread(of: Spread) -> str:
    return f"{of.median:.2f} [{of.low:.2f}, {of.high:.2f}]"
