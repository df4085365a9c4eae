"""How surprised a language model is by a text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np
import torch

from lite_nmt.data.encoded import Array
from lite_nmt.data.text import Block, gather, side_by_side
from lite_nmt.data.vocabulary import PAD
from lite_nmt.evaluate.surprise import windows
from lite_nmt.models.language import LanguageModel
from lite_nmt.train.loss import language_loss


@torch.inference_mode()
def negative_log_likelihood(model: LanguageModel, tokens: Array, block: int, context: int = 0, rows: int = 1) -> float:
    """Of a whole text, in nats: each token once, given those before it.

    Args:
        model: in eval mode.
        block: tokens read at once.
        context: how many of them are there for the others' sake and not scored again (Baevski and Auli 2019),
            where the text has so many; a model that carries a cache needs none.
        rows: blocks, or texts side by side of a model that carries a cache, computed at once. Of the latter each but
            the first lacks what came before it.
    """
    device = next(model.parameters()).device
    total, cache = 0.0, None
    texts = side_by_side(len(tokens), rows, block) if model.carries else ()
    for part, known in ((text, 0) for text in texts) if model.carries else _windows(len(tokens), block, context, rows):
        inputs, labels = gather(tokens, part, device)
        hidden, cache = model(inputs, cache)
        hidden, labels = hidden[:, known:], labels[:, known:]
        there = labels != PAD
        total += float(language_loss(model, hidden[there], labels[there])[1])
    return total


def _windows(length: int, block: int, context: int, rows: int) -> Iterator[tuple[Block, int]]:
    """Blocks that overlap by ``context``, and how much of each is context; alike ones in one, ``rows`` at most."""
    for (size, known), alike in groupby(windows(length, block, context), lambda w: (w[2] - w[0], w[1] - w[0])):
        starts = np.array([first for first, _, _ in alike])
        for i in range(0, len(starts), rows):
            yield Block(starts[i : i + rows], 0, size), known
