"""``lite-nmt``: picks the verb, and turns failures into one plain sentence and an exit code.

Exit codes: 0 done, 1 refused or failed with a reason, 2 wrong usage, 3 over the budget (``profile``), 130
interrupted, 141 nobody reads on.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import sys
import threading
import warnings
from collections.abc import Sequence
from typing import TextIO

from lite_nmt import __version__
from lite_nmt.errors import LiteNmtError

VERBS = (
    "demo",
    "train",
    "distill",
    "translate",
    "generate",
    "evaluate",
    "compress",
    "export",
    "bench",
    "visualize",
    "plot",
    "presets",
    "profile",
    "search",
    "corpus",
)

# The extra that brings a package which only some verbs need.
EXTRAS = {
    **dict.fromkeys(("torch", "safetensors", "matplotlib", "sklearn", "zstandard", "rouge_score"), "train"),
    **dict.fromkeys(("onnx_ir", "onnxscript", "onnx"), "export"),
    "onnxruntime": "runtime",
    "fvcore": "profile",
    **dict.fromkeys(("sacrebleu", "rich", "ctranslate2"), "bench"),  # of train too, but without PyTorch
    "executorch": "executorch",
}


def build_parser() -> argparse.ArgumentParser:
    """All verbs. Each is a module with ``add_parser(subparsers)`` and ``run(args) -> int``."""
    parser = argparse.ArgumentParser(
        prog="lite-nmt",
        description="Train, compress and ship neural machine translation under a compute budget.",
    )
    parser.add_argument("--version", action="version", version=f"lite-nmt {__version__}")
    subparsers = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb in VERBS:
        importlib.import_module(f"lite_nmt.cli.{verb}").add_parser(subparsers)
    for own in subparsers.choices.values():
        own.set_defaults(default_of=own.get_default)  # so that a verb can tell what was given
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; usage errors and ``--help`` leave by ``SystemExit``."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show it must not end the work
    # A helper thread's failure (TensorBoard's, on a full disk) is no traceback of ours.
    threading.excepthook = lambda failed: print(f"lite-nmt: warning: {failed.exc_value}", file=sys.stderr)
    args = build_parser().parse_args(argv)
    verb = importlib.import_module(f"lite_nmt.cli.{args.verb}")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _Warnings()
            code = int(verb.run(args))
            sys.stdout.flush()
            return code
    except KeyboardInterrupt:
        print("lite-nmt: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # What is still buffered must not be flushed to the closed pipe when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (LiteNmtError, ImportError, MemoryError, OSError, RuntimeError) as error:
        sentence = _sentence(error)
        if sentence is None:
            raise
        print(f"lite-nmt: error: {sentence}", file=sys.stderr)
        return 1


def _sentence(error: Exception) -> str | None:
    """What to tell the user, or None for what should not happen."""
    if isinstance(error, LiteNmtError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and (package := str(error.name).partition(".")[0]) in EXTRAS:
        return f"this needs {package}, which is not installed; pip install 'lite-nmt[{EXTRAS[package]}]'."
    if isinstance(error, OSError):
        where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        return where + ("the disk is full." if error.errno == errno.ENOSPC else f"{error.strerror or error}.")
    # PyTorch's own out-of-memory errors are RuntimeErrors; naming their class would import torch.
    out = type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    if isinstance(error, MemoryError) or out:
        return "out of memory; try smaller batches or a smaller model."
    return None


class _Warnings:
    """Each warning as one plain line, once: Python itself forgets what it has shown whenever filters change."""

    def __init__(self) -> None:
        self.shown: set[str] = set()

    def __call__(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if str(message) not in self.shown:
            self.shown.add(str(message))
            print(f"lite-nmt: warning: {message}", file=sys.stderr)
