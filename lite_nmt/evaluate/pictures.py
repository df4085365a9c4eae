"""Pictures of what mixers look at: averaged, layer by layer, and TaLK's windows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from torch import Tensor

from lite_nmt.evaluate.attention import CROSS, SIDES, Maps, Reading, distance
from lite_nmt.figures import STYLE as COMMON
from lite_nmt.figures import encode

COLOURS = "Blues"  # its lightness falls evenly, so that it reads the same in grey
MOST_LABELS = 60
STYLE = {**COMMON, "font.size": 8, "axes.titlesize": 8, "text.parse_math": False}  # a piece may hold dollar signs


def pictures(readings: Sequence[Reading]) -> dict[str, bytes]:
    """All pictures of one or more models, side by side: file names and contents, a PNG and an SVG of each.

    ``windows`` is there only where a model has TaLK convolutions.
    """
    files = {}
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        # What the PNG's font lacks is drawn as a box; the SVG keeps the text.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        for name, figure in (
            ("average", average(readings)),
            ("layers", layers(readings)),
            ("windows", windows(readings)),
        ):
            if figure is not None:
                files[f"{name}.png"] = encode(figure, "png")
                figure.set_layout_engine("none")  # the layout is found, and takes longest
                files[f"{name}.svg"] = encode(figure, "svg")
    return files


def average(readings: Sequence[Reading]) -> Figure:
    """Each branch averaged over its layers, with the pieces (Lite Transformer, Figure 3)."""
    columns = [(reading, i) for reading in readings for i in range(max(len(reading.of(side)) for side in SIDES))]
    length = max(len(labels) for reading in readings for labels in (reading.source, reading.written))
    size = 1.3 + 0.15 * min(length, MOST_LABELS)  # inches
    figure = Figure(figsize=(size * len(columns) + 0.6, size * len(SIDES)), layout="constrained")
    grid = figure.subplots(len(SIDES), len(columns), squeeze=False)
    scale = _Scale([maps.layers.mean(0) for reading in readings for maps in reading.maps])
    for row, side in zip(grid, SIDES, strict=True):
        for axes, (reading, i) in zip(row, columns, strict=True):
            if i >= len(reading.of(side)):
                axes.set_axis_off()
                continue
            maps = reading.of(side)[i]
            scale.draw(axes, maps.layers.mean(0))
            axes.set_title(_title(reading, maps))
            down, across = reading.labels(side)
            axes.set_yticks(*_ticks(down))
            axes.set_xticks(*_ticks(across), rotation=90)
            axes.tick_params(length=0)
    scale.bar(figure, "weight, mean over layers and heads")
    return figure


def layers(readings: Sequence[Reading]) -> Figure:
    """One row a branch, one column a layer, with each mean distance (Lite Transformer, Figure A1)."""
    rows = _rows(readings)
    depth = max(len(maps.layers) for _, maps in rows)
    figure = Figure(figsize=(1.2 + 1.3 * depth, 0.4 + 1.5 * len(rows)), layout="constrained")
    grid = figure.subplots(len(rows), depth, squeeze=False)
    scale = _Scale([maps.layers for _, maps in rows])
    for row, (reading, maps) in zip(grid, rows, strict=True):
        for i, axes in enumerate(row):
            if i >= len(maps.layers):
                axes.set_axis_off()
                continue
            scale.draw(axes, maps.layers[i])
            axes.set(xticks=[], yticks=[])
            axes.set_title(
                f"layer {i + 1}" + ("" if maps.side == CROSS else f": distance {distance(maps.layers[i]):.1f}")
            )
        row[0].set_ylabel(_title(reading, maps))
    scale.bar(figure, "weight, mean over heads")
    return figure


def windows(readings: Sequence[Reading]) -> Figure | None:
    """How far TaLK's windows reach around each step, mean over heads, cut at the sentence's ends; None without any."""
    rows = [(reading, maps, maps.windows) for reading, maps in _rows(readings) if maps.windows is not None]
    if not rows:
        return None
    depth = max(len(reach) for _, _, reach in rows)
    longest = max(reach.shape[1] for _, _, reach in rows)
    tall = 0.8 + 0.15 * min(longest, MOST_LABELS)
    figure = Figure(figsize=(1 + 1.6 * depth, tall * len(rows)), layout="constrained")
    grid = figure.subplots(len(rows), depth, squeeze=False)
    for row, (reading, maps, reach) in zip(grid, rows, strict=True):
        steps = range(reach.shape[1])
        for i, axes in enumerate(row):
            if i >= len(reach):
                axes.set_axis_off()
                continue
            starts = [max(t - left, 0) for t, left in zip(steps, reach[i, :, 0].tolist(), strict=True)]
            ends = [min(t + right, steps[-1]) for t, right in zip(steps, reach[i, :, 1].tolist(), strict=True)]
            # A step is one unit wide, its own included.
            widths = [end - start + 1 for start, end in zip(starts, ends, strict=True)]
            axes.barh(steps, widths, left=[start - 0.5 for start in starts], height=0.7, color="tab:blue", alpha=0.5)
            axes.plot(steps, steps, ".", color="black", markersize=3)
            axes.set(xlim=(-0.5, len(steps) - 0.5), ylim=(len(steps) - 0.4, -0.6), xticks=[], yticks=[])
            left, right = reach[i].mean(0).tolist()
            axes.set_title(f"layer {i + 1}: {left:.1f} left" + (f", {right:.1f} right" if right else ""))
        row[0].set_yticks(*_ticks(reading.labels(maps.side)[0]))
        row[0].tick_params(length=0)
        row[0].set_ylabel(_title(reading, maps))
    return figure


class _Scale:
    """One colour scale for all maps of a picture. It goes by the square root: the taps of a wide convolution are
    faint beside an attention that has made up its mind."""

    def __init__(self, shown: Sequence[Tensor]) -> None:
        self.norm = PowerNorm(0.5, 0, max(float(weights.max()) for weights in shown))

    def draw(self, axes: Axes, weights: Tensor) -> None:
        axes.imshow(weights.numpy(), cmap=COLOURS, norm=self.norm, interpolation="nearest", aspect="auto")

    def bar(self, figure: Figure, label: str) -> None:
        figure.colorbar(
            ScalarMappable(self.norm, COLOURS), ax=figure.axes, label=label, shrink=0.5, aspect=30, pad=0.01
        )


def _rows(readings: Sequence[Reading]) -> list[tuple[Reading, Maps]]:
    """Side by side what is to be compared."""
    return [(reading, maps) for side in SIDES for reading in readings for maps in reading.of(side)]


def _title(reading: Reading, maps: Maps) -> str:
    return f"{reading.model}\n{maps.side}" + ("" if maps.side == CROSS else f" {maps.branch}")


def _ticks(pieces: Sequence[str]) -> tuple[list[int], list[str]]:
    """Where to label an axis and with what: each piece, or every second, third, ... of a long sentence."""
    kept = range(0, len(pieces), math.ceil(len(pieces) / MOST_LABELS))
    return list(kept), [pieces[i] for i in kept]
