"""The pairs that a checkpoint was trained and validated on, and how good some weights of its model are on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import torch

from lite_nmt.compress.kmeans import Floats
from lite_nmt.compress.simulate import round_inputs
from lite_nmt.data.corpus import sides
from lite_nmt.data.encoded import Encoded, encode
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.checkpoint import Checkpoint, named_weights, restore
from lite_nmt.models.translation import TranslationModel
from lite_nmt.train.metrics import Metrics
from lite_nmt.train.prepare import run_of
from lite_nmt.train.processes import Processes
from lite_nmt.train.summaries import SummaryTrainer
from lite_nmt.train.translation import TranslationTrainer


def find_pairs(saved: Checkpoint, split: str, data: Path | None, scratch: Path) -> Encoded | None:
    """The encoded pairs of one side: from the run folder that the checkpoint lies in, or from text.

    Args:
        split: ``train`` or ``valid``.
        data: a folder with ``split.*`` as for training, which is encoded into ``scratch``; None looks in the run.

    Returns:
        None where there are none.

    Raises:
        LiteNmtError: what there is cannot be used.
    """
    if data is not None:
        if data.is_dir() and not any((data / f"{split}.{language}").exists() for language in saved.languages):
            return None
        longest = saved.config.vocabulary.max_length
        limit = longest if split == "train" else None
        cut = longest if saved.config.task == "summarize" else None
        return encode(sides(data, split, *saved.languages), saved.vocabulary, scratch / split, limit, cut)
    run = run_of(saved)
    return Encoded.open(run / "data" / split) if run and (run / "data" / split).is_dir() else None


def need_pairs(saved: Checkpoint, split: str, data: Path | None, scratch: Path) -> Encoded:
    """The same, where nothing can be done without.

    Raises:
        LiteNmtError: there are none.
    """
    pairs = find_pairs(saved, split, data, scratch)
    if pairs is None:
        names = " and ".join(f"{split}.{language}" for language in saved.languages)
        where = f"{data} has no {split} pairs" if data else f"{saved.folder} lies in no run with {split} pairs"
        raise LiteNmtError(f"{where}; give --data with {names}.")
    return pairs


def first(pairs: Encoded, count: int) -> Encoded:
    """The first ``count`` pairs, or all where there are fewer."""
    source, target = pairs.source_starts[: count + 1], pairs.target_starts[: count + 1]
    return Encoded(pairs.source[: source[-1]], source, pairs.target[: target[-1]], target, pairs.left_out)


def numbers(model: TranslationModel) -> dict[str, Floats]:
    """A model's weights as arrays of its own memory."""
    return {name: parameter.detach().cpu().numpy() for name, parameter in named_weights(model).items()}


class Validation:
    """Measures weights of one model on validation pairs."""

    def __init__(self, saved: Checkpoint, pairs: Encoded, written: bool, device: torch.device) -> None:
        """
        Args:
            written: also translate or summarise, greedily, and score; many times slower than the loss.
        """
        self.pairs, self.written, self.folder = pairs, written, saved.folder
        config = dataclasses.replace(saved.config, train=dataclasses.replace(saved.config.train, compile=False))
        quiet = Metrics(saved.folder, first=False)
        trainer = SummaryTrainer if config.task == "summarize" else TranslationTrainer
        self.trainer = trainer(
            config, saved.languages, saved.vocabulary, pairs, pairs, saved.folder, Processes(device), quiet
        )
        self.trainer.model.eval()

    def __call__(self, weights: Mapping[str, Floats], int8: bool = False) -> dict[str, float]:
        """``nll``, nats a token; where asked for ``bleu``, or of summaries ``rouge1``, ``rouge2`` and ``rougeL``.

        Args:
            int8: round activations too, as int8 arithmetic does.
        """
        restore(self.trainer.model, {name: torch.from_numpy(w) for name, w in weights.items()}, self.folder)
        handles = round_inputs(self.trainer.model) if int8 else []
        found = {"nll": self.trainer.validation_nll(self.pairs)}
        if self.written:
            found |= {name.removeprefix("valid_"): value for name, value in self.trainer.quality(self.pairs).items()}
        for handle in handles:
            handle.remove()
        return found
