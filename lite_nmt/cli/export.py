"""``lite-nmt export``: a checkpoint as a bundle that runs without PyTorch."""

from __future__ import annotations

import argparse
from pathlib import Path

from lite_nmt.cli.console import say
from lite_nmt.cli.options import positive

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
    parser.add_argument("--sentences", type=positive, metavar="N", help="validation pairs, the first N (1000)")
    parser.add_argument("--json", action="store_true")


def run(args: argparse.Namespace) -> int:
    """Export."""
    import json

    from lite_nmt.evaluate.surprise import perplexity
    from lite_nmt.export.model import export_model

    bundle = export_model(
        args.checkpoint,
        args.out,
        to=args.to,
        precision=args.precision,
        data=args.data,
        sentences=args.sentences,
        shortlist=args.shortlist,
        say=say,
    )
    if args.json:
        print(json.dumps({"bundle": str(args.out), **bundle.manifest}))
        return 0
    worth = "".join(
        f", {name} {found['value']:.2f} on {found['sentences']} validation pairs"
        for name in ("BLEU", "ROUGE-L")
        if (found := bundle.manifest.get(name.lower()))
    )
    if nll := bundle.manifest.get("nll"):
        worth = f", perplexity {perplexity(nll['value']):.2f} on {nll['words']:,} validation words"
    print(f"{args.out}: {args.precision}, {bundle.size():,} bytes{worth}")
    return 0
