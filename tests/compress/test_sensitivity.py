"""Curves: one layer changed at a time, kept on disk, and refused where they are of something else."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lite_nmt.compress.kmeans import Floats
from lite_nmt.compress.sensitivity import BITS, SPARSITIES, Curves, draw, measure
from lite_nmt.errors import LiteNmtError

Array = NDArray[np.float32]
NAMES = ["encoder.0.ffn.inner.weight", "encoder.0.ffn.out.weight", "decoder.0.cross.q.weight", "target.weight"]


@pytest.fixture(scope="module")
def weights() -> dict[str, Array]:
    random = np.random.default_rng(0)
    return {name: random.normal(0, 0.1, (40, 30)).astype(np.float32) for name in [*NAMES, "encoder.0.ffn.inner.bias"]}


@pytest.fixture(scope="module")
def curves(weights: dict[str, Array]) -> Curves:
    """Of a loss that grows with the squared change of weights, ten times as fast for the cross-attention."""

    def loss(changed: Mapping[str, Floats]) -> dict[str, float]:
        moved = {name: float(((changed[name] - weights[name]) ** 2).mean()) for name in weights}
        assert sum(error > 0 for error in moved.values()) in (
            0,
            1,
            2,
            4,
        )  # one layer at a time, of one matrix or two, or all
        return {"nll": 2 + sum((10 if "cross" in name else 1) * error for name, error in moved.items())}

    said: list[str] = []
    found = measure(weights, NAMES, loss, "linear", said.append)
    assert [text.split(":")[0] for text in said] == ["1 of 3", "2 of 3", "3 of 3"]
    return found


def test_every_layer_has_both_curves(curves: Curves) -> None:
    assert curves.whole == {"nll": 2}
    assert list(curves.layers) == ["encoder.0.ffn", "decoder.0.cross", "target"]
    assert curves.layers["encoder.0.ffn"].weights == 2400
    for layer in curves.layers.values():
        assert (tuple(layer.pruned), tuple(layer.quantised)) == (SPARSITIES, BITS)
        assert SPARSITIES == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
        losses = [found["nll"] for found in layer.pruned.values()]
        assert losses == sorted(losses)
        losses = [found["nll"] for found in layer.quantised.values()]
        assert losses == sorted(losses, reverse=True)
        assert list(layer.bytes.values()) == sorted(layer.bytes.values())
        assert 0.9 * layer.weights * 4 / 8 < layer.bytes[4] < layer.weights * 4 / 8 + 300  # with a header
    for key, point in curves.together.quantised.items():
        assert point["nll"] - 2 == pytest.approx(sum(own.quantised[key]["nll"] - 2 for own in curves.layers.values()))
    ratio = (curves.layers["decoder.0.cross"].pruned[0.5]["nll"] - 2) / (curves.layers["target"].pruned[0.5]["nll"] - 2)
    assert ratio == pytest.approx(10, rel=0.2)


def test_curves_survive_the_disk(curves: Curves, tmp_path: Path) -> None:
    curves.save(tmp_path, {"pairs": 7})
    assert Curves.load(tmp_path / "sensitivity.json") == curves
    assert (tmp_path / "sensitivity.png").read_bytes().startswith(b"\x89PNG")
    assert '"pairs": 7' in (tmp_path / "sensitivity.json").read_text()


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [("pruned", "0.5", {"nll": float("nan")}), ("quantised", "4", {}), ("quantised", "4", {"nll": "low"})],
)
def test_a_loss_that_is_none_is_not_taken_for_none_added(
    curves: Curves, tmp_path: Path, part: str, key: str, value: object
) -> None:
    curves.save(tmp_path, {})
    saved = json.loads((tmp_path / "sensitivity.json").read_text())
    saved["layers"]["target"][part][key] = value
    (tmp_path / "sensitivity.json").write_text(json.dumps(saved))
    with pytest.raises(LiteNmtError, match="holds no sensitivity curves"):
        Curves.load(tmp_path / "sensitivity.json")


def test_curves_of_a_layer_without_effect_can_be_drawn(curves: Curves, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # whose state is the caller's
    flat = Curves({"nll": 1e9}, curves.layers, curves.together)
    assert draw(flat).startswith(b"\x89PNG")


def test_another_models_curves_are_refused(curves: Curves, weights: dict[str, Array]) -> None:
    curves.check(weights, NAMES)
    for other in (NAMES[:-1], [*NAMES, "encoder.0.ffn.inner.bias"]):
        with pytest.raises(LiteNmtError, match="curves are of another model"):
            curves.check(weights, other)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"layers": {}}', '{"whole": {}, "layers": {"a": 1}}', "\x00"])
def test_what_holds_no_curves_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(LiteNmtError, match="holds no sensitivity curves"):
        Curves.load(tmp_path / "x.json")
    with pytest.raises(LiteNmtError, match="cannot read"):
        Curves.load(tmp_path / "none.json")
