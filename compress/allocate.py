"""Bits and sparsity of each layer, so that the whole meets a size or a loss."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from lite_nmt.compress.packing import squeeze_file
from lite_nmt.compress.pipeline import CompressConfig, compress
from lite_nmt.compress.sensitivity import Curves, Layer
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.checkpoint import MANIFEST, Checkpoint

ROUNDS, CLOSE = 6, 0.005  # of correcting estimated sizes by real ones; the share of a size that may be left over
SMALL = 0.25  # errors up to which the loss is taken to grow in proportion
MARGIN = 500  # bytes by which a manifest grows when it lists compressed files


@dataclass(frozen=True)
class Choice:
    """Bits and sparsity of one layer; what they are expected to cost."""

    bits: int
    prune: float
    loss: float  # nats a token more
    bytes: float


def added(curves: Curves, kind: str) -> dict[str, dict[float, float]]:
    """Nats a token that each layer adds at each setting of one kind, ``quantised`` or ``pruned``.

    What a layer adds alone is mostly less than the scatter of the measurement. Taken at its word, half the layers cost
    nothing at 2 bits, and together they cost much. So no point costs less than its squared error says, to which small
    losses are proportional: by the layer's own slope, and at least by that of half the layers.
    What all layers together add beyond that, they share evenly.
    """
    slopes = {name: slope(curves, layer) for name, layer in curves.layers.items()}
    least = statistics.median(slopes.values())
    alone: dict[str, dict[float, float]] = {}
    for name, layer in curves.layers.items():
        steep = max(slopes[name], least)
        points = getattr(layer, kind).items()
        alone[name] = {key: max(p["nll"] - curves.whole["nll"], steep * p["error"], 0.0) for key, p in points}
    for key, point in getattr(curves.together, kind).items():
        more = point["nll"] - curves.whole["nll"] - sum(losses[key] for losses in alone.values())
        for losses in alone.values():
            losses[key] += max(more, 0.0) / len(alone)
    return alone


def slope(curves: Curves, layer: Layer) -> float:
    """Nats a token by squared error, least squares over the layer's smaller changes."""
    every = (*layer.quantised.values(), *layer.pruned.values())
    points = [(p["error"], p["nll"] - curves.whole["nll"]) for p in every if p["error"] <= SMALL]
    return sum(error * loss for error, loss in points) / max(sum(error**2 for error, _ in points), 1e-30)


def choices(curves: Curves) -> dict[str, list[Choice]]:
    """Every pair of bits and sparsity of each layer. Their losses are taken to add up, and zeros to cost what their
    positions do."""
    quantised, pruned = added(curves, "quantised"), added(curves, "pruned")
    found: dict[str, list[Choice]] = {}
    for name, layer in curves.layers.items():
        pairs = itertools.product(layer.quantised, {0.0: 0.0, **pruned[name]}.items())
        found[name] = [
            Choice(bits, share, quantised[name][bits] + loss, _bytes(layer, bits, share))
            for bits, (share, loss) in pairs
        ]
    return found


def _bytes(layer: Layer, bits: int, share: float) -> float:
    entropy = sum(-p * math.log2(p) for p in (share, 1 - share) if p)
    return layer.bytes[bits] * (1 - share) + layer.weights * entropy / 8


def allocate(curves: Curves, size: float | None = None, loss: float | None = None) -> dict[str, Choice]:
    """Bits and sparsity of each layer: the least loss within a size, or the least size within a loss.

    All layers trade at one price of a byte in nats (a Lagrange multiplier), found by bisection.

    Args:
        size: of all layers' packed weights, in bytes.
        loss: by which the validation loss may grow, in nats a token, before any fine-tuning. One of the two is given.

    Raises:
        LiteNmtError: no choice is small or good enough.
    """
    options = choices(curves)

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
    return at(good) if size is None else _spend(at(good), options, size)


def _spend(chosen: dict[str, Choice], options: Mapping[str, list[Choice]], size: float) -> dict[str, Choice]:
    """What is left of a size, spent on one layer after another: one price alone leaves as much as a large layer's
    next step takes."""
    while True:
        left = size - sum(c.bytes for c in chosen.values())
        steps = [
            ((old.loss - new.loss) / max(new.bytes - old.bytes, 1), name, new)
            for name, old in chosen.items()
            for new in options[name]
            if new.loss < old.loss and new.bytes - old.bytes <= left
        ]
        if not steps:
            return chosen
        _, name, new = max(steps, key=lambda step: step[0])
        chosen = {**chosen, name: new}


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
    largest, smallest = 0, math.inf
    for _ in range(ROUNDS):
        chosen = allocate(curves, size=aim)
        real = beside + len(compress(saved.model(), apply(chosen, config)).content)
        say(f"an allocation gives {real:,} bytes")
        smallest = min(smallest, real)
        if real <= size:
            settled = chosen == best or size - real < CLOSE * size
            if real > largest:
                best, largest = chosen, real
            if settled:
                break
        aim += (1 - CLOSE / 2) * size - real  # a little less, since an allocation may not change with so small a step
    if not best:
        raise LiteNmtError(f"no allocation was found within {size:,} bytes; the smallest takes {smallest:,}.")
    return best
