"""``lite-nmt evaluate`` of a language model: how well it foresees a text."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from lite_nmt.cli.options import DECODE, language_model, refuse, warn_of_positions

if TYPE_CHECKING:
    from lite_nmt.data.encoded import Array
    from lite_nmt.export.bundle import Bundle
    from lite_nmt.models.checkpoint import Checkpoint

WRITING = ("hypotheses", "source", "references", "save", "metric", "no_stem", "tokenize", "lowercase")


def opened_language_model(path: str) -> Bundle | Checkpoint | None:
    """The bundle or checkpoint, if it is a language model's."""
    from pathlib import Path

    from lite_nmt.export import bundle

    if not bundle.is_bundle(Path(path)):
        return language_model(path)
    return bundle.load(Path(path)) if bundle.read_config(Path(path)).task == "lm" else None


def tell_perplexity(args: argparse.Namespace, opened: Bundle | Checkpoint) -> int:
    """Of a text, a word and an end of line each; or refuse what is for models that write."""
    import itertools
    import json
    import math
    import time
    from pathlib import Path

    import numpy as np

    from lite_nmt.data.corpus import read_lines
    from lite_nmt.data.vocabulary import UNK
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.evaluate.surprise import perplexity

    refuse(args, "language models", (*WRITING, "buffer", *DECODE))
    if not args.data:
        args.usage_error("with a language model, give --data.")
    carries = opened.config.model.carries
    block, context = args.block or opened.config.train.block, args.context or 0
    if context >= block:
        raise LiteNmtError(f"--context is {context}; of {block} words read at once it must leave some to score.")
    if context and carries:
        raise LiteNmtError("this model carries its context in a cache; leave out --context.")
    warn_of_positions(opened.config, block)
    measure = _measure(args, opened, block, context)
    path = Path(args.data) / f"{args.split}.{opened.languages[1]}"
    words = np.fromiter(itertools.chain.from_iterable(map(opened.vocabulary.encode_words, read_lines(path))), np.int32)
    if not len(words):
        raise LiteNmtError(f"{path} is empty; there is nothing to score.")
    unknown = int((words == UNK).sum())
    start = time.perf_counter()
    nll = measure(words)
    seconds = time.perf_counter() - start
    found = {"perplexity": perplexity(nll), "nll": nll, "tokens": len(words), "unknown": unknown}
    found |= {"block": block, "context": context}
    if args.json:
        # JSON knows no infinity, nor what is no number: null, as JavaScript writes them.
        finite = {name: value if math.isfinite(value) else None for name, value in found.items()}
        print(json.dumps({**finite, "seconds": seconds}))
        return 0
    read = "cache" if carries else f"blocks of {block}, {context} of them context"
    print(f"perplexity  {perplexity(nll):.2f}  ({nll:.4f} nats a word, {read})")
    print(f"words       {len(words)}  ({unknown} unknown)")
    print(f"seconds     {seconds:.2f}  ({len(words) / seconds:,.0f} words/s)")
    return 0


def _measure(
    args: argparse.Namespace, opened: Bundle | Checkpoint, block: int, context: int
) -> Callable[[Array], float]:
    """What tells how surprised a model is by a text, in nats a word."""
    import sys

    from lite_nmt.export.bundle import Bundle

    carries = opened.config.model.carries
    if isinstance(opened, Bundle):
        from lite_nmt.evaluate.surprise import surprise
        from lite_nmt.export.language_runtime import open_reader

        refuse(args, "bundles of language models", ("batch_tokens",))
        if carries:
            refuse(args, "bundles of models that carry a cache", ("block",))
        reader, words = open_reader(opened, args.device, args.threads), None if carries else block
        return lambda text: surprise(reader, text.tolist(), words, context, lambda said: print(said, file=sys.stderr))
    if carries:
        refuse(args, "models that carry a cache", ("batch_tokens",))
    import torch

    from lite_nmt.evaluate.perplexity import negative_log_likelihood
    from lite_nmt.models.device import device

    if args.threads:
        torch.set_num_threads(args.threads)
    model, rows = opened.language_model(device(args.device)), 1 if carries else max(args.batch_tokens // block, 1)
    return lambda text: negative_log_likelihood(model, text, block, context, rows) / len(text)
