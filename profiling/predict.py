"""How long a sentence will take, from the configuration alone: fitted to this machine, or estimated for a Cortex-A72.

A sentence is 30 source and 30 target tokens, end markers included, translated greedily, batch 1, float32. The
encoder's parts are called once, the decoder's once a target token.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from lite_nmt.config import Config, StackConfig
from lite_nmt.errors import LiteNmtError
from lite_nmt.profiling.cost import EMBEDDING, OUTPUT, cost

LENGTH = 30
STAGES = ("encode", "step")
FORMAT = "lite-nmt calibration 1"

# A Raspberry Pi 4's: one multiply-add of 4 float32 lanes a cycle. The share of it that small products reach, and the
# bandwidth at which weights are read meanwhile, are assumptions.
A72_CYCLES, A72_LANES, A72_SHARE, A72_CORES = 1.5e9, 4, 0.5, 4
A72_L2, A72_BANDWIDTH = 2**20, 4e9


@dataclass(frozen=True)
class Call:
    """What one part does when it is called: ``stage`` is "encode", once a sentence, or "step", once a token."""

    stage: str
    kind: str
    mult_adds: float = 0
    weights: int = 0  # bytes
    state: int = 0  # bytes read of what earlier steps, or the encoder, have left


class Target(Protocol):
    """Something that says how long a sentence takes on it."""

    @property
    def label(self) -> str:
        """What the figures are called in a table."""

    @property
    def threads(self) -> int:
        """CPU threads that they are for."""

    @property
    def caption(self) -> str:
        """Where they come from."""

    def predict(self, config: Config) -> float:
        """Milliseconds of a sentence."""


def calls(config: Config) -> Iterator[Call]:
    """What each part does in one call, from :func:`cost`; norms go with the network that follows them."""
    model, width = config.model, config.model.width
    for part in cost(config, LENGTH, LENGTH).parts:
        side, _, rest = part.name.partition(".")
        layer, _, _ = rest.partition(".")
        if part.kind == OUTPUT:
            yield Call("step", OUTPUT, part.mult_adds / LENGTH, 4 * config.vocabulary.target * width)
        elif part.kind == "cross-attention":
            making, half = LENGTH * 2 * width**2, 2 * part.parameters
            yield Call("encode", "keys and values", making, half)
            yield Call("step", part.kind, (part.mult_adds - making) / LENGTH, half, 4 * 2 * LENGTH * width)
        elif part.kind not in ("norm", EMBEDDING):
            stack: StackConfig = getattr(model, side)
            kind, state = _mixer(stack, part.kind, width, int(layer))
            if side == "encoder":
                yield Call("encode", kind, part.mult_adds, 4 * part.parameters)
            else:
                yield Call("step", kind, part.mult_adds / LENGTH, 4 * part.parameters, state)
            if part.name.endswith(".mixer.attention"):
                yield Call("encode" if side == "encoder" else "step", "split and concatenation")


def _mixer(stack: StackConfig, kind: str, width: int, layer: int) -> tuple[str, int]:
    """A part's kind, a convolution's own name for it, and a step's bytes of state, which attention fills by half."""
    mixed = width // 2 if stack.mixer == "lsra" else width
    if kind == "attention":
        return kind, 4 * LENGTH * mixed
    if kind == "convolution":
        return (stack.conv if stack.mixer == "lsra" else stack.mixer), 4 * stack.kernel(layer) * mixed
    return kind, 0


def features(config: Config, stage: str, cache: int) -> dict[str, float]:
    """What a stage's time is made of: calls of each kind, millions of Mult-Adds, MB of state, MB of far weights.

    Far are the weights beyond ``cache`` bytes.
    """
    found: dict[str, float] = defaultdict(float)
    weights = 0
    for call in calls(config):
        if call.stage == stage:
            found[call.kind] += 1
            found["Mult-Adds"] += call.mult_adds / 1e6
            found["state"] += call.state / 1e6
            weights += call.weights
    found["far weights"] = max(0, weights - cache) / 1e6
    return {name: amount for name, amount in found.items() if amount}


