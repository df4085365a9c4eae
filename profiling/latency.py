"""How long one sentence takes on this machine's CPU: encoding, one decoding step, the whole; each part, if asked."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lite_nmt.config import DecodeConfig
from lite_nmt.data.vocabulary import BOS, EOS
from lite_nmt.decode.search import search
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.translation import TranslationModel
from lite_nmt.modules.attention import CrossAttention
from lite_nmt.modules.embedding import Embedding
from lite_nmt.modules.layer import FeedForward
from lite_nmt.modules.lsra import LSRA
from lite_nmt.modules.mixer import Mixer
from lite_nmt.profiling.machine import machine

if TYPE_CHECKING:
    from rich.console import Group

FEWEST = 5  # calls timed, however long one takes
LIMITS = {
    "source length": (1, 4096),
    "target length": (2, 4096),
    "beam": (1, 1000),
    "number of threads": (1, 1024),
    "number of repeats": (FEWEST, 100_000),
}


@dataclass(frozen=True)
class Spread:
    """Milliseconds: median and quartiles over ``repeats`` calls."""

    median: float
    low: float
    high: float
    repeats: int

    @classmethod
    def of(cls, times: Sequence[float]) -> Spread:
        """From the milliseconds of each call."""
        low, median, high = statistics.quantiles(times, n=4, method="inclusive")
        return cls(median, low, high, len(times))


@dataclass(frozen=True)
class ModuleTime:
    """Median milliseconds of one part, named as in ``profiling/cost.py``; 0 in a stage that does not use it."""

    name: str
    encode: float
    step: float


@dataclass(frozen=True)
class Latency:
    """What one sentence takes. ``timed`` is the time of both stages with the timers around their parts running."""

    machine: str
    threads: int
    source_length: int
    target_length: int
    beam: int
    encode: Spread
    step: Spread
    sentence: Spread
    modules: tuple[ModuleTime, ...] = ()
    timed: ModuleTime | None = None

    @property
    def sentences_per_second(self) -> float:
        """One sentence after another."""
        return 1000 / self.sentence.median


def measure(
    model: TranslationModel,
    source_length: int = 30,
    target_length: int = 30,
    beam: int = 1,
    threads: int | None = None,
    repeats: int = 100,
    modules: bool = False,
    seconds: float = 1.0,
) -> Latency:
    """Time a model on the CPU: batch 1, inference mode, after warming up.

    ``encode`` is the encoder and the cross-attention's keys and values; ``step`` one decoding step in mid-sentence,
    output projection included; ``sentence`` the whole search. Its length is forced, so that every model does the
    same work: the end marker is the last of ``target_length`` tokens, and the decoder takes as many steps.

    With ``modules`` each part is timed too, in further calls of ``encode`` and ``step``, since reading the clock
    around every part takes time itself. No part lies within another, so each figure is the part's own. A mixer's
    step and the making of the cross-attention's keys and values belong to their parts; residual sums, LSRA's split
    and concatenation, and the bookkeeping of states to none: they are what the sum falls short of the whole.

    Args:
        source_length, target_length: tokens, the end marker included.
        beam: hypotheses; 1 is greedy.
        threads: CPU threads; None leaves PyTorch's choice. It is put back afterwards.
        repeats: calls of each stage at most.
        seconds: after which a stage is not called again, but for the first five times.

    Raises:
        LiteNmtError: a number is out of range, or the model is not on the CPU.
    """
    before = torch.get_num_threads()
    threads = before if threads is None else threads
    asked = (source_length, target_length, beam, threads, repeats)
    for (name, (low, high)), value in zip(LIMITS.items(), asked, strict=True):
        if not low <= value <= high:
            raise LiteNmtError(f"the {name} is {value}; it must be between {low:,} and {high:,}.")
    if (device := model.target.weight.device).type != "cpu":
        raise LiteNmtError(f"latency is measured on the CPU, and the model is on {device}; load it on the CPU.")
    modes = {module: module.training for module in model.modules()}
    torch.set_num_threads(threads)
    try:
        model.eval()
        work = stages(model, source_length, target_length, beam)
        encode, step, sentence = (Spread.of(clock(work[stage], repeats, seconds)) for stage in work)
        parts, timed = _modules(model, work, repeats, seconds) if modules else ((), None)
    finally:
        for module, training in modes.items():
            module.training = training
        torch.set_num_threads(before)
    return Latency(machine(), threads, source_length, target_length, beam, encode, step, sentence, parts, timed)


def stages(model: TranslationModel, source_length: int, target_length: int, beam: int) -> dict[str, Callable[[], Any]]:
    """``encode``, ``step`` and ``sentence``, ready to be called. Tokens are random: no time depends on them."""
    draw = torch.Generator().manual_seed(1)
    source = torch.randint(EOS + 1, model.source.weight.shape[0], (1, source_length), generator=draw)
    source[0, -1] = EOS
    keep = torch.ones_like(source, dtype=torch.bool)
    # The end marker is left out of these lengths.
    decode = DecodeConfig(beam=beam, min_length=target_length - 1, max_length=target_length - 1)
    token = torch.full((beam,), BOS)
    middle = target_length // 2

    def encode() -> dict[str, Tensor]:
        return model.memory(model.encode(source, keep))

    with torch.inference_mode():
        memory = encode()
        state = model.initial_state(beam)
        for position in range(middle):
            _, state = model.step(token, position, state, memory, keep)
    return {
        "encode": encode,
        "step": lambda: model.step(token, middle, state, memory, keep),
        "sentence": lambda: search(model, source, keep, decode),
    }


@torch.inference_mode()
def clock(
    work: Callable[[], Any], repeats: int, seconds: float, timer: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Milliseconds of each call after two for warming up; none begins after ``seconds``, but for the first five."""
    for _ in range(2):
        work()
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < FEWEST or (len(times) < repeats and time.perf_counter() < until):
        began = timer()
        work()
        times.append(1000 * (timer() - began))
    return times


