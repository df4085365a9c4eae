"""An ExecuTorch program in the model's place: the one search runs it, or what reads a text. This needs PyTorch."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lite_nmt.config import DecodeConfig
from lite_nmt.data.vocabulary import BOS, EOS, PAD
from lite_nmt.decode.engine import Alignment
from lite_nmt.decode.hypothesis import Hypothesis
from lite_nmt.decode.search import search
from lite_nmt.errors import LiteNmtError
from lite_nmt.export.graphs import DecodeStep, Encode, beamed, flat
from lite_nmt.models.translation import TranslationModel
from lite_nmt.modules.mixer import State

SCHEMA = 1
ENCODE, STEP = "encode", "decode_step"
MISSING = "ExecuTorch is not installed; pip install 'lite-nmt[executorch]'."


class Program:
    """A .pte file of ``lite_nmt.export.executorch``.

    Attributes:
        about: the program's constants, by name.
    """

    methods: tuple[str, ...] = (STEP,)

    def __init__(self, path: Path, threads: int | None = None) -> None:
        """
        Args:
            threads: of the whole process; None leaves ExecuTorch's choice.

        Raises:
            LiteNmtError: ExecuTorch is not installed, or the file cannot be read or is not such a program.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of packages that ExecuTorch imports
            try:
                from executorch.extension.pybindings import _portable_lib
                from executorch.runtime import Runtime
            except ImportError as error:
                raise LiteNmtError(MISSING) from error
        if threads is not None:  # PyTorch's number is not its own
            _portable_lib._unsafe_reset_threadpool(threads)
        try:
            # The program keeps the bytes; read whole, they cannot change under it as a mapped file's could.
            self.program = Runtime.get().load_program(path.read_bytes())
            names = self.program.method_names - {ENCODE, STEP}
            self.about: dict[str, Any] = {name: self.program.load_method(name).execute([])[0] for name in names}
            self._methods = {name: self.program.load_method(name) for name in self.methods}
        except OSError as error:
            raise LiteNmtError(f"cannot read {path}: {error.strerror}.") from error
        except (RuntimeError, KeyError) as error:
            raise LiteNmtError(f"ExecuTorch cannot open {path}: {error}; export it again.") from error
        if self.about.get("schema") != SCHEMA:
            raise LiteNmtError(f"{path} is of schema {self.about.get('schema')}; this release reads schema {SCHEMA}.")
        self._state: dict[str, list[int]] = json.loads(self.about["state"])

    def initial_state(self, batch: int) -> State:
        """State before the first step."""
        return {name: torch.zeros(batch, *shape) for name, shape in self._state.items()}

    def _fits(self, axis: str, size: int, what: str) -> None:
        most = self.about.get(f"max_{axis}", size)
        if size > most:
            raise LiteNmtError(
                f"{size} {what} are more than this ExecuTorch program takes, which is {most}; ask for fewer, or take "
                "the checkpoint that it was exported from."
            )


class ExecutorchReader(Program):
    """As :class:`~lite_nmt.decode.generate.Reader` says."""

    def start(self) -> State:
        return self.initial_state(1)

    def read(self, token: int, position: int, state: State) -> tuple[np.ndarray, State]:
        """
        Raises:
            LiteNmtError: there are more words before this one than the program takes.
        """
        self._fits("past", position, "words before the last one")
        scores, *after = _run(self._methods[STEP], [torch.tensor([token]), torch.tensor(position), *state.values()])
        return scores[0].numpy(), dict(zip(state, after, strict=True))


