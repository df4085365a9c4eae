"""Pictures of cost: what one pass is spent on, how it grows with length, and what BLEU it buys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from lite_nmt.config import Config, ModelConfig, StackConfig, load_preset
from lite_nmt.figures import STYLE as COMMON
from lite_nmt.profiling.budget import quantity
from lite_nmt.profiling.cost import OUTPUT, Part, cost
from lite_nmt.profiling.runs import OTHER, Family, Run, family

STYLE = {**COMMON, "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False}
# The colours of Okabe and Ito, which colour-blind readers can tell apart; markers say the same once more.
KINDS = {
    "attention": "#0072B2",
    "cross-attention": "#56B4E9",
    "convolution": "#E69F00",
    "average attention": "#CC79A7",
    "ffn": "#009E73",
}
BLOCK_WIDTH = 512
# One pass of each costs the same at 30 tokens.
EQUAL = tuple(f"multi30k-{name}" for name in ("transformer", "lite-transformer", "lightconv", "dynamicconv", "talk"))
LENGTHS = tuple(round(10 ** (1 + i / 10)) for i in range(31))  # 10 to 10,000


@dataclass(frozen=True)
class Growth:
    """A model's Mult-Adds for as many source as target tokens, at each of ``LENGTHS``."""

    preset: str
    family: Family
    encoder: tuple[int, ...]
    whole: tuple[int, ...]


def blocks(length: int = 30) -> dict[str, dict[str, int]]:
    """Mult-Adds by kind of one encoder layer: the usual one, flattened, and with LSRA (Lite Transformer, Figure 2)."""
    d = BLOCK_WIDTH
    layers = {
        "Transformer, FFN 4d": StackConfig(mixer="attention", heads=8, ffn=4 * d),
        "flattened, FFN d": StackConfig(mixer="attention", heads=8, ffn=d),
        "LSRA, FFN d": StackConfig(mixer="lsra", conv="dynamicconv", glu=True, kernels=(31,), ffn=d),
    }
    found = {}
    for name, layer in layers.items():
        parts = cost(Config(ModelConfig(width=d, encoder=layer)), length).parts
        found[name] = _by_kind(part for part in parts if part.name.startswith("encoder.0."))
    return found


def presets(names: Iterable[str], source_length: int = 30, target_length: int = 30) -> dict[str, dict[str, int]]:
    """Mult-Adds by kind of whole models, under the ``paper`` count."""
    return {name: _by_kind(cost(load_preset(name), source_length, target_length).parts) for name in names}


