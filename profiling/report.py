"""What a model costs, as tables and as plain data."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from lite_nmt.profiling.budget import MOBILE_MULT_ADDS, MOBILE_PARAMETERS, quantity
from lite_nmt.profiling.cost import Cost, Part

COUNTS = ("paper", "full")
LIMITS = {"100M Mult-Adds": 100_000_000, "500M Mult-Adds": MOBILE_MULT_ADDS}


def limits(total: Cost, count: str) -> dict[str, bool]:
    """Whether each mobile limit holds (Lite Transformer, section 1)."""
    held = {name: total.mult_adds(count) <= limit for name, limit in LIMITS.items()}
    return {**held, "10M parameters": total.parameters(count) <= MOBILE_PARAMETERS}


def as_json(total: Cost) -> dict[str, Any]:
    """Both counts, by kind and by module; activations in bytes."""
    return {
        "mult_adds": {count: total.mult_adds(count) for count in COUNTS},
        "parameters": {count: total.parameters(count) for count in COUNTS},
        "activation_bytes": {count: total.activations(count) for count in COUNTS},
        "limits": {count: limits(total, count) for count in COUNTS},
        "kinds": {kind: _figures(part) for kind, part in total.by_kind().items()},
        "modules": [{"name": part.name, "kind": part.kind, **_figures(part)} for part in total.parts],
        "uncounted": list(total.uncounted),
    }


def _figures(part: Part) -> dict[str, int]:
    return {"mult_adds": part.mult_adds, "parameters": part.parameters, "activation_bytes": part.activations}


def render(total: Cost, modules: bool = True) -> RenderableType:
    """By kind, in both counts, against the limits and, with ``modules``, by module."""
    kinds = _table("kind")
    whole = total.mult_adds("full") or 1
    for kind, part in sorted(total.by_kind().items(), key=lambda item: -item[1].mult_adds):
        kinds.add_row(kind, *_cells(part), f"{part.mult_adds / whole:.0%}" if part.mult_adds else "")
    kinds.add_section()
    for count in COUNTS:
        part = Part(count, "", total.mult_adds(count), total.parameters(count), total.activations(count))
        kinds.add_row(f"[bold]{count}", *_cells(part), f"{part.mult_adds / whole:.0%}", style="bold")
    within = Table(box=None, pad_edge=False, header_style="bold")
    within.add_column("within")
    for count in COUNTS:
        within.add_column(count, justify="right")
    for name in limits(total, "paper"):
        within.add_row(name, *("yes" if limits(total, count)[name] else "no" for count in COUNTS))
    blocks: list[RenderableType] = [kinds, "", within]
    if modules:
        table = _table("module")
        for part in total.parts:
            if part.mult_adds or part.kind != "norm":
                share = f"{part.mult_adds / whole:.1%}" if part.mult_adds else ""
                table.add_row(part.name or "(the model itself)", *_cells(part), share)
        blocks += ["", table]
    if total.uncounted:
        blocks += ["", "Not counted:", *(f"  {what}" for what in total.uncounted)]
    return Group(*blocks)


def _table(first: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first, no_wrap=True)
    for name in ("Mult-Adds", "parameters", "activations", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _cells(part: Part) -> tuple[str, str, str]:
    return (
        quantity(part.mult_adds) if part.mult_adds else "",
        quantity(part.parameters) if part.parameters else "",
        f"{quantity(part.activations)}B" if part.activations else "",
    )
