"""Lexical shortlists: the few target types that a sentence's translation may need, so that the output projection
computes no others.

They are the same for every sentence (the end marker, the pieces for bytes, the most frequent types) or follow from its
source types: those that each is most often translated to. Which that are, the model's own attention says (Sankaran,
Freitag and Al-Onaizan 2017).

Differs from the paper: attention is collected after training, in one pass with the last weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lite_nmt.data.encoded import Array, Encoded
from lite_nmt.data.vocabulary import EOS, PAD
from lite_nmt.errors import LiteNmtError

if TYPE_CHECKING:
    import torch

    from lite_nmt.models.checkpoint import Checkpoint

Ids = np.ndarray[tuple[int, ...], np.dtype[np.int32]]
Links = tuple[Array, Array]  # source type * target types + target type, ascending; how often each

BATCH_TOKENS = 8192
LEAST = 0.01  # attention that counts; most of the entries are below and hardly matter
PENDING = 2**22  # entries to hold before equal ones are added up


@dataclass(frozen=True)
class Shortlist:
    """Which target types a sentence may use.

    Attributes:
        frequent: F, allowed in every sentence, ascending; the end marker and the pieces for bytes are among them.
        table: V K, allowed where source type v is in the sentence, the likeliest first; the end marker where there are
            fewer than K, and all along padding's row.
    """

    frequent: Ids
    table: Ids

    def rows(self, source: Sequence[int]) -> Ids:
        """The target types that a sentence may use, ascending: the rows of the output projection to compute."""
        return np.unique(np.concatenate([self.frequent, self.table[np.asarray(source, np.int64)].ravel()]))

    def least(self) -> int:
        """How many entries, equal ones among them, the shortest sentence has."""
        return len(self.frequent) + self.table.shape[1]

    @property
    def bytes(self) -> int:
        """Of both arrays."""
        return self.frequent.nbytes + self.table.nbytes


def build(
    saved: Checkpoint,
    train: Encoded,
    per_word: int = 16,
    frequent: int = 50,
    most: int = 200_000,
    device: str | torch.device = "cpu",
) -> Shortlist:
    """Make a shortlist for a model from the pairs that it was trained on.

    Args:
        per_word: target types of each source type, beside those of every sentence.
        frequent: target types of every sentence, beside the end marker and the pieces for bytes.
        most: pairs to align, drawn at random where there are more. Those of all are counted for ``frequent``.
        device: where the model runs.

    Raises:
        LiteNmtError: a number is out of range.
    """
    target_types = saved.config.vocabulary.target
    for name, value, low, high in (
        ("per_word", per_word, 1, target_types),
        ("frequent", frequent, 0, target_types),
        ("most", most, 1, 2**62),
    ):
        if not low <= value <= high:
            raise LiteNmtError(f"{name} is {value}; it must be between {low} and {high}.")
    return select(saved, train, translations(saved, train, most, device), per_word, frequent)


def select(saved: Checkpoint, train: Encoded, links: Links, per_word: int, frequent: int) -> Shortlist:
    """Make a shortlist of what :func:`translations` found; the other arguments are those of :func:`build`."""
    pieces, types = saved.vocabulary.target, saved.config.vocabulary
    spelling = [EOS, *(i for i in range(types.target) if pieces.is_byte(i))]
    seen = np.bincount(train.target, minlength=types.target)
    seen[[*range(EOS), *spelling]] = 0
    ranked = np.argsort(-seen, kind="stable")[:frequent]
    always = np.unique(np.concatenate([spelling, ranked[seen[ranked] > 0]])).astype(np.int32)

    source, target = np.divmod(links[0], types.target)
    best = np.lexsort((-links[1], source))
    best = best[~np.isin(target[best], always)]
    source, target = source[best], target[best]
    rank = np.arange(len(source)) - np.searchsorted(source, source)
    few = rank < per_word
    table = np.full((types.source, per_word), EOS, np.int32)
    table[source[few], rank[few]] = target[few]
    return Shortlist(always, table)


def translations(saved: Checkpoint, train: Encoded, most: int, device: str | torch.device) -> Links:
    """How often a source type is translated to a target type: the attention of target tokens to source tokens, both
    sides given, summed over the corpus. A source type's counts are proportional to p(target | source).
    """
    import torch
    from rich.console import Console
    from rich.progress import Progress

    from lite_nmt.data.batches import fixed_order, gather

    model, types = saved.model(device), saved.config.vocabulary.target
    total = min(most, len(train))
    found: list[Links] = [(np.empty(0, np.int64), np.empty(0))]
    console = Console(stderr=True)
    with torch.inference_mode(), Progress(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("aligning", total=total)
        done = 0
        for sentences in fixed_order(train, BATCH_TOKENS):
            sentences = sentences[: total - done]
            batch = gather(train, sentences).to(torch.device(device))
            memory = model.memory(model.encode(batch.source, batch.keep))
            attention = model.alignment(batch.target, memory, batch.keep)  # B T S
            counted = (attention >= LEAST) & (batch.labels != PAD).unsqueeze(-1)
            link = batch.source.unsqueeze(1) * types + batch.labels.unsqueeze(-1)
            found.append((link[counted].cpu().numpy(), attention[counted].cpu().numpy()))
            if sum(len(links) for links, _ in found) > 2 * len(found[0][0]) + PENDING:
                found = [_added(found)]
            done += len(sentences)
            bar.update(task, completed=done)
            if done == total:
                break
    return _added(found)


def _added(found: Sequence[Links]) -> Links:
    """Each link once, with the sum of its counts."""
    links, place = np.unique(np.concatenate([links for links, _ in found]), return_inverse=True)
    return links, np.bincount(place, np.concatenate([counts for _, counts in found]), len(links))
