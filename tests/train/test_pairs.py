"""Where a checkpoint's pairs are found."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from lite_nmt.data.encoded import Encoded
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint
from lite_nmt.train.pairs import find_pairs, need_pairs


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
    few = pairs.first(5)
    assert len(few) == 5
    np.testing.assert_array_equal(few.source, pairs.source[: pairs.source_starts[5]])
    assert len(pairs.first(100)) == len(pairs)
    assert [few.pair(i) for i in range(5)] == [pairs.pair(i) for i in range(5)]
    source, target = pairs.pair(4)
    assert source == pairs.source[pairs.source_starts[4] : pairs.source_starts[5]].tolist()
    assert target == pairs.target[pairs.target_starts[4] : pairs.target_starts[5]].tolist()
