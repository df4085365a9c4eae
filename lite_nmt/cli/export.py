"""``lite-nmt export``: a checkpoint as a bundle that runs without PyTorch."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lite_nmt.cli.options import positive, refuse

if TYPE_CHECKING:
    from lite_nmt.models.checkpoint import Checkpoint

PRECISIONS = ("fp32", "int8", "kmeans")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser(
        "export",
        help="write a bundle for the device: graphs, vocabulary, manifest",
        description="Export a checkpoint as a bundle, held against the checkpoint before it is written: fp32 and "
        "kmeans must give its scores to 1e-4 and its translations, int8 must lose at most 0.3 BLEU on validation "
        "pairs, or ROUGE-L where it summarises. A language model is a step alone, in fp32 or int8, which may cost "
        "0.01 nats a word.",
    )
    parser.add_argument("checkpoint", help="folder of a run or a checkpoint")
    parser.add_argument("--out", required=True, type=Path, metavar="BUNDLE", help="a folder, or a file ending in .zip")
    parser.add_argument(
        "--to", default="onnx", choices=("onnx", "executorch", "all"), help="what runs it (%(default)s)"
    )
    parser.add_argument(
        "--precision", default="fp32", choices=PRECISIONS, help="kmeans: of a compressed checkpoint (%(default)s)"
    )
    parser.add_argument(
        "--shortlist",
        type=positive,
        metavar="K",
        help="search among the K likeliest target types of each source type and the most frequent ones; the training "
        "side is aligned first",
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="take valid.* and train.* of this folder, not of the run"
    )
    parser.add_argument(
        "--sentences", type=positive, default=1000, metavar="N", help="validation pairs, the first N (%(default)s)"
    )
    parser.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    """Export."""
    import json
    import tempfile

    from lite_nmt.errors import LiteNmtError
    from lite_nmt.export.bundle import check_out
    from lite_nmt.export.export import export
    from lite_nmt.models import checkpoint
    from lite_nmt.train.pairs import find_pairs, need_pairs

    saved = checkpoint.load(Path(args.checkpoint))
    check_out(args.out)  # and not only once the training side is aligned
    if args.shortlist and args.to != "onnx":
        raise LiteNmtError(f"--shortlist is for ONNX alone; leave it out, or give --to onnx, not {args.to}.")
    if saved.config.task == "lm":
        return _language_model(args, saved)
    with tempfile.TemporaryDirectory() as scratch:
        pairs = (need_pairs if args.data else find_pairs)(saved, "valid", args.data, Path(scratch))
        if not pairs:
            refuse(args, "a checkpoint without validation pairs", ("sentences",))
        shortlist = None
        if args.shortlist:
            from lite_nmt.export.shortlist import build

            _say("aligning the training side")
            shortlist = build(saved, need_pairs(saved, "train", args.data, Path(scratch)), args.shortlist)
        pairs = pairs and pairs.first(args.sentences)
        bundle = export(
            saved,
            args.out,
            to=args.to,
            precision=args.precision,
            pairs=pairs,
            shortlist=shortlist,
            say=_say,
        )
    if args.json:
        print(json.dumps({"bundle": str(args.out), **bundle.manifest}))
        return 0
    worth = "".join(
        f", {name} {found['value']:.2f} on {found['sentences']} validation pairs"
        for name in ("BLEU", "ROUGE-L")
        if (found := bundle.manifest.get(name.lower()))
    )
    print(f"{args.out}: {args.precision}, {bundle.size():,} bytes{worth}")
    return 0


def _language_model(args: argparse.Namespace, saved: Checkpoint) -> int:
    """A language model's graph or program."""
    import json

    from lite_nmt.errors import LiteNmtError
    from lite_nmt.evaluate.surprise import perplexity
    from lite_nmt.export.language import export_language_model, find_text

    if args.shortlist:
        raise LiteNmtError(f"{args.checkpoint} is a language model, exported without a shortlist.")
    refuse(args, "language models", ("sentences",))
    if args.precision == "fp32":
        refuse(args, "a language model in fp32, which is measured on nothing", ("data",))
    text = find_text(saved, args.data) if args.precision == "int8" else None
    bundle = export_language_model(saved, args.out, args.precision, text, args.to)
    if args.json:
        print(json.dumps({"bundle": str(args.out), **bundle.manifest}))
        return 0
    nll = bundle.manifest.get("nll")
    worth = f", perplexity {perplexity(nll['value']):.2f} on {nll['words']:,} validation words" if nll else ""
    print(f"{args.out}: {args.precision}, {bundle.size():,} bytes{worth}")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr)
