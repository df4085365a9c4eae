"""Which types a sentence is left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lite_nmt.data.batches import gather
from lite_nmt.data.encoded import Encoded
from lite_nmt.data.vocabulary import EOS, PAD
from lite_nmt.errors import LiteNmtError
from lite_nmt.export import shortlist
from lite_nmt.export.shortlist import Ids, Shortlist, build, select, translations
from lite_nmt.models import checkpoint
from lite_nmt.models.checkpoint import Checkpoint


@pytest.fixture(scope="module")
def model(trained: Path) -> Checkpoint:
    return checkpoint.load(trained)


@pytest.fixture(scope="module")
def pairs(trained: Path) -> Encoded:
    return Encoded.open(trained / "data" / "train")


def ids(*values: object) -> Ids:
    return np.array(values, np.int32)


def test_rows_are_each_type_once() -> None:
    small = Shortlist(ids(3, 6), ids([3, 3], [6, 8], [7, 3]))
    np.testing.assert_array_equal(small.rows([2, 1, 2]), [3, 6, 7, 8])
    np.testing.assert_array_equal(small.rows([0]), [3, 6])
    assert small.rows([1]).dtype == np.int32
    assert small.bytes == 4 * 8


def test_counts_are_the_attention_of_each_pair_of_types(
    model: Checkpoint, pairs: Encoded, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = pairs.first(60)
    monkeypatch.setattr(shortlist, "BATCH_TOKENS", 200)
    monkeypatch.setattr(shortlist, "PENDING", 100)  # so that it adds up many times
    links, found = translations(model, pairs, len(pairs), "cpu")
    types = model.config.vocabulary
    dense, network = np.zeros((types.source, types.target)), model.model()
    with torch.inference_mode():
        for i in range(len(pairs)):
            one = gather(pairs, np.array([i]))
            attention = network.alignment(one.target, network.memory(network.encode(one.source, one.keep)), one.keep)
            counted = torch.where(attention >= shortlist.LEAST, attention, 0)[0].double().numpy()
            np.add.at(dense, (one.source.numpy(), one.labels.numpy().T), counted)
    again = np.zeros_like(dense)
    again.ravel()[links] = found
    assert (np.diff(links) > 0).all()
    # Padding changes the last bits, and so, rarely, what is at least LEAST.
    assert (np.abs(again - dense) < 1e-4).mean() > 0.999
    assert np.abs(again - dense).max() < 2 * shortlist.LEAST
    assert not again[PAD].any()
    assert not again[:, PAD].any()


def test_the_likeliest_are_chosen(model: Checkpoint, pairs: Encoded) -> None:
    types = model.config.vocabulary
    links = translations(model, pairs, len(pairs), "cpu")
    made = select(model, pairs, links, 4, 10)
    count = np.zeros((types.source, types.target))
    count.ravel()[links[0]] = links[1]
    count[:, made.frequent] = 0
    for row, own in zip(made.table, count, strict=True):
        expected = np.sort(own)[::-1][:4]
        np.testing.assert_array_equal(own[row], expected)
        assert (row[expected == 0] == EOS).all()


def test_a_sentence_may_end_and_spell(model: Checkpoint, pairs: Encoded) -> None:
    made = build(model, pairs, per_word=4, frequent=10)
    pieces = model.vocabulary.target
    spelling = [i for i in range(model.config.vocabulary.target) if pieces.is_byte(i)]
    assert len(spelling) == 256
    assert {EOS, *spelling} <= set(made.frequent.tolist())
    assert made.frequent.min() == EOS  # padding, unknown and the start are never generated
    seen = np.bincount(pairs.target, minlength=model.config.vocabulary.target)
    others = np.setdiff1d(np.flatnonzero(seen), [EOS, *spelling])
    left = np.setdiff1d(others, made.frequent)
    assert len(others) - len(left) == 10
    assert seen[np.setdiff1d(made.frequent, [EOS, *spelling])].min() >= seen[left].max()


def test_a_part_of_the_pairs_can_be_aligned(model: Checkpoint, pairs: Encoded) -> None:
    links, count = translations(model, pairs, 7, "cpu")
    _, all_of_them = translations(model, pairs, 10**9, "cpu")
    assert 0 < count.sum() < all_of_them.sum() / 10
    assert len(links) == len(count)
    empty = build(model, pairs, per_word=1, frequent=0)
    assert len(empty.frequent) == 257
    assert empty.table.shape == (model.config.vocabulary.source, 1)


def test_sizes_out_of_range_are_refused(model: Checkpoint, pairs: Encoded) -> None:
    for per_word in (0, 10**6):
        with pytest.raises(LiteNmtError, match=f"per_word is {per_word}; it must be between 1 and"):
            build(model, pairs, per_word=per_word)
    with pytest.raises(LiteNmtError, match="frequent is -1; it must be between 0 and"):
        build(model, pairs, frequent=-1)
    with pytest.raises(LiteNmtError, match="most is 0; it must be between 1 and"):
        build(model, pairs, most=0)
