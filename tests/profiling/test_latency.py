"""What the measurements do, not how long they take."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from rich.console import Console

from lite_nmt.config import Config, ModelConfig, StackConfig, VocabularyConfig
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.translation import TranslationModel
from lite_nmt.profiling import latency
from lite_nmt.profiling.cost import cost
from lite_nmt.profiling.latency import Latency, Spread, clock, measure, parts, render, stages, to_json

MIXERS = ["attention", "lightconv", "dynamicconv", "talk", "average", "cnn", "lsra"]


def config(mixer: str = "lsra", norm: str = "post", tie: str = "all") -> Config:
    side = StackConfig(layers=2, mixer=mixer, heads=2, conv_heads=2, kernels=(3, 5), ffn=16)
    return Config(ModelConfig(16, side, side, cross_heads=2, norm=norm, tie=tie), VocabularyConfig("bpe", True, 30, 30))


@pytest.fixture
def model() -> TranslationModel:
    torch.manual_seed(0)
    return TranslationModel(config())


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five calls of each stage, whatever is asked."""
    monkeypatch.setattr(latency, "clock", lambda work, repeats, seconds: clock(work, repeats, 0))


def steps(model: TranslationModel, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Rows and position of every decoding step from now on."""
    seen: list[tuple[int, int]] = []
    step = model.step

    def noted(token: torch.Tensor, position: int, *rest: Any) -> Any:
        seen.append((len(token), position))
        return step(token, position, *rest)

    monkeypatch.setattr(model, "step", noted)
    return seen


@pytest.mark.parametrize(("target_length", "beam"), [(2, 1), (9, 1), (9, 3)])
def test_a_sentence_takes_exactly_the_steps_that_are_counted(
    model: TranslationModel, monkeypatch: pytest.MonkeyPatch, target_length: int, beam: int
) -> None:
    work = stages(model.eval(), 7, target_length, beam)
    seen = steps(model, monkeypatch)
    (found,) = work["sentence"]()
    assert [position for _, position in seen] == list(range(target_length))
    assert seen[-1][0] == beam
    assert len(found[0].tokens) == target_length - 1  # and the end marker


def test_a_step_is_one_in_mid_sentence(model: TranslationModel, monkeypatch: pytest.MonkeyPatch) -> None:
    work = stages(model.eval(), 7, 9, 3)
    seen = steps(model, monkeypatch)
    with torch.inference_mode():
        scores, state = work["step"]()
        memory = work["encode"]()
    assert seen == [(3, 4)]
    assert scores.shape == (3, 30)
    assert state["0.attention.key"].shape[2] == 5
    assert memory["1.key"].shape == (1, 2, 7, 8)


def test_clock_reads_its_timer_around_each_call_after_warming_up() -> None:
    done: list[int] = []
    ticks: Iterator[float] = iter([10.0, 10.5, 20.0, 20.25, 30, 31, 40, 40, 50, 50.125])
    times = clock(lambda: done.append(1), repeats=50, seconds=0, timer=lambda: next(ticks))
    assert times == [500, 250, 1000, 0, 125]
    assert len(done) == 7
    assert len(clock(lambda: None, repeats=6, seconds=60)) == 6


def test_spread_holds_the_median_and_quartiles() -> None:
    assert Spread.of([5.0, 1.0, 3.0, 2.0, 4.0]) == Spread(3, 2, 4, 5)


@pytest.mark.usefixtures("quick")
def test_threads_and_mode_are_put_back(model: TranslationModel, monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    set_to: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", set_to.append)
    seen: set[tuple[tuple[int, ...], bool, bool]] = set()
    encode = model.encode

    def noted(*args: Any) -> Any:
        seen.add((tuple(set_to), model.training, torch.is_inference_mode_enabled()))
        return encode(*args)

    monkeypatch.setattr(model, "encode", noted)
    found = measure(model.train(), 5, 4, threads=7)
    assert seen == {((7,), False, True)}
    assert (set_to, model.training) == ([7, before], True)
    assert (found.threads, found.source_length, found.target_length, found.beam) == (7, 5, 4, 1)
    for spread in (found.encode, found.step, found.sentence):
        assert 0 < spread.low <= spread.median <= spread.high
        assert spread.repeats == 5
    assert found.sentences_per_second == 1000 / found.sentence.median
    assert found.modules == ()
    assert measure(model, 5, 4).threads == before

    monkeypatch.setattr(model, "encode", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        measure(model.train(), 5, 4, threads=7)
    assert (set_to[-1], model.training) == (before, True)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"source_length": 0}, "the source length is 0; it must be between 1 and 4,096."),
        ({"target_length": 1}, "the target length is 1; it must be between 2 and 4,096."),
        ({"target_length": 10**9}, "the target length is 1000000000"),
        ({"beam": 0}, "the beam is 0"),
        ({"threads": 0}, "the number of threads is 0; it must be between 1 and 1,024."),
        ({"threads": 1025}, "the number of threads is 1025"),
        ({"repeats": 4}, "the number of repeats is 4"),
    ],
)
def test_refuses_what_is_out_of_range(model: TranslationModel, asked: dict[str, int], sentence: str) -> None:
    before = torch.get_num_threads()
    with pytest.raises(LiteNmtError) as error:
        measure(model, **asked)  # type: ignore[arg-type]  # all are whole numbers
    assert sentence in str(error.value)
    assert torch.get_num_threads() == before


def test_refuses_a_model_elsewhere() -> None:
    with pytest.raises(LiteNmtError, match="the model is on meta"):
        measure(TranslationModel(config()).to("meta"))


@pytest.mark.parametrize("mixer", MIXERS)
@pytest.mark.parametrize(("norm", "tie"), [("post", "all"), ("pre", "none")])
def test_parts_are_named_as_they_are_counted(mixer: str, norm: str, tie: str) -> None:
    chosen = config(mixer, norm, tie)
    names = {name for name, _ in parts(TranslationModel(chosen))}
    assert names == {part.name for part in cost(chosen).parts}


@pytest.mark.usefixtures("quick")
def test_modules_are_timed_in_the_stages_that_use_them(model: TranslationModel) -> None:
    found = measure(model, 5, 4, modules=True)
    times = {m.name: (m.encode > 0, m.step > 0) for m in found.modules}
    for name, used in times.items():
        if name.startswith("encoder."):
            assert used == (True, False), name
        elif name in ("embedding", "decoder.0.cross", "decoder.1.cross"):
            assert used == (True, True), name
        else:
            assert used == (False, True), name
    assert len(times) == len(found.modules) == len(cost(config()).parts)
    assert found.timed is not None


def test_modules_own_their_time(model: TranslationModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that ticks once each time it is read, a part lasts one tick a call, whatever else runs."""
    now = iter(range(10**9))
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    monkeypatch.setattr(latency, "clock", lambda work, *_: clock(work, 5, 0, lambda: next(now)))
    found = measure(model, 5, 4, modules=True)
    times = {m.name: (m.encode, m.step) for m in found.modules}
    assert times["encoder.0.mixer.attention"] == (1000, 0)
    assert times["decoder.1.mixer.convolution"] == (0, 1000)
    assert times["decoder.1.cross"] == (1000, 1000)
    assert times["embedding"] == (1000, 1000)
    assert found.timed is not None
    # A stage without its timers is one tick; each timer inside adds two.
    assert found.encode.median == 1000
    assert found.timed.encode == 1000 * (1 + 2 * sum(encode > 0 for encode, _ in times.values()))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("fails", [False, True])
def test_no_timer_stays_behind(model: TranslationModel, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    if fails:
        ready: Callable[..., Any] = latency.clock
        calls = iter([ready, ready, ready])
        monkeypatch.setattr(latency, "clock", lambda *args: next(calls)(*args))
        with pytest.raises(StopIteration):
            measure(model, 5, 4, modules=True)
    else:
        measure(model, 5, 4, modules=True)
    for module in model.modules():
        assert not {"forward", "step", "memory"} & vars(module).keys()


@pytest.mark.usefixtures("quick")
def test_rendered_and_as_json(model: TranslationModel) -> None:
    found = measure(model, 5, 4, beam=2, threads=1, modules=True)
    text = shown(found)
    assert "one step" in text
    assert "decoder.1.mixer.convolution" in text
    assert "sum" in text
    assert "whole, with timers" in text
    assert "Batch 1, 5 to 4 tokens, beam 2, float32, on " in text
    assert "--threads 1" in text
    assert "decoder.1" not in shown(measure(model, 5, 4))
    plain = json.loads(json.dumps(to_json(found)))
    assert plain["step"]["median"] == found.step.median
    assert plain["modules"][0]["name"] == found.modules[0].name
    assert plain["sentences_per_second"] == found.sentences_per_second


def shown(found: Latency) -> str:
    console = Console(width=200, file=io.StringIO())
    console.print(render(found))
    return console.file.getvalue()  # type: ignore[attr-defined]  # it is the StringIO
