"""A Transformer checkpoint as a CTranslate2 model, through CTranslate2's public specification of one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lite_nmt.bench.ctranslate2 import engine
from lite_nmt.config import Config, ModelConfig
from lite_nmt.decode.hypothesis import length_limit
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint
from lite_nmt.modules.embedding import sinusoid
from lite_nmt.modules.layer import Residual

QUANTIZATIONS = ("float32", "int8")


def convert(path: str | os.PathLike[str], folder: str | os.PathLike[str], quantization: str = "float32") -> None:
    """Write the Transformer of a run or checkpoint folder as a CTranslate2 model.

    Args:
        folder: must not exist; it also gets the vocabularies, as pieces, and can be used without us.
        quantization: "int8" has one scale for each row of a matrix, embeddings included.

    Raises:
        LiteNmtError: CTranslate2 is not installed, does not know the model, or ``folder`` exists.
    """
    if quantization not in QUANTIZATIONS:
        raise LiteNmtError(f"quantization is {quantization!r}; it must be one of {', '.join(QUANTIZATIONS)}.")
    package, out = engine(), Path(folder)
    saved = checkpoint.load(Path(path))
    _check(saved.config.model)
    spec = _spec(package, saved.config, saved.model())
    processors = saved.vocabulary.source, saved.vocabulary.target
    source, target = (p.id_to_piece(list(range(p.get_piece_size()))) for p in processors)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.validate()
    spec.optimize(quantization)
    try:
        out.mkdir(parents=True)
        spec.save(str(out))
    except OSError as error:
        raise LiteNmtError(f"cannot write {out}: {error.strerror}; name a new folder.") from error


def _check(model: ModelConfig) -> None:
    """Refuse what CTranslate2 has no layer for."""
    for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        if stack.mixer != "attention":
            raise LiteNmtError(f'model.{side}.mixer is "{stack.mixer}"; CTranslate2 knows "attention" alone.')
        if stack.persistent or not stack.ffn:
            raise LiteNmtError(f"model.{side} is all-attention, which CTranslate2 does not know.")
        if stack.windows:
            raise LiteNmtError(
                f"model.{side}.windows is {list(stack.windows)}; CTranslate2's attention sees the whole sentence."
            )
        if stack.kept_heads or model.kept_cross_heads:
            raise LiteNmtError("attention heads were pruned; CTranslate2 needs all of them in every layer.")
    if model.cross_heads != model.decoder.heads:
        raise LiteNmtError(
            f"model.cross_heads is {model.cross_heads} and model.decoder.heads is {model.decoder.heads}; CTranslate2 "
            "knows one number of heads for the decoder."
        )


def _spec(package: Any, config: Config, model: Any) -> Any:
    """The weights of a :class:`TranslationModel` (to the type checker, its layers have no mixers) by CTranslate2's
    names."""
    specs, settings = package.specs, config.model
    activation = {"relu": specs.Activation.RELU, "swish": specs.Activation.SWISH}[settings.activation]
    pre = settings.norm == "pre"
    encoder = specs.TransformerEncoderSpec(settings.encoder.layers, settings.encoder.heads, pre, activation=activation)
    decoder = specs.TransformerDecoderSpec(settings.decoder.layers, settings.decoder.heads, pre, activation=activation)
    spec = specs.TransformerSpec(encoder, decoder)
    spec.config.add_source_eos = True

    # Its own positions start at 1; ours are written out, as far as a sentence seen in training or its translation goes.
    longest = config.vocabulary.max_length
    positions = max(longest, length_limit(longest, config.decode) + 1)
    encoder.position_encodings.encodings = sinusoid(torch.arange(positions), settings.width)
    decoder.position_encodings.encodings = encoder.position_encodings.encodings

    encoder.embeddings[0].weight, decoder.embeddings.weight = model.source.weight, model.target.weight
    decoder.projection.weight = model.project.weight
    if pre:
        _norm(encoder.layer_norm, model.encoder_norm)
        _norm(decoder.layer_norm, model.decoder_norm)
    for part, layer in zip(encoder.layer, model.encoder, strict=True):
        _block(part.self_attention, part.self_attention.linear, layer.mix, layer.mixer.qkv, layer.mixer.out)
        _block(part.ffn, [part.ffn.linear_0, part.ffn.linear_1], layer.feed, layer.ffn.inner, layer.ffn.out)
    for part, layer in zip(decoder.layer, model.decoder, strict=True):
        _block(part.self_attention, part.self_attention.linear, layer.mix, layer.mixer.qkv, layer.mixer.out)
        _block(part.attention, part.attention.linear, layer.look, layer.cross.q, layer.cross.kv, layer.cross.out)
        _block(part.ffn, [part.ffn.linear_0, part.ffn.linear_1], layer.feed, layer.ffn.inner, layer.ffn.out)
    return spec


def _block(spec: Any, parts: Sequence[Any], residual: Residual, *linears: nn.Linear) -> None:
    """A branch with its norm. Queries, keys and values lie one after the other, there as here."""
    _norm(spec.layer_norm, residual.norm)
    for part, linear in zip(parts, linears, strict=True):
        part.weight, part.bias = linear.weight, linear.bias


def _norm(spec: Any, norm: nn.Module) -> None:
    spec.gamma, spec.beta = norm.weight, norm.bias
