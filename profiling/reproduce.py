"""What Lite Transformer (Wu et al., 2020) prints of its models' size, beside what our counting gives.

Mult-Adds and parameters of Tables 1 to 5, and the parameters of Transformer base in Figure 5. Ours are the ``paper``
count of a preset, or of the configuration named in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Any

from lite_nmt.config import load_preset
from lite_nmt.profiling.budget import quantity
from lite_nmt.profiling.cost import Cost, cost
from lite_nmt.profiling.evolved import evolved_transformer

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

TOLERANCE = 0.02

TABLE_1 = "Table 1: IWSLT'14 De-En"
TABLE_2 = "Table 2: WMT'14 En-De and En-Fr"
TABLE_3 = "Table 3: WMT'14 En-De, beside the Evolved Transformer"
TABLE_4 = "Table 4: CNN-DailyMail, source lengths with 60 target tokens"
TABLE_5 = "Table 5: WikiText-103, decoder only"
FIGURE_5 = "Figure 5: the model that compression starts from"

TRANSFORMER, LIGHTCONV, LITE = "Transformer", "LightConv", "Lite Transformer"

IWSLT = (  # model, preset, printed parameters, printed Mult-Adds
    (TRANSFORMER, "iwslt-transformer-63m", "2.8M", "63M"),
    (LIGHTCONV, "iwslt-lightconv-52m", "2.5M", "52M"),
    (LITE, "iwslt-lite-transformer-54m", "2.8M", "54M"),
    (TRANSFORMER, "iwslt-transformer-139m", "5.7M", "139M"),
    (LIGHTCONV, "iwslt-lightconv-115m", "5.1M", "115M"),
    (LITE, "iwslt-lite-transformer-119m", "5.4M", "119M"),
    (TRANSFORMER, "iwslt-transformer-215m", "8.5M", "215M"),
    (LIGHTCONV, "iwslt-lightconv-204m", "8.4M", "204M"),
    (LITE, "iwslt-lite-transformer-209m", "8.9M", "209M"),
)
WMT = (
    (TRANSFORMER, "wmt-transformer-87m", "2.8M", "87M"),
    (LITE, "wmt-lite-transformer-90m", "2.9M", "90M"),
    (TRANSFORMER, "wmt-transformer-338m", "11.1M", "338M"),
    (LITE, "wmt-lite-transformer-360m", "11.7M", "360M"),
    (TRANSFORMER, "wmt-transformer-527m", "17.3M", "527M"),
    (LITE, "wmt-lite-transformer-527m", "17.3M", "527M"),
)
EVOLVED = ((128, "3.0M", "94M"), (256, "11.8M", "364M"))  # width, printed parameters, printed Mult-Adds
CNN_DAILYMAIL = (  # model, preset, printed Mult-Adds by source tokens
    (TRANSFORMER, "cnndm-transformer", {30: "2.0G", 100: "3.6G", 1000: "29.9G"}),
    (LITE, "cnndm-lite-transformer", {30: "0.8G", 100: "1.5G", 1000: "12.5G"}),
)
WIKITEXT_103 = (  # model, preset, printed parameters, printed Mult-Adds by tokens
    ("Adaptive Inputs", "wikitext103-transformer-512", "37.8M", {100: "3.9G", 1000: "50.3G"}),
    (LITE, "wikitext103-lite-transformer", "37.2M", {100: "3.9G", 1000: "48.7G"}),
)


@dataclass(frozen=True)
class Row:
    """One printed figure, and ours."""

    table: str
    model: str
    configuration: str  # a preset, or the shape where there is none
    what: str
    printed: str  # as the paper writes it: 2.8M, 29.9G
    ours: int

    @property
    def deviation(self) -> float:
        """By how much ours is more than the printed figure, in percent of it."""
        printed, _ = _read(self.printed)
        return 100 * (self.ours - printed) / printed

    @property
    def passes(self) -> bool:
        """Within 2% of the printed figure, or equal to it to the printed digit."""
        printed, half_digit = _read(self.printed)
        return abs(self.ours - printed) <= max(TOLERANCE * printed, half_digit)


def _read(text: str) -> tuple[float, float]:
    """A printed figure, and half of its last digit."""
    digits, unit = text[:-1], {"M": 1e6, "G": 1e9}[text[-1]]
    return float(digits) * unit, unit * 10.0 ** -len(digits.partition(".")[2]) / 2


def rows() -> tuple[Row, ...]:
    """Every printed figure, table by table; a model that two tables print is in both."""
    return tuple(_rows())


def _rows() -> Iterator[Row]:
    for table, printed in ((TABLE_1, IWSLT), (TABLE_2, WMT), (TABLE_3, WMT[:4])):
        for model, preset, parameters, mult_adds in printed:
            yield from _pair(table, model, preset, cost(load_preset(preset)), parameters, mult_adds)
    for width, parameters, mult_adds in EVOLVED:
        shape = f"3 + 4 cells of {width} (inferred)"
        yield from _pair(TABLE_3, "Evolved Transformer", shape, evolved_transformer(width), parameters, mult_adds)
    for model, preset, lengths in CNN_DAILYMAIL:
        totals = {length: cost(load_preset(preset), length, 60) for length in lengths}
        yield from _by_length(TABLE_4, model, preset, totals, lengths)
    for model, preset, parameters, lengths in WIKITEXT_103:
        totals = {length: cost(load_preset(preset), target_length=length) for length in lengths}
        yield Row(TABLE_5, model, preset, "parameters", parameters, totals[100].parameters())
        yield from _by_length(TABLE_5, model, preset, totals, lengths)
    base = "wmt-transformer-base"
    yield Row(FIGURE_5, "Transformer base", base, "parameters", "44.1M", cost(load_preset(base)).parameters())


def _pair(table: str, model: str, shape: str, total: Cost, parameters: str, mult_adds: str) -> Iterator[Row]:
    yield Row(table, model, shape, "parameters", parameters, total.parameters())
    yield Row(table, model, shape, "Mult-Adds", mult_adds, total.mult_adds())


def _by_length(
    table: str, model: str, shape: str, totals: Mapping[int, Cost], printed: Mapping[int, str]
) -> Iterator[Row]:
    for length, total in totals.items():
        yield Row(table, model, shape, f"Mult-Adds at {length:,} tokens", printed[length], total.mult_adds())


def as_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows as plain data; the deviation is in percent."""
    return [{**asdict(row), "deviation": row.deviation, "passes": row.passes} for row in rows]


