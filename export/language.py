"""A language model's bundle: one graph or program, a step, whose state is the model's own; a learned span's is cut to
it."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from onnx_ir.passes.common import RemoveUnusedNodesPass
from torch.export import Dim

from lite_nmt.config import Config
from lite_nmt.data.corpus import read_lines
from lite_nmt.data.text import open_text
from lite_nmt.data.vocabulary import EOS
from lite_nmt.decode.generate import Reader
from lite_nmt.decode.language import PyTorchReader
from lite_nmt.errors import LiteNmtError
from lite_nmt.evaluate.surprise import surprise
from lite_nmt.export import bundle, fuse
from lite_nmt.export.bundle import Bundle
from lite_nmt.export.export import TARGETS, describe
from lite_nmt.export.graphs import LanguageStep
from lite_nmt.export.language_runtime import READERS
from lite_nmt.export.onnx_graphs import Argument, Axes, check_state, serialize, trace
from lite_nmt.export.precision import CONVERSIONS
from lite_nmt.export.runtime import PROGRAM, STEP
from lite_nmt.models.checkpoint import Checkpoint
from lite_nmt.models.language import LanguageModel
from lite_nmt.train.prepare import run_of

COMPARED = 64  # steps beyond the widest learned span
TOLERANCE = 1e-4  # largest difference of a score
LOSS = 0.01  # nats a word: the most that int8 may cost
LISTENED = 2000  # words that it is measured on
PRECISIONS = ("fp32", "int8")


def export_language_model(
    saved: Checkpoint, out: Path, precision: str = "fp32", text: Sequence[int] | None = None, to: str = "onnx"
) -> Bundle:
    """Write a bundle of an ONNX graph, of an ExecuTorch program, or of both, if they do what the checkpoint does.

    ``fp32`` must give the checkpoint's scores to 1e-4; ``int8`` may cost 0.01 nats a word of a text, which is 1% of its
    perplexity.

    Args:
        out: a folder, or a file that ends in .zip; what is there is replaced once the new one is whole.
        precision: ``fp32`` or ``int8``.
        text: numbers of validation words; ``int8`` cannot do without, and looks at the first 2,000.
        to: ``onnx``, ``executorch`` or ``all``.

    Raises:
        LiteNmtError: the bundle disagrees with the checkpoint, and was not written; or it cannot be made or written.
    """
    if precision not in PRECISIONS:
        raise LiteNmtError(f"precision is {precision!r}; of a language model it must be {' or '.join(PRECISIONS)}.")
    if to not in TARGETS:
        raise LiteNmtError(f"to is {to!r}; it must be one of {', '.join(TARGETS)}.")
    if precision == "int8" and (text is None or not len(text)):
        raise LiteNmtError("int8 is measured on a validation text, and there is none; give --data.")
    bundle.check_out(out)
    model = saved.language_model()
    for mixer in model.spans():
        mixer.learned = mixer.sees()  # in a run's checkpoints it still follows from the weights
    with torch.no_grad():
        check_state(model.step(torch.tensor([EOS]), 0, model.initial_state(1))[1])
    files = saved.vocabulary.files()
    if to != "executorch":
        files |= serialize({STEP: onnx_graph(model, precision)})
    if to != "onnx":
        from lite_nmt.export.executorch import export_language_executorch

        files[PROGRAM] = export_language_executorch(model, saved.config, precision == "int8")
    about = describe(saved, precision)
    with tempfile.TemporaryDirectory() as scratch:
        trial = Path(scratch) / "bundle"
        bundle.save(trial, about, saved.config, saved.languages, files)
        opened = bundle.load(trial)
        for name in (PROGRAM, STEP):  # the last is what runs such a bundle here
            if name in files:
                about |= measure(model, READERS[name](opened), saved.config, text if precision == "int8" else None)
    bundle.save(out, about, saved.config, saved.languages, files)
    return bundle.load(out)


def onnx_graph(model: LanguageModel, precision: str) -> ir.Model:
    """One token of each of B texts, a position and a state to scores, B V, and the next state."""
    batch, past = Dim("batch"), Dim("past")
    state = {name: Axes((batch, *(size or past for size in x.shape[1:]))) for name, x in model.initial_state(1).items()}
    arguments: dict[str, Argument] = {
        "token": Axes((batch,), torch.int64),
        "position": Axes((), torch.int64),
        "state": state,
    }
    graph = trace(LanguageStep(model), arguments, ["logits", *(f"next.{name}" for name in state)])
    fuse.simplify(graph)
    CONVERSIONS[precision](graph)
    RemoveUnusedNodesPass()(graph)
    return graph


def measure(model: LanguageModel, theirs: Reader, config: Config, text: Sequence[int] | None) -> dict[str, Any]:
    """Pass a bundle, or refuse it; and tell what the manifest says of its worth, if it is measured on a text."""
    block = None if model.carries else config.train.block
    if text is not None:
        return {"nll": check_text(model, theirs, text[:LISTENED], block)}
    check(model, theirs, config.vocabulary.target, min(COMPARED, block or COMPARED))
    return {}


def check_text(model: LanguageModel, theirs: Reader, text: Sequence[int], block: int | None) -> dict[str, float | int]:
    """Hold what a bundle thinks of a text against what the model does, in nats a word.

    Args:
        block: words after which both begin anew; None: never.

    Raises:
        LiteNmtError: the bundle is too much more surprised.
    """
    ours, rounded = (surprise(reader, text, block) for reader in (PyTorchReader(model), theirs))
    if not rounded <= ours + LOSS:
        raise LiteNmtError(
            f"int8 costs {rounded - ours:.3f} nats a word ({rounded:.3f} after {ours:.3f}, {len(text)} words), more "
            f"than {LOSS:g}; nothing was written."
        )
    return {"value": round(rounded, 4), "checkpoint": round(ours, 4), "words": len(text)}


def find_text(saved: Checkpoint, data: Path | None) -> Sequence[int] | None:
    """A language model's validation words: of a data folder, or of the run that the checkpoint lies in."""
    if data is not None:
        path = data / f"valid.{saved.languages[1]}"
        lines = itertools.islice(read_lines(path), LISTENED)
        return list(itertools.chain.from_iterable(map(saved.vocabulary.encode_words, lines)))
    run = run_of(saved)
    return open_text(run / "data" / "valid")[:LISTENED].tolist() if run and (run / "data" / "valid").exists() else None


def check(model: LanguageModel, theirs: Reader, types: int, steps: int = COMPARED) -> float:
    """Hold a bundle's steps against the model's, so many beyond all that it has learned to see.

    Returns:
        The largest difference of two scores.

    Raises:
        LiteNmtError: it is too large.
    """
    ours = PyTorchReader(model)
    tokens = np.random.default_rng(1).integers(EOS, types, steps + max([m.sees() for m in model.spans()], default=0))
    here, there, worst = ours.start(), theirs.start(), 0.0
    for position, token in enumerate(tokens.tolist()):
        (a, here), (b, there) = ours.read(token, position, here), theirs.read(token, position, there)
        worst = max(worst, float(np.abs(a - b).max()))
    if not worst <= TOLERANCE:
        raise LiteNmtError(f"the graph's scores differ from the checkpoint's by {worst:.2g}; nothing was written.")
    return worst
