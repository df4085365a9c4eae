"""``lite-nmt compress``: a checkpoint made smaller, or how much of that each of its layers bears."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lite_nmt.cli.console import say
from lite_nmt.cli.options import positive
from lite_nmt.cli.structured_options import add_structured_options, importance_from, plan_from

if TYPE_CHECKING:
    import torch

    from lite_nmt.compress.allocate import Choice
    from lite_nmt.compress.finetune import FineTuner
    from lite_nmt.compress.pipeline import CompressConfig
    from lite_nmt.compress.sensitivity import Curves
    from lite_nmt.compress.structured import Plan
    from lite_nmt.models.checkpoint import Checkpoint

T = TypeVar("T", int, float)
SENTENCES = 200  # for curves, and for the importance of heads, channels and layers


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser(
        "compress",
        help="make a checkpoint smaller: prune, quantise, pack",
        usage="lite-nmt compress CHECKPOINT --out DIR [--prune SHARE] [--bits N] [--finetune-steps N]\n"
        "       lite-nmt compress CHECKPOINT --out DIR --int8 [--prune SHARE] [--finetune-steps N]\n"
        "       lite-nmt compress CHECKPOINT --out DIR --sensitivity [--target-size SIZE | --target-loss NATS]\n"
        "       lite-nmt compress CHECKPOINT --out DIR --curves FILE (--target-size SIZE | --target-loss NATS)\n"
        "       lite-nmt compress CHECKPOINT --out DIR [--heads SHARE] [--ffn SHARE] [--mult-adds N] ...",
        description="Prune the smallest weights, put the others into k-means codebooks or int8, pack both. "
        "The result is a checkpoint as any other. Fine-tuning and measuring take the pairs of the run that the "
        "checkpoint lies in, or those of --data. Heads, channels and layers are taken out by a call of their own: the "
        "result is to be trained a little (`lite-nmt train --init`) before it is compressed.",
    )
    parser.add_argument("checkpoint", type=Path, help="folder of a run or a checkpoint")
    parser.add_argument("--out", type=Path, required=True, help="folder to write, new or empty")
    parser.add_argument(
        "--prune", action="append", default=[], metavar="[LAYER=]SHARE", help="weights to make zero, 0 to 1 (0)"
    )
    parser.add_argument(
        "--bits", action="append", default=[], metavar="[LAYER=]N", help="of a weight's code, 2 to 8 (8)"
    )
    parser.add_argument(
        "--int8", action="store_true", help="8-bit integers by rows, for int8 arithmetic, in place of codebooks"
    )
    parser.add_argument("--scope", choices=("layer", "global"), default="layer", help="what --prune is a share of")
    parser.add_argument("--share", choices=("tensor", "layer"), default="tensor", help="what shares a codebook")
    parser.add_argument("--init", choices=("linear", "density", "random"), default="linear", help="of k-means")
    parser.add_argument(
        "--finetune-steps", type=positive, metavar="N", help="updates after pruning, and as many after quantisation"
    )
    parser.add_argument("--finetune-lr", type=float, metavar="RATE", help="default: a third of the training's")
    parser.add_argument("--sensitivity", action="store_true", help="measure each layer alone; write curves to --out")
    parser.add_argument("--curves", type=Path, metavar="FILE", help="choose bits and shares by a sensitivity.json")
    parser.add_argument("--target-size", metavar="SIZE", help="of the whole result, as 2.5M; needs curves")
    parser.add_argument("--target-loss", type=float, metavar="NATS", help="that may be added; needs curves")
    parser.add_argument(
        "--sentences", type=positive, default=SENTENCES, metavar="N", help="pairs measured (%(default)s)"
    )
    parser.add_argument("--bleu", action="store_true", help="measure greedy validation BLEU too, or ROUGE of summaries")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with train.* and valid.*")
    parser.add_argument("--threads", type=positive, metavar="N", help="CPU threads")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, mps (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_structured_options(parser)
    parser.set_defaults(usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Compress, or measure."""
    import contextlib
    import tempfile

    import torch

    from lite_nmt.errors import LiteNmtError
    from lite_nmt.models import checkpoint

    aimed = args.target_size is not None or args.target_loss is not None
    if args.target_size is not None and args.target_loss is not None:
        args.usage_error("give one of --target-size and --target-loss.")
    if aimed and not (args.sensitivity or args.curves):
        args.usage_error("--target-size and --target-loss need --curves, or --sensitivity, which measures them.")
    if args.curves and (args.bits or args.prune or args.sensitivity or not aimed):
        args.usage_error("--curves goes with --target-size or --target-loss, without --bits and --prune.")
    if args.sensitivity and (args.bits or args.prune or args.finetune_steps):
        args.usage_error("--sensitivity tries all --bits and --prune by itself, without fine-tuning.")
    if args.int8 and (args.bits or args.share != "tensor" or args.init != "linear" or args.curves or args.sensitivity):
        args.usage_error("--int8 has one grid: it goes without --bits, --share, --init, --curves and --sensitivity.")
    plan = plan_from(args)
    if plan and (args.int8 or args.bits or args.prune or args.curves or args.sensitivity or args.finetune_steps):
        args.usage_error("heads, channels and layers go by a call of their own; then train --init, then the rest.")
    _refuse_idle(args, plan, aimed)
    if args.threads:
        torch.set_num_threads(args.threads)
    saved = checkpoint.load(args.checkpoint)
    if saved.config.task == "lm":
        raise LiteNmtError(f"{saved.folder} is a language model, and only models with a source are compressed.")
    if saved.packed is not None:
        raise LiteNmtError(f"{saved.folder} is compressed already; compress the checkpoint that it was made from.")
    try:
        args.out.mkdir(parents=True, exist_ok=True)
        taken = any(args.out.iterdir()) or args.out.resolve() == Path.cwd()  # which cannot be replaced by the result
    except FileExistsError:
        taken = True
    except OSError as error:
        raise LiteNmtError(f"cannot write {args.out}: {error.strerror}.") from error
    if taken:
        raise LiteNmtError(f"{args.out} exists already; choose another --out.")
    try:
        with tempfile.TemporaryDirectory() as scratch:
            if plan:
                return _shorten(args, saved, plan, Path(scratch))
            return (_measure if args.sensitivity else _compress)(args, saved, Path(scratch))
    finally:
        with contextlib.suppress(OSError):
            args.out.rmdir()  # it is empty where nothing came of it


