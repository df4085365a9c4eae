"""The Evolved Transformer (So, Liang and Le, 2019) in closed form, the baseline of Lite Transformer's Table 3.

It is counted, not built. From the paper (Figure 3): the cells below. From tensor2tensor's ``evolved_transformer_base``:
three encoder and four decoder cells, a layer norm before each branch or sum of branches and one at the end of each
side, another inside the decoder's feed-forward network, no biases in attention, a bias on the pointwise half only of a
separable convolution. Inferred: Lite Transformer prints two figures a model and no shape; widths of 128 and 256 give
both.

An encoder cell is a gated linear unit; a linear layer d to 4d beside a convolution of 3 taps d to d/2, then a separable
convolution of 9 taps 4d to d/2; self-attention; a feed-forward network of 4d. A decoder cell is self-attention beside
attention to the encoder; separable convolutions of 11 taps d to 2d beside 7 taps d to d/2, then 7 taps 2d to d;
self-attention; attention to the encoder; a feed-forward network of 4d. The narrower of two branches is padded with
zeros, and the number of heads changes nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable

from lite_nmt.errors import LiteNmtError
from lite_nmt.profiling.cost import EMBEDDING, OUTPUT, Cost, Lengths, Part

ENCODER_CELLS, DECODER_CELLS = 3, 4


def evolved_transformer(width: int, source_length: int = 30, target_length: int = 30, types: int = 32768) -> Cost:
    """Count an Evolved Transformer of ``width`` channels for one pair of sentences, as :func:`cost` counts ours.

    Args:
        source_length, target_length: tokens of each sentence.
        types: of the one vocabulary; its table serves both sides and the output projection.

    Raises:
        LiteNmtError: a width that cannot be halved, or a length out of range.
    """
    if width < 2 or width % 2:
        raise LiteNmtError(f"the width to count for is {width}; it must be an even number of at least 2.")
    of = Lengths(source_length, target_length)
    parts: list[Part] = []
    for i in range(ENCODER_CELLS):
        parts += _encoder_cell(f"encoder.{i}", width, of.source)
    for i in range(DECODER_CELLS):
        parts += _decoder_cell(f"decoder.{i}", width, of.source, of.target)
    parts += [Part(f"{side}_norm", "norm", 0, 2 * width) for side in ("encoder", "decoder")]
    parts.append(Part("embedding", EMBEDDING, 0, types * width))
    parts.append(Part("project", OUTPUT, of.target * types * width, 0))
    return Cost(tuple(parts), uncounted=("activations",))


def _encoder_cell(name: str, d: int, s: int) -> Iterable[Part]:
    yield _layers(f"{name}.glu", "gated linear unit", s, 2 * d * d, 2 * d)
    branches = d * 4 * d + 3 * d * d // 2 + _separable(4 * d, d // 2, 9)
    yield _layers(f"{name}.convolution", "convolution", s, branches, 4 * d + d // 2 + d // 2)
    yield _attention(f"{name}.attention", "attention", d, s, s)
    yield _layers(f"{name}.ffn", "ffn", s, 8 * d * d, 5 * d)
    yield Part(f"{name}.norms", "norm", 0, 2 * (4 * d + 4 * d))


def _decoder_cell(name: str, d: int, s: int, t: int) -> Iterable[Part]:
    for i in range(2):
        yield _attention(f"{name}.attention.{i}", "attention", d, t, t)
        yield _attention(f"{name}.cross.{i}", "cross-attention", d, t, s)
    branches = _separable(d, 2 * d, 11) + _separable(d, d // 2, 7) + _separable(2 * d, d, 7)
    yield _layers(f"{name}.convolution", "convolution", t, branches, 2 * d + d // 2 + d)
    yield _layers(f"{name}.ffn", "ffn", t, 8 * d * d, 5 * d)
    yield Part(f"{name}.norms", "norm", 0, 2 * (5 * d + 2 * d + 4 * d))


def _layers(name: str, kind: str, tokens: int, weights: int, biases: int) -> Part:
    """Layers whose every weight is multiplied once a token."""
    return Part(name, kind, tokens * weights, weights + biases)


def _separable(inputs: int, outputs: int, taps: int) -> int:
    """Weights of a depthwise convolution and the pointwise one behind it."""
    return taps * inputs + inputs * outputs


def _attention(name: str, kind: str, d: int, queries: int, keys: int) -> Part:
    products = 2 * (queries + keys) * d**2 + 2 * queries * keys * d
    return Part(name, kind, products, 4 * d**2)
