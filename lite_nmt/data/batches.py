"""Batches of similar length, in an order that a seed and an epoch decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lite_nmt.data.encoded import Array, Encoded
from lite_nmt.data.vocabulary import BOS, PAD

# Sentences sorted by length at once. A corpus below this size is bucketed whole.
POOL = 200_000


@dataclass(frozen=True)
class Batch:
    """Sentences side by side, padded on the right.

    Attributes:
        source: B S.
        keep: B S, true where the source is not padding.
        target: B T, the decoder's input: BOS and all tokens but the last.
        labels: B T, what it is to predict; PAD where nothing.
    """

    source: Tensor
    keep: Tensor
    target: Tensor
    labels: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same on another device."""
        return Batch(*(send(t, device) for t in vars(self).values()))


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """The same on another device; a GPU is not waited for, which it would be from memory that can be paged out."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def gather(encoded: Encoded, indices: Array) -> Batch:
    """Sentences as one padded batch."""
    source = _pad(encoded.source, encoded.source_starts, indices)
    labels = _pad(encoded.target, encoded.target_starts, indices)
    target = torch.cat([torch.full_like(labels[:, :1], BOS), labels[:, :-1]], 1)
    return Batch(source, source != PAD, target, labels)


def _pad(tokens: Array, starts: Array, indices: Array) -> Tensor:
    first, last = starts[indices, None], starts[indices + 1, None]
    place = first + np.arange((last - first).max())
    there = place < last
    padded = np.full(there.shape, PAD, dtype=np.int64)
    padded[there] = tokens[place[there]]
    return torch.from_numpy(padded)


def epoch_order(encoded: Encoded, batch_tokens: int, seed: int, epoch: int) -> Iterator[Array]:
    """Sentence numbers of each batch of one epoch.

    The corpus is shuffled, sorted by length in pools, cut where (sentences x longest side) would pass
    ``batch_tokens``, and each pool's batches are shuffled. A sentence longer than that is a batch of its own.
    """
    random = np.random.default_rng([seed, epoch])
    source, target = encoded.lengths()
    order = random.permutation(len(encoded))
    for begin in range(0, len(order), POOL):
        pool = order[begin : begin + POOL]
        longest = np.maximum(source[pool], target[pool])
        ranked = np.lexsort((source[pool], target[pool], longest))
        pool, longest = pool[ranked], longest[ranked]
        cuts, rows = [0], 0
        for i, length in enumerate(longest.tolist()):
            # Sorted: the newest sentence is the longest.
            if rows and (rows + 1) * length > batch_tokens:
                cuts.append(i)
                rows = 0
            rows += 1
        cuts.append(len(pool))
        for b in random.permutation(len(cuts) - 1):
            yield pool[cuts[b] : cuts[b + 1]]


def fixed_order(encoded: Encoded, batch_tokens: int) -> Iterator[Array]:
    """Sentence numbers of batches that hold each sentence once, always the same: for validation."""
    yield from epoch_order(encoded, batch_tokens, seed=0, epoch=0)