@dataclass(frozen=True)
class Calibration:
    """A machine's figures: milliseconds of each unit of :func:`features`, by stage.

    A stage's time is the sum over its calls of a fixed time for each kind, Mult-Adds over a rate, and bytes over a
    bandwidth. Weights count there only as far as they exceed ``cache``, the bytes that stay close to a core.
    """

    label = "predicted ms"
    machine: str
    threads: int
    cache: int
    encode: dict[str, float]
    step: dict[str, float]
    held_out: dict[str, tuple[float, float]]  # preset -> milliseconds measured, and predicted

    @property
    def error(self) -> float:
        """Median relative error on models that the fit has not seen."""
        return statistics.median(abs(predicted / measured - 1) for measured, predicted in self.held_out.values())

    @property
    def caption(self) -> str:
        """Where the figures come from."""
        return (
            f"Milliseconds are predicted for {self.machine}, --threads {self.threads}, from measurements of other "
            f"models; on {len(self.held_out)} presets held out the prediction was {100 * self.error:.0f}% off (median)."
        )

    def predict(self, config: Config) -> float:
        """Milliseconds of a sentence."""
        return self._stage(config, "encode") + LENGTH * self._stage(config, "step")

    def _stage(self, config: Config, stage: str) -> float:
        prices = self.encode if stage == "encode" else self.step
        found = features(config, stage, self.cache)
        if unknown := [name for name in found if name not in prices]:
            raise LiteNmtError(f"the calibration holds no figure for {', '.join(unknown)}; it cannot be predicted.")
        return sum(amount * prices[name] for name, amount in found.items())

    def to_json(self) -> str:
        """For :meth:`load`."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"

    @classmethod
    def load(cls, path: Path) -> Calibration:
        """Read a file of what :meth:`to_json` gives."""
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
            if saved["format"] != FORMAT:
                raise ValueError("another format")
            encode, step = ({str(k): float(v) for k, v in saved[stage].items()} for stage in STAGES)
            held_out = {str(name): (float(m), float(p)) for name, (m, p) in saved["held_out"].items()}
            if not held_out or min(held_out.values())[0] <= 0:
                raise ValueError("no models held out")
            return cls(str(saved["machine"]), int(saved["threads"]), int(saved["cache"]), encode, step, held_out)
        except OSError as error:
            raise LiteNmtError(f"cannot read {path}: {error.strerror}.") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise LiteNmtError(f"{path} is not a calibration of this release; remove it to calibrate anew.") from error


@dataclass(frozen=True)
class CortexA72:
    """An estimate for a Raspberry Pi 4's processor, from its clock, lanes and cache; nothing is measured.

    A roofline: for each part, the larger of n m / (share * 4 lanes * 1.5 GHz * threads) and r w / bandwidth, where m
    are the Mult-Adds and w the bytes of weights of one call, n the calls in a sentence, and r how often the weights
    come from memory: once, where all of a stage's fit into 1 MB of L2, else at each call. Nothing is added for
    starting operators, for activations or for anything that is not a product.
    """

    label = "estimated ms"
    threads: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.threads <= A72_CORES:
            raise LiteNmtError(f"--threads is {self.threads}; a Cortex-A72 as estimated here has {A72_CORES} cores.")

    @property
    def caption(self) -> str:
        """The formula."""
        return (
            f"Milliseconds are an ESTIMATE for Cortex-A72, none is measured: for each part the larger of Mult-Adds / "
            f"({A72_SHARE:g} x {A72_LANES} a cycle x {A72_CYCLES / 1e9:g} GHz x {self.threads}) and bytes of weights / "
            f"({A72_BANDWIDTH / 1e9:g} GB/s), read again for each token unless a step's fit into 1 MB; nothing else."
        )

    def predict(self, config: Config) -> float:
        """Milliseconds of a sentence."""
        rate = A72_SHARE * A72_LANES * A72_CYCLES * self.threads
        work = list(calls(config))
        seconds = 0.0
        for stage, times in (("encode", 1), ("step", LENGTH)):
            own = [call for call in work if call.stage == stage]
            reads = 1 if sum(call.weights for call in own) <= A72_L2 else times
            seconds += sum(max(times * c.mult_adds / rate, reads * c.weights / A72_BANDWIDTH) for c in own)
        return 1000 * seconds
