"""``lite-nmt distill``: a teacher translates the training side, for a smaller model to learn from."""

from __future__ import annotations

import argparse
from pathlib import Path

from lite_nmt.cli.options import add_decode_options, decode_config


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser(
        "distill",
        help="translate the training side with a teacher, to train a smaller model on",
        description="Sequence-level distillation: write a corpus whose target side is the teacher's translation, "
        "each source line once, for `lite-nmt train --data`. Run again, it goes on where it was stopped. Under "
        "torchrun, several processes share the work.",
    )
    parser.add_argument("teacher", help="folder of a run or a checkpoint")
    parser.add_argument("--data", type=Path, required=True, help="folder with train.SRC; valid.* and test.* are copied")
    parser.add_argument("--src", help="source language (default: the teacher's)")
    parser.add_argument("--tgt", help="target language (default: the teacher's)")
    parser.add_argument("--out", type=Path, required=True, help="folder for the new corpus")
    parser.add_argument(
        "--keep-original", action="store_true", help="keep the pairs of train.SRC and train.TGT as well"
    )
    parser.add_argument(
        "--max-ratio",
        type=float,
        default=4.0,
        metavar="R",
        help="drop a pair with a side more than R times as long as the other, in tokens (%(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    add_decode_options(parser)
    parser.set_defaults(buffer=20_000)


def run(args: argparse.Namespace) -> int:
    """Translate, join, and say what was kept."""
    import dataclasses
    import json

    from lite_nmt.decode.translator import Translator
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.models import checkpoint
    from lite_nmt.models.device import device
    from lite_nmt.train.distill import Job, distill
    from lite_nmt.train.processes import Processes

    if not args.max_ratio >= 1:
        raise LiteNmtError(f"--max-ratio is {args.max_ratio:g}; it must be at least 1.")
    checksum = checkpoint.load(Path(args.teacher)).checksum
    processes = Processes(device(args.device))
    try:
        translator = Translator.load(args.teacher, str(processes.device), args.threads)
        languages = translator.languages
        asked = (args.src or languages[0], args.tgt or languages[1])
        if asked != languages:
            raise LiteNmtError(f"{args.teacher} translates {' to '.join(languages)}, not {' to '.join(asked)}.")
        job = Job(
            data=args.data,
            out=args.out,
            languages=languages,
            teacher=checksum,
            decode=decode_config(args, translator.config.decode),
            batch_tokens=args.batch_tokens,
            block=args.buffer,
            max_ratio=args.max_ratio,
            keep_original=args.keep_original,
        )
        result = distill(job, translator, processes)
    finally:
        processes.close()
    if result is None:
        return 0
    if args.json:
        print(json.dumps({"out": str(args.out), **dataclasses.asdict(result)}))
        return 0
    dropped = ", ".join(f"{count:,} {why}" for why, count in result.dropped.items() if count) or "none"
    own = f", {result.original:,} of the corpus's own" if args.keep_original else ""
    print(f"{args.out}: {result.kept:,} pairs from {result.lines:,} lines in {result.seconds:.0f} s")
    print(f"{result.distilled:,} distilled{own}; {result.duplicates:,} duplicate lines; dropped: {dropped}")
    return 0
