"""Where the pairs are found, and what is measured on them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from lite_nmt.compress.validation import Validation, find_pairs, first, need_pairs, numbers
from lite_nmt.data.encoded import Encoded
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint


def test_pairs_lie_in_the_run(trained: Path, tmp_path: Path) -> None:
    step = next((trained / "checkpoints").iterdir())
    for place in (trained, trained / "model", step):
        for split, count in (("train", 300), ("valid", 20)):
            pairs = find_pairs(checkpoint.load(place), split, None, tmp_path)
            assert pairs is not None
            assert len(pairs) == count


def test_pairs_from_text_are_those_of_the_run(trained: Path, corpus: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "model", tmp_path / "model")
    saved = checkpoint.load(tmp_path / "model")
    assert find_pairs(saved, "valid", None, tmp_path) is None
    pairs = need_pairs(saved, "valid", corpus, tmp_path)
    expected = Encoded.open(trained / "data" / "valid")
    np.testing.assert_array_equal(pairs.target, expected.target)
    np.testing.assert_array_equal(pairs.source_starts, expected.source_starts)


def test_pairs_that_are_not_there_are_asked_for(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "model", tmp_path / "model")
    saved = checkpoint.load(tmp_path / "model")
    with pytest.raises(
        LiteNmtError, match=r"lies in no run with valid pairs; give --data with valid\.de and valid\.en"
    ):
        need_pairs(saved, "valid", None, tmp_path)
    with pytest.raises(LiteNmtError, match="has no train pairs; give --data with"):
        need_pairs(saved, "train", tmp_path, tmp_path)
    with pytest.raises(LiteNmtError, match=r"the data folder .* does not exist"):
        need_pairs(saved, "train", tmp_path / "nowhere", tmp_path)


def test_the_first_pairs(trained: Path) -> None:
    pairs = Encoded.open(trained / "data" / "valid")
    few = first(pairs, 5)
    assert len(few) == 5
    np.testing.assert_array_equal(few.source, pairs.source[: pairs.source_starts[5]])
    assert len(first(pairs, 100)) == len(pairs)


def test_the_loss_is_the_trainings(trained: Path) -> None:
    saved = checkpoint.load(trained)
    validation = Validation(saved, Encoded.open(trained / "data" / "valid"), True, torch.device("cpu"))
    found = validation(numbers(saved.model()))
    assert found == {
        "nll": pytest.approx(saved.metrics["valid_nll"]),
        "bleu": pytest.approx(saved.metrics["valid_bleu"]),
    }
    zero = {name: np.zeros_like(w) for name, w in numbers(saved.model()).items()}
    types = saved.config.vocabulary.target
    assert validation(zero)["nll"] == pytest.approx(np.log(types), rel=1e-4)
