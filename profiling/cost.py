"""Mult-Adds, parameters and activations in closed form, from the configuration alone: nothing is built, and torch is
not needed.

The convention is that of the papers' tables (see docs/counting.md): one teacher-forced pass, causal attention not
halved, weights of every linear layer, QK^T and AV, kernel generation, T * K * width for convolution taps; no
embedding lookup, softmax, norm, gate or bias. The output projection is a part of its own, which the ``paper``
column leaves out and the ``full`` column counts.

Activations are float32, and those of a pass that frees each tensor after its last use and computes attention,
normalisation and the banded product as one operator each: what a mobile runtime plans. PyTorch's own frames hold a
little more.

Two more counters see a model as it runs and must agree with this one: ``traced`` and ``graph``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import mul

from lite_nmt.config import ATTENTIONS, Config, ModelConfig, StackConfig
from lite_nmt.errors import LiteNmtError

OUTPUT, EMBEDDING = "output projection", "embedding"


@dataclass(frozen=True)
class Part:
    """What one part of a model costs."""

    name: str
    kind: str
    mult_adds: int
    parameters: int
    activations: int = 0  # bytes alive at most while it runs, those that wait meanwhile included


@dataclass(frozen=True)
class Cost:
    """A model's parts, and their sums under both conventions."""

    parts: tuple[Part, ...]
    uncounted: tuple[str, ...] = ()  # what a counter met and could not count, in words
    peak: int = 0  # bytes alive at most between the parts

    def mult_adds(self, count: str = "paper") -> int:
        """Mult-Adds of one pass; ``full`` counts both ends of the vocabulary too."""
        return sum(p.mult_adds for p in self.parts if count == "full" or p.kind not in (OUTPUT, EMBEDDING))

    def parameters(self, count: str = "paper") -> int:
        """Parameters; ``paper`` leaves out the embedding lookup tables (a tied output matrix with them)."""
        return sum(p.parameters for p in self.parts if count == "full" or p.kind != EMBEDDING)

    def activations(self, count: str = "paper") -> int:
        """Bytes of all tensors alive at once, at most; ``full`` includes the scores of the output projection."""
        parts = [p.activations for p in self.parts if count == "full" or p.kind != OUTPUT]
        return max(parts + ([self.peak] if count == "full" else []), default=0)

    def by_kind(self) -> dict[str, Part]:
        """Each kind's sums, and its largest activations."""
        kinds: dict[str, Part] = {}
        for p in self.parts:
            k = kinds.get(p.kind, Part(p.kind, p.kind, 0, 0))
            most = max(k.activations, p.activations)
            kinds[p.kind] = Part(p.kind, p.kind, k.mult_adds + p.mult_adds, k.parameters + p.parameters, most)
        return kinds


@dataclass(frozen=True)
class Lengths:
    """What is counted: tokens of source and target, sentences, and hypotheses for each."""

    source: int = 30
    target: int = 30
    batch: int = 1
    beam: int = 1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 1 <= value <= 10**9:
                what = {"source": "source length", "target": "target length"}.get(name, name)
                raise LiteNmtError(f"the {what} to count for is {value}; it must be between 1 and 1,000,000,000.")


