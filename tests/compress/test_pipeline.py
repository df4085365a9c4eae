"""The stages in their order, each tensor with its own settings, and a model left with what was packed."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from lite_nmt.compress.finetune import FineTuner
from lite_nmt.compress.int8 import dequantize_rows, quantize_rows
from lite_nmt.compress.packing import unpack
from lite_nmt.compress.pipeline import CompressConfig, Stage, compress, layer_of, settle
from lite_nmt.compress.prune import matrices
from lite_nmt.compress.weights import numbers
from lite_nmt.data.encoded import Encoded
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint
from lite_nmt.models.translation import TranslationModel


@pytest.fixture
def model(trained: Path) -> TranslationModel:
    return checkpoint.load(trained).model()


def stages(model: TranslationModel, config: CompressConfig, tuner: FineTuner | None = None) -> list[Stage]:
    found: list[Stage] = []
    compress(model, config, tuner, found.append)
    return found


def test_the_model_is_left_with_what_was_packed(model: TranslationModel) -> None:
    before = {name: w.copy() for name, w in numbers(model).items()}
    packed = compress(model, CompressConfig(bits=5, prune=0.5))
    assert packed.expanded_bytes == 4 * sum(w.size for w in before.values())
    stored = {k: w for book in unpack(packed.content, packed.expanded_bytes, "x") for k, w in book.weights().items()}
    assert stored.keys() == before.keys()
    for name, weights in numbers(model).items():
        np.testing.assert_array_equal(weights, stored[name], strict=True)
    for name in matrices(model):
        assert (stored[name] == 0).mean() == pytest.approx(0.5, abs=0.01)
        assert len(np.unique(stored[name])) <= 32
    for name in before.keys() - set(matrices(model)):
        np.testing.assert_allclose(stored[name], before[name], atol=0.02)


def test_stages_come_in_order(trained: Path, model: TranslationModel) -> None:
    assert [s.name for s in stages(model, CompressConfig())] == ["as trained", "codebooks", "packed"]
    data = Encoded.open(trained / "data" / "train")
    tuner = FineTuner(checkpoint.load(trained), data, 2, 1e-3, torch.device("cpu"))
    found = stages(model, CompressConfig(prune=0.3), tuner)
    names = ["as trained", "pruned", "pruned, fine-tuned", "codebooks", "codebooks, fine-tuned", "packed"]
    assert [s.name for s in found] == names
    target = [s.weights["target.weight"] for s in found]
    assert all(np.array_equal(w == 0, target[1] == 0) for w in target[1:])
    assert not any(np.array_equal(one, other) for one, other in itertools.pairwise(target[:5]))
    np.testing.assert_array_equal(target[4], target[5])


def test_int8_stages(trained: Path, model: TranslationModel) -> None:
    data = Encoded.open(trained / "data" / "train")
    tuner = FineTuner(checkpoint.load(trained), data, 2, 1e-3, torch.device("cpu"))
    names = set(matrices(model))
    float_weights = {name: w.copy() for name, w in numbers(model).items()}
    found = stages(model, CompressConfig(int8=True, prune=0.3), tuner)
    assert [(s.name, s.int8) for s in found] == [
        ("as trained", False),
        ("pruned", False),
        ("pruned, fine-tuned", False),
        ("int8", True),
        ("int8, fine-tuned", True),
        ("packed", True),
    ]
    for stage in found[3:]:
        for name, weights in stage.weights.items():
            assert stage.bits[name] == (8 if name in names else 32)
            if name in names:
                codes, scales = quantize_rows(weights)
                np.testing.assert_array_equal(dequantize_rows(codes, scales), weights)
                assert (weights[found[1].weights[name] == 0] == 0).all()
    for name, weights in found[-1].weights.items():
        np.testing.assert_array_equal(weights, found[-2].weights[name], strict=True)
        np.testing.assert_array_equal(weights, numbers(model)[name], strict=True)
    assert not np.array_equal(found[-1].weights["target.weight"], found[3].weights["target.weight"])
    untuned = stages(checkpoint.load(trained).model(), CompressConfig(int8=True))[-1].weights
    for name in float_weights.keys() - names:
        np.testing.assert_array_equal(untuned[name], float_weights[name], strict=True)


def test_each_tensor_takes_the_settings_of_its_longest_name(model: TranslationModel) -> None:
    config = CompressConfig(
        bits=8,
        prune=0.2,
        bits_of={"encoder": 2, "encoder.0.ffn": 3, "target": 4},
        prune_of={"encoder.0": 0.0, "encoder.0.ffn.out": 0.6},
    )
    weights = stages(model, config)[-1].weights
    for name, values, zeros in (
        ("encoder.1.ffn.out.weight", 4, 0.2),
        ("encoder.0.mixer.attention.qkv.weight", 4, 0.0),
        ("encoder.0.ffn.out.weight", 8, 0.6),
        ("target.weight", 16, 0.2),
    ):
        assert len(np.unique(weights[name])) == values
        assert (weights[name] == 0).mean() == pytest.approx(zeros, abs=0.01)


def test_global_scope_prunes_where_small_weights_are(model: TranslationModel) -> None:
    names = matrices(model)
    with torch.no_grad():
        checkpoint.named_weights(model)["target.weight"][:200] *= 0.01  # many small weights in one tensor
    local, together = (
        stages(copy.deepcopy(model), CompressConfig(prune=0.5, scope=scope))[-1].weights
        for scope in ("layer", "global")
    )
    for weights in (local, together):
        total = sum((weights[name] == 0).sum() for name in names) / sum(weights[name].size for name in names)
        assert total == pytest.approx(0.5, abs=0.01)
    assert (local["target.weight"] == 0).mean() == pytest.approx(0.5, abs=0.01)
    assert (together["target.weight"] == 0).mean() > 0.52


def test_a_layers_tensors_may_share_a_codebook(model: TranslationModel) -> None:
    whole = compress(copy.deepcopy(model), CompressConfig(bits=4, share="tensor"))
    shared = compress(model, CompressConfig(bits=4, share="layer"))
    books = unpack(shared.content, shared.expanded_bytes, "x")
    members = [list(book.weights()) for book in books]
    assert ["decoder.0.cross.q.weight", "decoder.0.cross.kv.weight", "decoder.0.cross.out.weight"] in members
    assert len(books) < len(unpack(whole.content, whole.expanded_bytes, "x"))
    assert len(shared.content) < len(whole.content)


def test_paper_bytes_by_hand() -> None:
    weights = {
        "target.weight": np.ones((100, 4), np.float32),  # an embedding, left out
        "a.weight": np.array([[0, 1, 2, 0]], np.float32),
        "a.bias": np.array([1, 1, 1, 1], np.float32),
    }
    stage = Stage("packed", weights, {"target.weight": 4, "a.weight": 4, "a.bias": 8})
    assert stage.paper_bytes() == (2 * 4 + 4 * 8) // 8
    assert stage.zeros() == 2 / 408


def test_layers_of_tensors() -> None:
    assert layer_of("decoder.0.cross.kv.weight") == "decoder.0.cross"
    assert layer_of("encoder.1.mixer.attention.qkv.weight") == "encoder.1.mixer.attention"
    assert layer_of("target.weight") == "target"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"bits": 1}, "bits is 1; a codebook takes 2 to 8"),
        ({"bits_of": {"target": 9}}, "bits of target is 9; a codebook takes 2 to 8"),
        ({"prune": 1.0}, "prune is 1; it must be at least 0 and below 1"),
        ({"prune": -0.1}, "prune is -0.1; it must be"),
        ({"prune_of": {"target": float("nan")}}, "prune of target is nan; it must be"),
        ({"scope": "all"}, "scope is 'all'; it must be one of layer, global"),
        ({"share": "all"}, "share is 'all'; it must be one of tensor, layer"),
        ({"int8": True, "bits": 4}, "int8 has one grid"),
        ({"int8": True, "bits_of": {"target": 8}}, "int8 has one grid"),
        ({"int8": True, "share": "layer"}, "int8 has one grid"),
        ({"init": "best"}, "init is 'best'; it must be one of linear, density, random"),
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, object], sentence: str) -> None:
    with pytest.raises(LiteNmtError, match=sentence):
        CompressConfig(**wrong)  # type: ignore[arg-type]  # wrong values of the right type


def test_a_layer_that_there_is_not_is_refused_with_the_nearest(model: TranslationModel) -> None:
    with pytest.raises(LiteNmtError, match=r"the model has no layer encoder\.0\.fnn; the nearest is encoder\.0\.ffn\."):
        settle(matrices(model), 8, {"encoder.0.fnn": 4})
    with pytest.raises(LiteNmtError, match=r"no layer encoder\.9"):
        compress(model, CompressConfig(prune_of={"encoder.9": 0.5}))


def test_nan_weights_are_refused_by_name(model: TranslationModel) -> None:
    with torch.no_grad():
        checkpoint.named_weights(model)["decoder.1.ffn.inner.bias"][3] = float("nan")
    with pytest.raises(LiteNmtError, match=r"decoder\.1\.ffn\.inner\.bias holds NaN"):
        compress(model, CompressConfig())