def _modules(
    model: TranslationModel, work: dict[str, Callable[[], Any]], repeats: int, seconds: float
) -> tuple[tuple[ModuleTime, ...], ModuleTime]:
    """Each part's time, and the whole's while the clock is read around the parts."""
    found: dict[str, dict[str, float]] = {}
    whole = {}
    for stage in ("encode", "step"):
        calls: list[dict[str, float]] = []

        def call(stage: str = stage, calls: list[dict[str, float]] = calls) -> None:
            calls.append(defaultdict(float))
            work[stage]()

        with _timers(model, calls):
            times = clock(call, repeats, seconds)
        whole[stage] = statistics.median(times)
        timed = calls[-len(times) :]
        found[stage] = {name: statistics.median(call[name] for call in timed) for name in timed[0]}
    names = dict(parts(model))
    modules = (ModuleTime(n, *(found[stage].get(n, 0.0) for stage in ("encode", "step"))) for n in names)
    return tuple(modules), ModuleTime("whole, with timers", whole["encode"], whole["step"])


@contextmanager
def _timers(model: TranslationModel, calls: list[dict[str, float]]) -> Iterator[None]:
    """Time every part, into the last of ``calls``.

    Hooks see ``forward`` alone, but a mixer decodes by ``step`` and cross-attention reads the source by ``memory``:
    so the methods of each part are wrapped, for as long as this lasts.
    """

    def wrapped(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            began = time.perf_counter()
            result = run(*args)
            calls[-1][name] += 1000 * (time.perf_counter() - began)
            return result

        return timed

    methods = [
        (name, module, method)
        for name, module in parts(model)
        for method in ("forward", "step", "memory")
        if hasattr(module, method)
    ]
    try:
        for name, module, method in methods:
            setattr(module, method, wrapped(name, getattr(module, method)))
        yield
    finally:
        for _, module, method in methods:
            vars(module).pop(method, None)


def parts(model: TranslationModel) -> list[tuple[str, nn.Module]]:
    """Name and module of each part that ``profiling/cost.py`` counts; two embeddings are one part."""
    kinds = (Mixer, CrossAttention, FeedForward, nn.LayerNorm)
    embeddings: list[tuple[str, nn.Module]] = [("embedding", m) for m in model.modules() if isinstance(m, Embedding)]
    inside = [(n, m) for n, m in model.named_modules() if isinstance(m, kinds) and not isinstance(m, LSRA)]
    return [*embeddings, *inside, ("project", model.project)]


def to_json(latency: Latency) -> dict[str, Any]:
    """Plain data; times in milliseconds."""
    return {**dataclasses.asdict(latency), "sentences_per_second": latency.sentences_per_second}


def render(latency: Latency) -> Group:
    """Tables for people; the parts, where they were timed, below the stages."""
    from rich.console import Group
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stage", no_wrap=True)
    for name in ("ms", "quartiles", "calls"):
        table.add_column(name, justify="right", no_wrap=True)
    for stage, name in (("encode", "encode"), ("step", "one step"), ("sentence", "sentence")):
        times: Spread = getattr(latency, stage)
        table.add_row(name, f"{times.median:.2f}", f"{times.low:.2f} to {times.high:.2f}", f"{times.repeats}")
    table.add_row("sentences/s", f"{latency.sentences_per_second:.1f}")
    how = "greedy" if latency.beam == 1 else f"beam {latency.beam}"
    lengths = f"{latency.source_length} to {latency.target_length} tokens"
    caption = f"Batch 1, {lengths}, {how}, float32, on {latency.machine}, --threads {latency.threads}."
    if latency.timed is None:
        return Group(table, caption)
    detail = Table("part", box=None, pad_edge=False, header_style="bold")
    for name in ("encode ms", "step ms"):
        detail.add_column(name, justify="right", no_wrap=True)
    for part in latency.modules:
        detail.add_row(part.name, *(f"{ms:.3f}" if ms else "" for ms in (part.encode, part.step)))
    total = ModuleTime("sum", sum(p.encode for p in latency.modules), sum(p.step for p in latency.modules))
    whole = ModuleTime("whole", latency.encode.median, latency.step.median)
    for row in (total, latency.timed, whole):
        detail.add_row(f"[bold]{row.name}", f"{row.encode:.3f}", f"{row.step:.3f}")
    return Group(table, "", detail, "", caption)
