"""Hold a bundle against the model that it was made of, before anyone else gets to see it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from lite_nmt.data.encoded import Encoded
from lite_nmt.data.vocabulary import BOS, EOS, PAD
from lite_nmt.decode.engine import Engine, pad
from lite_nmt.decode.hypothesis import Hypothesis
from lite_nmt.decode.pytorch import PyTorchEngine
from lite_nmt.decode.segments import parts
from lite_nmt.decode.translator import Translator
from lite_nmt.errors import LiteNmtError
from lite_nmt.evaluate.pairs import Quality
from lite_nmt.evaluate.pairs import quality as evaluate
from lite_nmt.export.bundle import Bundle
from lite_nmt.export.graphs import beamed, flat, reorder
from lite_nmt.export.runtime import ENCODER, STEP, OnnxEngine
from lite_nmt.models.translation import TranslationModel

LOGITS = 1e-4  # float32: the most that a score before softmax may differ
TIE = 1e-4  # nats: hypotheses nearer than this are in no order that rounding keeps
LOSS = 0.3  # of BLEU or ROUGE-L: the most that int8 may lose
BATCH, BATCH_TOKENS = 32, 1024
SAID = 256  # sentences from one word on progress to the next
LIMIT = 40  # tokens of a made-up source


def check_logits(model: TranslationModel, engine: OnnxEngine, rounds: int = 3, steps: int = 5) -> float:
    """Encoder and step on random sentences of random lengths, with hypotheses that change places.

    Returns:
        The largest difference of a score.

    Raises:
        LiteNmtError: it is over 1e-4; the first such place is named.
    """
    draw = np.random.default_rng(1)
    encoder, step = engine.session(ENCODER), engine.session(STEP)
    names = [value.name for value in step.get_outputs()]
    worst = 0.0
    for batch in range(1, rounds + 1):
        width = int(draw.integers(1, 4))
        source = made_up(model, batch, draw)
        given = np.array(pad(source), np.int64)
        tokens = torch.from_numpy(given)
        with torch.inference_mode():
            memory = model.memory(model.encode(tokens, tokens != PAD))
            state = beamed(model.initial_state(batch * width), batch, width)
        theirs = dict(zip([v.name for v in encoder.get_outputs()], encoder.run(None, {"source": given}), strict=True))
        past = {f"state.{name}": tensor.numpy() for name, tensor in state.items()}
        token = np.full((batch, width), BOS)
        for position in range(steps):
            parent = draw.integers(0, width, (batch, width))
            feeds = {"source": given, "token": token, "parent": parent, "position": np.array(position)}
            found = dict(zip(names, step.run(None, _asked(step, {**feeds, **theirs, **past})), strict=True))
            past = {name.replace("next.", "state."): value for name, value in found.items() if name != "logits"}
            with torch.inference_mode():
                state = flat(reorder(state, torch.from_numpy(parent)))
                now = torch.from_numpy(token).flatten()
                logits, state = model.step(now, position, state, memory, tokens != PAD)
                state = beamed(state, batch, width)
            difference = float(np.abs(found["logits"] - logits.view(batch, width, -1).numpy()).max())
            if not difference <= LOGITS:
                raise LiteNmtError(
                    f"the exported graph disagrees with the model: at step {position + 1} of {batch} random sentences "
                    f"a score differs by {difference:.2g}, more than {LOGITS:g}; nothing was written."
                )
            worst = max(worst, difference)
            token = draw.integers(EOS + 1, logits.shape[-1], (batch, width))
    return worst


def _asked(session: Any, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What a graph wants: a model may not look at all that it could be given."""
    return {value.name: feeds[value.name] for value in session.get_inputs()}


def made_up(model: TranslationModel, count: int, draw: np.random.Generator) -> list[list[int]]:
    """Sources of random tokens and lengths."""
    types = model.source.weight.shape[0]
    return [[*draw.integers(EOS + 1, types, draw.integers(1, LIMIT)).tolist(), EOS] for _ in range(count)]


def check_translations(
    reference: PyTorchEngine, engine: Engine, bundle: Bundle, sources: Sequence[Sequence[int]]
) -> None:
    """Greedy and beam search say the same as PyTorch's, unless the model holds two translations for equally good.

    Args:
        sources: closed by the end marker; long ones are searched in parts, as lines are translated.

    Raises:
        LiteNmtError: they do not; the first sentence is shown.
    """
    sources, _ = parts(sources, bundle.config, bundle.vocabulary)
    for beam in sorted({1, max(bundle.config.decode.beam, 2)}):
        decode = dataclasses.replace(bundle.config.decode, beam=beam)
        for start in range(0, len(sources), BATCH):
            batch = sources[start : start + BATCH]
            pairs = zip(reference.search(batch, decode, 1), engine.search(batch, decode, 1), strict=True)
            for source, ([ours], [theirs]) in zip(batch, pairs, strict=True):
                if ours.tokens != theirs.tokens and not abs(ours.score - theirs.score) <= TIE:
                    raise LiteNmtError(_disagreement(bundle, source, ours, theirs, beam))


def _disagreement(bundle: Bundle, source: Sequence[int], ours: Hypothesis, theirs: Hypothesis, beam: int) -> str:
    text = bundle.vocabulary.source.decode([t for t in source if t > EOS])
    said = [f"{bundle.vocabulary.decode(h.tokens)!r} ({h.score:.4f})" for h in (ours, theirs)]
    return (
        f"the exported graph disagrees with the model at beam {beam}: {text!r} is {said[0]} to the model and {said[1]} "
        "to the graph; nothing was written."
    )


def quality(engine: Engine, bundle: Bundle, pairs: Encoded, say: Callable[[str], None]) -> Quality:
    """Score an engine on validation pairs, with the bundle's own search settings."""
    model, done = Translator(bundle.config, bundle.vocabulary, engine, bundle.languages), 0

    def write(sources: Sequence[Sequence[int]]) -> list[str]:
        nonlocal done
        texts = [best.text for best, *_ in model.candidates(sources, bundle.config.decode)]
        before, done = done, done + len(sources)
        if done == len(pairs) or done // SAID > before // SAID:
            say(f"translated {done} of {len(pairs)} validation sentences")
        return texts

    return evaluate(write, pairs, bundle.vocabulary, bundle.config.task, BATCH_TOKENS)
