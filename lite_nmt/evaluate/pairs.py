"""How good a model is on sentence pairs: what it gives the targets, and what its own words are worth."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from lite_nmt.config import DecodeConfig
from lite_nmt.data.batches import fixed_order, gather
from lite_nmt.data.encoded import Encoded
from lite_nmt.data.vocabulary import Vocabulary
from lite_nmt.decode.pytorch import PyTorchEngine
from lite_nmt.models.translation import TranslationModel
from lite_nmt.train.loss import translation_loss

Write = Callable[[Sequence[Sequence[int]]], list[str]]
"""Target text of source tokens, those of each sentence closed by the end marker."""


@dataclass(frozen=True)
class Quality:
    """Corpus scores out of 100: ``bleu``, or of summaries ``rouge1``, ``rouge2`` and ``rougeL``."""

    measures: dict[str, float]
    signature: str


@torch.no_grad()
def negative_log_likelihood(
    model: TranslationModel, pairs: Encoded, batch_tokens: int, dtype: torch.dtype = torch.float32
) -> float:
    """Nats a target token, no label smoothing.

    Args:
        model: in eval mode.
        dtype: of its products.
    """
    device = model.target.weight.device
    total = torch.zeros((), device=device)
    for indices in fixed_order(pairs, batch_tokens):
        total += translation_loss(model, gather(pairs, indices).to(device), dtype=dtype)[1]
    return float(total) / len(pairs.target)


def greedy(model: TranslationModel, vocabulary: Vocabulary, decode: DecodeConfig) -> Write:
    """What a model writes without a beam, of sources however long."""
    engine, alone = PyTorchEngine(model), dataclasses.replace(decode, beam=1)
    return lambda sources: [vocabulary.decode(best.tokens) for [best] in engine.search(sources, alone, 1)]


def quality(write: Write, pairs: Encoded, vocabulary: Vocabulary, task: str, batch_tokens: int) -> Quality:
    """Score what is written of the sources against the targets, as the task is scored.

    Args:
        write: is given sentences of like length, of about ``batch_tokens`` together.
    """
    texts, references = [""] * len(pairs), [""] * len(pairs)
    for indices in fixed_order(pairs, batch_tokens):
        sources, targets = zip(*map(pairs.pair, indices), strict=True)
        for i, text, target in zip(indices, write(sources), targets, strict=True):
            texts[i], references[i] = text, vocabulary.decode(target)
    if task == "summarize":
        from lite_nmt.evaluate.rouge import rouge

        summaries = rouge(texts, references)
        return Quality({name: found.value for name, found in summaries.measures.items()}, summaries.signature)
    from lite_nmt.evaluate.score import score

    scores = score(texts, references)
    return Quality({"bleu": scores.bleu}, scores.bleu_signature)
