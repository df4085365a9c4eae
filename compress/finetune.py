"""Some more updates for a model that was pruned or quantised (Deep Compression, sections 2 and 3.3).

They are the trainer's own updates; what differs is which weights may move, and that some move together.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lite_nmt.compress.kmeans import Book, Floats, stored
from lite_nmt.compress.simulate import train_in_int8
from lite_nmt.compress.weights import Weights, numbers
from lite_nmt.data.encoded import Encoded
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.checkpoint import Checkpoint, named_weights, restore
from lite_nmt.train.metrics import Metrics
from lite_nmt.train.processes import Processes
from lite_nmt.train.translation import TranslationTrainer


class FineTuner:
    """Fine-tunes weights of one model on the data that it was trained on."""

    def __init__(self, saved: Checkpoint, train: Encoded, steps: int, lr: float, device: torch.device) -> None:
        """
        Args:
            steps: updates of each fine-tuning.
            lr: peak of one cosine.
        """
        self.saved, self.train, self.device = saved, train, device
        recipe = dataclasses.replace(
            saved.config.train,
            steps=steps,
            lr=lr,
            schedule="cosine",
            warmup=steps // 10,
            precision="fp32",
            finish="last",
            stop_on="none",
        )
        self.config = dataclasses.replace(saved.config, train=recipe)

    def keeping_zeros(self, weights: Mapping[str, Floats], names: Iterable[str]) -> Weights:
        """Fine-tune all weights but those of ``names`` that are zero, which stay it."""
        return self._fit(weights, lambda trainer: keep_zeros(trainer, names))

    def sharing(self, weights: Mapping[str, Floats], books: Sequence[Book]) -> tuple[Weights, list[Book]]:
        """Fine-tune the values of codebooks, each by the sum of its weights' gradients, and all weights in no book.

        A codebook's zero stays zero, and no weight changes its code.

        Returns:
            All weights, and the books with their new values.
        """
        values: list[Tensor] = []
        tuned = self._fit(weights, lambda trainer: values.extend(share(trainer, books)))
        pairs = zip(books, values, strict=True)
        changed = [dataclasses.replace(book, codebook=stored(value.cpu().numpy())) for book, value in pairs]
        for book in changed:
            tuned |= book.weights()
        return tuned, changed

    def in_int8(self, weights: Mapping[str, Floats], names: Sequence[str]) -> Weights:
        """Fine-tune all weights under the roundings of int8 arithmetic; zeros of ``names`` stay zero.

        Args:
            weights: not rounded yet.

        Returns:
            All weights, those of ``names`` on the grid of :func:`~lite_nmt.compress.int8.quantize_rows`.
        """
        return self._fit(weights, lambda trainer: train_in_int8(trainer, names))

    def _fit(self, weights: Mapping[str, Floats], constrain: Callable[[TranslationTrainer], object]) -> Weights:
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder)
            trainer = _Unsaved(
                self.config,
                self.saved.languages,
                self.saved.vocabulary,
                self.train,
                None,
                run,
                Processes(self.device),
                Metrics(run),
            )
            restore(trainer.model, weights, self.saved.folder)
            constrain(trainer)
            trainer.metrics.log_every = self.config.train.log_every
            try:
                trainer.fit()
            except LiteNmtError as error:  # it advises on a training that can be resumed
                lr = self.config.train.lr
                raise LiteNmtError(f"fine-tuning diverged at a learning rate of {lr:g}; take a lower one.") from error
        return numbers(trainer.model)


class _Unsaved(TranslationTrainer):
    """A few hundred updates are quicker repeated than resumed."""

    def save(self) -> None:
        """Nothing."""


def keep_zeros(trainer: TranslationTrainer, names: Iterable[str]) -> None:
    """Leave the weights that are zero now out of all updates."""
    parameters = named_weights(trainer.model)
    masks = [(parameters[name], parameters[name] != 0) for name in names]

    def before(*_: Any) -> None:
        # Without a gradient AdamW leaves a zero alone: both its moments are zero, and so is the decay.
        for parameter, mask in masks:
            if parameter.grad is not None:
                parameter.grad.mul_(mask)

    trainer.optimizer.register_step_pre_hook(before)


def share(trainer: TranslationTrainer, books: Sequence[Book]) -> list[Tensor]:
    """Let the trainer move codebooks in place of the weights that they stand for.

    Returns:
        The codebooks' values, float32, which change as it trains.
    """
    parameters = named_weights(trainer.model)
    values = [torch.from_numpy(book.codebook.astype(np.float32)).to(trainer.device) for book in books]
    shared = [
        [(parameters[name], torch.from_numpy(codes.astype(np.int32)).to(trainer.device)) for name, codes in pairs]
        for pairs in (book.codes.items() for book in books)
    ]
    single = [p for name, p in parameters.items() if not any(name in book.codes for book in books)]
    trainer.optimizer = trainer.make_optimizer([*values, *single])

    def before(*_: Any) -> None:
        for value, tensors in zip(values, shared, strict=True):
            gradients = [(p.grad, codes) for p, codes in tensors if p.grad is not None]
            value.grad = sum_by_code(gradients, len(value)).to(value)
            value.grad[value == 0] = 0
            for parameter, _codes in tensors:
                parameter.grad = None

    def after(*_: Any) -> None:
        for value, tensors in zip(values, shared, strict=True):
            for parameter, codes in tensors:
                parameter.data.copy_(value[codes])

    trainer.optimizer.register_step_pre_hook(before)
    trainer.optimizer.register_step_post_hook(after)
    return values


def sum_by_code(gradients: Sequence[tuple[Tensor, Tensor]], k: int) -> Tensor:
    """The gradient of each of K shared values: the sum over the weights that share it (Deep Compression, equation 3).

    Args:
        gradients: of each tensor, with its codes in the same shape.

    Returns:
        K, float64.
    """
    parts = [torch.bincount(codes.flatten(), gradient.flatten().double(), k) for gradient, codes in gradients]
    return torch.stack(parts).sum(0)
