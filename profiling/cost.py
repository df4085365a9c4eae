"""Mult-Adds and parameters in closed form, from the configuration alone; nothing is built and torch is not needed.

The convention is that of the papers' tables (see docs/counting.md): one teacher-forced pass, causal attention not
halved, weights of every linear layer, QK^T and AV, kernel generation, T * K * width for convolution taps; no
embedding lookup, softmax, norm, gate or bias. The output projection is a part of its own, which the ``paper``
column leaves out and the ``full`` column counts.

Two more counters see a model as it runs and must agree with this one: ``traced`` and ``graph``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lite_nmt.config import Config, ModelConfig, StackConfig
from lite_nmt.errors import LiteNmtError

OUTPUT, EMBEDDING = "output projection", "embedding"


@dataclass(frozen=True)
class Part:
    """What one part of a model costs."""

    name: str
    kind: str
    mult_adds: int
    parameters: int


@dataclass(frozen=True)
class Cost:
    """A model's parts, and their sums under both conventions."""

    parts: tuple[Part, ...]
    uncounted: tuple[str, ...] = ()  # what a counter met and could not count, in words

    def mult_adds(self, count: str = "paper") -> int:
        """Mult-Adds of one pass; ``full`` counts the output projection too."""
        return sum(p.mult_adds for p in self.parts if count == "full" or p.kind != OUTPUT)

    def parameters(self, count: str = "paper") -> int:
        """Parameters; ``paper`` leaves out the embedding lookup tables (a tied output matrix with them)."""
        return sum(p.parameters for p in self.parts if count == "full" or p.kind != EMBEDDING)

    def by_kind(self) -> dict[str, tuple[int, int]]:
        """Mult-Adds and parameters of each kind of part."""
        kinds: dict[str, tuple[int, int]] = {}
        for part in self.parts:
            mult_adds, parameters = kinds.get(part.kind, (0, 0))
            kinds[part.kind] = mult_adds + part.mult_adds, parameters + part.parameters
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
                raise LiteNmtError(f"the {name} to count for is {value}; it must be between 1 and 1,000,000,000.")


def cost(config: Config, source_length: int = 30, target_length: int = 30, batch: int = 1, beam: int = 1) -> Cost:
    """Count a translation model for pairs of sentences.

    Args:
        source_length, target_length: tokens of each sentence.
        batch: sentences.
        beam: hypotheses for each. The encoder, and the keys and values that the cross-attention makes of its output,
            are computed once a sentence; all else in the decoder once a hypothesis.
    """
    model, vocabulary = config.model, config.vocabulary
    of = Lengths(source_length, target_length, batch, beam)
    s, t, width = of.source, of.target, model.width
    parts: list[Part] = []
    for i in range(model.encoder.layers):
        parts += _layer(f"encoder.{i}", model.encoder, i, width, s, batch, causal=False)
    products = batch * (beam * (t * 2 * width**2 + 2 * t * s * width) + s * 2 * width**2)
    for i in range(model.decoder.layers):
        cross = Part(f"decoder.{i}.cross", "cross-attention", products, 4 * _linear(width, width))
        parts += _layer(f"decoder.{i}", model.decoder, i, width, t, batch * beam, causal=True, cross=cross)
    if model.norm == "pre":
        parts += [Part(f"{side}_norm", "norm", 0, 2 * width) for side in ("encoder", "decoder")]
    tables = vocabulary.target + (0 if model.tie == "all" else vocabulary.source)
    parts.append(Part("embedding", EMBEDDING, 0, tables * width))
    parts.append(_output(model, vocabulary.target, batch * beam * t))
    return Cost(tuple(parts))


def decoder_only(model: ModelConfig, types: int, length: int, batch: int = 1) -> Cost:
    """Count a language model of ``model.decoder``'s layers, without cross-attention, for one context of ``length``."""
    parts: list[Part] = []
    for i in range(model.decoder.layers):
        parts += _layer(f"decoder.{i}", model.decoder, i, model.width, length, batch, causal=True)
    if model.norm == "pre":
        parts.append(Part("decoder_norm", "norm", 0, 2 * model.width))
    parts.append(Part("embedding", EMBEDDING, 0, types * model.width))
    parts.append(_output(model, types, batch * length))
    return Cost(tuple(parts))


def _layer(
    name: str, stack: StackConfig, i: int, width: int, t: int, times: int, causal: bool, cross: Part | None = None
) -> Iterable[Part]:
    for part in _mixer(f"{name}.mixer", stack, width, stack.kernel(i), t, causal):
        yield replace(part, mult_adds=times * part.mult_adds)
    if cross:
        yield cross
    feed = _linear(width, stack.ffn) + _linear(stack.ffn, width)
    yield Part(f"{name}.ffn", "ffn", times * t * 2 * width * stack.ffn, feed)
    yield Part(f"{name}.norms", "norm", 0, (3 if cross else 2) * 2 * width)


def _output(model: ModelConfig, types: int, rows: int) -> Part:
    own = types * model.width if model.tie == "none" else 0
    return Part("project", OUTPUT, rows * types * model.width, own)


def _linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs


def _mixer(name: str, stack: StackConfig, width: int, taps: int, t: int, causal: bool) -> Iterable[Part]:
    if stack.mixer == "lsra":
        half = width // 2
        yield _attention(f"{name}.attention", half, t)
        yield _convolution(f"{name}.convolution", stack.conv, stack, half, taps, t, causal)
    elif stack.mixer == "attention":
        yield _attention(name, width, t)
    elif stack.mixer == "average":
        # The mean itself is T additions a channel: no products. In the encoder it is one mean a sentence, but the
        # feed-forward network still runs at every step.
        products = t * (2 * width * stack.ffn + 4 * width**2)
        yield Part(
            name,
            "average attention",
            products,
            _linear(width, stack.ffn) + _linear(stack.ffn, width) + _linear(2 * width, 2 * width),
        )
    else:
        yield _convolution(name, stack.mixer, stack, width, taps, t, causal)


def _attention(name: str, width: int, t: int) -> Part:
    # A window only masks: the product is still computed in full, and so it is counted in full.
    return Part(name, "attention", 4 * t * width**2 + 2 * t * t * width, 4 * _linear(width, width))


def _convolution(name: str, kind: str, stack: StackConfig, width: int, taps: int, t: int, causal: bool) -> Part:
    inner = 2 * width if stack.glu else width
    if kind == "cnn":
        return Part(name, "convolution", t * taps * width * inner, taps * width * inner + inner)
    heads = stack.conv_heads or width
    parameters = _linear(width, inner) + _linear(width, width)
    products = width * inner + width**2 + taps * width
    if kind == "lightconv":
        parameters += heads * taps
    elif kind == "dynamicconv":
        products += width * heads * taps
        parameters += width * heads * taps
    else:
        offsets = heads * (1 if causal or taps <= 2 else 2)  # one, where no tap lies to the right
        products += width * offsets
        parameters += _linear(width, offsets)
    return Part(name, "convolution", t * products, parameters)
