"""A language model's bundle: one graph, a step, whose state is the model's own; a learned span's is cut to it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim

from lite_nmt.data.vocabulary import EOS
from lite_nmt.decode.language import PyTorchReader
from lite_nmt.errors import LiteNmtError
from lite_nmt.export import bundle, fuse
from lite_nmt.export.bundle import Bundle
from lite_nmt.export.language_runtime import OnnxReader
from lite_nmt.export.onnx_graphs import Argument, Axes, serialize, trace
from lite_nmt.export.runtime import STEP
from lite_nmt.models.checkpoint import Checkpoint
from lite_nmt.models.language import LanguageModel
from lite_nmt.modules.mixer import State
from lite_nmt.profiling.cost import cost

COMPARED = 64  # steps beyond the widest learned span
TOLERANCE = 1e-4  # largest difference of a score


class Step(nn.Module):
    """One token of each of B texts."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, token: Tensor, position: Tensor, state: State) -> tuple[Tensor, State]:
        """Scores of the next token, B V, and the next state."""
        return self.model.step(token, position, state)


def export_language_model(saved: Checkpoint, out: Path) -> Bundle:
    """Write a bundle of one ONNX graph, in float32, if it does what the checkpoint does.

    Args:
        out: a folder, or a file that ends in .zip; what is there is replaced once the new one is whole.

    Raises:
        LiteNmtError: the bundle disagrees with the checkpoint, and was not written; or it cannot be made or written.
    """
    bundle.check_out(out)
    model = saved.language_model()
    batch, past = Dim("batch"), Dim("past")
    state = {name: Axes((batch, *(size or past for size in x.shape[1:]))) for name, x in model.initial_state(1).items()}
    arguments: dict[str, Argument] = {
        "token": Axes((batch,), torch.int64),
        "position": Axes((), torch.int64),
        "state": state,
    }
    graph = trace(Step(model), arguments, ["logits", *(f"next.{name}" for name in state)])
    fuse.simplify(graph)
    files = saved.vocabulary.files() | serialize({STEP: graph})
    total = cost(saved.config)
    about = {
        "precision": "fp32",
        "mult_adds": {count: total.mult_adds(count) for count in ("paper", "full")},
        "parameters": {count: total.parameters(count) for count in ("paper", "full")},
        "checkpoint": saved.checksum,
    }
    with tempfile.TemporaryDirectory() as scratch:
        trial = Path(scratch) / "bundle"
        bundle.save(trial, about, saved.config, saved.languages, files)
        check(model, OnnxReader(bundle.load(trial)), saved.config.vocabulary.target)
    bundle.save(out, about, saved.config, saved.languages, files)
    return bundle.load(out)


def check(model: LanguageModel, theirs: OnnxReader, types: int) -> float:
    """Hold a bundle's steps against the model's, beyond all that it has learned to see.

    Returns:
        The largest difference of two scores.

    Raises:
        LiteNmtError: it is too large.
    """
    ours = PyTorchReader(model)
    tokens = np.random.default_rng(1).integers(EOS, types, COMPARED + max([m.sees() for m in model.spans()], default=0))
    here, there, worst = ours.start(), theirs.start(), 0.0
    for position, token in enumerate(tokens.tolist()):
        (a, here), (b, there) = ours.read(token, position, here), theirs.read(token, position, there)
        worst = max(worst, float(np.abs(a - b).max()))
    if not worst <= TOLERANCE:
        raise LiteNmtError(f"the graph's scores differ from the checkpoint's by {worst:.2g}; nothing was written.")
    return worst
