"""Which weights are pruned, and how many."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lite_nmt.compress.prune import matrices, prune
from lite_nmt.config import Config, from_dict, merge
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.translation import TranslationModel


def normal(shape: tuple[int, ...], std: float, seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(seed).normal(0, std, shape).astype(np.float32)


@pytest.mark.parametrize("sparsity", [0.0, 0.1, 0.45, 0.9, 0.999])
def test_the_smallest_weights_go_and_the_others_stay(sparsity: float) -> None:
    weights = normal((50, 40), 0.1, 0)
    pruned, s = prune({"a": weights}, sparsity)
    kept = pruned["a"] != 0
    assert (~kept).sum() == round(sparsity * 2000)
    np.testing.assert_array_equal(pruned["a"][kept], weights[kept])
    if sparsity:
        np.testing.assert_array_equal(kept, np.abs(weights) > s * weights.std())
        assert np.abs(weights[~kept]).max() <= np.abs(weights[kept]).min()


def test_one_threshold_counts_in_standard_deviations() -> None:
    # The same distribution at two scales loses as much at both; one with heavy tails has more small weights.
    tensors = {"small": normal((300, 100), 0.01, 1), "large": normal((300, 100), 10, 2)}
    pruned, s = prune(tensors, 0.5)
    for weights in pruned.values():
        assert (weights == 0).mean() == pytest.approx(0.5, abs=0.01)
    assert s == pytest.approx(0.6745, abs=0.01)  # the normal distribution's quartile
    tails = np.random.default_rng(3).standard_t(3, (300, 100)).astype(np.float32)
    pruned, _ = prune({"normal": normal((300, 100), 1, 4), "tails": tails}, 0.5)
    assert (pruned["tails"] == 0).mean() > (pruned["normal"] == 0).mean() + 0.1
    total = np.mean([(weights == 0).mean() for weights in pruned.values()])
    assert total == pytest.approx(0.5, abs=1e-4)


def test_a_tensor_of_one_value_is_no_crash() -> None:
    pruned, _ = prune({"zero": np.zeros((4, 4), np.float32), "normal": normal((4, 4), 1, 0)}, 0.5)
    np.testing.assert_array_equal(pruned["zero"], 0)
    assert (pruned["normal"] != 0).all()


@pytest.mark.parametrize("sparsity", [-0.1, 1.0, 1.5, float("nan")])
def test_a_sparsity_out_of_range_is_refused(sparsity: float) -> None:
    with pytest.raises(LiteNmtError, match="must be at least 0 and below 1"):
        prune({"a": normal((4, 4), 1, 0)}, sparsity)


@pytest.mark.parametrize("mixer", ["attention", "lightconv", "dynamicconv", "talk", "average", "cnn", "lsra"])
@pytest.mark.parametrize("tie", ["all", "none"])
def test_matrices_are_all_that_multiplies_the_input(tiny: Callable[..., Config], mixer: str, tie: str) -> None:
    sides = {side: {"mixer": mixer} for side in ("encoder", "decoder")}
    config = from_dict(Config, merge(tiny().to_dict(), {"model": {**sides, "tie": tie}}))
    model = TranslationModel(config)
    found = matrices(model)
    others = {name: p for name, p in model.named_parameters() if name not in found}
    assert len(found) == len(set(found))
    assert {p.dim() for name, p in model.named_parameters() if name in found} <= {2, 3}
    assert {name.rsplit(".", 2)[-2] for name, p in others.items() if p.dim() > 1} <= {"producer"}
    assert ("target.weight" in found, "project.weight" in found) == (True, tie == "none")
