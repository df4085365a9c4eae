"""``lite-nmt translate``: one output line for each input line, in order."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lite_nmt.cli.options import add_decode_options, decode_config, positive

if TYPE_CHECKING:
    from lite_nmt.decode.translator import Candidate, Translation

_BUFFER = 2048  # lines


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser(
        "translate",
        help="translate standard input or files",
        description="Translate lines of UTF-8. Each input line gives one output line, in order, once the "
        "lines read with it are done. What else is asked for follows after ' ||| ': score, then alignment.",
    )
    parser.add_argument("checkpoint", help="folder of a run or a checkpoint")
    parser.add_argument("files", nargs="*", default=["-"], metavar="FILE", help="default: standard input")
    parser.add_argument("--output", metavar="FILE", help="write here, all or nothing")
    parser.add_argument(
        "--nbest",
        type=positive,
        metavar="N",
        help="candidates a line, each as: line from 0 ||| text ||| score",
    )
    parser.add_argument("--scores", action="store_true", help="length-penalised log-probabilities")
    parser.add_argument("--alignments", action="store_true", help="SentencePiece pieces, source-target")
    parser.add_argument("--json", action="store_true", help="one object a line")
    add_decode_options(parser)


def run(args: argparse.Namespace) -> int:
    """Translate."""
    from contextlib import ExitStack
    from itertools import chain

    from lite_nmt.cli.files import open_inputs, open_output
    from lite_nmt.data.lines import chunks, read_lines
    from lite_nmt.decode.translator import Translator

    with ExitStack() as stack:
        inputs = open_inputs(stack, args.files)
        output = stack.enter_context(open_output(args.output, args.files))
        translator = Translator.load(args.checkpoint, args.device, args.threads)
        decode = decode_config(args, translator.config.decode)
        # Someone who types wants an answer to each line.
        buffer = args.buffer or (1 if any(stream.isatty() for _, stream in inputs) else _BUFFER)
        number = 0
        for chunk in chunks(chain.from_iterable(read_lines(stream, name) for name, stream in inputs), buffer):
            for translation in translator.translate_all(
                chunk, decode, args.batch_tokens, args.nbest or 1, args.alignments
            ):
                output.write(_format(args, number, translation).encode())
                number += 1
            output.flush()
    return 0


def _format(args: argparse.Namespace, number: int, translation: Translation) -> str:
    if args.json:
        import json

        candidates = [_object(args, candidate) for candidate in translation.candidates]
        record = {"line": number, "source": translation.source, "translations": candidates}
        if args.alignments:
            record["pieces"] = translation.pieces
        return json.dumps(record, ensure_ascii=False) + "\n"
    return "".join(_line(args, number, candidate) for candidate in translation.candidates)


def _line(args: argparse.Namespace, number: int, candidate: Candidate) -> str:
    fields = [] if args.nbest is None else [str(number)]
    fields.append(candidate.text)
    if args.scores or args.nbest is not None:
        fields.append(f"{candidate.score:.4f}")
    if args.alignments:
        fields.append(candidate.pharaoh)
    return " ||| ".join(fields) + "\n"


def _object(args: argparse.Namespace, candidate: Candidate) -> dict[str, object]:
    record: dict[str, object] = {
        "text": candidate.text,
        "score": candidate.score,
        "logprob": candidate.logprob,
    }
    if args.alignments:
        record |= {"pieces": candidate.pieces, "alignment": candidate.alignment}
    return record
