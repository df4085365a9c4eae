"""What can be trained: for each task how a run is prepared, and its trainer, which holds all else that is its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lite_nmt.train.language import LanguageTrainer
from lite_nmt.train.prepare import prepare
from lite_nmt.train.prepare_text import prepare_text
from lite_nmt.train.trainer import Trainer
from lite_nmt.train.translation import TranslationTrainer


@dataclass(frozen=True)
class Task:
    """A kind of run.

    Attributes:
        prepare: makes a run folder ready, as :func:`~lite_nmt.train.prepare.prepare` does.
        open: the trainer of a prepared run, from its settings, its folder, the processes and the metrics.
    """

    prepare: Callable[..., None]
    open: Callable[..., Trainer]


TASKS = {
    "translate": Task(prepare, TranslationTrainer.open),
    "lm": Task(prepare_text, LanguageTrainer.open),
    "summarize": Task(prepare, TranslationTrainer.open),
}
