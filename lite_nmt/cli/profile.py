"""``lite-nmt profile``: what a model costs, before anything is trained."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from lite_nmt.cli.console import console
from lite_nmt.cli.options import positive, refuse

if TYPE_CHECKING:
    from lite_nmt.profiling.cost import Cost, Lengths
    from lite_nmt.profiling.latency import Latency
    from lite_nmt.profiling.target import Target

OVER_BUDGET = 3
COUNTING = ("src_len", "tgt_len", "batch", "beam", "set", "budget", "count", "counter", "strict", "dim")
TIMING = ("latency", "modules", "threads")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser(
        "profile",
        help="Mult-Adds, parameters, activations and latency of a model",
        description="Count what a model costs, by kind of part and by module, under the papers' convention and in "
        "full (docs/counting.md). Exit code 3 says that --budget is exceeded.",
    )
    parser.add_argument(
        "target", nargs="?", help="a preset, a TOML configuration, a run or checkpoint, a bundle, or an ONNX file"
    )
    parser.add_argument("--src-len", type=positive, metavar="N", help="source tokens (30)")
    parser.add_argument("--tgt-len", type=positive, metavar="N", help="target tokens (30)")
    parser.add_argument("--batch", type=positive, metavar="N", help="sentences (1)")
    parser.add_argument("--beam", type=positive, metavar="N", help="hypotheses a sentence (1)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change one setting first")
    parser.add_argument("--budget", help="Mult-Adds that must not be exceeded: 100M, 500M")
    parser.add_argument("--count", choices=("paper", "full"), default="paper", help="how the budget is counted")
    parser.add_argument(
        "--counter",
        choices=("closed", "traced", "onnx"),
        help="closed form from the configuration (the default), the traced model, or its exported graph",
    )
    parser.add_argument("--strict", action="store_true", help="fail where something could not be counted")
    parser.add_argument(
        "--dim", action="append", default=[], metavar="NAME=N", help="size of a symbolic dimension of an ONNX file"
    )
    parser.add_argument("--reproduce", action="store_true", help="print the papers' tables beside ours")
    parser.add_argument("--json", action="store_true", help="print JSON")
    group = parser.add_argument_group("latency", "batch 1 on this machine's CPU; a preset's weights are random")
    group.add_argument("--latency", action="store_true", help="time encoding, one decoding step and a sentence")
    group.add_argument("--modules", action="store_true", help="time each part too (implies --latency)")
    group.add_argument("--threads", type=positive, metavar="N", help="CPU threads")


def run(args: argparse.Namespace) -> int:
    """Count, print, and compare with the budget."""
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.profiling.budget import parse_budget, quantity
    from lite_nmt.profiling.target import find_target

    if args.reproduce:
        if args.target:
            raise LiteNmtError(f"--reproduce counts the papers' models; leave out {args.target}.")
        refuse(args, "--reproduce, which counts the papers' models", (*COUNTING, *TIMING))
        return _reproduce(args.json)
    if args.target is None:
        raise LiteNmtError("name a preset, a configuration, a run, a bundle or an ONNX file; or give --reproduce.")
    if not (args.latency or args.modules):
        refuse(args, "counting, only for --latency", ("threads",))
    if args.budget is None:
        refuse(args, "a report without --budget, which shows both counts", ("count",))
    budget = parse_budget(args.budget) if args.budget is not None else None
    target = find_target(args.target, args.set)
    total, sizes = (_count if target.config else _count_graph)(target, args)
    if args.strict and total.uncounted:
        raise LiteNmtError(f"could not count all of {target.name}: {'; '.join(total.uncounted)}.")
    latency = _latency(target, args) if args.latency or args.modules else None
    spent = total.mult_adds(args.count)
    over = budget is not None and spent > budget
    _print(target, sizes, total, latency, args, {"mult_adds": budget, "count": args.count, "exceeded": over})
    if budget is not None and over:
        print(
            f"lite-nmt: {target.name} needs {quantity(spent)} Mult-Adds ({args.count} count), "
            f"over the budget of {quantity(budget)}.",
            file=sys.stderr,
        )
        return OVER_BUDGET
    if budget is not None and total.uncounted:
        print("lite-nmt: warning: not all could be counted; the budget may be exceeded.", file=sys.stderr)
    return 0


def _reproduce(as_json: bool) -> int:
    import json

    from lite_nmt.profiling import reproduce

    rows = reproduce.rows()
    if as_json:
        print(json.dumps(reproduce.as_json(rows), indent=2))
    else:
        console().print(reproduce.render(rows))
    return 0 if all(row.passes for row in rows) else 1


def _lengths(args: argparse.Namespace) -> Lengths:
    from lite_nmt.profiling.cost import Lengths

    return Lengths(args.src_len or 30, args.tgt_len or 30, args.batch or 1, args.beam or 1)


def _count(target: Target, args: argparse.Namespace) -> tuple[Cost, dict[str, int]]:
    """The cost of a configuration, and the sizes that it is for."""
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.profiling.cost import cost

    assert target.config is not None
    of = _lengths(args)
    if target.config.task == "lm":
        refuse(args, "language models, which read one side, --tgt-len", ("src_len",))
    if args.dim:
        raise LiteNmtError("--dim is for ONNX files; give --src-len, --tgt-len, --batch and --beam.")
    if args.counter == "traced":
        from lite_nmt.profiling.traced import profile, unallocated

        return profile(*unallocated(target.config, of)), vars(of)
    if args.counter == "onnx":
        from lite_nmt.profiling.graph import count_export

        return count_export(target.config, of), vars(of)
    return cost(target.config, of.source, of.target, of.batch, of.beam), vars(of)


def _count_graph(target: Target, args: argparse.Namespace) -> tuple[Cost, dict[str, int]]:
    """The same of an ONNX file, whose dimensions have names of their own."""
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.profiling.graph import count, dimensions, load

    assert target.path is not None
    if args.counter not in (None, "onnx"):
        raise LiteNmtError(f"{target.name} is an ONNX file; only --counter onnx reads one.")
    if args.beam:
        raise LiteNmtError(
            "--beam is for configurations; in an ONNX file it is a dimension, if anything: --dim NAME=N."
        )
    options = {"source": args.src_len, "target": args.tgt_len, "batch": args.batch}
    given = {name: size for name, size in options.items() if size} | _dims(args.dim)
    model = load(target.path)
    wanted = dimensions(model)
    if unknown := sorted(given.keys() - set(wanted)):
        raise LiteNmtError(
            f"{target.name} has no symbolic dimension {unknown[0]}; it has {', '.join(wanted) or 'none at all'}."
        )
    sizes = {"source": 30, "target": 30, "batch": 1} | given
    return count(model, sizes), {name: sizes[name] for name in wanted if name in sizes}


def _dims(given: list[str]) -> dict[str, int]:
    from lite_nmt.errors import LiteNmtError

    dims = {}
    for text in given:
        name, _, size = text.rpartition("=")
        if not name or not size.isdecimal() or not 1 <= int(size) <= 10**9:
            raise LiteNmtError(f"--dim {text!r} is not of the form name=size, such as batch=1.")
        dims[name] = int(size)
    return dims


def _latency(target: Target, args: argparse.Namespace) -> Latency:
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.models.translation import TranslationModel
    from lite_nmt.profiling.latency import measure

    if target.config is None or target.kind == "bundle":
        raise LiteNmtError(
            f"--latency takes presets, configurations and checkpoints; {target.name} is none ({target.kind})."
        )
    if target.config.task == "lm":
        raise LiteNmtError(f"--latency is measured of models that translate; {target.name} is a language model.")
    of = _lengths(args)
    if of.batch != 1:
        raise LiteNmtError(f"--latency is measured at batch 1, not {of.batch}.")
    model = target.saved.model() if target.saved else TranslationModel(target.config)
    return measure(model, of.source, of.target, of.beam, args.threads, modules=args.modules)


def _print(
    target: Target,
    sizes: dict[str, int],
    total: Cost,
    latency: Latency | None,
    args: argparse.Namespace,
    budget: dict[str, Any],
) -> None:
    from lite_nmt.profiling import report

    if args.json:
        import json

        data = {
            "target": target.name,
            "what": target.kind,
            "counter": args.counter or ("closed" if target.config else "onnx"),
        }
        data |= {"sizes": sizes, **report.as_json(total)}
        if budget["mult_adds"] is not None:
            data["budget"] = budget
        if latency:
            from lite_nmt.profiling.latency import to_json

            data["latency"] = to_json(latency)
        print(json.dumps(data, indent=2))
        return
    output = console()
    of = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    output.print(f"{target.name} ({target.kind})" + (f", {of}" if of else "") + "\n")
    output.print(report.render(total))
    if latency:
        from lite_nmt.profiling.latency import render

        output.print("")
        output.print(render(latency))
