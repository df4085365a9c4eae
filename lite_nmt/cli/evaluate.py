"""``lite-nmt evaluate``: BLEU and chrF, or ROUGE, of files or of what a model writes; perplexity."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lite_nmt.cli.options import DECODE, add_decode_options, decode_config, positive, refuse
from lite_nmt.cli.perplexity import opened_language_model, tell_perplexity

if TYPE_CHECKING:
    from lite_nmt.evaluate.rouge import Rouge
    from lite_nmt.evaluate.score import Scores

READING = ("context", "block")
COMPUTING = ("batch_tokens", "buffer", "threads", "device")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser(
        "evaluate",
        help="BLEU and chrF of translations, ROUGE of summaries, perplexity of a language model",
        usage="lite-nmt evaluate --hypotheses FILE --references FILE\n"
        "       lite-nmt evaluate CHECKPOINT --source FILE --references FILE\n"
        "       lite-nmt evaluate CHECKPOINT --data DIR [--split test]\n"
        "       lite-nmt evaluate CHECKPOINT --data DIR [--split test] [--context N] [--block N]   (language models)",
        description="Score translations with sacreBLEU, one reference a line, or summaries with rouge-score, one or "
        "several; signatures included. Of a language model, tell the perplexity of a text, a word and an end of line "
        "each.",
    )
    parser.add_argument("checkpoint", nargs="?", help="folder of a run or a checkpoint, or a bundle")
    parser.add_argument("--hypotheses", metavar="FILE", help="translations or summaries to score")
    parser.add_argument("--references", metavar="FILE", help="for ROUGE also .jsonl, each line a list of several")
    parser.add_argument("--source", metavar="FILE", help="text to translate")
    parser.add_argument("--data", metavar="DIR", help="take SPLIT.<source> and SPLIT.<target>, or SPLIT.txt")
    parser.add_argument("--split", default="test", help="(%(default)s)")
    parser.add_argument("--metric", choices=("bleu", "rouge"), help="(rouge for models that summarise, else bleu)")
    parser.add_argument("--no-stem", action="store_true", help="ROUGE of words as they stand, not of their stems")
    parser.add_argument(
        "--tokenize",
        choices=("13a", "none", "intl", "char", "zh"),
        help="BLEU's (13a)",
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
    if args.checkpoint is None:
        refuse(args, "text files", (*READING, *COMPUTING, "split", *DECODE))
        if not args.hypotheses or not args.references or args.source or args.data or args.save:
            args.usage_error("without CHECKPOINT, give --hypotheses and --references alone.")
        _check_metric(args)
        hypotheses = _read(args.hypotheses)
        return _report(args, hypotheses, _references(args, args.references, args.hypotheses, len(hypotheses)), None)
    if opened := opened_language_model(args.checkpoint):
        return tell_perplexity(args, opened)
    refuse(args, "models that translate or summarise", READING)
    texts = (args.source, args.references)
    if args.hypotheses or (args.source if args.data else not all(texts)):
        args.usage_error("with CHECKPOINT, give --source and --references, or --data, perhaps with other --references.")
    if not args.data:
        refuse(args, "--source", ("split",))
    return _translate(args)


def _translate(args: argparse.Namespace) -> int:
    import time
    from contextlib import ExitStack
    from pathlib import Path

    from lite_nmt.cli.files import open_output
    from lite_nmt.decode.translator import Translator
    from lite_nmt.errors import LiteNmtError

    translator = Translator.load(args.checkpoint, args.device, args.threads)
    args.metric = args.metric or ("rouge" if translator.config.task == "summarize" else "bleu")
    _check_metric(args)
    decode = decode_config(args, translator.config.decode)
    sides = [args.source, args.references]
    if args.data:
        sides = [str(Path(args.data) / f"{args.split}.{language}") for language in translator.languages]
        sides[1] = args.references or sides[1]
    source = _read(sides[0])
    references = _references(args, sides[1], sides[0], len(source))
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


def _references(args: argparse.Namespace, name: str, other: str, count: int) -> list[list[str]]:
    """The references of each of ``count`` lines of another file: one, or for ROUGE as many as a line of JSON lists."""
    import json

    from lite_nmt.errors import LiteNmtError

    texts = _read(name)
    if len(texts) != count:
        raise LiteNmtError(f"{other} has {count} lines and {name} has {len(texts)}; make them agree.")
    if not name.lower().endswith(".jsonl"):
        return [[text] for text in texts]
    if args.metric != "rouge":
        raise LiteNmtError(f"{name} may hold several references a line, which --metric rouge alone takes.")
    found = []
    for number, text in enumerate(texts, 1):
        try:
            several = json.loads(text)
        except (ValueError, RecursionError):
            several = None
        if not isinstance(several, list) or not several or not all(isinstance(one, str) for one in several):
            raise LiteNmtError(f'line {number} of {name} is not a JSON list of texts, such as ["one", "two"].')
        found.append(several)
    return found


def _check_metric(args: argparse.Namespace) -> None:
    """Refuse the other metric's options, and say what is not installed before the work."""
    if args.metric == "rouge":
        if args.tokenize or args.lowercase:
            args.usage_error("--tokenize and --lowercase are BLEU's; ROUGE takes letters and digits, lowercased.")
        from lite_nmt.evaluate import rouge  # noqa: F401
    else:
        if args.no_stem:
            args.usage_error("--no-stem is for --metric rouge.")
        from lite_nmt.evaluate import score  # noqa: F401


def _report(args: argparse.Namespace, hypotheses: list[str], references: list[list[str]], seconds: float | None) -> int:
    import dataclasses
    import json

    if args.metric == "rouge":
        from lite_nmt.evaluate.rouge import rouge

        summaries = rouge(hypotheses, references, stem=not args.no_stem)
        record, lines = dataclasses.asdict(summaries), _rouge_lines(summaries)
    else:
        from lite_nmt.evaluate.score import score

        only = [one for (one,) in references]
        scores = score(hypotheses, only, tokenize=args.tokenize or "13a", lowercase=args.lowercase)
        record, lines = dataclasses.asdict(scores), _bleu_lines(scores)
    if args.json:
        if seconds is not None:
            record |= {"seconds": seconds, "sentences_per_second": len(hypotheses) / seconds}
        print(json.dumps(record))
        return 0
    print("\n".join(lines))
    if seconds is not None:
        print(f"seconds    {seconds:.2f}  ({len(hypotheses) / seconds:.1f} sentences/s)")
    return 0


def _bleu_lines(scores: Scores) -> list[str]:
    length = f"BP {scores.brevity_penalty:.3f}, ratio {scores.length_ratio:.3f}"
    precisions = "/".join(f"{p:.1f}" for p in scores.precisions)
    return [
        f"BLEU  {scores.bleu:5.2f}  {precisions} ({length})",
        f"      {scores.bleu_signature}",
        f"chrF  {scores.chrf:5.2f}",
        f"      {scores.chrf_signature}",
        f"sentences  {scores.sentences}",
    ]


def _rouge_lines(scores: Rouge) -> list[str]:
    return [
        *(
            f"ROUGE-{name[-1]}  {m.value:5.2f}" + ("" if m.spread is None else f"  ± {m.spread:.2f}")
            for name, m in scores.measures.items()
        ),
        f"         {scores.signature}",
        f"summaries  {scores.summaries}",
    ]