def _refuse_idle(args: argparse.Namespace, plan: Plan | None, aimed: bool) -> None:
    """An option that changes nothing beside the others is a mistake."""
    by_loss = args.importance == "loss"
    idle = {
        "--finetune-lr": args.finetune_lr is not None and not args.finetune_steps,
        "--importance": by_loss and not plan,
        "--scope": args.scope == "global"
        and not (args.prune or aimed or args.heads or args.ffn or args.conv_channels or args.mult_adds),
        "--share": args.share == "layer" and (plan or (args.sensitivity and not aimed)),
        "--init": args.init != "linear" and plan,
        "--bleu": args.bleu and plan,
        "--device": args.device != "cpu" and plan,
        "--data": args.data and plan and not by_loss,
        "--sentences": args.sentences != SENTENCES and not (args.sensitivity or (plan and by_loss)),
    }
    for option, found in idle.items():
        if found:
            args.usage_error(f"{option} changes nothing beside the other options.")


def _compress(args: argparse.Namespace, saved: Checkpoint, scratch: Path) -> int:
    import json

    from lite_nmt.compress.allocate import apply
    from lite_nmt.compress.pipeline import Stage, compress
    from lite_nmt.compress.sensitivity import Curves
    from lite_nmt.compress.validation import Validation
    from lite_nmt.models import checkpoint
    from lite_nmt.models.device import device
    from lite_nmt.train.pairs import find_pairs, need_pairs

    place, config = device(args.device), _config(args)
    if args.curves:
        config = apply(_allocate(args, saved, Curves.load(args.curves), config), config)
    tuner = _tuner(args, saved, scratch, place)
    needed = args.bleu or (args.data and not tuner)
    pairs = (need_pairs if needed else find_pairs)(saved, "valid", args.data, scratch)
    validation = Validation(saved, pairs, args.bleu, place) if pairs else None
    rows: list[dict[str, Any]] = []
    metrics: dict[str, float] = {}  # of the last stage

    def watch(stage: Stage) -> None:
        found = validation(stage.weights, stage.int8) if validation else {}
        rows.append({"stage": stage.name, "zeros": stage.zeros(), "paper_bytes": stage.paper_bytes(), **found})
        metrics.update({f"valid_{name}": value for name, value in found.items()})
        print(_row(rows[-1], rows[0]), file=sys.stderr if args.json else sys.stdout, flush=True)

    packed = compress(saved.model(), config, tuner, watch)
    checkpoint.save(args.out, saved.config, saved.languages, saved.step, metrics, saved.vocabulary, packed)
    files = {path.name: path.stat().st_size for path in sorted(args.out.iterdir())}
    source = [path for path in saved.folder.iterdir() if path.name != checkpoint.TRAINING]
    before, after = sum(path.stat().st_size for path in source), sum(files.values())
    if args.json:
        print(json.dumps({"model": str(args.out), "bytes": after, "before": before, "files": files, "stages": rows}))
        return 0
    parts = ", ".join(f"{name} {size:,}" for name, size in files.items())
    print(f"{args.out}: {after:,} bytes, {before / after:.1f} times smaller ({parts})")
    return 0