def _by_kind(parts: Iterable[Part]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts:
        if part.mult_adds and part.kind != OUTPUT:
            found[part.kind] = found.get(part.kind, 0) + part.mult_adds
    return found


def growth() -> list[Growth]:
    """Five models of equal cost at 30 tokens, at every other length."""
    found = []
    for name in EQUAL:
        config = load_preset(name)
        costs = [cost(config, n, n) for n in LENGTHS]
        encoder = [sum(p.mult_adds for p in total.parts if p.name.startswith("encoder.")) for total in costs]
        whole = [total.mult_adds() for total in costs]
        found.append(Growth(name, family(config.model), tuple(encoder), tuple(whole)))
    return found


@matplotlib.rc_context(STYLE)
def draw_breakdown(bars: Mapping[str, Mapping[str, int]], caption: str) -> Figure:
    """One stacked bar a model; a legend, where some kind finds no room for its name."""
    inches = 6.0
    figure = Figure(figsize=(inches + 2.5, 0.7 + 0.5 * len(bars)), layout="constrained")
    axes = figure.subplots()
    most = max(sum(parts.values()) for parts in bars.values())
    kinds = sorted({kind for parts in bars.values() for kind in parts}, key=lambda kind: [*KINDS, kind].index(kind))
    colours = {_label(kind): KINDS.get(kind, OTHER) for kind in kinds}
    named = set()
    for row, parts in enumerate(bars.values()):
        left = 0.0
        for kind in kinds:
            spent, label = float(parts.get(kind, 0)), _label(kind)
            axes.barh(row, spent, left=left, color=colours[label], edgecolor="white", linewidth=0.5)
            room = spent / most * inches / 0.075  # in characters
            lines = [text for text in (label, quantity(spent)) if len(text) < room]
            named |= set(lines)
            ink = "white" if kind == "attention" else "black"
            axes.text(left + spent / 2, row, "\n".join(lines), color=ink, fontsize=8, ha="center", va="center")
            left += spent
        axes.text(left + most / 80, row, quantity(left), fontweight="bold", va="center")
    if colours.keys() - named:
        keys = [Patch(color=colour, label=label) for label, colour in colours.items()]
        figure.legend(handles=keys, loc="outside upper center", ncols=len(keys), frameon=False)
    axes.set(xticks=[], yticks=range(len(bars)), yticklabels=bars)
    axes.set(xlim=(0, 1.1 * most), ylim=(len(bars) - 0.5, -0.5))
    axes.spines[["bottom", "left"]].set_visible(False)
    axes.tick_params(left=False)
    figure.supxlabel(caption, fontsize=8)
    return figure


def _label(kind: str) -> str:
    return "FFN" if kind == "ffn" else kind


@matplotlib.rc_context(STYLE)
def draw_growth(models: Sequence[Growth]) -> Figure:
    """Mult-Adds a token over sentence length: level where a pass is linear, rising where it is quadratic."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    left.set(title="Encoder: attention is quadratic, convolutions are linear", xlabel="source tokens")
    right.set(
        title="Whole pass: cross-attention is quadratic in all", xlabel="source tokens, and as many target tokens"
    )
    left.set_ylabel("Mult-Adds per source token")
    panels = ((left, [model.encoder for model in models]), (right, [model.whole for model in models]))
    for axes, passes in panels:
        for i, (model, spent) in enumerate(zip(models, passes, strict=True)):
            each = [s / n for s, n in zip(spent, LENGTHS, strict=True)]
            # Markers by turns, since some lines cover others.
            of = model.family
            axes.plot(LENGTHS, each, color=of.colour, marker=of.marker, markersize=5, markevery=(2 * i + 1, 10))
        axes.set(xscale="log", yscale="log", xlim=(LENGTHS[0], LENGTHS[-1]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda n, _: quantity(n)))
        axes.grid(alpha=0.3)
    for axes, passes in panels:
        ends = [
            (model.family, LENGTHS[-1], spent[-1] / LENGTHS[-1]) for model, spent in zip(models, passes, strict=True)
        ]
        _name_lines(axes, ends)
    return figure


@matplotlib.rc_context(STYLE)
def draw_bleu(runs: Sequence[Run]) -> Figure:
    """Validation BLEU over Mult-Adds, one line a family (Lite Transformer, Figure 4)."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.set_xlim(_around([run.mult_adds for run in runs], 0.4 * max(run.mult_adds for run in runs)))
    axes.set_ylim(_around([run.valid_bleu for run in runs], 2))
    ends = []
    for one in dict.fromkeys(run.family for run in runs):
        points = sorted((run.mult_adds, run.valid_bleu) for run in runs if run.family == one)
        axes.plot(*zip(*points, strict=True), color=one.colour, marker=one.marker)
        ends.append((one, *points[-1]))
    languages = {run.languages for run in runs}
    of = f", {languages.pop()}" if len(languages) == 1 else ""
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: quantity(n)))
    axes.set(xlabel="Mult-Adds for 30 to 30 tokens", ylabel=f"validation BLEU (greedy){of}")
    axes.grid(alpha=0.3)
    _name_lines(axes, ends)
    return figure


def _around(values: Sequence[float], least: float) -> tuple[float, float]:
    """Limits of an axis that shows all values and spans ``least``, so that small differences look small."""
    low, high = min(values), max(values)
    half = max(1.2 * (high - low), least) / 2
    return max(0.0, (low + high) / 2 - half), (low + high) / 2 + half


def _name_lines(axes: Axes, ends: Sequence[tuple[Family, float, float]]) -> None:
    """The name of each line to the right of where it ends, moved up or down where it would cover another's."""
    axes.autoscale_view()
    to_fraction = axes.transData - axes.transAxes
    places = [to_fraction.transform((x, y)) for _, x, y in ends]
    heights = _apart([float(height) for _, height in places], 0.055)
    for (one, x, y), (across, _), height in zip(ends, places, heights, strict=True):
        leader = {"arrowstyle": "-", "color": one.colour, "linewidth": 0.8, "shrinkA": 1, "shrinkB": 4}
        beside = (float(across) + 0.04, height)
        axes.annotate(one.name, (x, y), beside, textcoords="axes fraction", va="center", arrowprops=leader)


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Heights moved as little as it takes to lie ``gap`` apart, their order kept."""
    moved = list(heights)
    order = sorted(range(len(moved)), key=moved.__getitem__)
    for _ in range(200):  # enough for a dozen lines to settle
        for low, high in pairwise(order):
            short = max(0.0, gap - (moved[high] - moved[low])) / 2
            moved[low], moved[high] = moved[low] - short, moved[high] + short
    return moved
