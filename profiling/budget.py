"""Mobile budgets: parse one, check a model against it, find the widest model that fits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from lite_nmt.config import Config, load_preset
from lite_nmt.errors import LiteNmtError
from lite_nmt.profiling.cost import EMBEDDING, OUTPUT, cost

MOBILE_MULT_ADDS = 500_000_000
MOBILE_PARAMETERS = 10_000_000
BUDGET_PRESET = "lite-transformer-mobile"
WIDTH_STEP = 8


def parse_budget(text: str, option: str = "--budget") -> int:
    """``100M`` or ``0.5G`` -> Mult-Adds."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?)([KMG]?)", text.strip(), re.IGNORECASE)
    value = Decimal(match[1]) * {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}[match[2].upper()] if match else 0
    if value < 1:
        raise LiteNmtError(f"{option} is {text!r}; give Mult-Adds as 100M, 300M or 500M.")
    return int(value)


def quantity(value: float) -> str:
    """Mult-Adds or parameters as people write them: 54.7M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if value >= size:
            return f"{value / size:.2f}".rstrip("0").rstrip(".") + unit
    return f"{value:g}"


def breaches(config: Config, mult_adds: int = MOBILE_MULT_ADDS, count: str = "paper") -> list[str]:
    """One sentence for each limit that a model exceeds, with its largest parts; empty where it fits."""
    total = cost(config)
    found = []
    if (spent := total.mult_adds(count)) > mult_adds:
        parts = largest({k: p.mult_adds for k, p in total.by_kind().items() if count == "full" or k != OUTPUT})
        found.append(
            f"the model needs {quantity(spent)} Mult-Adds ({count} count, 30 to 30 tokens), over the budget of "
            f"{quantity(mult_adds)}; the largest parts are {parts}"
        )
    if (held := total.parameters(count)) > MOBILE_PARAMETERS:
        parts = largest({k: p.parameters for k, p in total.by_kind().items() if count == "full" or k != EMBEDDING})
        found.append(
            f"the model holds {quantity(held)} parameters ({count} count), over the limit of "
            f"{quantity(MOBILE_PARAMETERS)}; the largest parts are {parts}"
        )
    return found


def largest(kinds: Mapping[str, int]) -> str:
    """The three largest kinds of part, in words."""
    ranked = sorted(((n, k) for k, n in kinds.items() if n), reverse=True)[:3]
    return ", ".join(f"{kind} {quantity(n)}" for n, kind in ranked)


def widest(budget: int, count: str = "paper", *overrides: Mapping[str, Any]) -> Config:
    """The widest Lite Transformer within ``budget`` Mult-Adds and 10M parameters, in steps of 8 channels."""
    load_preset(BUDGET_PRESET, *overrides)  # wrong keys and types are refused before anything is looked up in them
    for override in overrides:
        model = override.get("model", {})
        if "width" in model or any("ffn" in model.get(side, {}) for side in ("encoder", "decoder")):
            raise LiteNmtError(
                f"--budget alone chooses model.width and ffn; to set them by hand add --preset {BUDGET_PRESET}."
            )
    best, refusal = None, None
    for width in range(WIDTH_STEP, 4096, WIDTH_STEP):
        try:
            config = load_preset(BUDGET_PRESET, *overrides, flattened(width))
        except LiteNmtError as error:  # the number of heads may not divide this width, and yet the next
            refusal = error
            continue
        if breaches(config, budget, count):
            break
        best = config
    if best is None:
        raise refusal or LiteNmtError(
            f"no Lite Transformer fits {quantity(budget)} Mult-Adds; the narrowest has {WIDTH_STEP} channels."
        )
    return best


def flattened(width: int) -> dict[str, Any]:
    """A width, and the "flattened" feed-forward width that follows it (Lite Transformer, section 3)."""
    return {"model": {"width": width, "encoder": {"ffn": width}, "decoder": {"ffn": width}}}