def _shorten(args: argparse.Namespace, saved: Checkpoint, plan: Plan, scratch: Path) -> int:
    import json

    from lite_nmt.compress.structured import save_structured
    from lite_nmt.profiling.budget import quantity
    from lite_nmt.profiling.cost import cost
    from lite_nmt.train.pairs import find_pairs

    pairs = find_pairs(saved, "train", args.data, scratch) if args.importance == "loss" else None
    importance = importance_from(args, pairs and pairs.first(args.sentences))
    before, after = cost(saved.config), cost(save_structured(saved, plan, args.out, importance).config)
    if args.json:
        figures = {
            name: {"mult_adds": total.mult_adds(), "parameters": total.parameters()}
            for name, total in (("before", before), ("after", after))
        }
        print(json.dumps({"model": str(args.out), **figures}))
    else:
        spent = f"{quantity(before.mult_adds())} to {quantity(after.mult_adds())} Mult-Adds"
        held = f"{quantity(before.parameters())} to {quantity(after.parameters())} parameters"
        print(f"{args.out}: {spent}, {held} (paper count); train it a little: lite-nmt train --init {args.out}")
    return 0


def _row(row: Mapping[str, Any], first: Mapping[str, Any]) -> str:
    """One stage: size as the paper counts it, and what it is worth."""
    import math

    from lite_nmt.train.metrics import quality

    ratio = first["paper_bytes"] / max(row["paper_bytes"], 1)
    text = f"{row['stage']:<22} {row['zeros']:6.1%} zeros {row['paper_bytes']:>12,} bytes (paper) {ratio:6.2f}x"
    if "nll" in row:
        text += f"  validation ppl {math.exp(min(row['nll'], 50)):.3f}"
    told = quality({f"valid_{name}": row[name] for name in row})
    return text + (f"  {told}" if told else "")


