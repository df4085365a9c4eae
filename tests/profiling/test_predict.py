"""Predictions against the count, by hand, and out of files."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from lite_nmt.config import Config, ModelConfig, StackConfig, VocabularyConfig, load_preset
from lite_nmt.errors import LiteNmtError
from lite_nmt.profiling.cost import cost
from lite_nmt.profiling.predict import LENGTH, Calibration, CortexA72, calls, features

PRESETS = [
    "iwslt-transformer-63m",
    "multi30k-lightconv",
    "multi30k-dynamicconv",
    "multi30k-talk",
    "mobile-100m",
    "wmt-lite-transformer-90m",
    "ablation-average-decoder",
]


def small(width: int = 16, types: int = 100, layers: int = 1) -> Config:
    side = StackConfig(layers=layers, mixer="attention", heads=2, ffn=32)
    return Config(ModelConfig(width, side, side, cross_heads=2), VocabularyConfig(source=types, target=types))


@pytest.mark.parametrize("preset", PRESETS)
def test_the_calls_of_a_sentence_add_up_to_the_full_count(preset: str) -> None:
    config = load_preset(preset)
    found = list(calls(config))
    times = {"encode": 1, "step": LENGTH}
    assert sum(times[c.stage] * c.mult_adds for c in found) == pytest.approx(cost(config).mult_adds("full"), rel=1e-12)
    total = cost(config)
    norms = sum(p.parameters for p in total.parts if p.kind == "norm")
    tied = config.vocabulary.target * config.model.width if config.model.tie != "none" else 0
    assert sum(c.weights for c in found) == 4 * (total.parameters() - norms + tied)


def test_features_by_hand() -> None:
    encode, step = (features(small(), stage, cache=5000) for stage in ("encode", "step"))
    attention = 30 * 4 * 16**2 + 2 * 30 * 30 * 16
    encoder = 4 * (4 * (16 * 16 + 16) + 16 * 32 + 32 + 32 * 16 + 16)
    keys = 4 * 2 * (16 * 16 + 16)
    assert encode == {
        "attention": 1,
        "ffn": 1,
        "keys and values": 1,
        "Mult-Adds": pytest.approx((attention + 30 * 2 * 16 * 32 + 30 * 2 * 16**2) / 1e6),
        "far weights": pytest.approx((encoder + keys - 5000) / 1e6),
    }
    assert step["output projection"] == step["cross-attention"] == 1
    assert step["state"] == pytest.approx((4 * 30 * 16 + 4 * 2 * 30 * 16) / 1e6)
    assert "far weights" not in features(small(), "step", cache=10**6)


def test_kinds_are_told_apart() -> None:
    config = load_preset("wmt-lite-transformer-90m")
    found = features(config, "step", 0)
    layers = config.model.decoder.layers
    assert found["attention"] == found["dynamicconv"] == found["split and concatenation"] == layers
    assert "lightconv" not in found
    assert features(load_preset("multi30k-talk"), "step", 0)["talk"] == 6


def test_cortex_a72_computes_where_weights_stay_in_cache() -> None:
    """Each weight is read once and multiplied 30 times: products bind, at half of 4 a cycle."""
    products = cost(small()).mult_adds("full")
    assert CortexA72(1).predict(small()) == pytest.approx(1000 * products / (0.5 * 4 * 1.5e9))
    assert CortexA72(4).predict(small()) == pytest.approx(1000 * products / (4 * 0.5 * 4 * 1.5e9))


def test_cortex_a72_reads_where_they_do_not() -> None:
    """8,000 types of 256 channels are 8 MB: a step lasts as long as its weights take, the encoder its products."""
    config = small(256, 8000)
    weights = sum(c.weights for c in calls(config) if c.stage == "step")
    products = sum(c.mult_adds for c in calls(config) if c.stage == "encode")
    expected = 30 * weights / 4e9 + products / (4 * 0.5 * 4 * 1.5e9)
    assert CortexA72(4).predict(config) == pytest.approx(1000 * expected)
    assert "ESTIMATE" in CortexA72().caption
    assert "estimated" in CortexA72().label


@pytest.mark.parametrize("threads", [0, 5])
def test_cortex_a72_has_four_cores(threads: int) -> None:
    with pytest.raises(LiteNmtError, match=f"--threads is {threads}; a Cortex-A72 as estimated here has 4 cores"):
        CortexA72(threads)


def prices(scale: float = 1.0) -> dict[str, float]:
    kinds = ("attention", "ffn", "keys and values", "cross-attention", "output projection")
    return dict.fromkeys(kinds, 0.5 * scale) | {"Mult-Adds": 2 * scale, "state": 3 * scale, "far weights": scale}


CALIBRATION = Calibration("a machine", 1, 0, prices(), prices(0.1), {"mobile-100m": (10, 11), "multi30k-talk": (10, 7)})


def test_a_calibration_is_a_sum_of_prices() -> None:
    encode, step = (features(small(), stage, 0) for stage in ("encode", "step"))
    expected = 0.5 * 3 + 2 * encode["Mult-Adds"] + encode["far weights"]
    expected += 30 * 0.1 * (0.5 * 4 + 2 * step["Mult-Adds"] + 3 * step["state"] + step["far weights"])
    assert CALIBRATION.predict(small()) == pytest.approx(expected)
    assert CALIBRATION.error == pytest.approx(0.2)
    assert "for a machine, --threads 1," in CALIBRATION.caption
    assert "on 2 presets held out the prediction was 20% off (median)" in CALIBRATION.caption


def test_a_kind_without_a_price_is_refused() -> None:
    with pytest.raises(LiteNmtError, match="holds no figure for talk"):
        CALIBRATION.predict(load_preset("multi30k-talk"))


def test_a_calibration_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(CALIBRATION.to_json())
    assert Calibration.load(path) == CALIBRATION


def altered(**changes: Any) -> str:
    return json.dumps(json.loads(CALIBRATION.to_json()) | changes)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps(asdict(CALIBRATION)),
        altered(format="lite-nmt calibration 0"),
        altered(threads="many"),
        altered(encode={"ffn": "fast"}),
        altered(encode=[1, 2]),
        altered(held_out={}),
        altered(held_out={"mobile-100m": [0, 1]}),
        altered(held_out={"mobile-100m": 1}),
    ],
)
def test_a_damaged_calibration_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(text)
    with pytest.raises(LiteNmtError, match="is not a calibration of this release; remove it to calibrate anew"):
        Calibration.load(path)


def test_a_missing_calibration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LiteNmtError, match=r"cannot read .*: No such file"):
        Calibration.load(tmp_path / "nowhere")


def test_wider_is_never_predicted_faster() -> None:
    for target in (CALIBRATION, CortexA72(), replace(CALIBRATION, cache=10**6)):
        times = [target.predict(small(width)) for width in (16, 32, 64, 128)]
        assert times == sorted(times)
        assert len(set(times)) == 4
