"""``lite-nmt search``: the shapes that fit a budget, ranked by predicted latency, and the best of them trained."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_nmt.cli.console import console
from lite_nmt.cli.options import positive

if TYPE_CHECKING:
    from lite_nmt.config import Config
    from lite_nmt.profiling.contest import Result
    from lite_nmt.profiling.predict import Target
    from lite_nmt.profiling.search import Candidate

FAMILIES = ("lite-transformer", "lightconv", "dynamicconv", "talk", "transformer")
TOLERANCE = 0.2


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser(
        "search",
        help="find the shapes that fit a budget, and the fastest of them",
        description="Enumerate depths, feed-forward widths, heads and kernels; take each shape as wide as the budget "
        "and 10M parameters allow; rank by predicted latency (docs/search.md). No corpus is needed, and nothing is "
        "said of quality: for that, --train-top trains the best few.",
    )
    parser.add_argument("--budget", required=True, help="largest Mult-Adds for 30 to 30 tokens: 100M, 300M, 500M")
    parser.add_argument("--count", choices=("paper", "full"), default="paper", help="how the budget is counted")
    parser.add_argument(
        "--family", choices=(*FAMILIES, "all"), default=FAMILIES[0], help="kind of model (default: %(default)s)"
    )
    parser.add_argument(
        "--rank",
        choices=("latency", "mult-adds"),
        default="latency",
        help="the fastest first, or the fullest use of the budget",
    )
    parser.add_argument("--top", type=positive, default=10, metavar="N", help="shapes to print (default: %(default)s)")
    parser.add_argument(
        "--each", type=positive, default=1, metavar="N", help="of a family and depths at most (default: %(default)s)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="one setting, such as vocabulary.target=4000"
    )
    parser.add_argument("--write", metavar="FILE", help="write a shape as TOML, for `lite-nmt train --config`")
    parser.add_argument("--choose", type=positive, metavar="N", help="which one to write (default: the first)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    group = parser.add_argument_group("target", "a sentence of 30 to 30 tokens, greedy, batch 1, float32")
    group.add_argument(
        "--target",
        choices=("host", "cortex-a72"),
        default="host",
        help="this machine, measured in half a minute, or an estimate (default: %(default)s)",
    )
    group.add_argument("--threads", type=positive, metavar="N", help="CPU threads (default: 1)")
    group.add_argument("--calibration", type=Path, metavar="FILE", help="keep the host's measurements here, and reuse")
    group = parser.add_argument_group("training the best")
    group.add_argument("--train-top", type=positive, metavar="N", help="train the first N briefly and compare them")
    group.add_argument("--data", type=Path, metavar="DIR", help="folder with train.* and valid.*")
    group.add_argument("--src", help="source language (default: de)")
    group.add_argument("--tgt", help="target language (default: en)")
    group.add_argument("--out", type=Path, metavar="DIR", help="a folder for each; a finished one is not trained again")
    group.add_argument("--steps", type=positive, metavar="N", help="updates (default: 1000)")
    group.add_argument("--device", help="to train on: cpu, cuda or auto (default: auto)")
    parser.set_defaults(usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Search, print, write, train."""
    import json
    from contextlib import ExitStack

    from lite_nmt.cli.files import open_output
    from lite_nmt.cli.presets import as_toml
    from lite_nmt.config import parse_setting
    from lite_nmt.data.corpus import sides
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.profiling.budget import parse_budget
    from lite_nmt.profiling.search import as_json, fitting, ranked, render

    _check_usage(args)
    families = FAMILIES if args.family == "all" else (args.family,)
    settings = [parse_setting(text) for text in args.set]
    if args.train_top:  # what is wrong with the corpus is better known before anything is measured
        for split in ("train", "valid"):
            sides(args.data, split, *_languages(args))
    with ExitStack() as stack:
        models = fitting(parse_budget(args.budget), families, args.count, settings)
        _refuse_idle(args, {shape.family: config for shape, config in models}.values(), settings)
        output = stack.enter_context(open_output(args.write)) if args.write else None
        target = _target(args)
        best = ranked(models, target, args.rank, args.count, args.each)[: max(args.top, args.train_top or 0)]
        if output:
            chosen = args.choose or 1
            if chosen > len(best):
                raise LiteNmtError(f"--choose is {chosen} and {len(best)} shapes are listed; raise --top or --each.")
            output.write(as_toml(best[chosen - 1].name, best[chosen - 1].config).encode())
    if not args.json:
        console().print(render(best, target, len(models)))
    results = _train(args, best, target, settings) if args.train_top else []
    if args.json:
        asked = {name: getattr(args, name) for name in ("budget", "count", "rank", "target", "write")}
        trained = [result.as_json() for result in results]
        print(json.dumps({**asked, **as_json(best, target), "trained": trained}, indent=2))
    elif results:
        from lite_nmt.profiling import contest

        console().print("", contest.render(results, target), sep="\n")
    return 0


