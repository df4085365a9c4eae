"""BLEU and chrF as sacreBLEU computes them (Post 2018; Popović 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from lite_nmt.errors import LiteNmtError

TOKENIZERS = ("13a", "none", "intl", "char", "zh")  # those that need no download


@dataclass(frozen=True)
class Scores:
    """Corpus scores out of 100, and the signatures that make them comparable."""

    bleu: float
    chrf: float
    precisions: tuple[float, ...]  # of BLEU's 1- to 4-grams, in percent
    brevity_penalty: float
    length_ratio: float  # tokens of the hypotheses to tokens of the references
    sentences: int
    bleu_signature: str
    chrf_signature: str


def score(
    hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str = "13a", lowercase: bool = False
) -> Scores:
    """Score translations against one reference each.

    The papers' IWSLT figures are tokenised and lowercased: give both sides tokenised, ``tokenize="none"`` and
    ``lowercase=True``.

    Raises:
        LiteNmtError: the two sides differ in length or are empty, or the tokeniser is unknown.
    """
    if len(hypotheses) != len(references):
        raise LiteNmtError(f"there are {len(hypotheses)} hypotheses and {len(references)} references; they must agree.")
    if not references:
        raise LiteNmtError("there are no sentences to score.")
    if tokenize not in TOKENIZERS:
        raise LiteNmtError(f"tokenize is {tokenize!r}; it must be one of {', '.join(TOKENIZERS)}.")
    # Text that comes tokenised is meant to: force leaves out the warning about it.
    bleu = BLEU(tokenize=tokenize, lowercase=lowercase, force=tokenize == "none")
    chrf = CHRF(lowercase=lowercase)
    b = bleu.corpus_score(hypotheses, [references])
    c = chrf.corpus_score(hypotheses, [references])
    return Scores(
        bleu=b.score,
        chrf=c.score,
        precisions=tuple(b.precisions),
        brevity_penalty=b.bp,
        length_ratio=b.ratio,
        sentences=len(references),
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )
