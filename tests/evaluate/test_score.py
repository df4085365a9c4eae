"""Scores against sacreBLEU itself."""

from __future__ import annotations

import pytest
import sacrebleu

from lite_nmt.errors import LiteNmtError
from lite_nmt.evaluate.score import TOKENIZERS, score

HYPOTHESES = ["The cat sat on the mat .", "A dog, barking loudly, ran .", "it's 3.5 km to town", ""]
REFERENCES = ["The cat sat on a mat .", "a dog ran , barking loudly .", "It is 3.5 km to the town", "yes"]


@pytest.mark.parametrize("tokenize", TOKENIZERS)
@pytest.mark.parametrize("lowercase", [False, True])
def test_equal_to_sacrebleu(tokenize: str, lowercase: bool) -> None:
    scores = score(HYPOTHESES, REFERENCES, tokenize=tokenize, lowercase=lowercase)
    bleu = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize=tokenize, lowercase=lowercase, force=True)
    assert scores.bleu == bleu.score
    assert scores.precisions == tuple(bleu.precisions)
    if not lowercase:
        assert scores.chrf == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert scores.sentences == 4
    case = "lc" if lowercase else "mixed"
    version = sacrebleu.__version__
    expected = f"nrefs:1|case:{case}|eff:no|tok:{tokenize}|smooth:exp|version:{version}"
    assert scores.bleu_signature == expected
    assert scores.chrf_signature == f"nrefs:1|case:{case}|eff:yes|nc:6|nw:0|space:no|version:{version}"


def test_perfect() -> None:
    scores = score(REFERENCES, REFERENCES)
    assert scores.bleu == pytest.approx(100)
    assert scores.chrf == pytest.approx(100)


def test_refusals() -> None:
    with pytest.raises(LiteNmtError, match="3 hypotheses and 4 references"):
        score(HYPOTHESES[:3], REFERENCES)
    with pytest.raises(LiteNmtError, match="no sentences"):
        score([], [])
    with pytest.raises(LiteNmtError, match="tokenize is '14a'"):
        score(HYPOTHESES, REFERENCES, tokenize="14a")
