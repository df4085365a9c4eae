"""How far back each head of a language model has learned to look (Sukhbaatar et al. 2019)."""

from __future__ import annotations

import matplotlib
from matplotlib.figure import Figure

from lite_nmt.figures import STYLE, encode
from lite_nmt.models.language import LanguageModel


def spans(model: LanguageModel) -> list[list[float]]:
    """S z of each head, in steps, layer by layer; beyond it a head's mask falls to zero within ``ramp`` steps."""
    return [(mixer.z.detach() * mixer.span).tolist() for mixer in model.spans()]


def pictures(found: list[list[float]]) -> dict[str, bytes]:
    """``spans`` as PNG and SVG: a bar a head, layers side by side."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(1.5 + 0.18 * sum(map(len, found)), 3), layout="constrained")
        axes, left = figure.subplots(), 0
        middles = []
        for heads in found:
            axes.bar(range(left, left + len(heads)), heads, color="tab:blue")
            middles.append(left + (len(heads) - 1) / 2)
            left += len(heads) + 1
        axes.set_xticks(middles, [str(i) for i in range(1, len(found) + 1)])
        axes.set(xlabel="heads, layer by layer", ylabel="span, steps")
        axes.grid(axis="y", alpha=0.3)
        return {f"spans.{kind}": encode(figure, kind) for kind in ("png", "svg")}