def _check_usage(args: argparse.Namespace) -> None:
    if args.train_top is None:
        for option in ("data", "src", "tgt", "out", "steps", "device"):
            if getattr(args, option) is not None:
                args.usage_error(f"--{option} is for training; add --train-top N.")
    elif args.data is None or args.out is None:
        args.usage_error("--train-top needs --data and --out.")
    elif args.top != args.default_of("top") and args.top < args.train_top:
        args.usage_error(f"--top is {args.top}, and all {args.train_top} of --train-top are printed; leave it out.")
    if args.calibration and args.target != "host":
        args.usage_error("--calibration is for --target host; nothing is measured otherwise.")
    if args.choose and not args.write:
        args.usage_error("--choose says which shape to write; add --write FILE.")


def _refuse_idle(args: argparse.Namespace, configs: Collection[Config], settings: list[dict[str, Any]]) -> None:
    """Settings that no family reads, or that say how to train where nothing is trained or written."""
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.idle import idle, refuse_uncounted

    if not (args.train_top or args.write):
        refuse_uncounted(*settings)
    first, *others = (idle(config, *settings) for config in configs)
    for name, sentence in first.items():
        if all(name in other for other in others):
            raise LiteNmtError(sentence)


def _target(args: argparse.Namespace) -> Target:
    """The estimate, or the measurements: read, or made and kept."""
    from contextlib import ExitStack

    from lite_nmt.cli.files import open_output
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.profiling.predict import Calibration, CortexA72

    if args.target == "cortex-a72":
        return CortexA72(args.threads or 1)
    if args.calibration and args.calibration.exists():
        calibration = Calibration.load(args.calibration)
        if args.threads not in (None, calibration.threads):
            raise LiteNmtError(
                f"{args.calibration} was measured with --threads {calibration.threads}, not {args.threads}; calibrate "
                "into another file."
            )
        return calibration
    from lite_nmt.profiling.calibrate import calibrate

    with ExitStack() as stack:
        # Opened first: that it cannot be written is better known now than half a minute later.
        output = stack.enter_context(open_output(str(args.calibration))) if args.calibration else None
        calibration = calibrate(args.threads or 1)
        if output:
            output.write(calibration.to_json().encode())
    if calibration.error > TOLERANCE:
        print(
            f"lite-nmt: warning: predictions of models held out were {100 * calibration.error:.0f}% off (median); "
            "calibrate again on a machine that does nothing else.",
            file=sys.stderr,
        )
    return calibration


def _train(
    args: argparse.Namespace, best: list[Candidate], target: Target, settings: list[dict[str, Any]]
) -> list[Result]:
    from lite_nmt.profiling.contest import contest

    chosen, steps, device = best[: args.train_top], args.steps or 1000, args.device or "auto"
    found = []
    for result in contest(chosen, target, args.data, _languages(args), args.out, steps, settings, device):
        found.append(result)
        print(f"{len(found)} of {len(chosen)}: {result.name}, BLEU {result.valid_bleu:.2f}", file=sys.stderr)
    return found


def _languages(args: argparse.Namespace) -> tuple[str, str]:
    return args.src or "de", args.tgt or "en"
