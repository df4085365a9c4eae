"""``lite-nmt evaluate``: BLEU and chrF, of a file or of what a checkpoint translates; a language model's perplexity."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lite_nmt.cli.options import add_decode_options, decode_config, language_model, positive

if TYPE_CHECKING:
    from lite_nmt.models.checkpoint import Checkpoint


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser(
        "evaluate",
        help="BLEU and chrF, of text files or by translating; perplexity of a language model",
        usage="lite-nmt evaluate --hypotheses FILE --references FILE\n"
        "       lite-nmt evaluate CHECKPOINT --source FILE --references FILE\n"
        "       lite-nmt evaluate CHECKPOINT --data DIR [--split test]\n"
        "       lite-nmt evaluate CHECKPOINT --data DIR [--split test] [--context N]   (language models)",
        description="Score with sacreBLEU: one reference a line, signatures included. Of a language model, tell the "
        "perplexity of a text, a word and an end of line each.",
    )
    parser.add_argument("checkpoint", nargs="?", help="folder of a run or a checkpoint")
    parser.add_argument("--hypotheses", metavar="FILE", help="translations to score")
    parser.add_argument("--references", metavar="FILE")
    parser.add_argument("--source", metavar="FILE", help="text to translate")
    parser.add_argument("--data", metavar="DIR", help="take SPLIT.<source> and SPLIT.<target> of this folder")
    parser.add_argument("--split", default="test", help="(%(default)s)")
    parser.add_argument(
        "--tokenize",
        default="13a",
        choices=("13a", "none", "intl", "char", "zh"),
        help="BLEU's (%(default)s)",
    )
    parser.add_argument("--lowercase", action="store_true", help="as the papers' IWSLT figures")
    parser.add_argument("--save", metavar="FILE", help="write the translations here")
    parser.add_argument(
        "--context", type=positive, metavar="N", help="language model: words of each block read again, not scored (0)"
    )
    parser.add_argument("--block", type=positive, metavar="N", help="language model: words read at once (as trained)")
    parser.add_argument("--json", action="store_true")
    add_decode_options(parser)
    parser.set_defaults(usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Score, after translating where there is a checkpoint."""
    from lite_nmt.evaluate import score  # noqa: F401  # so that a missing sacreBLEU is told before the work

    if args.checkpoint is None:
        if not args.hypotheses or not args.references or args.source or args.data or args.save:
            args.usage_error("without CHECKPOINT, give --hypotheses and --references alone.")
        return _report(args, _read(args.hypotheses), _read(args.references), None)
    if saved := language_model(args.checkpoint):
        return _perplexity(args, saved)
    if args.context or args.block:
        args.usage_error("--context and --block are for language models.")
    texts = (args.source, args.references)
    if args.hypotheses or (any(texts) if args.data else not all(texts)):
        args.usage_error("with CHECKPOINT, give --source and --references, or --data.")
    return _translate(args)


def _perplexity(args: argparse.Namespace, saved: Checkpoint) -> int:
    import itertools
    import json
    import math
    import time
    from pathlib import Path

    import numpy as np
    import torch

    from lite_nmt.data.corpus import read_lines
    from lite_nmt.errors import LiteNmtError
    from lite_nmt.evaluate.perplexity import negative_log_likelihood
    from lite_nmt.models.device import device

    if not args.data or any((args.hypotheses, args.source, args.references, args.save)):
        args.usage_error("with a language model, give --data alone.")
    block, context = args.block or saved.config.train.block, args.context or 0
    if context >= block:
        raise LiteNmtError(f"--context is {context}; of {block} words read at once it must leave some to score.")
    if args.threads:
        torch.set_num_threads(args.threads)
    model = saved.language_model(device(args.device))
    if context and model.carries:
        raise LiteNmtError("this model carries its context in a cache; leave out --context.")
    path = Path(args.data) / f"{args.split}.{saved.languages[1]}"
    words = np.fromiter(itertools.chain.from_iterable(map(saved.vocabulary.encode_words, read_lines(path))), np.int32)
    if not len(words):
        raise LiteNmtError(f"{path} is empty; there is nothing to score.")
    start = time.perf_counter()
    rows = 1 if model.carries else max(args.batch_tokens // block, 1)
    nll = negative_log_likelihood(model, words, block, context, rows) / len(words)
    seconds = time.perf_counter() - start
    found = {"perplexity": math.exp(nll), "nll": nll, "tokens": len(words), "block": block, "context": context}
    if args.json:
        print(json.dumps({**found, "seconds": seconds}))
        return 0
    read = "cache" if model.carries else f"blocks of {block}, {context} of them context"
    print(f"perplexity  {math.exp(nll):.2f}  ({nll:.4f} nats a word, {read})")
    print(f"words       {len(words)}")
    print(f"seconds     {seconds:.2f}  ({len(words) / seconds:,.0f} words/s)")
    return 0


def _translate(args: argparse.Namespace) -> int:
    import time
    from contextlib import ExitStack
    from pathlib import Path

    from lite_nmt.cli.files import open_output
    from lite_nmt.decode.translator import Translator
    from lite_nmt.errors import LiteNmtError

    translator = Translator.load(args.checkpoint, args.device, args.threads)
    decode = decode_config(args, translator.config.decode)
    sides = [args.source, args.references]
    if args.data:
        sides = [str(Path(args.data) / f"{args.split}.{language}") for language in translator.languages]
    source, references = map(_read, sides)
    if len(source) != len(references):
        raise LiteNmtError(f"{sides[0]} has {len(source)} lines and {sides[1]} has {len(references)}; make them agree.")
    if not source:
        raise LiteNmtError(f"{sides[0]} is empty; there is nothing to score.")
    with ExitStack() as stack:
        output = stack.enter_context(open_output(args.save, sides)) if args.save else None
        start = time.perf_counter()
        step = args.buffer or len(source)
        hypotheses = [
            text
            for i in range(0, len(source), step)
            for text in translator.translate(source[i : i + step], decode, args.batch_tokens)
        ]
        seconds = time.perf_counter() - start
        if output:
            output.write("".join(text + "\n" for text in hypotheses).encode())
    return _report(args, hypotheses, references, seconds)


def _read(name: str) -> list[str]:
    from contextlib import ExitStack

    from lite_nmt.cli.files import open_inputs
    from lite_nmt.data.lines import read_lines

    with ExitStack() as stack:
        return [line for label, stream in open_inputs(stack, [name]) for line in read_lines(stream, label)]


def _report(args: argparse.Namespace, hypotheses: list[str], references: list[str], seconds: float | None) -> int:
    import dataclasses
    import json

    from lite_nmt.evaluate.score import score

    scores = score(hypotheses, references, tokenize=args.tokenize, lowercase=args.lowercase)
    if args.json:
        record = dataclasses.asdict(scores)
        if seconds is not None:
            record |= {"seconds": seconds, "sentences_per_second": scores.sentences / seconds}
        print(json.dumps(record))
        return 0
    length = f"BP {scores.brevity_penalty:.3f}, ratio {scores.length_ratio:.3f}"
    precisions = "/".join(f"{p:.1f}" for p in scores.precisions)
    print(f"BLEU  {scores.bleu:5.2f}  {precisions} ({length})")
    print(f"      {scores.bleu_signature}")
    print(f"chrF  {scores.chrf:5.2f}")
    print(f"      {scores.chrf_signature}")
    print(f"sentences  {scores.sentences}")
    if seconds is not None:
        print(f"seconds    {seconds:.2f}  ({scores.sentences / seconds:.1f} sentences/s)")
    return 0
