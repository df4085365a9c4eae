"""How good some weights of a checkpoint's model are on validation pairs."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from lite_nmt.compress.kmeans import Floats
from lite_nmt.compress.simulate import round_inputs
from lite_nmt.data.encoded import Encoded
from lite_nmt.evaluate.pairs import greedy, negative_log_likelihood, quality
from lite_nmt.models.checkpoint import Checkpoint, restore


class Validation:
    """Measures weights of one model on validation pairs, in float32."""

    def __init__(self, saved: Checkpoint, pairs: Encoded, written: bool, device: torch.device) -> None:
        """
        Args:
            written: also translate or summarise, greedily, and score; many times slower than the loss.
        """
        self.saved, self.pairs, self.written = saved, pairs, written
        self.model = saved.model(device)

    def __call__(self, weights: Mapping[str, Floats], int8: bool = False) -> dict[str, float]:
        """``nll``, nats a token; where asked for ``bleu``, or of summaries ``rouge1``, ``rouge2`` and ``rougeL``.

        Args:
            int8: round activations too, as int8 arithmetic does.
        """
        restore(self.model, weights, self.saved.folder)
        handles = round_inputs(self.model) if int8 else []
        config, vocabulary = self.saved.config, self.saved.vocabulary
        size = config.train.batch_tokens
        found = {"nll": negative_log_likelihood(self.model, self.pairs, size)}
        if self.written:
            write = greedy(self.model, vocabulary, config.decode)
            found |= quality(write, self.pairs, vocabulary, config.task, size).measures
        for handle in handles:
            handle.remove()
        return found
