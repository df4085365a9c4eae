"""Fits :class:`Calibration` to this machine: small models of every kind are timed, and priced by least squares."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from lite_nmt.config import Config, ModelConfig, StackConfig, VocabularyConfig, load_preset
from lite_nmt.models.translation import TranslationModel
from lite_nmt.profiling.latency import FEWEST, clock, stages
from lite_nmt.profiling.machine import machine
from lite_nmt.profiling.predict import LENGTH, STAGES, Calibration, features

SECONDS = 25.0  # of timing, unless one round takes longer
MIXERS = ("attention", "lightconv", "dynamicconv", "talk", "lsra")
# Width, ffn, encoder and decoder layers, types, heads, taps: far enough apart to tell the terms of the fit.
TRIALS = (
    (256, 256, 10, 1, 8000, 4, 3),
    (512, 512, 1, 1, 8000, 4, 3),
    (384, 384, 6, 2, 8000, 4, 15),
    (128, 128, 4, 3, 16000, 4, 7),
    (384, 768, 2, 4, 4000, 8, 7),
    (256, 256, 1, 6, 8000, 4, 31),
    (128, 512, 2, 6, 2000, 4, 31),
)
CACHES = (2_000_000, 4_000_000, 8_000_000, 12_000_000, 16_000_000, 24_000_000, 32_000_000)
HELD_OUT = (
    *(f"multi30k-{name}" for name in ("transformer", "lightconv", "dynamicconv", "talk", "lite-transformer")),
    *(f"mobile-{name}" for name in ("100m", "100m-shallow", "300m", "300m-shallow", "500m")),
)


def trials() -> Iterator[Config]:
    """The models that are timed."""
    for mixer in MIXERS:
        for width, ffn, encoder, decoder, types, heads, taps in TRIALS:
            side = StackConfig(encoder, mixer, heads, conv_heads=heads, kernels=(taps,), ffn=ffn)
            model = ModelConfig(width, side, dataclasses.replace(side, layers=decoder), heads)
            yield Config(model, VocabularyConfig(source=types, target=types))


def calibrate(threads: int = 1, seconds: float = SECONDS) -> Calibration:
    """Time models, fit, and try the fit on presets that it has not seen. Progress goes to stderr.

    A figure is to be the model's, not that of what else the machine does. So the models take turns; of encoding the
    fastest call counts, of steps the last of the quickest quarter; and one thread is timed by its own CPU time.
    """
    seen, unseen = list(trials()), [load_preset(name) for name in HELD_OUT]
    times = _times([*seen, *unseen], threads, seconds)
    known = times[: len(seen)]

    def fitted(cache: int) -> Calibration:
        encode, step = (
            fit([features(config, stage, cache) for config in seen], [t[stage] for t in known]) for stage in STAGES
        )
        return Calibration(machine(), threads, cache, encode, step, {})

    def misfit(calibration: Calibration) -> float:
        return sum((calibration.predict(c) / _sentence(t) - 1) ** 2 for c, t in zip(seen, known, strict=True))

    best = min(map(fitted, CACHES), key=misfit)
    held_out = {
        name: (_sentence(t), best.predict(config))
        for name, config, t in zip(HELD_OUT, unseen, times[len(seen) :], strict=True)
    }
    return dataclasses.replace(best, held_out=held_out)


def _sentence(times: Mapping[str, float]) -> float:
    return times["encode"] + LENGTH * times["step"]


def _times(configs: Sequence[Config], threads: int, seconds: float) -> list[dict[str, float]]:
    """Milliseconds of encoding and of one step of each model."""
    encode: list[list[float]] = [[] for _ in configs]
    step: list[list[float]] = [[] for _ in configs]
    timer = time.thread_time if threads == 1 else time.perf_counter
    before, began, rounds = torch.get_num_threads(), time.perf_counter(), 0
    torch.set_num_threads(threads)
    try:
        # Another round only where it is likely to end in time.
        while not rounds or (time.perf_counter() - began) * (rounds + 1) / rounds < seconds:
            rounds += 1
            print(f"calibrating: {len(configs)} models, round {rounds}", file=sys.stderr)
            for i, config in enumerate(configs):
                model = TranslationModel(config).eval()
                work = stages(model, LENGTH, LENGTH, beam=1)
                encode[i] += clock(work["encode"], FEWEST, 0, timer)
                for _ in range(2):
                    step[i] += _steps(model, work["sentence"], timer)
    finally:
        torch.set_num_threads(before)
    return [
        {"encode": min(once), "step": statistics.quantiles(each, n=4)[0]}
        for once, each in zip(encode, step, strict=True)
    ]


def _steps(model: TranslationModel, sentence: Callable[[], Any], timer: Callable[[], float]) -> list[float]:
    """Milliseconds from each step of a search to the next, all that the search does between them included."""
    moments: list[float] = []
    step = model.step

    def stamped(*args: Any) -> Any:
        moments.append(timer())
        return step(*args)

    setattr(model, "step", stamped)  # noqa: B010  # a plain assignment to a method does not type
    try:
        sentence()
    finally:
        del model.step
    moments.append(timer())
    return [1000 * (after - at) for at, after in itertools.pairwise(moments)]


def fit(rows: Sequence[Mapping[str, float]], times: Sequence[float], sweeps: int = 2000) -> dict[str, float]:
    """Prices, none negative, that make the sum of squared relative errors least.

    Coordinate descent: each price in turn takes its best value, or zero, with the others held (Franc, Hlaváč and
    Navara 2005). It converges because the problem is convex.
    """
    names = sorted({name for row in rows for name in row})
    table = np.array([[row.get(name, 0.0) / t for name in names] for row, t in zip(rows, times, strict=True)])
    scale = np.linalg.norm(table, axis=0)
    table = table / scale
    products, wanted = table.T @ table, table.sum(0)
    prices = np.zeros(len(names))
    for _ in range(sweeps):
        for i in range(len(names)):
            prices[i] = max(0.0, prices[i] + wanted[i] - products[i] @ prices)
    return dict(zip(names, (prices / scale).tolist(), strict=True))
