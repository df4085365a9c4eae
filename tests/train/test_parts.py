"""Loss, schedules, batches, averaging and the footprint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lite_nmt.config import TrainConfig, VocabularyConfig
from lite_nmt.data.batches import epoch_order, gather
from lite_nmt.data.corpus import read_lines, sides
from lite_nmt.data.encoded import Encoded, encode
from lite_nmt.data.vocabulary import BOS, EOS, PAD, Vocabulary, train_vocabulary
from lite_nmt.errors import LiteNmtError
from lite_nmt.modules.dropout import Dropout
from lite_nmt.train import loss as loss_module
from lite_nmt.train.average import average
from lite_nmt.train.footprint import footprint
from lite_nmt.train.loss import linear_cross_entropy
from lite_nmt.train.schedule import learning_rate


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_chunked_loss_equals_pytorchs_and_so_do_its_gradients(
    smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_module, "CHUNK", 7)  # several chunks, the last one short
    torch.manual_seed(0)
    hidden = torch.randn(19, 5, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(11, 5, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(11, (19,))
    loss, nll = linear_cross_entropy(hidden, weight, labels, smoothing, torch.float64)
    (3 * loss).backward()
    found = hidden.grad, weight.grad
    hidden.grad = weight.grad = None
    scores = hidden @ weight.t()
    (3 * F.cross_entropy(scores, labels, reduction="sum", label_smoothing=smoothing)).backward()
    torch.testing.assert_close(
        loss.double(), F.cross_entropy(scores, labels, reduction="sum", label_smoothing=smoothing), rtol=1e-6, atol=0
    )
    torch.testing.assert_close(nll.double(), F.cross_entropy(scores, labels, reduction="sum"), rtol=1e-6, atol=0)
    for ours, theirs in zip(found, (hidden.grad, weight.grad), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_schedules() -> None:
    root = TrainConfig(lr=1.0, warmup=100, warmup_lr=0.0, schedule="inverse_sqrt")
    assert learning_rate(root, 50) == pytest.approx(0.5)
    assert learning_rate(root, 100) == pytest.approx(1.0)
    assert learning_rate(root, 400) == pytest.approx(0.5)
    cosine = TrainConfig(lr=1.0, warmup=100, steps=300, schedule="cosine", min_lr=0.0)
    assert learning_rate(cosine, 100) == pytest.approx(1.0)
    assert learning_rate(cosine, 200) == pytest.approx(0.5)
    assert learning_rate(cosine, 300) == pytest.approx(0.0)
    assert learning_rate(TrainConfig(lr=1.0, warmup=0), 1) == 1.0


@pytest.fixture(scope="module")
def encoded(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Encoded, Vocabulary]:
    found = sides(corpus, "train", "de", "en")
    assert found
    config = VocabularyConfig(source=400, target=400)
    vocabulary = train_vocabulary(config, read_lines(found.source), read_lines(found.target), 1)
    return encode(found, vocabulary, tmp_path_factory.mktemp("encoded") / "train", 256), vocabulary


def test_a_vocabulary_too_small_for_the_characters_is_refused() -> None:
    with pytest.raises(LiteNmtError, match="a vocabulary of 100 types is too small"):
        train_vocabulary(VocabularyConfig(target=100), iter(["Ein Haus."] * 9), iter(["A house."] * 9), 1)


def test_each_epoch_holds_every_sentence_once(encoded: tuple[Encoded, Vocabulary]) -> None:
    data = encoded[0]
    longest = np.maximum(*data.lengths())
    orders = []
    for epoch in (0, 1):
        order = list(epoch_order(data, 200, seed=3, epoch=epoch))
        assert sorted(np.concatenate(order).tolist()) == list(range(len(data)))
        assert all(len(b) == 1 or len(b) * longest[b].max() <= 200 for b in order)
        orders.append(np.concatenate(order).tolist())
    assert orders[0] != orders[1]
    again = np.concatenate(list(epoch_order(data, 200, seed=3, epoch=0))).tolist()
    assert again == orders[0]


def test_batches_hold_the_corpus(corpus: Path, encoded: tuple[Encoded, Vocabulary]) -> None:
    data, vocabulary = encoded
    batch = gather(data, np.array([3, 0, 7]))
    english = list(read_lines(corpus / "train.en"))
    for row, i in enumerate((3, 0, 7)):
        labels = [t for t in batch.labels[row].tolist() if t != PAD]
        assert labels[-1] == EOS
        assert vocabulary.decode(labels) == english[i]
        assert batch.target[row].tolist()[: len(labels)] == [BOS, *labels[:-1]]
    assert torch.equal(batch.keep, batch.source != PAD)


def test_long_and_empty_pairs_are_left_out_and_counted(tmp_path: Path, encoded: tuple[Encoded, Vocabulary]) -> None:
    (tmp_path / "train.de").write_text("Der Hund schläft.\n\n" + "sehr " * 50 + "\n")
    (tmp_path / "train.en").write_text("The dog sleeps.\nnothing\nvery\n")
    found = sides(tmp_path, "train", "de", "en")
    assert found
    data = encode(found, encoded[1], tmp_path / "out", 40)
    assert len(data) == 1
    assert data.left_out == {"empty": 1, "longer than max_length": 1}
    with pytest.raises(LiteNmtError, match="hold no usable pair"):
        encode(found, encoded[1], tmp_path / "out2", 2)


def test_dropout_drops_what_it_says_and_keeps_the_mean() -> None:
    torch.manual_seed(0)
    x = torch.ones(1001, 77)
    dropout = Dropout(0.3)
    y = dropout(x)
    assert (y == 0).float().mean().item() == pytest.approx(0.3, abs=0.005)
    assert y.mean().item() == pytest.approx(1.0, abs=0.01)
    assert dropout.eval()(x) is x


def test_average_refuses_nothing() -> None:
    with pytest.raises(LiteNmtError, match="no checkpoint"):
        average([])


def test_footprint_is_the_papers_formula() -> None:
    spent = footprint(7200.0, torch.device("cpu"), 1)
    assert spent.kwh == pytest.approx(1.58 * 2 * spent.devices * 10 / 1000)
    assert spent.co2_kg == pytest.approx(spent.kwh * 0.433)
    assert "CPU core hours" in spent.sentence()
