"""``lite-nmt evaluate``: BLEU and chrF, of a file or of what a checkpoint translates."""

from __future__ import annotations

import argparse

from lite_nmt.cli.options import add_decode_options, decode_config


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser(
        "evaluate",
        help="BLEU and chrF, of text files or by translating",
        usage="lite-nmt evaluate --hypotheses FILE --references FILE\n"
        "       lite-nmt evaluate CHECKPOINT --source FILE --references FILE\n"
        "       lite-nmt evaluate CHECKPOINT --data DIR [--split test]",
        description="Score with sacreBLEU: one reference a line, signatures included.",
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
    texts = (args.source, args.references)
    if args.hypotheses or (any(texts) if args.data else not all(texts)):
        args.usage_error("with CHECKPOINT, give --source and --references, or --data.")
    return _translate(args)


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
