"""``lite-nmt corpus``: write the generated English-German corpus."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser(
        "corpus",
        help="write the generated English-German corpus",
        description="Write a parallel corpus that a grammar generates: a demonstration and a test bed, no substitute "
        "for real text. Training, validation and test sides share no sentence.",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for train.*, valid.* and test.*")
    parser.add_argument("--train", type=int, default=30_000, help="training pairs (default: 30000)")
    parser.add_argument("--valid", type=int, default=500, help="validation pairs (default: 500)")
    parser.add_argument("--test", type=int, default=500, help="test pairs (default: 500)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, another corpus (default: 1)")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")


def run(args: argparse.Namespace) -> int:
    """Write the corpus and say how much of it there is."""
    import json

    from lite_nmt.data.generated import write_corpus

    counts = write_corpus(args.out, train=args.train, valid=args.valid, test=args.test, seed=args.seed)
    if args.json:
        print(json.dumps({"folder": str(args.out), **counts}))
    else:
        print(f"{args.out}: " + ", ".join(f"{count:,} {split}" for split, count in counts.items()) + " pairs")
    return 0
