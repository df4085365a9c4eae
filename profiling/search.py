"""Which shapes fit a budget, and which of them is fastest: plain enumeration, each shape as wide as it may be.

A narrower model of the same shape costs less of everything and has less capacity: for a budget that is to be spent it
is dominated by the widest one, and so it is not listed.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from lite_nmt.config import Config, load_preset
from lite_nmt.errors import LiteNmtError
from lite_nmt.profiling.budget import BUDGET_PRESET, MOBILE_PARAMETERS, WIDTH_STEP, quantity
from lite_nmt.profiling.cost import Cost, cost
from lite_nmt.profiling.predict import Target

if TYPE_CHECKING:
    from rich.table import Table

FAMILIES = {
    "lite-transformer": "lsra",
    "lightconv": "lightconv",
    "dynamicconv": "dynamicconv",
    "talk": "talk",
    "transformer": "attention",
}
RANKS = ("latency", "mult-adds")
# Encoder and decoder layers. The encoder runs once a sentence, the decoder once a token: a deep encoder pays for a
# shallow decoder (Pay Less Attention, Table 7; Kasai et al. 2021).
DEPTHS = ((6, 6), (4, 4), (3, 3), (12, 3), (8, 4), (6, 3), (10, 2), (8, 2), (6, 2), (12, 1), (10, 1), (8, 1), (6, 1))
FFN_RATIOS = (1, 2, 4)  # of the width; 1 is Lite Transformer's "flattened" one
HEADS = (4, 8)  # the papers'
NARROWEST_HEAD = 16  # channels, so that SIMD lanes are full
# Offsets to one side, as TaLK prints them; other convolutions have as many taps. The last one repeats.
KERNELS = {"paper": (3, 7, 15, 31), "short": (3, 7), "long": (15, 31)}
WIDEST = 4096


@dataclass(frozen=True)
class Shape:
    """A model but for its width."""

    family: str
    encoder_layers: int
    decoder_layers: int
    ffn_ratio: int
    heads: int
    kernels: str  # of KERNELS, or "" where there are none

    def widths(self) -> range:
        """Widths in steps of 8 channels that the heads divide, none narrower than its minimum."""
        shares = 2 * self.heads if self.family == "lite-transformer" else self.heads
        return range(shares * NARROWEST_HEAD, WIDEST + 1, math.lcm(shares, WIDTH_STEP))

    def config(self, width: int, base: Config) -> Config:
        """The model of this width; what the shape leaves open comes from ``base``."""
        mixer, model = FAMILIES[self.family], base.model
        schedule = KERNELS.get(self.kernels, model.encoder.kernels)
        encoder_taps, decoder_taps = schedule, schedule
        if self.family == "talk":
            encoder_taps, decoder_taps = tuple(2 * k + 1 for k in schedule), tuple(k + 1 for k in schedule)
        shared: dict[str, Any] = {
            "mixer": mixer,
            "heads": self.heads,
            "conv_heads": self.heads,
            "ffn": self.ffn_ratio * width,
        }
        return replace(
            base,
            description=self.describe(width),
            model=replace(
                model,
                width=width,
                cross_heads=self.heads,
                activation="swish" if self.family == "talk" else "relu",
                encoder=replace(model.encoder, layers=self.encoder_layers, kernels=encoder_taps, **shared),
                decoder=replace(model.decoder, layers=self.decoder_layers, kernels=decoder_taps, **shared),
            ),
        )

    def describe(self, width: int) -> str:
        """In words."""
        kernels = f", {self.kernels} kernels" if self.kernels else ""
        return (
            f"{self.family}, {self.encoder_layers}+{self.decoder_layers} layers, width {width}, "
            f"ffn {self.ffn_ratio * width}, {self.heads} heads{kernels}"
        )


@dataclass(frozen=True)
class Candidate:
    """A shape at its widest, what it costs, and how long a sentence takes it on the target."""

    shape: Shape
    config: Config
    total: Cost
    milliseconds: float

    @property
    def name(self) -> str:
        """A folder's name that says all of the shape."""
        s, model = self.shape, self.config.model
        sizes = f"{s.encoder_layers}-{s.decoder_layers}-width-{model.width}-ffn-{model.encoder.ffn}-heads-{s.heads}"
        return "-".join(filter(None, (s.family, sizes, s.kernels)))


def shapes(families: Sequence[str]) -> Iterator[Shape]:
    """Every shape of these families."""
    for family in families:
        schedules = ("",) if family == "transformer" else tuple(KERNELS)
        for (encoder, decoder), ratio, heads, kernels in itertools.product(DEPTHS, FFN_RATIOS, HEADS, schedules):
            yield Shape(family, encoder, decoder, ratio, heads, kernels)


