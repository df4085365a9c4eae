"""The task of summarising: translation of a text's beginning into a few sentences, scored by ROUGE."""

from __future__ import annotations

from lite_nmt.data.encoded import Encoded
from lite_nmt.train.translation import TranslationTrainer


class SummaryTrainer(TranslationTrainer):
    """Trains a model that summarises."""

    def quality(self, data: Encoded) -> dict[str, float]:
        from lite_nmt.evaluate.rouge import rouge

        return {f"valid_{name}": found.value for name, found in rouge(*self.written(data)).measures.items()}
