"""Where tables are printed, and what is said beside them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def console() -> Console:
    """Standard output, as wide as the terminal; piped text is cut by nobody."""
    from rich.console import Console

    output = Console(highlight=False)
    if not output.is_terminal:
        output.width = 1000
    return output


def say(text: str) -> None:
    """Tell how far the work is, on standard error."""
    print(text, file=sys.stderr, flush=True)


def show(table: Table) -> None:
    """Print a table whole: in a terminal that is too narrow its lines break, but no figure is cut."""
    output = console()
    output.width = max(output.width, output.measure(table, options=output.options.update(width=1000)).maximum)
    output.print(table)
