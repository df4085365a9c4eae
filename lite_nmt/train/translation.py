"""The tasks of translating, and of summarising, which is translating a text's beginning: pairs by length, smoothed and
perhaps taught, scored by BLEU, or ROUGE."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from lite_nmt.config import Config
from lite_nmt.data.batches import Batch, epoch_order, gather
from lite_nmt.data.encoded import Array, Encoded
from lite_nmt.data.vocabulary import PAD, Vocabulary
from lite_nmt.evaluate.pairs import greedy, negative_log_likelihood, quality
from lite_nmt.models.translation import TranslationModel
from lite_nmt.train.loss import Lesson, translation_loss
from lite_nmt.train.metrics import Metrics
from lite_nmt.train.prepare import Settings
from lite_nmt.train.processes import Processes
from lite_nmt.train.trainer import Group, Trainer


class TranslationTrainer(Trainer):
    """Trains a translation model."""

    model: TranslationModel

    def __init__(
        self,
        config: Config,
        languages: tuple[str, str],
        vocabulary: Vocabulary,
        train: Encoded,
        valid: Encoded | None,
        run: Path,
        processes: Processes,
        metrics: Metrics,
        teacher: TranslationModel | None = None,
    ) -> None:
        """
        Args:
            teacher: in eval mode and of the same vocabulary; word-level distillation follows it.
        """
        self.train_data, self.valid_data, self.teacher = train, valid, teacher
        super().__init__(config, languages, vocabulary, run, processes, metrics)

    @classmethod
    def open(cls, saved: Settings, run: Path, processes: Processes, metrics: Metrics) -> TranslationTrainer:
        """The trainer of a prepared run."""
        config = saved.config
        vocabulary = Vocabulary.load(run / "vocabulary", config.vocabulary.joint)
        data = Encoded.open(run / "data" / "train")
        valid = Encoded.open(run / "data" / "valid") if (run / "data" / "valid").exists() else None
        teacher = None
        if saved.teacher and config.train.distill_weight:
            teacher = saved.teacher.load().model(processes.device).requires_grad_(False)
        return cls(config, saved.languages, vocabulary, data, valid, run, processes, metrics, teacher)

    def build(self) -> TranslationModel:
        return TranslationModel(self.config)

    def endless(self, size: int) -> Iterator[Group]:
        recipe, starts = self.recipe, self.train_data.target_starts

        def stream() -> Iterator[Array]:
            for epoch in itertools.count():
                yield from epoch_order(self.train_data, recipe.batch_tokens, recipe.seed, epoch)

        numbers = stream()
        while True:
            group = list(itertools.islice(numbers, size))
            yield group, int(sum((starts[b + 1] - starts[b]).sum() for b in group))

    def batch_loss(self, batch: Array, number: int) -> tuple[Tensor, Tensor]:
        found = gather(self.train_data, batch).to(self.device)
        lesson = None if self.teacher is None else self.lesson(self.teacher, found)
        return translation_loss(self.model, found, self.recipe.label_smoothing, self.dtype, lesson)

    @torch.no_grad()
    def lesson(self, teacher: TranslationModel, batch: Batch) -> Lesson:
        """What the teacher makes of a batch."""
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not torch.float32):
            taught = teacher(batch.source, batch.keep, batch.target)[batch.labels != PAD]
        recipe = self.recipe
        return Lesson(taught, teacher.project.weight.detach(), recipe.distill_weight, recipe.distill_temperature)

    def measure(self, bleu: bool) -> dict[str, float] | None:
        pairs, size = self.valid_data, self.recipe.batch_tokens
        if pairs is None:
            return None
        found = {"valid_nll": negative_log_likelihood(self.model, pairs, size, self.dtype)}
        if bleu:
            write = greedy(self.model, self.vocabulary, self.config.decode)
            scores = quality(write, pairs, self.vocabulary, self.config.task, size).measures
            found |= {f"valid_{name}": value for name, value in scores.items()}
        return found
