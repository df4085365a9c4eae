"""The fit finds prices that are known; what is timed is what is said."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

import pytest
import torch

from lite_nmt.config import Config, load_preset
from lite_nmt.models.translation import TranslationModel
from lite_nmt.profiling import calibrate as module
from lite_nmt.profiling.calibrate import CACHES, HELD_OUT, calibrate, fit, trials
from lite_nmt.profiling.latency import stages
from lite_nmt.profiling.predict import LENGTH, STAGES, Calibration, features
from lite_nmt.profiling.search import FAMILIES, shapes


def test_fit_finds_the_prices_of_exact_sums() -> None:
    rows = [{"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 5.0, "c": 1.0}, {"a": 3.0, "c": 2.0}, {"a": 2.0, "b": 1.0, "c": 9.0}]
    known = {"a": 0.5, "b": 0.25, "c": 4.0}
    times = [sum(known[name] * amount for name, amount in row.items()) for row in rows]
    assert fit(rows, times) == pytest.approx(known)


def test_fit_gives_zero_rather_than_a_negative_price() -> None:
    rows = [{"a": 1.0, "b": 0.0}, {"a": 2.0, "b": 1.0}, {"a": 3.0, "b": 2.0}]
    found = fit(rows, [2.0, 3.0, 4.0])  # a = 2, b = -1 without the bound
    assert found["b"] == 0
    assert found["a"] == pytest.approx((1 / 2 + 2 / 3 + 3 / 4) / (1 / 4 + 4 / 9 + 9 / 16))  # relative least squares


def known_machine(cache: int) -> Calibration:
    """Prices of everything that trials and presets hold."""
    names = {name for config in trials() for stage in STAGES for name in features(config, stage, cache)}
    rank = {name: i for i, name in enumerate(sorted(names))}
    encode, step = ({n: 0.01 * (1 + rank[n] % 4) for n in names} for _ in STAGES)
    return Calibration("known", 1, cache, encode, step, {})


def test_a_machine_that_keeps_to_the_formula_is_found_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    known = known_machine(CACHES[2])

    def times(configs: Sequence[Config], threads: int, seconds: float) -> list[Mapping[str, float]]:
        assert (threads, seconds) == (3, 1.5)
        return [{stage: known._stage(config, stage) for stage in STAGES} for config in configs]

    monkeypatch.setattr(module, "_times", times)
    found = calibrate(3, 1.5)
    assert (found.cache, found.threads) == (CACHES[2], 3)
    assert list(found.held_out) == list(HELD_OUT)
    assert found.error < 0.001
    for name, (measured, _) in found.held_out.items():
        assert measured == pytest.approx(known.predict(load_preset(name)))


def test_the_trials_price_whatever_a_search_finds() -> None:
    known = known_machine(CACHES[0])
    base = load_preset("lite-transformer-mobile")
    for shape in shapes(tuple(FAMILIES)):
        assert known.predict(shape.config(shape.widths()[1], base)) > 0
    held_out = {str(load_preset(name).model) for name in HELD_OUT}
    assert not held_out & {str(config.model) for config in trials()}


def test_each_step_of_a_search_is_timed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_preset("multi30k-lightconv", {"vocabulary": {"source": 100, "target": 100}})
    model = TranslationModel(config).eval()
    now = iter(range(1000))
    found = module._steps(model, stages(model, LENGTH, LENGTH, 1)["sentence"], lambda: next(now))
    assert found == [1000.0] * LENGTH
    assert "step" not in vars(model)
    before = torch.get_num_threads()
    set_to: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", set_to.append)
    (times,) = module._times([config], 7, seconds=0)
    assert set_to == [7, before]
    assert 0 < times["step"] < 1000
    assert 0 < times["encode"] < 1000
    assert capsys.readouterr().err == "calibrating: 1 models, round 1\n"


def test_disturbed_calls_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "clock", lambda *_: [9.0, 2.0, 50.0])
    slow = iter([[1.0, 2.0, 3.0, 100.0], [1.5, 2.5, 70.0, 80.0]])
    monkeypatch.setattr(module, "_steps", lambda *_: next(slow))
    config = load_preset("multi30k-lightconv", {"vocabulary": {"source": 100, "target": 100}})
    (times,) = module._times([config], 1, seconds=0)
    assert times["encode"] == 2
    assert times["step"] == statistics.quantiles([1, 2, 3, 100, 1.5, 2.5, 70, 80], n=4)[0] < 2
