"""``lite-nmt train``: from text files to a model, under a stated budget."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_nmt.config import TASKS

if TYPE_CHECKING:
    from lite_nmt.config import Config

PRESETS = {"lm": "wikitext2-lite-transformer", "summarize": "scitldr-lite-transformer"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser(
        "train",
        help="train a model under a Mult-Adds budget",
        description="Train a model that translates, summarises or continues text. With --budget and no --preset, the "
        "widest Lite Transformer that fits is trained. Under torchrun, several processes train one model together.",
    )
    parser.add_argument(
        "--task", choices=TASKS, help="what to train (default: what the preset or the configuration is for)"
    )
    parser.add_argument("--data", type=Path, help="folder with train.SRC, train.TGT and valid.*; lm: train.TGT alone")
    parser.add_argument("--src", help="source language, the source files' ending (default: de, or as --init)")
    parser.add_argument(
        "--tgt", help="target language, the target files' ending (default: en, for lm txt, or as --init)"
    )
    parser.add_argument("--out", type=Path, required=True, help="run folder; its model/ is the result")
    parser.add_argument("--budget", help="largest Mult-Adds for 30 to 30 tokens: 100M, 300M, 500M")
    parser.add_argument("--count", choices=("paper", "full"), default="paper", help="how the budget is counted")
    parser.add_argument("--allow-over-budget", action="store_true", help="train a model over the budget all the same")
    parser.add_argument("--preset", help="a configuration by name; see `lite-nmt presets`")
    parser.add_argument("--config", type=Path, help="TOML file, laid over the preset")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="one setting, such as train.steps=2000"
    )
    parser.add_argument(
        "--teacher",
        type=Path,
        metavar="CHECKPOINT",
        help="learn from this model's predictions as well, with its vocabulary; needs train.distill_weight",
    )
    parser.add_argument("--init", type=Path, metavar="CHECKPOINT", help="start from its weights, with all its settings")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Train, and print where the model is and what it cost."""
    import dataclasses
    import json
    import os

    from lite_nmt.errors import LiteNmtError
    from lite_nmt.evaluate.surprise import perplexity
    from lite_nmt.models import checkpoint
    from lite_nmt.profiling.budget import quantity
    from lite_nmt.profiling.cost import cost
    from lite_nmt.train.metrics import quality
    from lite_nmt.train.prepare import SETTINGS
    from lite_nmt.train.run import train_model

    resumed = args.resume and (args.out / SETTINGS).exists()
    config = resumed_configuration(args) if resumed else configuration(args, args.teacher)
    total = cost(config)
    # Under torchrun each process comes this way, and one voice is enough.
    first = os.environ.get("RANK", "0") == "0"
    if first:
        of = "30 tokens" if config.task == "lm" else "30 to 30 tokens"
        print(
            f"{quantity(total.mult_adds())} Mult-Adds for {of} ({quantity(total.mult_adds('full'))} with the output "
            f"projection), {quantity(total.parameters())} parameters ({quantity(total.parameters('full'))} with "
            "embeddings)",
            file=sys.stderr,
        )
        if config.task == "summarize":
            most = config.vocabulary.max_length, config.decode.max_length
            spent = quantity(cost(config, *most).mult_adds())
            print(f"{spent} Mult-Adds for {most[0]} to {most[1]} tokens, the longest of either", file=sys.stderr)
    check_budget(config, args, first)
    source, target = checkpoint.load(args.init).languages if args.init else ("de", "en")
    languages = (args.src or source, args.tgt or target)
    if config.task == "lm":
        if args.src:
            raise LiteNmtError("--src is for translation; a language model reads one side, --tgt.")
        languages = (args.tgt or "txt",) * 2
    result = train_model(config, args.data, languages, args.out, args.resume, args.device, args.teacher, args.init)
    if not first:
        return 0
    if args.json:
        print(json.dumps({**dataclasses.asdict(result), "model": str(result.model)}))
        return 0
    found = result.metrics
    if config.task == "lm":
        told = f", validation perplexity {perplexity(found['valid_nll']):.2f}" if found else ""
    else:
        told = f", validation {quality(found)} (greedy)" if quality(found) else ""
    print(f"{result.model}: {result.step} updates{told}")
    print(result.footprint.sentence())
    return 0


def configuration(args: argparse.Namespace, teacher: Path | None) -> Config:
    """Preset, budget or checkpoint, then the file, then single settings, then a teacher's vocabulary."""
    from lite_nmt.config import merge
    from lite_nmt.idle import refuse_idle

    overrides = asked = asked_settings(args)
    before = None
    if teacher is not None:
        overrides = [*asked, teacher_vocabulary(teacher, merge({}, *asked).get("vocabulary"))]
    if args.init is not None:
        from lite_nmt.models import checkpoint

        before = checkpoint.load(args.init).config
    config = laid_over(args, before, overrides)
    file, by_hand = asked
    refuse_idle(config, by_hand, file=file, before=before)
    return config


