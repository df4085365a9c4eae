"""The task of translating: sentence pairs by length, smoothed and perhaps taught, scored by BLEU."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from lite_nmt.config import Config
from lite_nmt.data.batches import Batch, batches, epoch_order, sorted_batches
from lite_nmt.data.encoded import Array, Encoded
from lite_nmt.data.vocabulary import EOS, PAD, Vocabulary
from lite_nmt.models.translation import TranslationModel
from lite_nmt.train.loss import Lesson, linear_cross_entropy
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
        found = batches(self.train_data, batch).to(self.device)
        return self.loss(found, self.recipe.label_smoothing, self.teacher)

    def loss(self, batch: Batch, smoothing: float, teacher: TranslationModel | None = None) -> tuple[Tensor, Tensor]:
        """Summed loss, smoothed and taught, and plain negative log-likelihood of a batch, in nats."""
        real = batch.labels != PAD
        lesson = None
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not torch.float32):
            hidden = self.model(batch.source, batch.keep, batch.target)
            if teacher is not None:
                with torch.no_grad():
                    taught = teacher(batch.source, batch.keep, batch.target)[real]
                recipe = self.recipe
                lesson = Lesson(
                    taught, teacher.project.weight.detach(), recipe.distill_weight, recipe.distill_temperature
                )
        # In float16 the gradients of single scores would vanish here, before loss scaling could lift them.
        dtype = torch.float32 if self.dtype is torch.float16 else self.dtype
        weight = self.model.project.weight
        return linear_cross_entropy(hidden[real], weight, batch.labels[real], smoothing, dtype, lesson)

    def measure(self, bleu: bool) -> dict[str, float] | None:
        if self.valid_data is None:
            return None
        found = {"valid_nll": self.validation_nll(self.valid_data)}
        if bleu:
            found |= self.quality(self.valid_data)
        return found

    def quality(self, data: Encoded) -> dict[str, float]:
        """What its own words are worth, greedily."""
        return {"valid_bleu": self.validation_bleu(data)}

    @torch.no_grad()
    def validation_nll(self, data: Encoded) -> float:
        """Nats a token, no label smoothing."""
        total = torch.zeros((), device=self.device)
        for indices in sorted_batches(data, self.recipe.batch_tokens):
            total += self.loss(batches(data, indices).to(self.device), 0.0)[1]
        return float(total) / len(data.target)

    def validation_bleu(self, data: Encoded) -> float:
        """sacreBLEU of greedy translations."""
        from lite_nmt.evaluate.score import score

        return score(*self.written(data)).bleu

    def written(self, data: Encoded) -> tuple[list[str], list[str]]:
        """What the model makes of the sources, greedily, and the targets, as text."""
        from lite_nmt.decode.search import search

        greedy = dataclasses.replace(self.config.decode, beam=1)
        hypotheses, references = [""] * len(data), [""] * len(data)
        for indices in sorted_batches(data, self.recipe.batch_tokens):
            batch = batches(data, indices).to(self.device)
            for i, found, labels in zip(
                indices, search(self.model, batch.source, batch.keep, greedy), batch.labels, strict=True
            ):
                hypotheses[i] = self.vocabulary.decode(found[0].tokens)
                references[i] = self.vocabulary.decode([t for t in labels.tolist() if t not in (PAD, EOS)])
        return hypotheses, references
