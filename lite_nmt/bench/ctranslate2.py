"""A Transformer checkpoint in CTranslate2, the fastest CPU engine that knows the architecture, to measure against.

Our search and its search differ in four things, none of which is seen in greedy search:

- it normalises scores again over what is left when padding, BOS and UNK are forbidden;
- at the length limit it lets a hypothesis break off where ours must end;
- with no length penalty it stops as soon as its first hypothesis ends, and does not wait for ``beam`` of them;
- among equals it may take another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lite_nmt.config import Config, DecodeConfig, ModelConfig
from lite_nmt.data.vocabulary import BOS, EOS, PAD
from lite_nmt.decode.search import length_limit
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
    engine, out = _engine(), Path(folder)
    saved = checkpoint.load(Path(path))
    _check(saved.config.model)
    spec = _spec(engine, saved.config, saved.model())
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


@dataclass(frozen=True)
class CTranslate2Model:
    """What :func:`convert` wrote, ready to translate on the CPU."""

    translator: Any  # ctranslate2.Translator
    source: list[str]  # piece of each token
    target: dict[str, int]  # token of each piece
    never: list[list[str]]  # what is not to be generated, beside UNK

    @classmethod
    def load(cls, folder: str | os.PathLike[str], compute_type: str = "default", threads: int = 1) -> CTranslate2Model:
        """Open a converted model.

        Args:
            compute_type: "float32", "int8" or another that CTranslate2 has; "default" is the one it was saved in.
            threads: of each matrix product; one batch is translated at a time.

        Raises:
            LiteNmtError: CTranslate2 is not installed, or cannot open the folder so.
        """
        engine, place = _engine(), Path(folder)
        try:
            source, target = (_pieces(place, side) for side in ("source", "target"))
            translator = engine.Translator(
                str(place), compute_type=compute_type, inter_threads=1, intra_threads=threads
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise LiteNmtError(f"CTranslate2 cannot open {place} as {compute_type}: {error}") from error
        numbers = {piece: token for token, piece in enumerate(target)}
        return cls(translator, source, numbers, [[target[PAD]], [target[BOS]]])

    def translate(self, sentences: Sequence[Sequence[int]], decode: DecodeConfig, batch: int = 1) -> list[list[int]]:
        """The best translation of each sentence, in their order.

        Args:
            sentences: source tokens, without the end marker, none empty.
            decode: as for our search; the length penalty must be "power".
            batch: sentences at once, of like length.

        Returns:
            Target tokens, without the end marker.

        Raises:
            LiteNmtError: CTranslate2 has no such length penalty.
        """
        if decode.penalty != "power":
            raise LiteNmtError(f'decode.penalty is "{decode.penalty}"; CTranslate2 knows "power" alone.')
        found: list[list[int]] = [[] for _ in sentences]
        order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
        for start in range(0, len(order), batch):
            rows = order[start : start + batch]
            limits = [length_limit(len(sentences[i]), decode) for i in rows]
            results = self.translator.translate_batch(
                [[self.source[token] for token in sentences[i]] for i in rows],
                beam_size=decode.beam,
                length_penalty=decode.length_penalty,
                no_repeat_ngram_size=decode.no_repeat_ngram,
                min_decoding_length=decode.min_length,
                max_decoding_length=max(limits) + 1,  # with the end marker
                max_input_length=0,
                disable_unk=True,
                suppress_sequences=self.never,
                return_end_token=True,  # so that the length penalty counts it, as ours does
            )
            for i, limit, result in zip(rows, limits, results, strict=True):
                tokens = [self.target[piece] for piece in result.hypotheses[0]]
                found[i] = [token for token in tokens if token != EOS][:limit]
        return found


def _engine() -> Any:
    try:
        import ctranslate2
    except ImportError as error:
        raise LiteNmtError('CTranslate2 is not installed; give "pip install lite-nmt[bench]".') from error
    return ctranslate2


def _pieces(folder: Path, side: str) -> list[str]:
    """A vocabulary as CTranslate2 saves it: one file where both sides have the same."""
    shared = folder / "shared_vocabulary.json"
    path = shared if shared.exists() else folder / f"{side}_vocabulary.json"
    return [str(piece) for piece in json.loads(path.read_text(encoding="utf-8"))]


def _check(model: ModelConfig) -> None:
    """Refuse what CTranslate2 has no layer for."""
    for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        if stack.mixer != "attention":
            raise LiteNmtError(f'model.{side}.mixer is "{stack.mixer}"; CTranslate2 knows "attention" alone.')
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


def _spec(engine: Any, config: Config, model: Any) -> Any:
    """The weights of a :class:`TranslationModel` (to the type checker, its layers have no mixers) by CTranslate2's
    names."""
    specs, settings = engine.specs, config.model
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
