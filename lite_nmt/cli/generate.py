"""``lite-nmt generate``: a language model goes on with a text."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lite_nmt.cli.options import positive, refuse, warn_of_positions

if TYPE_CHECKING:
    from lite_nmt.config import Config
    from lite_nmt.data.vocabulary import Vocabulary
    from lite_nmt.decode.generate import Reader


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser("generate", help="let a language model go on with a text")
    parser.add_argument("model", help="folder of a run or a checkpoint, or a bundle")
    parser.add_argument("--prompt", default="", help="tokenised as the training text (default: a new line)")
    parser.add_argument("--words", type=positive, default=50, metavar="N", help="how many to add (%(default)s)")
    parser.add_argument(
        "--temperature", type=float, default=0.0, metavar="T", help="0 takes the best word, more draws freely (0)"
    )
    parser.add_argument("--top", type=positive, metavar="K", help="draw from the K likeliest words (all)")
    parser.add_argument("--seed", type=int, default=1, help="(%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Print prompt and continuation as one text."""
    from lite_nmt.data.lines import clean
    from lite_nmt.data.vocabulary import EOS
    from lite_nmt.decode.generate import generate
    from lite_nmt.errors import LiteNmtError

    if not 0 <= args.temperature <= 100 or args.seed < 0:
        raise LiteNmtError("--temperature must be between 0 and 100, and --seed at least 0.")
    if not args.temperature:
        refuse(args, "a temperature of 0, where nothing is drawn", ("top", "seed"))
    if args.top == 1:
        refuse(args, "--top 1, which leaves nothing to draw", ("temperature", "seed"))
    config, vocabulary, reader = _open(args.model)
    prompt = vocabulary.encode_words(clean(args.prompt))[:-1]
    warn_of_positions(config, len(prompt) + args.words)
    text = [*prompt, *generate(reader, prompt, args.words, args.temperature, args.top or 0, args.seed)]
    lines: list[list[int]] = [[]]
    for token in text:
        if token == EOS:
            lines.append([])
        else:
            lines[-1].append(token)
    print("\n".join(vocabulary.decode_words(line) for line in lines))
    return 0


def _open(path: str) -> tuple[Config, Vocabulary, Reader]:
    from pathlib import Path

    from lite_nmt.export import bundle

    if bundle.is_bundle(Path(path)):
        from lite_nmt.export.language_runtime import open_reader

        opened = bundle.load(Path(path))
        return opened.config, opened.vocabulary, open_reader(opened)
    from lite_nmt.decode.language import PyTorchReader
    from lite_nmt.models import checkpoint

    saved = checkpoint.load(Path(path))
    return saved.config, saved.vocabulary, PyTorchReader(saved.language_model())
