"""``lite-nmt visualize``: pictures of what a model's mixers look at, and how far that is, or has been learned to be."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from lite_nmt.evaluate.attention import Reading
    from lite_nmt.models.checkpoint import Checkpoint


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser(
        "visualize",
        help="draw what a model's mixers look at",
        description="Translate a sentence, draw what each mixer took from where on the way, and print how far that "
        "was: distances are in SentencePiece pieces. Of a language model with adaptive spans, draw these.",
    )
    parser.add_argument("checkpoint", help="folder of a run or a checkpoint")
    parser.add_argument("sentence", nargs="?", help="source text; a language model takes none")
    parser.add_argument("--against", metavar="CHECKPOINT", help="a second model, drawn beside the first")
    parser.add_argument("--target", metavar="TEXT", help="its translation (default: the first model's own)")
    parser.add_argument("--out", type=Path, default=Path("attention"), help="folder (default: attention)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def run(args: argparse.Namespace) -> int:
    """Read, draw, and print the distances."""
    import json

    from lite_nmt.cli.options import language_model
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.evaluate.attention import NEAR
    from lite_nmt.evaluate.pictures import pictures
    from lite_nmt.manifest import write_whole

    if saved := language_model(args.checkpoint):
        return _spans(args, saved)
    if args.sentence is None:
        raise LiteNmtError("give a sentence to translate; only a language model is drawn without one.")
    readings = _readings(args)
    args.out.mkdir(parents=True, exist_ok=True)
    drawn = pictures(readings)
    for name, content in drawn.items():
        write_whole(args.out / name, content)
    files = [str(args.out / name) for name in drawn]
    rows = [row for side in ("encoder", "decoder") for row in _distances(readings, side)]
    if args.json:
        models = [_described(reading) for reading in readings]
        print(json.dumps({"models": models, "near_pieces": NEAR, "branches": rows, "files": files}, ensure_ascii=False))
        return 0
    for reading in readings:
        print(f"{reading.model}: {reading.target}")
    _print_table(rows)
    for file in files:
        print(file)
    return 0


def _spans(args: argparse.Namespace, saved: Checkpoint) -> int:
    """What a language model's heads have learned."""
    import json

    from lite_nmt.errors import LiteNmtError
    from lite_nmt.evaluate.spans import pictures, spans
    from lite_nmt.manifest import write_whole

    given = {"a sentence": args.sentence, "--target": args.target, "--against": args.against}
    if not_taken := [name for name, value in given.items() if value is not None]:
        raise LiteNmtError(f"{args.checkpoint} is a language model, which takes no {not_taken[0].removeprefix('a ')}.")
    if not (found := spans(saved.language_model())):
        raise LiteNmtError(f"{args.checkpoint} is a language model, which has no adaptive spans to draw.")
    args.out.mkdir(parents=True, exist_ok=True)
    drawn = pictures(found)
    for name, content in drawn.items():
        write_whole(args.out / name, content)
    files = [str(args.out / name) for name in drawn]
    if args.json:
        print(json.dumps({"spans": found, "files": files}))
        return 0
    for i, heads in enumerate(found, 1):
        mean = sum(heads) / len(heads)
        print(f"layer {i}: mean {mean:.1f}, heads {' '.join(f'{span:.1f}' for span in heads)}")
    print(*files, sep="\n")
    return 0


def _readings(args: argparse.Namespace) -> list[Reading]:
    from lite_nmt.data.lines import clean
    from lite_nmt.decode.translator import Translator
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.evaluate.attention import read

    folders = [args.checkpoint] + ([] if args.against is None else [args.against])
    names = [_name(folder) for folder in folders]
    if len(set(names)) < len(names):
        names = [clean(folder) for folder in folders]
    if len(set(names)) < len(names):
        raise LiteNmtError(f"--against is {folders[1]}, the first model itself; name another.")
    models = [Translator.load(folder) for folder in folders]
    if len({model.languages for model in models}) > 1:
        pairs = " and ".join(f"{name} {'-'.join(model.languages)}" for name, model in zip(names, models, strict=True))
        raise LiteNmtError(f"the models translate different languages: {pairs}; compare models of one pair.")
    readings: list[Reading] = []
    for name, model in zip(names, models, strict=True):
        # Both read the same text, so that their decoders can be compared too.
        target = readings[0].target.strip() or None if readings and args.target is None else args.target
        readings.append(read(model, name, args.sentence, target))
    return readings


def _name(folder: str) -> str:
    """What to call a model: its run's folder."""
    from lite_nmt.data.lines import clean

    path = Path(folder).resolve()
    return clean(path.parent.name if path.name == "model" else path.name)


def _described(reading: Reading) -> dict[str, Any]:
    return {"model": reading.model, "source": reading.source, "target": reading.written, "text": reading.target}


def _distances(readings: list[Reading], side: str) -> list[dict[str, Any]]:
    """One row a branch, and one for each length of what no preference at all would come to."""
    from statistics import mean

    from lite_nmt.evaluate.attention import distance, even, near

    def row(model: str, branch: str, maps: Iterable[Tensor]) -> dict[str, Any]:
        layers = [{"distance": distance(weights), "near": near(weights)} for weights in maps]
        means = {key: mean(layer[key] for layer in layers) for key in ("distance", "near")}
        return {"model": model, "side": side, "branch": branch, **means, "layers": layers}

    rows = [row(reading.model, maps.branch, maps.layers) for reading in readings for maps in reading.of(side)]
    lengths = sorted({len(reading.labels(side)[0]) for reading in readings})
    return rows + [row("", f"evenly over {length} pieces", [even(side, length)]) for length in lengths]


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    from lite_nmt.evaluate.attention import NEAR

    table = Table(box=None, pad_edge=False, header_style="bold", caption_justify="left")
    table.caption = f"Mean distance in pieces, and share of the weight within {NEAR} pieces; mean: over the layers."
    depth = max(len(row["layers"]) for row in rows)
    for name in ("model", "side", "branch"):
        table.add_column(name, no_wrap=True)
    for name in ("mean", *(f"layer {i + 1}" for i in range(depth))):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        cells = [row, *(row["layers"] if row["model"] else ())]
        figures = [f"{cell['distance']:.1f} {cell['near']:4.0%}" for cell in cells]
        table.add_row(row["model"], row["side"], row["branch"], *figures)
    # A deep model has many columns, and none may be cut; a folder may be called [b].
    Console(width=1000, markup=False, emoji=False).print(table)