def asked_settings(args: argparse.Namespace) -> list[dict[str, Any]]:
    """The file's, and above them the single ones."""
    from lite_nmt.config import load_toml, merge, parse_setting

    return [load_toml(args.config) if args.config else {}, merge({}, *map(parse_setting, args.set))]


def laid_over(args: argparse.Namespace, init: Config | None, overrides: list[dict[str, Any]]) -> Config:
    """Settings laid over those of a checkpoint, a preset, or the widest model within the budget."""
    from lite_nmt.config import Config, from_dict, load_preset, merge
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.profiling.budget import BUDGET_PRESET, parse_budget, widest

    if init is not None:
        if args.preset is not None:
            raise LiteNmtError("--init brings its own settings; leave out --preset.")
        return from_dict(Config, merge(init.to_dict(), *overrides))
    if args.preset is None and args.budget is not None and args.task not in PRESETS:
        return widest(parse_budget(args.budget), args.count, *overrides)
    preset = args.preset or PRESETS.get(args.task, BUDGET_PRESET)
    config = load_preset(preset, *overrides)
    if args.task not in (None, config.task):
        raise LiteNmtError(f"--task is {args.task}, but {preset} is for {config.task}; choose another preset.")
    return config


def teacher_vocabulary(teacher: Path, asked: object) -> dict[str, Any]:
    """The settings of a vocabulary that is already made, so that a budget counts its types."""
    import dataclasses

    from lite_nmt.errors import LiteNmtError
    from lite_nmt.models import checkpoint

    made = dataclasses.asdict(checkpoint.load(teacher).config.vocabulary)
    del made["max_length"]
    if isinstance(asked, dict) and (refused := made.keys() & asked.keys()):
        raise LiteNmtError(f"with --teacher the vocabulary is the teacher's; leave out vocabulary.{min(refused)}.")
    return {"vocabulary": made}


def resumed_configuration(args: argparse.Namespace) -> Config:
    """The run's own settings, with what is to change laid over them."""
    import dataclasses

    from lite_nmt.config import Config, from_dict, merge
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.idle import refuse_idle
    from lite_nmt.train.prepare import Settings

    saved = Settings.load(args.out)
    if args.task not in (None, saved.config.task):
        raise LiteNmtError(f"--task is {args.task}, but {args.out} is for {saved.config.task}; choose another --out.")
    teacher = Path(saved.teacher.path) if args.teacher is None and saved.teacher else args.teacher
    asks = args.preset or (args.budget and not saved.init)
    if asks and configuration(args, teacher).model != saved.config.model:
        raise LiteNmtError(f"{args.out} trains another model than the one asked for; choose another --out.")
    started = {"data": saved.data, "src": saved.languages[0], "tgt": saved.languages[1], "init": saved.init}
    asked = {"data": str(args.data.resolve()) if args.data else None, "src": args.src, "tgt": args.tgt}
    asked["init"] = str(args.init.resolve()) if args.init else None
    for option, value in asked.items():
        if value is not None and value != started[option]:
            how = f"with --{option} {started[option]}" if started[option] else f"without --{option}"
            raise LiteNmtError(f"{args.out} was started {how}; resume it without --{option}.")
    before = dataclasses.replace(saved.config, vocabulary=saved.asked)
    config = from_dict(Config, merge(before.to_dict(), *asked_settings(args)))
    if config.vocabulary != saved.asked:
        raise LiteNmtError("on --resume only train.* and decode.* may change; the vocabulary is made.")
    file, by_hand = asked_settings(args)
    refuse_idle(config, by_hand, file=file, before=before)
    return dataclasses.replace(config, vocabulary=saved.config.vocabulary)


def check_budget(config: Config, args: argparse.Namespace, speak: bool) -> None:
    """Refuse a model over a stated budget, warn of one over the mobile limits."""
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.profiling.budget import MOBILE_MULT_ADDS, breaches, parse_budget

    if args.allow_over_budget and not args.budget:
        raise LiteNmtError("--allow-over-budget is for a model over --budget; give one, or leave it out.")
    limit = parse_budget(args.budget) if args.budget is not None else MOBILE_MULT_ADDS
    found = breaches(config, limit, args.count)
    if found and args.budget and not args.allow_over_budget:
        raise LiteNmtError("; ".join(found) + ". Train it all the same with --allow-over-budget.")
    for sentence in found if speak else ():
        print(f"lite-nmt: warning: {sentence}.", file=sys.stderr)
