"""How much each layer suffers, alone, from pruning and from fewer bits (Han et al. 2015, section 4)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lite_nmt.compress.kmeans import MAX_BITS, MIN_BITS, Floats, make_book
from lite_nmt.compress.packing import pack
from lite_nmt.compress.pipeline import layer_of
from lite_nmt.compress.prune import prune
from lite_nmt.errors import LiteNmtError
from lite_nmt.manifest import write_whole

SPARSITIES = tuple(round(0.1 * i, 1) for i in range(1, 10))
BITS = tuple(range(MIN_BITS, MAX_BITS + 1))
JSON_FILE, PNG_FILE = "sensitivity.json", "sensitivity.png"

Measured = dict[str, float]
"""``nll``, nats a token; ``bleu`` or ROUGE where it was asked for; ``error`` where weights were changed: the squares of
what they were changed by, as a share of theirs."""
Measure = Callable[[Mapping[str, Floats]], Measured]


@dataclass(frozen=True)
class Layer:
    """One layer changed and the others whole, or all of them changed alike.

    Attributes:
        weights: of its matrices, a number.
        pruned: by share of zeros.
        quantised: by bits.
        bytes: of its packed codebooks and codes, by bits.
    """

    weights: int
    pruned: dict[float, Measured]
    quantised: dict[int, Measured]
    bytes: dict[int, int]


@dataclass(frozen=True)
class Curves:
    """A model's sensitivity: the model as it was, its layers by name, each changed alone, and all changed together."""

    whole: Measured
    layers: dict[str, Layer]
    together: Layer

    def save(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Write the curves as JSON, with how they were measured, and as a picture."""
        text = json.dumps({"settings": dict(settings), **asdict(self)}, indent=1)
        write_whole(folder / JSON_FILE, text.encode())
        write_whole(folder / PNG_FILE, draw(self))

    def check(self, weights: Mapping[str, Floats], names: Sequence[str]) -> None:
        """Raise LiteNmtError where the curves are of another model than the one of these weights."""
        sizes = {layer: sum(weights[name].size for name in members) for layer, members in by_layer(names).items()}
        if sizes != {name: layer.weights for name, layer in self.layers.items()}:
            raise LiteNmtError("the sensitivity curves are of another model; measure this one's with --sensitivity.")

    @classmethod
    def load(cls, path: Path) -> Curves:
        """Read what :meth:`save` wrote as JSON.

        Raises:
            LiteNmtError: it cannot be read, or is no such file.
        """
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
            layers = {name: _read_layer(layer) for name, layer in saved["layers"].items()}
            return cls(_read(saved["whole"]), layers, _read_layer(saved["together"]))
        except OSError as error:
            raise LiteNmtError(f"cannot read {path}: {error.strerror}.") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LiteNmtError(f"{path} holds no sensitivity curves ({error!r}); measure them again.") from error


def _read(found: Mapping[str, Any]) -> Measured:
    if not all(map(math.isfinite, found.values())):
        raise ValueError(f"{dict(found)} are not numbers")
    return {"nll": found["nll"], **found}


def _read_layer(layer: Mapping[str, Any]) -> Layer:
    def point(found: Mapping[str, Any]) -> Measured:
        return {"error": found["error"], **_read(found)}

    return Layer(
        weights=int(layer["weights"]),
        pruned={share: point(layer["pruned"][str(share)]) for share in SPARSITIES},
        quantised={bits: point(layer["quantised"][str(bits)]) for bits in BITS},
        bytes={bits: int(layer["bytes"][str(bits)]) for bits in BITS},
    )


def by_layer(names: Sequence[str]) -> dict[str, list[str]]:
    """The matrices of each layer."""
    layers: dict[str, list[str]] = {}
    for name in names:
        layers.setdefault(layer_of(name), []).append(name)
    return layers


def measure(
    weights: Mapping[str, Floats], names: Sequence[str], measured: Measure, init: str, say: Callable[[str], None]
) -> Curves:
    """Change one layer at a time, and then all of them, at every sparsity and every number of bits.

    Args:
        names: of the matrices.
        measured: the validation of weights.
        say: is told how far it is.
    """
    groups = by_layer(names)
    whole = measured(weights)

    def point(changed: Mapping[str, Floats]) -> Measured:
        moved = sum(float(((tensor - weights[name]) ** 2).sum()) for name, tensor in changed.items())
        squares = sum(float((weights[name] ** 2).sum()) for name in changed)
        return measured({**weights, **changed}) | {"error": moved / max(squares, 1e-30)}

    def changes(layers: Sequence[str]) -> Layer:
        own = [{name: weights[name] for name in groups[layer]} for layer in layers]
        pruned = {}
        for share in SPARSITIES:
            pruned[share] = point({name: t for tensors in own for name, t in prune(tensors, share)[0].items()})
        quantised, sizes = {}, {}
        for bits in BITS:
            books = [make_book({name: t}, bits, init) for tensors in own for name, t in tensors.items()]
            sizes[bits] = len(pack(books).content)
            quantised[bits] = point({name: t for book in books for name, t in book.weights().items()})
        return Layer(sum(t.size for tensors in own for t in tensors.values()), pruned, quantised, sizes)

    layers = {}
    for number, name in enumerate(groups, 1):
        layers[name] = changes([name])
        worst = max(p["nll"] for p in (*layers[name].pruned.values(), *layers[name].quantised.values()))
        say(f"{number} of {len(groups)}: {name} loses up to {worst - whole['nll']:.3f} nats a token")
    return Curves(whole, layers, changes(list(groups)))


def draw(curves: Curves) -> bytes:
    """Loss over sparsity and over bits, a line for each layer, a colour for each kind; PNG."""
    from matplotlib.figure import Figure

    from lite_nmt.figures import encode

    kinds = {name: ".".join(part for part in name.split(".")[2:]) or "embedding" for name in curves.layers}
    colours = {kind: f"C{i}" for i, kind in enumerate(dict.fromkeys(kinds.values()))}
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for name, layer in curves.layers.items():
        for axis, points in ((left, layer.pruned), (right, layer.quantised)):
            more = [max(found["nll"] - curves.whole["nll"], 1e-5) for found in points.values()]
            axis.plot(list(points), more, color=colours[kinds[name]], alpha=0.6, linewidth=1)
    for kind, colour in colours.items():
        left.plot([], [], color=colour, label=kind)
    left.set(xlabel="share of the layer's weights pruned", ylabel="loss added, nats a token", yscale="log")
    right.set(xlabel="bits of the layer's codebooks")
    for axis in (left, right):
        axis.grid(alpha=0.3)
    left.legend(fontsize="small")
    return encode(figure, "png")
