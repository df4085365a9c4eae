"""The task of language modelling: a text in blocks, each the next of its own, scored by perplexity."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor

from lite_nmt.config import Config
from lite_nmt.data.encoded import Array
from lite_nmt.data.text import Block, gather, open_text, side_by_side
from lite_nmt.data.vocabulary import Vocabulary
from lite_nmt.errors import LiteNmtError
from lite_nmt.evaluate.perplexity import negative_log_likelihood
from lite_nmt.models.language import LanguageModel
from lite_nmt.modules.mixer import State
from lite_nmt.train.loss import language_loss
from lite_nmt.train.metrics import Metrics
from lite_nmt.train.prepare import Settings
from lite_nmt.train.processes import Processes
from lite_nmt.train.trainer import Group, Trainer


class LanguageTrainer(Trainer):
    """Trains a language model.

    The text is cut into as many as an update reads side by side. Where the model carries a cache, each batch of an
    update has one, that its place in the next update goes on with; an epoch begins with none.
    """

    model: LanguageModel

    def __init__(
        self,
        config: Config,
        languages: tuple[str, str],
        vocabulary: Vocabulary,
        train: Array,
        valid: Array | None,
        run: Path,
        processes: Processes,
        metrics: Metrics,
    ) -> None:
        self.train_data, self.valid_data = train, valid
        self.rows = max(config.train.batch_tokens // config.train.block, 1)
        self.caches: dict[int, State] = {}
        super().__init__(config, languages, vocabulary, run, processes, metrics)

    @classmethod
    def open(cls, saved: Settings, run: Path, processes: Processes, metrics: Metrics) -> LanguageTrainer:
        """The trainer of a prepared run."""
        vocabulary = Vocabulary.load(run / "vocabulary", saved.config.vocabulary.joint)
        data = open_text(run / "data" / "train")
        valid = open_text(run / "data" / "valid") if (run / "data" / "valid").exists() else None
        return cls(saved.config, saved.languages, vocabulary, data, valid, run, processes, metrics)

    def build(self) -> LanguageModel:
        return LanguageModel(self.config)

    def endless(self, size: int) -> Iterator[Group]:
        texts = self.rows * size
        whole = len(self.train_data) // texts * texts  # so that all are alike
        if not whole:
            raise LiteNmtError(
                f"the training text has {len(self.train_data)} tokens, too few for {texts} side by side; lower "
                "train.batch_tokens."
            )
        for _ in itertools.count():
            for block in side_by_side(whole, texts, self.recipe.block):
                parts = [dataclasses.replace(block, starts=part) for part in block.starts.reshape(size, -1)]
                yield parts, texts * (block.end - block.begin)

    def batch_loss(self, batch: Block, number: int) -> tuple[Tensor, Tensor]:
        inputs, labels = gather(self.train_data, batch, self.device)
        cache = self.caches.get(number) if batch.begin else None
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not torch.float32):
            hidden, self.caches[number] = self.model(inputs, cache)
        # In float16 the gradients of single scores would vanish here, before loss scaling could lift them.
        dtype = torch.float32 if self.dtype is torch.float16 else self.dtype
        smoothing = self.recipe.label_smoothing
        loss, nll = language_loss(self.model, hidden.flatten(0, 1), labels.flatten(), smoothing, dtype)
        for mixer in self.model.spans() if self.recipe.span_loss else ():
            loss = loss + self.recipe.span_loss * mixer.span * mixer.z.mean() * labels.numel()
        return loss, nll

    def updated(self) -> None:
        for mixer in self.model.spans():
            mixer.clamp()

    def measure(self, bleu: bool) -> dict[str, float] | None:
        if self.valid_data is None:
            return None
        total = negative_log_likelihood(self.model, self.valid_data, self.recipe.block, rows=self.rows)
        found = {"valid_nll": total / len(self.valid_data)}
        if mixers := self.model.spans():
            found["mean_span"] = sum(float(mixer.z.detach().mean()) * mixer.span for mixer in mixers) / len(mixers)
        return found

    def carried(self) -> dict[str, Tensor]:
        if not self.model.carries:
            return {}
        known = next(iter(self.caches.values()))
        numbers = range(self.recipe.accumulate * self.processes.count)
        state = {
            f"{number}.{name}": self.caches[number][name] if number in self.caches else torch.zeros_like(tensor)
            for number in numbers
            for name, tensor in known.items()
        }
        self.processes.sum(state.values())  # each knows its own alone
        return state

    def carry(self, state: Mapping[str, Tensor]) -> None:
        had = len({key.partition(".")[0] for key in state}), len(next(iter(state.values()))) if state else 0
        now = self.recipe.accumulate * self.processes.count, self.rows
        if state and had != now:
            raise LiteNmtError(
                f"the run reads {had[0]} times {had[1]} texts side by side, each with its cache, and is asked to read "
                f"{now[0]} times {now[1]}; resume it with the same train.batch_tokens, block and accumulate, and as "
                "many processes."
            )
        for key, tensor in state.items():
            number, _, name = key.partition(".")
            self.caches.setdefault(int(number), {})[name] = tensor

    def trained(self) -> Config:
        if not self.model.carries:
            return self.config
        learned = tuple(mixer.sees() for mixer in self.model.spans())
        model = self.config.model
        stack = dataclasses.replace(model.decoder, spans=learned)
        return dataclasses.replace(self.config, model=dataclasses.replace(model, decoder=stack))