def render(rows: Iterable[Row]) -> Group:
    """Printed and ours side by side, one block a table, and how many pass; for a ``rich`` console."""
    from rich.console import Group

    rows = tuple(rows)
    blocks = (_block(table, block) for table, block in groupby(rows, lambda row: row.table))
    passed = sum(row.passes for row in rows)
    said = f"{passed} of {len(rows)} figures are within {TOLERANCE:.0%} of the printed one, or equal to its last digit."
    return Group(*blocks, said)


def _block(title: str, rows: Iterable[Row]) -> Table:
    from rich.table import Table

    block = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    block.add_column("model, configuration")
    block.add_column("")
    for name in ("printed", "ours", "deviation"):
        block.add_column(name, justify="right", no_wrap=True)
    block.add_column("", no_wrap=True)
    for (model, configuration), figures in groupby(rows, lambda row: (row.model, row.configuration)):
        for name, row in zip_longest((model, configuration), figures, fillvalue=""):
            block.add_row(name, *_cells(row))
    block.add_row()
    return block


def _cells(row: Row | str) -> tuple[str, ...]:
    if isinstance(row, str):
        return ()
    deviation = f"{round(row.deviation, 1) + 0.0:+.1f}%"  # never -0.0
    verdict = "pass" if row.passes else "[bold red]FAIL[/]"
    return row.what, row.printed, quantity(row.ours), deviation, verdict