def _measure(args: argparse.Namespace, saved: Checkpoint, scratch: Path) -> int:
    import json

    from lite_nmt.compress.prune import matrices
    from lite_nmt.compress.sensitivity import JSON_FILE, measure
    from lite_nmt.compress.validation import Validation
    from lite_nmt.compress.weights import numbers
    from lite_nmt.models.device import device
    from lite_nmt.train.pairs import need_pairs

    pairs = need_pairs(saved, "valid", args.data, scratch).first(args.sentences)
    validation = Validation(saved, pairs, args.bleu, device(args.device))
    model = saved.model()
    curves = measure(numbers(model), matrices(model), validation, args.init, say)
    curves.save(args.out, {"checkpoint": str(args.checkpoint), "pairs": len(pairs), "init": args.init})
    chosen = _allocate(args, saved, curves, _config(args))
    if args.json:
        allocation = {layer: vars(choice) for layer, choice in chosen.items()}
        print(json.dumps({"curves": str(args.out / JSON_FILE), **curves.whole, "allocation": allocation}))
        return 0
    for layer, choice in chosen.items():
        print(f"{layer:<34} {choice.bits} bits {choice.prune:4.0%} zeros {choice.bytes:>10,.0f} bytes")
    print(f"{args.out / JSON_FILE}: {len(curves.layers)} layers, {len(pairs)} validation pairs")
    return 0


def _config(args: argparse.Namespace) -> CompressConfig:
    from lite_nmt.compress.pipeline import CompressConfig

    bits, prune = _values("--bits", args.bits, int), _values("--prune", args.prune, float)
    return CompressConfig(
        bits=bits.pop("", 8),
        prune=prune.pop("", 0.0),
        bits_of=bits,
        prune_of=prune,
        scope=args.scope,
        share=args.share,
        init=args.init,
        int8=args.int8,
    )


def _values(option: str, given: list[str], kind: Callable[[str], T]) -> dict[str, T]:
    """``["4", "target=6"]`` -> ``{"": 4, "target": 6}``."""
    from lite_nmt.errors import LiteNmtError

    values = {}
    for text in given:
        layer, _, number = text.rpartition("=")
        try:
            values[layer] = kind(number)
        except ValueError as error:
            raise LiteNmtError(f"{option} is {text!r}; give a number, or a layer and its own as target=6.") from error
    return values


def _allocate(args: argparse.Namespace, saved: Checkpoint, curves: Curves, config: CompressConfig) -> dict[str, Choice]:
    """What each layer bears within the target; nothing where there is none."""
    from lite_nmt.compress.allocate import allocate, within
    from lite_nmt.compress.prune import matrices
    from lite_nmt.compress.weights import numbers

    model = saved.model()
    curves.check(numbers(model), matrices(model))
    if args.target_loss is not None:
        return allocate(curves, loss=args.target_loss)
    if args.target_size is None:
        return {}
    size = _bytes(args.target_size)
    # Fine-tuning spreads the weights a little, and so their codes.
    return within(saved, curves, config, int(0.99 * size) if args.finetune_steps else size, say)


def _bytes(text: str) -> int:
    """``2.5M`` -> 2,500,000."""
    from lite_nmt.errors import LiteNmtError

    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,12})?) ?([KMG]?)B?", text.strip(), re.IGNORECASE)
    if not match:
        raise LiteNmtError(f"--target-size is {text!r}; give bytes as 2500000 or 2.5M.")
    return int(float(match[1]) * {"": 1, "K": 1e3, "M": 1e6, "G": 1e9}[match[2].upper()])


def _tuner(args: argparse.Namespace, saved: Checkpoint, scratch: Path, device: torch.device) -> FineTuner | None:
    from lite_nmt.compress.finetune import FineTuner
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.train.pairs import need_pairs

    if not args.finetune_steps:
        return None
    rate = saved.config.train.lr / 3 if args.finetune_lr is None else args.finetune_lr
    if not 0 < rate <= 100:
        raise LiteNmtError(f"--finetune-lr is {rate:g}; it must be above 0 and at most 100.")
    return FineTuner(saved, need_pairs(saved, "train", args.data, scratch), args.finetune_steps, rate, device)