class ExecutorchModel(Program):
    """One sentence at a time, what ``lite_nmt.decode.search`` asks of a model."""

    methods = ENCODE, STEP

    def __init__(self, path: Path, threads: int | None = None) -> None:
        """As :class:`Program`'s."""
        super().__init__(path, threads)
        self._memory: dict[str, list[int]] = json.loads(self.about["memory"])

    def encode(self, source: Tensor, keep: Tensor) -> Tensor:
        """The source itself: the program's ``encode`` gives what follows from it, :meth:`memory`."""
        return source

    def memory(self, encoded: Tensor) -> State:
        """Every layer's keys and values, 1 H S R.

        Raises:
            LiteNmtError: the sentence is longer than the program takes.
        """
        self._fits("source", encoded.shape[1], "source tokens")
        return dict(zip(self._memory, _run(self._methods[ENCODE], [encoded]), strict=True))

    def step(
        self, token: Tensor, position: int | Tensor, state: State, memory: State, keep: Tensor
    ) -> tuple[Tensor, State]:
        """One target step, N V and the next state, as ``TranslationModel.step``."""
        width = len(token)
        # Of the source a step wants to know its padding alone.
        logits, state = self.decode_step(
            keep.long(),
            token.unsqueeze(0),
            torch.arange(width).unsqueeze(0),
            torch.as_tensor(position),
            memory,
            beamed(state, 1, width),
        )
        return logits.flatten(0, 1), flat(state)

    def decode_step(
        self, source: Tensor, token: Tensor, parent: Tensor, position: Tensor, memory: State, state: State
    ) -> tuple[Tensor, State]:
        """The program's own method, as ``graphs.DecodeStep``.

        Raises:
            LiteNmtError: there are more hypotheses, or tokens before the last one, than the program takes.
        """
        self._fits("width", token.shape[1], "hypotheses of a sentence")
        self._fits("past", int(position), "target tokens")
        past = [state[name] for name in self._state]
        known = [memory[name] for name in self._memory]
        logits, *after = _run(self._methods[STEP], [source, token, parent, position, *known, *past])
        return logits, dict(zip(self._state, after, strict=True))


def _run(method: Any, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Strides are not looked at, so they must be right; and outputs lie where the next call will write."""
    return [output.clone() for output in method.execute([x.contiguous() for x in inputs])]


class ExecutorchEngine:
    """An :class:`lite_nmt.decode.engine.Engine` on an ExecuTorch program."""

    def __init__(self, path: Path, threads: int | None = None) -> None:
        self.model = ExecutorchModel(path, threads)

    def search(self, sources: Sequence[Sequence[int]], decode: DecodeConfig, nbest: int) -> list[list[Hypothesis]]:
        """As :class:`Engine` says."""
        batches = (torch.tensor([source]) for source in sources)
        return [search(self.model, batch, batch != PAD, decode, nbest)[0] for batch in batches]

    def align(
        self, sources: Sequence[Sequence[int]], hypotheses: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Alignment]]:
        """The program does not give its attention away."""
        raise LiteNmtError("a bundle gives no alignments; take the checkpoint that it was exported from.")


@torch.inference_mode()
def check_logits(model: TranslationModel, program: ExecutorchModel, tolerance: float = 1e-4, rounds: int = 4) -> float:
    """Both methods against the model, on random tokens and lengths, with hypotheses that change places.

    Returns:
        The largest difference of a score before softmax.

    Raises:
        LiteNmtError: it is over ``tolerance``; the first such place is named.
    """
    draw = np.random.default_rng(1)
    sources, types = (program.about[f"{side}_types"] for side in ("source", "target"))
    worst = 0.0
    for width in range(1, rounds + 1):
        length = draw.integers(1, min(40, program.about["max_source"]))
        source = torch.tensor([[*draw.integers(EOS + 1, sources, length).tolist(), EOS]])
        memory, theirs = Encode(model)(source), program.memory(source)
        state = past = beamed(model.initial_state(width), 1, width)
        token = torch.full((1, width), BOS)
        for position in range(min(12, program.about["max_past"])):
            parent = torch.from_numpy(draw.integers(0, width, (1, width)))
            given = source, token, parent, torch.tensor(position)
            logits, state = DecodeStep(model)(*given, memory, state)
            found, past = program.decode_step(*given, theirs, past)
            difference = (found - logits).abs().max().item()
            if not difference <= tolerance:
                raise LiteNmtError(
                    f"the ExecuTorch program disagrees with the model: at step {position + 1} of a random sentence of "
                    f"{length} tokens, with {width} hypotheses, a score differs by {difference:.2g}, more than "
                    f"{tolerance:g}; nothing was written."
                )
            worst = max(worst, difference)
            token = torch.from_numpy(draw.integers(EOS + 1, types, (1, width)))
    return worst
