"""What programs that train models and compare them share: options, learning curves, tables, files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lite_nmt.train.metrics import read_metrics


def options(description: str | None, runs: str, models: Sequence[str]) -> argparse.ArgumentParser:
    """A parser that knows the options of all these programs.

    Args:
        runs: where runs lie unless told otherwise, under ``runs/``.
        models: which there are.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("runs", runs))
    parser.add_argument("--models", nargs="+", choices=models, default=models)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="laid over every preset")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--machine", help="what to call the machine, if it is not this one's plain description")
    parser.add_argument("--output", type=Path, help="Markdown file; figures and picture go beside it")
    return parser


def draw(
    runs: Mapping[str, Path], key: str, label: str, path: Path, scale: Callable[[float], float] = lambda value: value
) -> None:
    """One of the validation's figures over updates: who has converged, and who was still on the way.

    Args:
        runs: folders by the names that the legend gives them.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for name, run in runs.items():
        points = [(line["step"], scale(line[key])) for line in read_metrics(run) if key in line]
        axis.plot(*zip(*points, strict=True), marker=".", label=name)
    axis.set_xlabel("updates")
    axis.set_ylabel(label)
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, the first column to the left, all others to the right."""
    cells = [columns, *rows]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return [lines[0], "|---|" + "--:|" * (len(columns) - 1), *lines[1:]]


def publish(output: Path, text: str, rows: Sequence[dict[str, Any]]) -> None:
    """Write a report, and its figures beside it as JSON."""
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text + "\n", encoding="utf-8")
    output.with_suffix(".json").write_text(json.dumps(list(rows), indent=1) + "\n", encoding="utf-8")
