"""Bits and sparsity of each layer, so that the whole meets a size or a loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from lite_nmt.compress.packing import squeeze_file
from lite_nmt.compress.pipeline import CompressConfig, compress
from lite_nmt.compress.sensitivity import Curves, Layer
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.checkpoint import MANIFEST, Checkpoint

ROUNDS, CLOSE = 6, 0.005  # of correcting estimated sizes by real ones; the share of a size that may be left over
MARGIN = 500  # bytes by which a manifest grows when it lists compressed files


@dataclass(frozen=True)
class Choice:
    """Bits and sparsity of one layer; what they are expected to cost."""

    bits: int
    prune: float
    loss: float  # nats a token more
    bytes: float


def choices(curves: Curves, layer: Layer) -> list[Choice]:
    """Every pair of bits and sparsity. Their losses are taken to add up, and zeros to cost what their positions do."""
    found = []
    for bits, quantised in layer.quantised.items():
        for share, pruned in {0.0: curves.whole, **layer.pruned}.items():
            loss = sum(max(0.0, m["nll"] - curves.whole["nll"]) for m in (quantised, pruned))
            entropy = sum(-p * math.log2(p) for p in (share, 1 - share) if p)
            found.append(Choice(bits, share, loss, layer.bytes[bits] * (1 - share) + layer.weights * entropy / 8))
    return found


def allocate(curves: Curves, size: float | None = None, loss: float | None = None) -> dict[str, Choice]:
    """Bits and sparsity of each layer: the least loss within a size, or the least size within a loss.

    All layers trade at one price of a byte in nats (a Lagrange multiplier), found by bisection.

    Args:
        size: of all layers' packed weights, in bytes.
        loss: by which the validation loss may grow, in nats a token, before any fine-tuning. One of the two is given.

    Raises:
        LiteNmtError: no choice is small or good enough.
    """
    options = {name: choices(curves, layer) for name, layer in curves.layers.items()}

    def at(price: float) -> dict[str, Choice]:
        return {name: min(found, key=lambda c: (c.loss + price * c.bytes, c.bytes)) for name, found in options.items()}

    def fits(chosen: Mapping[str, Choice]) -> bool:
        if size is not None:
            return sum(c.bytes for c in chosen.values()) <= size
        return loss is None or sum(c.loss for c in chosen.values()) <= loss

    # By size, a price must be high enough; by loss, low enough.
    low, high = 1e-15, 1e3
    good, bad = (high, low) if size is not None else (low, high)
    if not fits(at(good)):
        if size is not None:
            over = sum(c.bytes for c in at(good).values()) - size
            raise LiteNmtError(f"no allocation is small enough: the smallest takes {over:,.0f} bytes too many.")
        least = sum(c.loss for c in at(good).values())
        raise LiteNmtError(f"no allocation adds as little as {loss:g} nats a token; the best adds {least:.2g}.")
    if fits(at(bad)):
        return at(bad)
    for _ in range(100):
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if fits(at(middle)) else (good, middle)
    return at(good)


def apply(chosen: Mapping[str, Choice], config: CompressConfig) -> CompressConfig:
    """The settings with each layer's own bits and sparsity."""
    bits = {layer: choice.bits for layer, choice in chosen.items()}
    return replace(config, bits_of=bits, prune_of={layer: choice.prune for layer, choice in chosen.items()})


def within(
    saved: Checkpoint, curves: Curves, config: CompressConfig, size: int, say: Callable[[str], None]
) -> dict[str, Choice]:
    """The least loss with which a checkpoint, vocabulary and all, packs into a size: the curves' estimate, corrected
    by what packing really gives.

    Args:
        config: the other settings.
        size: of the folder, in bytes.
        say: is told what was tried.

    Raises:
        LiteNmtError: no allocation is small enough.
    """
    beside = sum(len(squeeze_file(content)) for content in saved.vocabulary.files().values())
    beside += (saved.folder / MANIFEST).stat().st_size + MARGIN
    aim: float = size - beside
    best: dict[str, Choice] = {}
    smallest = math.inf
    for _ in range(ROUNDS):
        chosen = allocate(curves, size=aim)
        real = beside + len(compress(saved.model(), apply(chosen, config)).content)
        say(f"an allocation gives {real:,} bytes")
        smallest = min(smallest, real)
        settled = chosen == best or abs(size - real) < CLOSE * size
        if real <= size:
            best = chosen
            if settled:
                break
        aim += size - real
    if not best:
        raise LiteNmtError(f"no allocation was found within {size:,} bytes; the smallest takes {smallest:,}.")
    return best
