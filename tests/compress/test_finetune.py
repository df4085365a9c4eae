"""Fine-tuning: what may move moves by the right gradient, and the rest stays."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from lite_nmt.compress.finetune import FineTuner, keep_zeros, share, sum_by_code
from lite_nmt.compress.kmeans import Book, make_book
from lite_nmt.compress.prune import matrices, prune
from lite_nmt.compress.weights import Weights
from lite_nmt.data.batches import gather
from lite_nmt.data.encoded import Encoded
from lite_nmt.data.vocabulary import PAD
from lite_nmt.errors import LiteNmtError
from lite_nmt.evaluate.pairs import negative_log_likelihood
from lite_nmt.models import checkpoint
from lite_nmt.train.loss import linear_cross_entropy
from lite_nmt.train.metrics import Metrics
from lite_nmt.train.processes import Processes
from lite_nmt.train.trainer import hash_seed
from lite_nmt.train.translation import TranslationTrainer

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data(trained: Path) -> Encoded:
    return Encoded.open(trained / "data" / "train")


@pytest.fixture(scope="module")
def pruned(trained: Path) -> Weights:
    saved = checkpoint.load(trained)
    weights = {name: w.numpy() for name, w in saved.weights().items()}
    return weights | prune({name: weights[name] for name in matrices(saved.model())}, 0.5)[0]


@pytest.fixture
def trainer(trained: Path, data: Encoded, pruned: Weights, tmp_path: Path) -> TranslationTrainer:
    saved = checkpoint.load(trained)
    config = dataclasses.replace(saved.config, train=dataclasses.replace(saved.config.train, clip=0.0))
    run = Processes(CPU), Metrics(tmp_path, first=False)
    trainer = TranslationTrainer(config, saved.languages, saved.vocabulary, data, None, tmp_path, *run)
    checkpoint.restore(trainer.model, pruned, "a test")
    return trainer


def in_books(weights: Weights, groups: list[list[str]]) -> list[Book]:
    return [make_book({name: weights[name] for name in names}, 4) for names in groups]


def tuner(trained: Path, data: Encoded, steps: int = 20) -> FineTuner:
    return FineTuner(checkpoint.load(trained), data, steps, 1e-3, CPU)


def loss(trainer: TranslationTrainer, weights: Weights, data: Encoded) -> float:
    checkpoint.restore(trainer.model, weights, "a test")
    trainer.model.eval()
    return negative_log_likelihood(trainer.model, data, trainer.recipe.batch_tokens)


def test_gradients_are_summed_by_code() -> None:
    torch.manual_seed(0)
    codes = torch.randint(5, (3, 7), dtype=torch.int32), torch.randint(5, (4,), dtype=torch.int32)
    gradients = torch.randn(3, 7), torch.randn(4)
    expected = torch.zeros(6, dtype=torch.float64)
    for gradient, code in zip(gradients, codes, strict=True):
        for g, c in zip(gradient.flatten().tolist(), code.flatten().tolist(), strict=True):
            expected[c] += g
    found = sum_by_code(list(zip(gradients, codes, strict=True)), 6)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_a_codebooks_gradient_is_the_derivative_of_the_loss_by_it(
    trainer: TranslationTrainer, pruned: Weights, data: Encoded
) -> None:
    names = matrices(trainer.model)
    books = in_books(pruned, [names[:1], names[1:4], names[4:]])  # one tensor, and several in one book
    for book in books:
        for name, w in book.weights().items():
            checkpoint.named_weights(trainer.model)[name].data.copy_(torch.from_numpy(w))
    values = share(trainer, books)
    seen: list[Tensor] = []

    def catch(*_: object) -> None:
        seen.extend(v.grad.clone() for v in values if v.grad is not None)

    trainer.optimizer.register_step_pre_hook(catch)
    trainer.model.train()
    group, tokens = next(trainer.groups())
    before = [v.clone() for v in values]
    parameters = {name: p.detach().clone() for name, p in checkpoint.named_weights(trainer.model).items()}
    trainer.update((group, tokens))

    leaves = [torch.from_numpy(book.codebook.astype(np.float32)).requires_grad_() for book in books]
    for book, leaf in zip(books, leaves, strict=True):
        parameters |= {name: leaf[torch.from_numpy(codes.astype(np.int64))] for name, codes in book.codes.items()}
    batch = gather(data, group[0])
    torch.manual_seed(hash_seed(trainer.recipe.seed, 1, 0))
    hidden = functional_call(trainer.model, parameters, (batch.source, batch.keep, batch.target))
    real = batch.labels != PAD
    smoothing = trainer.recipe.label_smoothing
    total = linear_cross_entropy(hidden[real], parameters["target.weight"], batch.labels[real], smoothing)[0]
    (total / tokens).backward()
    assert len(seen) == 3
    for leaf, found, old, value, book in zip(leaves, seen, before, values, books, strict=True):
        assert leaf.grad is not None
        assert book.codebook[0] == 0
        expected = leaf.grad.clone()
        expected[0] = 0  # zero stays
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-6)
        # AdamW's first step is the sign of the gradient, and the weights follow.
        rate = trainer.optimizer.param_groups[0]["lr"]
        decayed = old * (1 - rate * trainer.recipe.weight_decay)
        torch.testing.assert_close(value, decayed - rate * expected / (expected.abs() + 1e-8), rtol=1e-4, atol=1e-6)
        assert value[0] == 0


def test_shared_weights_keep_their_codes_and_learn(
    trained: Path, trainer: TranslationTrainer, pruned: Weights, data: Encoded
) -> None:
    names = matrices(trainer.model)
    books = in_books(pruned, [[name] for name in names])
    start = dict(pruned)
    for book in books:
        start |= book.weights()
    tuned, changed = tuner(trained, data).sharing(start, books)
    for old, new in zip(books, changed, strict=True):
        assert new.codebook.dtype == np.float16
        assert new.codebook[0] == 0
        assert not np.array_equal(old.codebook, new.codebook)
        for name, codes in old.codes.items():
            np.testing.assert_array_equal(codes, new.codes[name])
            np.testing.assert_array_equal(tuned[name], new.weights()[name])
    assert not np.array_equal(tuned["decoder.0.ffn.inner.bias"], start["decoder.0.ffn.inner.bias"])
    assert loss(trainer, tuned, data) < loss(trainer, start, data) - 0.02


def test_zeros_stay_while_the_rest_learns(
    trained: Path, trainer: TranslationTrainer, pruned: Weights, data: Encoded
) -> None:
    names = matrices(trainer.model)
    tuned = tuner(trained, data).keeping_zeros(pruned, names)
    for name in names:
        np.testing.assert_array_equal(tuned[name] == 0, pruned[name] == 0)
        assert (tuned[name] == 0).any()
    assert loss(trainer, tuned, data) < loss(trainer, pruned, data) - 0.05


def test_zeros_of_other_tensors_may_move(trainer: TranslationTrainer) -> None:
    keep_zeros(trainer, ["encoder.0.ffn.inner.weight"])
    parameters = checkpoint.named_weights(trainer.model)
    kept, free = parameters["encoder.0.ffn.inner.weight"], parameters["encoder.0.ffn.out.weight"]
    before = [(p.detach() == 0).sum() for p in (kept, free)]
    trainer.model.train()
    trainer.update(next(trainer.groups()))
    assert (kept == 0).sum() == before[0] > 0
    assert (free == 0).sum() < before[1]


def test_fine_tuning_repeats_itself(trained: Path, pruned: Weights, data: Encoded) -> None:
    one, other = (tuner(trained, data, 3).keeping_zeros(pruned, []) for _ in range(2))
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_divergence_is_said_in_its_own_words(trained: Path, pruned: Weights, data: Encoded) -> None:
    wild = FineTuner(checkpoint.load(trained), data, 20, 100.0, CPU)
    with pytest.raises(LiteNmtError, match=r"fine-tuning diverged at a learning rate of 100; take a lower one\."):
        wild.keeping_zeros({name: w * 1e18 for name, w in pruned.items()}, [])
