"""The task of summarising: translation of a text's beginning into a few sentences, scored by ROUGE."""

from __future__ import annotations

from lite_nmt.train.translation import TranslationTrainer


class SummaryTrainer(TranslationTrainer):
    """Trains a model that summarises."""

    def measure(self, bleu: bool) -> dict[str, float] | None:
        if self.valid_data is None:
            return None
        found = {"valid_nll": self.validation_nll(self.valid_data)}
        if bleu:
            from lite_nmt.evaluate.rouge import rouge

            scores = rouge(*self.written(self.valid_data))
            found |= {f"valid_{name}": score.value for name, score in scores.measures.items()}
        return found
