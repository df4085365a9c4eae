"""``lite-nmt plot``: pictures of what models cost, and of what that buys."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_nmt.cli.options import positive

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb, and one below it for each picture."""
    parser = subparsers.add_parser(
        "plot",
        help="draw what models cost, and what BLEU it buys",
        description="Draw a picture, as PNG and as SVG. Mult-Adds are counted as in the papers, without the output "
        "projection (docs/counting.md).",
    )
    pictures = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    breakdown = pictures.add_parser(
        "breakdown",
        help="Mult-Adds by kind of part",
        description="Draw what the Mult-Adds are spent on: of presets, or of one encoder layer of a Transformer, "
        "flattened, and with LSRA (Lite Transformer, Figure 2).",
    )
    breakdown.add_argument("presets", nargs="*", metavar="PRESET", help="see `lite-nmt presets`")
    breakdown.add_argument("--src-len", type=positive, default=30, metavar="N", help="source tokens (default: 30)")
    breakdown.add_argument("--tgt-len", type=positive, metavar="N", help="target tokens, of presets (default: 30)")
    breakdown.set_defaults(usage_error=breakdown.error)
    length = pictures.add_parser(
        "length",
        help="Mult-Adds over sentence length",
        description="Draw how the cost of a token grows with sentence length, in five models that cost the same at "
        "30 tokens.",
    )
    bleu = pictures.add_parser(
        "bleu",
        help="BLEU over Mult-Adds",
        description="Draw the validation BLEU of trained models over their Mult-Adds, one line a family of models.",
    )
    bleu.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a run, or one that holds runs")
    for picture in (breakdown, length, bleu):
        picture.add_argument(
            "--out", type=Path, required=True, metavar="FILE", help="FILE.png and FILE.svg are written"
        )
        picture.add_argument("--json", action="store_true", help="print the figures drawn as JSON")


def run(args: argparse.Namespace) -> int:
    """Draw, write both files, and say so."""
    import json

    files = _files(args.out)
    figure, drawn = {"breakdown": _breakdown, "length": _length, "bleu": _bleu}[args.what](args)
    _write(figure, files)
    names = [str(file) for file in files]
    print(json.dumps({"files": names, "figures": drawn}) if args.json else "\n".join(names))
    return 0


def _breakdown(args: argparse.Namespace) -> tuple[Figure, list[dict[str, Any]]]:
    from lite_nmt.profiling import plots

    if args.presets:
        target = args.tgt_len or 30
        bars = plots.presets(args.presets, args.src_len, target)
        caption = f"Mult-Adds for {args.src_len:,} source and {target:,} target tokens, without the output projection"
    else:
        if args.tgt_len:
            args.usage_error("--tgt-len is for presets; without any, one encoder layer is drawn.")
        bars = plots.blocks(args.src_len)
        caption = (
            f"Mult-Adds of one encoder layer of d = {plots.BLOCK_WIDTH} channels for {args.src_len:,} tokens; "
            "LSRA with DynamicConv of 31 taps and GLU"
        )
    drawn = [{"name": name, "mult_adds": sum(parts.values()), "by_kind": parts} for name, parts in bars.items()]
    return plots.draw_breakdown(bars, caption), drawn


def _length(args: argparse.Namespace) -> tuple[Figure, list[dict[str, Any]]]:
    from lite_nmt.profiling import plots

    models = plots.growth()
    drawn = [
        {"preset": m.preset, "lengths": plots.LENGTHS, "encoder_mult_adds": m.encoder, "mult_adds": m.whole}
        for m in models
    ]
    return plots.draw_growth(models), drawn


def _bleu(args: argparse.Namespace) -> tuple[Figure, list[dict[str, Any]]]:
    from lite_nmt.profiling import plots
    from lite_nmt.profiling.runs import find_runs

    runs, beware = find_runs(args.runs)
    for sentence in beware:
        print(f"lite-nmt: warning: {sentence}", file=sys.stderr)
    drawn = [
        {
            "run": str(run.folder),
            "family": run.family.name,
            "languages": run.languages,
            "mult_adds": run.mult_adds,
            "valid_bleu": run.valid_bleu,
        }
        for run in runs
    ]
    return plots.draw_bleu(runs), drawn


def _files(out: Path) -> tuple[Path, Path]:
    from lite_nmt.errors import LiteNmtError

    if not out.name.strip("."):
        raise LiteNmtError(f"--out is {out}, which is a folder; name a file in it, without ending.")
    if out.suffix not in ("", ".png", ".svg"):
        raise LiteNmtError(f"--out is {out}, but pictures are written as .png and .svg; leave the ending out.")
    return out.with_suffix(".png"), out.with_suffix(".svg")


def _write(figure: Figure, files: tuple[Path, Path]) -> None:
    """Both files, or neither."""
    from contextlib import ExitStack

    from lite_nmt.cli.files import open_output
    from lite_nmt.figures import encode

    with ExitStack() as stack:
        streams = [stack.enter_context(open_output(str(file))) for file in files]
        for file, stream in zip(files, streams, strict=True):
            stream.write(encode(figure, file.suffix[1:]))
            stream.flush()  # a full disk shows before either file is in place
