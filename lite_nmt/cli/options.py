"""Options that more than one verb takes."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lite_nmt.config import Config, DecodeConfig
    from lite_nmt.models.checkpoint import Checkpoint

DECODE = ("beam", "length_penalty", "penalty", "min_length", "max_length", "no_repeat_ngram")


def positive(text: str) -> int:
    """An argparse type: a whole number, at least 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return number


def refuse(args: argparse.Namespace, what: str, names: Iterable[str]) -> None:
    """Refuse options that would do nothing.

    Args:
        what: that they are not for.

    Raises:
        LiteNmtError: one of them is given, and is not its default.
    """
    from lite_nmt.errors import LiteNmtError

    for name in names:
        value = getattr(args, name)
        if value != args.default_of(name):
            values = value if isinstance(value, list) else [] if value is True else [value]
            given = " ".join([f"--{name.replace('_', '-')}", *map(str, values)])
            raise LiteNmtError(f"{given} is not for {what}; leave it out.")


def language_model(path: str) -> Checkpoint | None:
    """The checkpoint of a run or folder, if it is a language model's."""
    from pathlib import Path

    from lite_nmt.export.bundle import is_bundle

    if is_bundle(Path(path)):
        return None
    from lite_nmt.models import checkpoint

    saved = checkpoint.load(Path(path))
    return saved if saved.config.task == "lm" else None


def warn_of_positions(config: Config, words: int) -> None:
    """Say so where a language model is to read more words in a row than it was trained on; one that carries a cache
    knows no positions."""
    import warnings

    if words > config.train.block and not config.model.carries:
        warnings.warn(
            f"the model is to read {words} words in a row and was trained on {config.train.block}; the positions "
            "beyond are new to it.",
            stacklevel=2,
        )


def add_decode_options(parser: argparse.ArgumentParser) -> None:
    """How to search, and where to compute."""
    group = parser.add_argument_group("search", "defaults come from the checkpoint; lengths are in tokens")
    group.add_argument("--beam", type=int, metavar="N", help="hypotheses kept at each step; 1 is greedy")
    group.add_argument("--length-penalty", type=float, metavar="A", help="a; more favours length")
    group.add_argument(
        "--penalty",
        choices=("power", "gnmt", "stepwise"),
        help="divide by n^a or ((5 + n) / 6)^a; or add a to each token",
    )
    group.add_argument("--min-length", type=int, metavar="N")
    group.add_argument("--max-length", type=int, metavar="N", help="0: 1.5 times the source plus 20")
    group.add_argument("--no-repeat-ngram", type=int, metavar="N", help="never repeat N tokens in a row; 0: may")
    group = parser.add_argument_group("computing")
    group.add_argument(
        "--batch-tokens", type=positive, default=4096, metavar="N", help="source tokens at once (%(default)s)"
    )
    group.add_argument("--buffer", type=positive, metavar="LINES", help="lines sorted by length at once")
    group.add_argument("--threads", type=positive, metavar="N", help="CPU threads")
    group.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, mps (%(default)s)")


def decode_config(args: argparse.Namespace, base: DecodeConfig) -> DecodeConfig:
    """The checkpoint's settings with those given laid over them, all checked."""
    import dataclasses

    from lite_nmt.config import DecodeConfig, from_dict

    given = {name: getattr(args, name) for name in DECODE if getattr(args, name) is not None}
    return from_dict(DecodeConfig, dataclasses.asdict(base) | given, "decode")
