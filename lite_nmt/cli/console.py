"""Where tables are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    """Standard output, as wide as the terminal; piped text is cut by nobody."""
    from rich.console import Console

    output = Console(highlight=False)
    if not output.is_terminal:
        output.width = 1000
    return output