def fitting(
    budget: int,
    families: Sequence[str] = ("lite-transformer",),
    count: str = "paper",
    overrides: Sequence[Mapping[str, Any]] = (),
) -> list[tuple[Shape, Config]]:
    """Every shape at its widest within ``budget`` Mult-Adds and 10M parameters.

    Args:
        overrides: settings for all of them, such as the vocabulary's size.

    Raises:
        LiteNmtError: a setting is the search's to choose, or nothing fits.
    """
    base = base_config(*overrides)
    found = []
    for shape in shapes(families):
        widths = shape.widths()
        fit = bisect.bisect_left(widths, True, key=lambda w, s=shape: _exceeds(s.config(w, base), budget, count))  # type: ignore[misc]  # bound early
        if fit:
            found.append((shape, shape.config(widths[fit - 1], base)))
    if not found:
        raise LiteNmtError(
            f"no shape of {', '.join(families)} fits {quantity(budget)} Mult-Adds ({count} count) and heads of "
            f"{NARROWEST_HEAD} channels; give a larger --budget."
        )
    return found


def ranked(
    models: Sequence[tuple[Shape, Config]],
    target: Target,
    by: str = "latency",
    count: str = "paper",
    each: int | None = None,
) -> list[Candidate]:
    """Models with their predicted times, the best first.

    Args:
        by: "latency", the fastest first; or "mult-adds", the fullest use of the budget first, since all cost about
            the same. Ties go by the other.
        each: how many of the same family and depths to keep, the best of them; None keeps all. Shapes that differ in
            heads or kernels alone are closer to one another than a prediction is to the truth.
    """
    found = [Candidate(shape, config, cost(config), target.predict(config)) for shape, config in models]

    def key(candidate: Candidate) -> tuple[float, float]:
        spent, taken = candidate.total.mult_adds(count), candidate.milliseconds
        return (taken, -spent) if by == "latency" else (-spent, taken)

    kept: Counter[tuple[str, int, int]] = Counter()
    best = []
    for candidate in sorted(found, key=key):
        alike = candidate.shape.family, candidate.shape.encoder_layers, candidate.shape.decoder_layers
        kept[alike] += 1
        if each is None or kept[alike] <= each:
            best.append(candidate)
    return best


def base_config(*overrides: Mapping[str, Any]) -> Config:
    """What the shapes leave open: the recipe that ``lite-nmt train --budget`` takes, with settings laid over it."""
    config = load_preset(BUDGET_PRESET, *overrides)
    chosen = ("width", "cross_heads", "activation")
    sides = ("layers", "mixer", "heads", "conv_heads", "kernels", "ffn")
    for override in overrides:
        model = override.get("model", {})
        taken = [f"model.{key}" for key in chosen if key in model]
        taken += [f"model.{s}.{key}" for s in ("encoder", "decoder") for key in sides if key in model.get(s, {})]
        if taken:
            raise LiteNmtError(f"{taken[0]} is what the search chooses; leave it out of --set.")
    return config


def _exceeds(config: Config, budget: int, count: str) -> bool:
    total = cost(config)
    return total.mult_adds(count) > budget or total.parameters(count) > MOBILE_PARAMETERS


def render(best: Sequence[Candidate], target: Target, found: int) -> Table:
    """A table for people, of the best of so many shapes found."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", caption_justify="left")
    table.caption = (
        f"{len(best)} of {found} shapes, each at its widest. Mult-Adds for 30 to 30 tokens, and parameters: paper "
        f"count, then full (docs/counting.md). {target.caption}"
    )
    for name in ("#", "family", "layers", "width", "ffn", "heads", "kernels"):
        table.add_column(name, justify="left" if name in ("family", "kernels") else "right", no_wrap=True)
    for name in ("Mult-Adds", "full", "params", "full", target.label):
        table.add_column(name, justify="right", no_wrap=True)
    for i, candidate in enumerate(best, 1):
        shape, model, total = candidate.shape, candidate.config.model, candidate.total
        depths = f"{shape.encoder_layers}+{shape.decoder_layers}"
        figures = (total.mult_adds(), total.mult_adds("full"), total.parameters(), total.parameters("full"))
        table.add_row(
            *(str(i), shape.family, depths, str(model.width), str(model.encoder.ffn), str(shape.heads)),
            shape.kernels or "-",
            *map(quantity, figures),
            f"{candidate.milliseconds:.1f}",
        )
    return table


def as_json(best: Sequence[Candidate], target: Target) -> dict[str, Any]:
    """Plain data."""
    shapes = [
        {
            "name": candidate.name,
            **asdict(candidate.shape),
            "width": candidate.config.model.width,
            "mult_adds": {count: candidate.total.mult_adds(count) for count in ("paper", "full")},
            "parameters": {count: candidate.total.parameters(count) for count in ("paper", "full")},
            "milliseconds": candidate.milliseconds,
        }
        for candidate in best
    ]
    return {"threads": target.threads, "milliseconds": target.label, "caption": target.caption, "shapes": shapes}
