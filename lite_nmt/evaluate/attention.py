"""What a trained model's mixers look at in one sentence (Lite Transformer, Figures 3 and A1)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from lite_nmt.config import ModelConfig, StackConfig
from lite_nmt.data.lines import clean
from lite_nmt.data.vocabulary import BOS, EOS
from lite_nmt.decode.pytorch import model_of
from lite_nmt.decode.segments import longest
from lite_nmt.decode.translator import Translator
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.translation import TranslationModel
from lite_nmt.modules.convolution import Convolution, TalkTaps
from lite_nmt.modules.layer import EncoderLayer
from lite_nmt.modules.lsra import LSRA
from lite_nmt.modules.mixer import Mixer

SIDES = ENCODER, DECODER, CROSS = "encoder", "decoder", "cross-attention"
NEAR = 3  # steps
LONGEST = 200  # pieces a side; longer maps are no longer legible
DEEPEST = 50  # layers


@dataclass(frozen=True)
class Maps:
    """What one branch of one side took from where, layer by layer.

    ``branch`` is named as in the configuration; LSRA has two. Weights are absolute values, averaged over the heads.
    """

    side: str
    branch: str
    layers: Tensor  # N T S, N layers: row t takes from column j
    windows: Tensor | None  # N T 2, TaLK's learned reach to the left and right in steps, averaged over the heads


@dataclass(frozen=True)
class Reading:
    """One model's maps of a sentence and its translation.

    The encoder's steps are ``source``. The decoder's are ``read``, the target one step behind; the rows of its
    cross-attention are ``written``, what it is about to write there.
    """

    model: str
    source: tuple[str, ...]  # pieces, with the end marker
    read: tuple[str, ...]
    written: tuple[str, ...]
    target: str
    maps: tuple[Maps, ...]

    def of(self, side: str) -> list[Maps]:
        """The branches of one side."""
        return [maps for maps in self.maps if maps.side == side]

    def labels(self, side: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Pieces of a map's rows and columns."""
        if side == CROSS:
            return self.written, self.source
        steps = self.source if side == ENCODER else self.read
        return steps, steps


def distance(weights: Tensor) -> float:
    """Mean of \\|t - j\\| under weights ... T T, in steps."""
    return float((weights * _apart(weights)).sum() / weights.sum())


def near(weights: Tensor) -> float:
    """Share of weights ... T T that lies within 3 steps of the diagonal."""
    return float((weights * (_apart(weights) <= NEAR)).sum() / weights.sum())


def even(side: str, length: int) -> Tensor:
    """T T: what a mixer with no preference would take, each step alike of the sentence, or of what came so far."""
    weights = torch.ones(length, length)
    return weights / length if side == ENCODER else weights.tril() / torch.arange(1, length + 1)[:, None]


def _apart(weights: Tensor) -> Tensor:
    steps = torch.arange(weights.shape[-1])
    return (steps[None, :] - steps[:, None]).abs()


@torch.inference_mode()
def read(translator: Translator, model: str, sentence: str, target: str | None = None) -> Reading:
    """Let a model read a sentence, and its translation one step behind, and note what its mixers take.

    Args:
        model: what to call it.
        target: the translation; None takes the model's own, found with the checkpoint's search settings.

    Raises:
        LiteNmtError: a side is empty or too long, or the model is too deep to be drawn or not made of numbers.
    """
    vocabulary, config = translator.vocabulary, translator.config.model
    deepest = max(config.encoder.layers, config.decoder.layers)
    if deepest > DEEPEST:
        raise LiteNmtError(f"{model} has {deepest} layers; at most {DEEPEST} can be drawn.")
    [source] = vocabulary.encode_source([clean(sentence)])
    _check("sentence", source, min(LONGEST, longest(translator.config)))
    if target is None:
        [translation] = translator.translate_all([sentence])
        written = [*vocabulary.target.piece_to_id(list(translation.candidates[0].pieces)), EOS]
        if len(written) > LONGEST + 1:
            raise LiteNmtError(f"{model} translates to {len(written) - 1} pieces; give a target of at most {LONGEST}.")
    else:
        [written] = vocabulary.encode_target([clean(target)])
        _check("target", written, LONGEST)
    tokens = [BOS, *written[:-1]]
    seen = _run(translator, source, tokens)
    pieces = vocabulary.target.id_to_piece
    return Reading(
        model,
        tuple(vocabulary.source.id_to_piece(source)),
        tuple(pieces(tokens)),
        tuple(pieces(written)),
        clean(vocabulary.decode(written)),
        tuple(
            Maps(side, branch, torch.stack(weights), torch.stack(windows) if windows else None)
            for (side, branch), (weights, windows) in seen.items()
        ),
    )


def _check(what: str, tokens: list[int], most: int) -> None:
    pieces = len(tokens) - 1
    if not pieces:
        raise LiteNmtError(f"the {what} is empty; give some text.")
    if pieces > most:
        raise LiteNmtError(f"the {what} has {pieces} pieces; give one of at most {most}.")


_Seen = dict[tuple[str, str], tuple[list[Tensor], list[Tensor]]]


def _run(translator: Translator, source: list[int], target: list[int]) -> _Seen:
    """One pass, with the target given. Each branch takes note of its input on the way."""
    model = model_of(translator.engine)
    seen: _Seen = {}
    with ExitStack() as hooks:
        for key, mixer in _mixers(model, translator.config.model):
            note = partial(_note, *seen.setdefault(key, ([], [])))
            hooks.callback(mixer.register_forward_pre_hook(note).remove)
        sentence, translation = (
            torch.tensor([tokens], device=model.target.weight.device) for tokens in (source, target)
        )
        model(sentence, torch.ones_like(sentence, dtype=torch.bool), translation)
    return seen


def _mixers(model: TranslationModel, config: ModelConfig) -> Iterator[tuple[tuple[str, str], nn.Module]]:
    for layer in model.encoder:
        yield from _branches(ENCODER, cast(EncoderLayer, layer).mixer, config.encoder)
    for _, layer in model.decoder_layers():
        yield from _branches(DECODER, layer.mixer, config.decoder)
    for _, layer in model.decoder_layers():
        yield (CROSS, "attention"), layer.cross


def _branches(side: str, mixer: Mixer, stack: StackConfig) -> Iterator[tuple[tuple[str, str], Mixer]]:
    if isinstance(mixer, LSRA):
        yield (side, "attention"), mixer.attention
        yield (side, stack.conv), mixer.convolution
    else:
        yield (side, stack.mixer), mixer


def _note(weights: list[Tensor], windows: list[Tensor], mixer: Any, inputs: tuple[Any, ...]) -> None:
    found = mixer.weights(*inputs)[0].abs().float().cpu()
    if not found.isfinite().all():
        raise LiteNmtError("the model's weights are not finite numbers; the checkpoint's training diverged.")
    weights.append(found.mean(0) if found.dim() == 3 else found)  # cross-attention comes averaged
    if isinstance(mixer, Convolution) and isinstance(taps := mixer.producer, TalkTaps):
        left, right = taps.reach(mixer.project(inputs[0]))
        right = torch.zeros_like(left) if right is None else right
        reach = torch.stack([left[0].mean(-1) * taps.left, right[0].mean(-1) * taps.right], -1)
        windows.append(reach.float().cpu())
