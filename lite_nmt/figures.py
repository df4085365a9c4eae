"""Pictures as files: PNG and SVG, the same figure the same bytes."""

from __future__ import annotations

import io
from typing import Any

import matplotlib
from matplotlib.figure import Figure

STYLE: Any = {  # Any, because releases of matplotlib type the keys differently
    "font.size": 9,
    "axes.titlesize": 9,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "lite-nmt",
}


def encode(figure: Figure, kind: str) -> bytes:
    """A whole file's content, ``png`` or ``svg``."""
    content = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(content, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return content.getvalue()
