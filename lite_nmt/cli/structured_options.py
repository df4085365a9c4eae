"""Options of structured pruning, for the verb that takes them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lite_nmt.cli.options import positive

if TYPE_CHECKING:
    from lite_nmt.compress.importance import Importance
    from lite_nmt.compress.structured import Plan
    from lite_nmt.data.encoded import Encoded

_ASKED = ("heads", "ffn", "conv_channels", "encoder_layers", "decoder_layers", "mult_adds")


def add_structured_options(parser: argparse.ArgumentParser) -> None:
    """What to remove. ``--scope``, layer or global, is the verb's own."""
    group = parser.add_argument_group("shorter matrices", "what is removed costs no Mult-Adds any more")
    group.add_argument("--heads", type=float, metavar="SHARE", help="attention heads to remove, 0 to 1")
    group.add_argument("--ffn", type=float, metavar="SHARE", help="channels of the feed-forward networks to remove")
    group.add_argument("--conv-channels", type=float, metavar="SHARE", help="channels inside convolutions to remove")
    group.add_argument("--encoder-layers", type=positive, metavar="N", help="encoder layers to keep")
    group.add_argument("--decoder-layers", type=positive, metavar="N", help="decoder layers to keep")
    group.add_argument("--mult-adds", metavar="N", help="remove as much as brings the model to that, as 40M")
    group.add_argument(
        "--importance",
        choices=("norm", "loss"),
        default="norm",
        help="of heads, channels and layers: the norm of their weights, or what the loss on training pairs would rise "
        "by (%(default)s)",
    )


def plan_from(args: argparse.Namespace) -> Plan | None:
    """What the options ask for; None where they ask for nothing."""
    from lite_nmt.compress.structured import Plan
    from lite_nmt.profiling.budget import parse_budget

    given = {name: getattr(args, name) for name in _ASKED if getattr(args, name) is not None}
    if not given:
        return None
    if "mult_adds" in given:
        given["mult_adds"] = parse_budget(given["mult_adds"], "--mult-adds")
    return Plan(**given, scope=args.scope)


def importance_from(args: argparse.Namespace, pairs: Encoded | None) -> Importance:
    """The measure that the options name.

    Args:
        pairs: to measure the loss on; some hundred are enough.

    Raises:
        LiteNmtError: it needs pairs, and there are none.
    """
    from lite_nmt.compress.importance import LossIncrease, WeightNorm
    from lite_nmt.errors import LiteNmtError

    if args.importance == "norm":
        return WeightNorm()
    if pairs is None:
        raise LiteNmtError("--importance loss needs sentence pairs; give --data.")
    return LossIncrease(pairs)
