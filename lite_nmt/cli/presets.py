"""``lite-nmt presets``: what comes with the package, and what each costs."""

from __future__ import annotations

import argparse
from collections.abc import Container
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lite_nmt.config import Config


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser("presets", help="list the presets and what they cost, or show one in full")
    parser.add_argument("name", nargs="?", help="print this preset's whole configuration, ready for --config")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the list, or one preset."""
    import json

    from lite_nmt.config import load_preset, preset_names

    if args.name:
        config = load_preset(args.name)
        if args.json:
            print(json.dumps({**describe(args.name, config), "config": config.to_dict()}, indent=2))
        else:
            print(as_toml(args.name, config), end="")
        return 0
    rows = [describe(name, load_preset(name)) for name in preset_names()]
    if args.json:
        print(json.dumps(rows, indent=2))
    else:
        _print_table(rows)
    return 0


def describe(name: str, config: Config) -> dict[str, Any]:
    """A preset's figures, under both counts, as plain data."""
    from lite_nmt.profiling.budget import MOBILE_MULT_ADDS, MOBILE_PARAMETERS
    from lite_nmt.profiling.cost import cost

    total = cost(config)
    mult_adds, parameters = total.mult_adds(), total.parameters()
    return {
        "name": name,
        "description": config.description,
        "mult_adds": {count: total.mult_adds(count) for count in ("paper", "full")},
        "parameters": {count: total.parameters(count) for count in ("paper", "full")},
        "fits": {
            "100M": mult_adds <= 100_000_000,
            "500M": mult_adds <= MOBILE_MULT_ADDS,
            "10M parameters": parameters <= MOBILE_PARAMETERS,
        },
        "by_kind": {k: {"mult_adds": p.mult_adds, "parameters": p.parameters} for k, p in total.by_kind().items()},
    }


def as_toml(name: str, config: Config) -> str:
    """The whole configuration, defaults and all; the figures are comments, and what nothing reads is left out, so that
    --config takes the text."""
    from lite_nmt.idle import idle
    from lite_nmt.profiling.budget import quantity

    row = describe(name, config)
    tokens = "30 tokens" if config.task == "lm" else "30 to 30 tokens"
    lines = [f"# {name}: Mult-Adds for {tokens}, and parameters, paper count (full count)"]
    for label in ("mult_adds", "parameters"):
        paper, full = row[label]["paper"], row[label]["full"]
        lines.append(f"# {label:20}{quantity(paper):>9} ({quantity(full)})")
    for kind, spent in row["by_kind"].items():
        lines.append(f"# {kind:20}{quantity(spent['mult_adds']):>9} {quantity(spent['parameters']):>9}")
    table = config.to_dict()
    return "\n".join(lines + _table_lines("", table, idle(config, table))) + "\n"


def _table_lines(where: str, table: dict[str, Any], left_out: Container[str]) -> list[str]:
    import json

    # A JSON number, string, boolean or list of them is TOML too.
    plain = {k: v for k, v in table.items() if not isinstance(v, dict) and f"{where}.{k}" not in left_out}
    lines = [f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in plain.items()]
    if where and lines:
        lines = ["", f"[{where}]", *lines]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += _table_lines(f"{where}.{key}" if where else key, value, left_out)
    return lines


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from lite_nmt.cli.console import console
    from lite_nmt.profiling.budget import quantity

    table = Table(box=None, pad_edge=False, header_style="bold", caption_justify="left")
    table.caption = (
        "Mult-Adds for 30 to 30 tokens, of language models for 30, and parameters: paper count, then full "
        "(docs/counting.md)."
    )
    table.add_column("preset", no_wrap=True)
    for name in ("Mult-Adds", "full", "params", "full"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("within", no_wrap=True)
    table.add_column("description")
    for row in rows:
        figures = [quantity(row[label][count]) for label in ("mult_adds", "parameters") for count in ("paper", "full")]
        fits = row["fits"]
        budget = "100M" if fits["100M"] else "500M" if fits["500M"] else "-"
        within = f"{budget:4} {'10M' if fits['10M parameters'] else '-'}"
        table.add_row(row["name"], *figures, within, row["description"])
    console().print(table)
