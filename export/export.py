"""From a checkpoint to a bundle that has been held against it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lite_nmt.data.encoded import Encoded
from lite_nmt.decode.engine import Engine
from lite_nmt.decode.pytorch import PyTorchEngine
from lite_nmt.errors import LiteNmtError
from lite_nmt.export import bundle, parity
from lite_nmt.export.bundle import Bundle
from lite_nmt.export.onnx_graphs import export_graphs, serialize
from lite_nmt.export.precision import CONVERSIONS, codebook
from lite_nmt.export.runtime import PROGRAM, OnnxEngine
from lite_nmt.export.shortlist import Shortlist
from lite_nmt.models.checkpoint import Checkpoint
from lite_nmt.models.translation import TranslationModel
from lite_nmt.profiling.cost import cost

TARGETS = "onnx", "executorch", "all"
COMPARED = 64  # sentences that must be translated alike


def export(
    saved: Checkpoint,
    out: Path,
    *,
    to: str = "onnx",
    precision: str = "fp32",
    pairs: Encoded | None = None,
    shortlist: Shortlist | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Bundle:
    """Write a bundle of ONNX graphs, of an ExecuTorch program, or of both, if they do what the checkpoint does.

    ``fp32`` and ``kmeans`` must give the checkpoint's scores to 1e-4 and its translations; ``int8`` must lose at most
    0.3 BLEU on validation pairs, or ROUGE-L where it summarises.

    Args:
        out: a folder, or a file that ends in .zip; what is there is replaced once the new one is whole.
        to: ``onnx``, ``executorch`` or ``all``.
        precision: ``fp32``, ``int8``, or ``kmeans`` for a compressed checkpoint (ONNX alone).
        pairs: validation pairs; ``int8`` cannot do without.
        shortlist: limits the searches, in ONNX graphs alone; the translations are then no longer the checkpoint's, and
            their BLEU must not be 0.3 lower.
        say: is told how far it is.

    Raises:
        LiteNmtError: the bundle disagrees with the checkpoint, and was not written; or it cannot be made or written.
    """
    check_choice(to, precision, shortlist is not None, bool(pairs))
    rounded = precision == "int8"
    exact = not rounded and shortlist is None
    bundle.check_out(out)
    model = saved.model()
    if precision == "kmeans":
        codebook("target.weight", model.target.weight.detach().numpy())  # before the work is done
    say("tracing the model")
    files = saved.vocabulary.files()
    if to != "executorch":
        files |= serialize(export_graphs(model, saved.config.decode, CONVERSIONS[precision], shortlist))
    if to != "onnx":
        from lite_nmt.export.executorch import export_executorch

        files[PROGRAM] = export_executorch(model, saved.config, rounded)
    about = describe(saved, precision)
    if shortlist:
        per_word, least = shortlist.table.shape[1], shortlist.least()
        about["shortlist"] = {"per_word": per_word, "bytes": shortlist.bytes, "least": least}
    with tempfile.TemporaryDirectory() as scratch:
        trial = Path(scratch) / "bundle"
        bundle.save(trial, about, saved.config, saved.languages, files)
        opened = bundle.load(trial)
        if to != "onnx":
            from lite_nmt.export import executorch_runtime

            program = executorch_runtime.ExecutorchEngine(trial / PROGRAM)
            check = partial(executorch_runtime.check_logits, model, program.model)
            about |= measure(model, opened, program, None if rounded else check, exact, pairs, say)
        if to != "executorch":  # the last: it is what runs such a bundle here
            engine = OnnxEngine(opened)
            check = partial(parity.check_logits, model, engine)
            about |= measure(model, opened, engine, None if rounded else check, exact, pairs, say)
        bundle.save(out, about, saved.config, saved.languages, files)
    return bundle.load(out)


def check_choice(to: str, precision: str, shortlist: bool, pairs: bool) -> None:
    """Refuse what does not go together, before any work.

    Raises:
        LiteNmtError: there is no such target or precision, not of this target, or nothing to measure it on.
    """
    if precision not in CONVERSIONS:
        raise LiteNmtError(f"precision is {precision!r}; it must be one of {', '.join(CONVERSIONS)}.")
    if to not in TARGETS:
        raise LiteNmtError(f"to is {to!r}; it must be one of {', '.join(TARGETS)}.")
    if to != "onnx" and (precision == "kmeans" or shortlist):
        what = "shortlists" if shortlist else "codebooks"
        raise LiteNmtError(f"{what} are for ONNX alone; leave them out, or export to onnx, not to {to}.")
    if not pairs and (precision == "int8" or shortlist):
        what = "int8" if precision == "int8" else "a shortlist"
        raise LiteNmtError(f"{what} is measured on validation pairs, and there are none; give --data.")


def describe(saved: Checkpoint, precision: str) -> dict[str, Any]:
    """What a bundle's manifest says of its model."""
    total = cost(saved.config)
    counts = ("paper", "full")
    return {
        "precision": precision,
        "mult_adds": {count: total.mult_adds(count) for count in counts},
        "parameters": {count: total.parameters(count) for count in counts},
        "checkpoint": saved.checksum,
    }


def measure(
    model: TranslationModel,
    opened: Bundle,
    engine: Engine,
    check_logits: Callable[[], float] | None,
    exact: bool,
    pairs: Encoded | None,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Pass the bundle, or refuse it, and tell its BLEU, or ROUGE-L of summaries, where there are validation pairs.

    Args:
        check_logits: holds its steps' scores against the model's; None where they are rounded.
        exact: whether its translations must be the model's.
    """
    reference = PyTorchEngine(model)
    if check_logits:
        say(f"scores differ by at most {check_logits():.1g}")
    if exact:
        if pairs:
            some = [pairs.pair(i)[0] for i in range(min(COMPARED, len(pairs)))]
        else:
            some = parity.made_up(model, COMPARED, np.random.default_rng(2))
        parity.check_translations(reference, engine, opened, some)
        say(f"{len(some)} translations agree")
    if not pairs:
        return {}
    measure, name = ("rougeL", "ROUGE-L") if opened.config.task == "summarize" else ("bleu", "BLEU")
    found = parity.quality(engine, opened, pairs, say)
    value = found.measures[measure]
    if not exact:
        whole = parity.quality(reference, opened, pairs, say).measures[measure]
        if value < whole - parity.LOSS:
            raise LiteNmtError(
                f"the bundle loses {whole - value:.2f} {name} on {len(pairs)} validation pairs ({value:.2f} after "
                f"{whole:.2f}), more than {parity.LOSS:g}; nothing was written. A checkpoint can be fine-tuned for "
                "int8 by lite-nmt compress --int8, and a shortlist be longer."
            )
    return {
        name.lower(): {
            "value": round(value, 2),
            "sentences": len(pairs),
            "split": "valid",
            "beam": opened.config.decode.beam,
            "signature": found.signature,
        }
    }
