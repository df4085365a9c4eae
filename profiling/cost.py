"""Mult-Adds and parameters in closed form, from the configuration alone; nothing is built and torch is not needed.

The convention is that of the papers' tables (see docs/counting.md): one teacher-forced pass, causal attention not
halved, weights of every linear layer, QK^T and AV, kernel generation, T * K * width for convolution taps; no
embedding lookup, softmax, norm, gate or bias. The output projection is a part of its own, which the ``paper``
column leaves out and the ``full`` column counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lite_nmt.config import Config, StackConfig

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


def cost(config: Config, source_length: int = 30, target_length: int = 30) -> Cost:
    """Count a translation model for one pair of sentences, lengths in tokens."""
    model, vocabulary = config.model, config.vocabulary
    width, s, t = model.width, source_length, target_length
    parts: list[Part] = []
    for side, stack, steps in (("encoder", model.encoder, s), ("decoder", model.decoder, t)):
        for i in range(stack.layers):
            name = f"{side}.{i}"
            parts += _mixer(f"{name}.mixer", stack, width, stack.kernel(i), steps, causal=side == "decoder")
            norms = 2
            if side == "decoder":
                norms = 3
                products = t * 2 * width**2 + s * 2 * width**2 + 2 * t * s * width
                parts.append(Part(f"{name}.cross", "cross-attention", products, 4 * _linear(width, width)))
            feed = _linear(width, stack.ffn) + _linear(stack.ffn, width)
            parts.append(Part(f"{name}.ffn", "ffn", steps * 2 * width * stack.ffn, feed))
            parts.append(Part(f"{name}.norms", "norm", 0, norms * 2 * width))
        if model.norm == "pre":
            parts.append(Part(f"{side}_norm", "norm", 0, 2 * width))
    tables = vocabulary.target + (0 if model.tie == "all" else vocabulary.source)
    own_output = vocabulary.target * width if model.tie == "none" else 0
    parts.append(Part("embedding", EMBEDDING, 0, tables * width))
    parts.append(Part("project", OUTPUT, t * vocabulary.target * width, own_output))
    return Cost(tuple(parts))


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