def cost(config: Config, source_length: int = 30, target_length: int = 30, batch: int = 1, beam: int = 1) -> Cost:
    """Count a translation model for pairs of sentences, or a language model for texts.

    Args:
        source_length, target_length: tokens of each sentence; a language model's text is a target.
        batch: sentences.
        beam: hypotheses for each. The encoder, and the keys and values that the cross-attention makes of its output,
            are computed once a sentence; all else in the decoder once a hypothesis.
    """
    model, vocabulary = config.model, config.vocabulary
    of = Lengths(source_length, target_length, batch, beam)
    if config.task == "lm":
        return _language_model(model, vocabulary.target, of.target, batch * beam)
    s, t, width, layers = of.source, of.target, model.width, model.decoder.layers
    parts: list[Part] = []
    for i in range(model.encoder.layers):
        parts += _layer(f"encoder.{i}", model.encoder, i, width, s, batch, causal=False)
    inner = [model.cross_heads_of(i) * (width // model.cross_heads) for i in range(layers)]
    memory = 2 * batch * s * sum(inner)
    for i, n in enumerate(inner):
        # Keys and values are made of the encoder's output before the first target step, while those of the layers
        # before wait: a linear layer's result, and its two halves laid out by heads.
        making = batch * s * (width + 2 * sum(inner[: i + 1]) + 2 * n)
        looking = memory + batch * beam * t * (width + max(2 * n, n + width))  # residual, query, result; then out
        products = batch * (beam * (t * 2 * width * n + 2 * t * s * n) + s * 2 * width * n)
        weights = 3 * _linear(width, n) + _linear(n, width)
        cross = Part(f"decoder.{i}.cross", "cross-attention", products, weights, max(making, looking))
        parts += _layer(f"decoder.{i}", model.decoder, i, width, t, batch * beam, causal=True, held=memory, cross=cross)
    if model.norm == "pre":
        parts.append(Part("encoder_norm", "norm", 0, 2 * width, 2 * batch * s * width))
        parts.append(Part("decoder_norm", "norm", 0, 2 * width, memory + 2 * batch * beam * t * width))
    tables = vocabulary.target + (0 if model.tie == "all" else vocabulary.source)
    looked_up = max(batch * s, batch * beam * t)
    return _in_bytes((*parts, *_vocabulary(model, vocabulary.target, tables, batch * beam * t, looked_up)))


def _language_model(model: ModelConfig, types: int, length: int, batch: int) -> Cost:
    """``model.decoder``'s layers, without cross-attention; a cache of what came before is not counted."""
    parts: list[Part] = []
    for i in range(model.decoder.layers):
        parts += _layer(f"decoder.{i}", model.decoder, i, model.width, length, batch, causal=True)
    if model.norm == "pre":
        parts.append(Part("decoder_norm", "norm", 0, 2 * model.width, 2 * batch * length * model.width))
    rows = batch * length
    if not model.cutoffs:
        return _in_bytes((*parts, *_vocabulary(model, types, types, rows, rows)))
    # Narrower embeddings for rarer types, and a row of the first band for each other one (Baevski and Auli, 2019).
    width, edges = model.width, (0, *model.cutoffs, types)
    sizes = [end - begin for begin, end in pairwise(edges)]
    widths = [width // model.cutoff_factor**b for b in range(len(sizes))]
    sizes[0] += len(model.cutoffs)
    tables = sum(map(mul, sizes, widths)) + width * sum(widths)
    scores = sum(sizes) + types
    return _in_bytes(
        (
            *parts,
            Part("embedding", EMBEDDING, rows * width * sum(widths), tables, rows * (2 * sum(widths) + 2 * width)),
            Part("project", OUTPUT, rows * tables, tables if model.tie == "none" else 0, rows * (width + scores)),
        )
    )


def _in_bytes(parts: Iterable[Part]) -> Cost:
    return Cost(tuple(replace(part, activations=4 * part.activations) for part in parts))


def _layer(
    name: str,
    stack: StackConfig,
    i: int,
    width: int,
    t: int,
    times: int,
    causal: bool,
    held: int = 0,
    cross: Part | None = None,
) -> Iterable[Part]:
    """``times`` sequences of ``t`` steps; ``held`` values are alive all the while."""
    held += times * t * width  # the residual
    for part in _mixer(f"{name}.mixer", stack, width, i, t, causal):
        yield replace(part, mult_adds=times * part.mult_adds, activations=held + times * part.activations)
    if cross:
        yield cross
    branches = ["mix", "look"] if cross else ["mix"]
    if ffn := stack.ffn_width(i):
        feed = _linear(width, ffn) + _linear(ffn, width)
        alive = times * t * max(2 * ffn, ffn + width)  # before and after the activation, or with the result
        yield Part(f"{name}.ffn", "ffn", times * t * 2 * width * ffn, feed, held + alive)
        branches.append("feed")
    for branch in branches:
        yield Part(f"{name}.{branch}.norm", "norm", 0, 2 * width, held + 2 * times * t * width)


def _vocabulary(model: ModelConfig, types: int, tables: int, rows: int, looked_up: int) -> tuple[Part, Part]:
    """Both ends of a model: tokens looked up on one side at once, and ``rows`` of scores."""
    width = model.width
    own = types * width if model.tie == "none" else 0
    return (
        Part("embedding", EMBEDDING, 0, tables * width, 3 * looked_up * width),  # looked up, positions, sum
        Part("project", OUTPUT, rows * types * width, own, rows * (width + types)),
    )


def _linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs


def _mixer(name: str, stack: StackConfig, width: int, i: int, t: int, causal: bool) -> Iterable[Part]:
    """One sequence's; activations without what the layer holds."""
    if stack.mixer == "lsra":
        half = width // 2
        yield _attention(f"{name}.attention", stack, half, i, t)
        near = _convolution(f"{name}.convolution", stack.conv, stack, half, i, t, causal)
        yield replace(near, activations=near.activations + t * half)  # the attention's result waits
    elif stack.mixer in ATTENTIONS:
        yield _attention(name, stack, width, i, t)
    elif stack.mixer == "average":
        # The mean itself is T additions a channel: no products. In the encoder it is one mean a sentence, but the
        # feed-forward network still runs at every step.
        products = t * (2 * width * stack.ffn + 4 * width**2)
        weights = _linear(width, stack.ffn) + _linear(stack.ffn, width) + _linear(2 * width, 2 * width)
        yield Part(name, "average attention", products, weights, t * max(width + 2 * stack.ffn, 5 * width))
    else:
        yield _convolution(name, stack.mixer, stack, width, i, t, causal)


def _attention(name: str, stack: StackConfig, width: int, i: int, t: int) -> Part:
    heads, r = stack.heads_of(i), width // stack.heads
    n = heads * r
    weights = 3 * _linear(width, n) + _linear(n, width) + 2 * stack.persistent * n
    products = 4 * t * width * n + 2 * t * stack.persistent * n
    alive = t * max(4 * n, n + width)  # query, key, value and result, or the result before and after the projection
    if stack.mixer == "adaptive-span":
        seen = min(t, stack.span_of(i))
        products += 3 * t * seen * n  # of queries with keys and with the embeddings of distances, and of values
        weights += heads + stack.span * r
    else:
        # A window only masks: the product is still computed in full, and so it is counted in full.
        products += 2 * t * t * n
    return Part(name, "attention", products, weights, alive)


def _convolution(name: str, kind: str, stack: StackConfig, width: int, i: int, t: int, causal: bool) -> Part:
    taps, n = stack.kernel(i), width if kind == "cnn" else stack.conv_width(i, width)
    inner = 2 * n if stack.glu else n
    gated = 3 * n if stack.glu else 2 * n  # GLU's input and output, or before and after padding is zeroed
    if kind == "cnn":
        padded = width * (t + taps - 1)
        parameters = taps * width * inner + inner
        return Part(name, "convolution", t * taps * width * inner, parameters, max(padded + t * inner, t * gated))
    heads = stack.conv_heads or n
    parameters = _linear(width, inner) + _linear(n, width)
    products = width * inner + n * width + taps * n
    made = 0  # values of the taps at each step
    if kind == "lightconv":
        parameters += heads * taps
    elif kind == "dynamicconv":
        products += n * heads * taps
        parameters += n * heads * taps
        made = heads * taps
    else:
        offsets = heads * (1 if causal or taps <= 2 else 2)  # one, where no tap lies to the right
        products += n * offsets
        parameters += _linear(n, offsets)
        made = heads * taps
    # Taps before and after they are normalised beside their input, or taps beside the product's input and result.
    alive = max(gated, n + 2 * made, 2 * n + made, n + width)
    return Part(name, "convolution", t * products, parameters, t * alive)
