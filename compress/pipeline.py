"""Prune, fine-tune, quantise, fine-tune, pack: the stages of Deep Compression (Han, Mao and Dally 2015) in order."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lite_nmt.compress.finetune import FineTuner
from lite_nmt.compress.int8 import Plain, Rows, quantize_rows
from lite_nmt.compress.kmeans import INITS, MAX_BITS, MIN_BITS, make_book
from lite_nmt.compress.packing import Packed, Stored, pack, unpack
from lite_nmt.compress.prune import matrices, prune
from lite_nmt.compress.weights import Weights, numbers
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.checkpoint import restore
from lite_nmt.models.translation import TranslationModel

SCOPES, SHARES = ("layer", "global"), ("tensor", "layer")
VECTOR_BITS = 8  # of the one codebook that biases, norms and taps share


@dataclass(frozen=True)
class CompressConfig:
    """What to make of a model.

    Attributes:
        bits: of a weight's code, 2 to 8. Biases, norms and LightConv's taps share one codebook of 8 bits.
        prune: share of the weights to be zero, at least 0 and below 1.
        bits_of, prune_of: other values for the tensors whose names begin so ("encoder.0", "target"); the longest
            name decides.
        scope: whether ``prune`` holds for each tensor, or for all together.
        share: which weights share a codebook: those of a tensor, or those of a layer that have the same bits.
        init: where k-means starts: ``linear``, ``density`` or ``random``.
        int8: plain int8 by rows in place of codebooks, to be computed in int8; biases, norms and taps stay float32.
    """

    bits: int = 8
    prune: float = 0.0
    bits_of: Mapping[str, int] = field(default_factory=dict)
    prune_of: Mapping[str, float] = field(default_factory=dict)
    scope: str = "layer"
    share: str = "tensor"
    init: str = "linear"
    int8: bool = False

    def __post_init__(self) -> None:
        if self.int8 and (self.bits_of or (self.bits, self.share, self.init) != (8, "tensor", "linear")):
            raise LiteNmtError("int8 has one grid, which follows from the weights; leave out bits, share and init.")
        for name, bits in {"": self.bits, **self.bits_of}.items():
            if not MIN_BITS <= bits <= MAX_BITS:
                raise LiteNmtError(f"bits{_of(name)} is {bits}; a codebook takes {MIN_BITS} to {MAX_BITS}.")
        for name, sparsity in {"": self.prune, **self.prune_of}.items():
            if not 0 <= sparsity < 1:
                raise LiteNmtError(f"prune{_of(name)} is {sparsity:g}; it must be at least 0 and below 1.")
        for what, value, known in (
            ("scope", self.scope, SCOPES),
            ("share", self.share, SHARES),
            ("init", self.init, INITS),
        ):
            if value not in known:
                raise LiteNmtError(f"{what} is {value!r}; it must be one of {', '.join(known)}.")


def _of(name: str) -> str:
    return f" of {name}" if name else ""


@dataclass(frozen=True)
class Stage:
    """A model on its way.

    Attributes:
        name: ``as trained``, ``pruned``, ``codebooks`` or ``int8``, all but the first also with ``, fine-tuned``;
            ``packed``.
        weights: by name, float32.
        bits: of each tensor's weights.
        int8: whether it is to be computed in int8, where activations are rounded too.
    """

    name: str
    weights: Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]
    bits: Mapping[str, int]
    int8: bool = False

    def zeros(self) -> float:
        """Share of the weights that are zero, embeddings included."""
        return sum(int((w == 0).sum()) for w in self.weights.values()) / sum(w.size for w in self.weights.values())

    def paper_bytes(self) -> int:
        """Bytes as Lite Transformer's Figure 5 counts them: bits of the weights that are not zero; no embedding table,
        no codebook, no positions, no vocabulary. The same parameters as in the ``paper`` count of costs."""
        counted = {name: w for name, w in self.weights.items() if name not in ("source.weight", "target.weight")}
        return sum(int((w != 0).sum()) * self.bits[name] for name, w in counted.items()) // 8


def layer_of(tensor: str) -> str:
    """The layer that a matrix belongs to: ``decoder.0.cross`` of ``decoder.0.cross.kv.weight``."""
    return tensor.removesuffix(".weight").rpartition(".")[0] or tensor.removesuffix(".weight")


def settle(names: Sequence[str], default: float, chosen: Mapping[str, float]) -> dict[str, float]:
    """The value for each tensor: that of the longest chosen name that it begins with, or the default.

    Raises:
        LiteNmtError: a chosen name begins none.
    """

    def within(name: str, prefix: str) -> bool:
        return name == prefix or name.startswith(prefix + ".")

    for prefix in chosen:
        if not any(within(name, prefix) for name in names):
            known = sorted({name[:end] for name in names for end in range(len(name)) if name[end] == "."})
            nearest = difflib.get_close_matches(prefix, known, n=1, cutoff=0)[0]
            raise LiteNmtError(f"the model has no layer {prefix}; the nearest is {nearest}.")
    fitting = {name: [prefix for prefix in chosen if within(name, prefix)] for name in names}
    return {name: chosen[max(found, key=len)] if found else default for name, found in fitting.items()}


def compress(
    model: TranslationModel,
    config: CompressConfig,
    tuner: FineTuner | None = None,
    watch: Callable[[Stage], None] = lambda stage: None,
) -> Packed:
    """Compress a model; it is left with exactly the weights that the packed file holds.

    Args:
        tuner: fine-tunes after pruning, with zeros kept, and after quantisation, with codes kept or rounded anew.
        watch: is shown each stage as it is reached.

    Raises:
        LiteNmtError: the weights hold NaN, or the settings name a layer that there is not.
    """
    weights = numbers(model)
    for name, tensor in weights.items():
        if not np.isfinite(tensor).all():
            raise LiteNmtError(f"{name} holds NaN or infinite weights; compress another checkpoint.")
    names = matrices(model)
    sparsity = settle(names, config.prune, config.prune_of)
    bits = {name: int(value) for name, value in settle(names, config.bits, config.bits_of).items()}
    whole = dict.fromkeys(weights, 32)
    watch(Stage("as trained", dict(weights), whole))

    if pruned := [name for name in names if sparsity[name]]:
        for together in _grouped({name: sparsity[name] if config.scope == "global" else name for name in pruned}):
            weights |= prune({name: weights[name] for name in together}, sparsity[together[0]])[0]
        watch(Stage("pruned", dict(weights), whole))
        if tuner:
            weights = tuner.keeping_zeros(weights, pruned)
            watch(Stage("pruned, fine-tuned", dict(weights), whole))

    if config.int8:
        return _finish(model, _int8(weights, names, tuner, watch), whole | dict.fromkeys(names, 8), watch, int8=True)

    sharing = {name: (layer_of(name) if config.share == "layer" else name, bits[name]) for name in names}
    books = [
        make_book({name: weights[name] for name in together}, bits[together[0]], config.init)
        for together in _grouped(sharing)
    ]
    for book in books:
        weights |= book.weights()
    watch(Stage("codebooks", dict(weights), whole | bits))
    if tuner:
        weights, books = tuner.sharing(weights, books)
        watch(Stage("codebooks, fine-tuned", dict(weights), whole | bits))

    vectors = {name: tensor for name, tensor in weights.items() if name not in bits}
    books.append(make_book(vectors, VECTOR_BITS, config.init))
    return _finish(model, books, dict.fromkeys(weights, VECTOR_BITS) | bits, watch)


def _int8(
    weights: Weights, names: Sequence[str], tuner: FineTuner | None, watch: Callable[[Stage], None]
) -> list[Rows | Plain]:
    bits = dict.fromkeys(weights, 32) | dict.fromkeys(names, 8)

    def put(weights: Weights) -> list[Rows | Plain]:
        vectors = {name: tensor for name, tensor in weights.items() if name not in names}
        return [*(Rows(name, *quantize_rows(weights[name])) for name in names), Plain(vectors)]

    books = put(weights)
    watch(Stage("int8", _weights(books), bits, int8=True))
    if tuner:
        books = put(tuner.in_int8(weights, names))
        watch(Stage("int8, fine-tuned", _weights(books), bits, int8=True))
    return books


def _finish(
    model: TranslationModel,
    books: Sequence[Stored],
    bits: Mapping[str, int],
    watch: Callable[[Stage], None],
    int8: bool = False,
) -> Packed:
    packed = pack(books)
    read = _weights(unpack(packed.content, packed.expanded_bytes, "the packed model"))
    restore(model, read, "the packed model")
    watch(Stage("packed", read, bits, int8))
    return packed


def _grouped(keys: Mapping[str, object]) -> list[list[str]]:
    """Names with the same key together, in their order."""
    groups: dict[object, list[str]] = {}
    for name, key in keys.items():
        groups.setdefault(key, []).append(name)
    return list(groups.values())


def _weights(books: Sequence[Stored]) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    return {name: tensor for book in books for name, tensor in book.weights().items()}
