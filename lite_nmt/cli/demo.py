"""``lite-nmt demo``: the whole chain on the generated corpus, in minutes and with no download."""

from __future__ import annotations

import argparse
from pathlib import Path

SHOWN = 5


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = subparsers.add_parser(
        "demo",
        help="train and try a translator on the generated corpus",
        description="Generate a corpus, train a Lite Transformer of the 100M class on it, translate held-out "
        "sentences, and print BLEU, parameters, Mult-Adds and time. Run again, it goes on where it was stopped.",
    )
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for corpus and run (default: demo)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="one setting, such as train.steps=100"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the chain and print what came of it."""
    import json
    import shlex
    import sys
    import time

    from lite_nmt.config import load_preset, parse_setting
    from lite_nmt.data.corpus import read_lines
    from lite_nmt.data.generated import write_corpus
    from lite_nmt.decode.translator import Translator
    from lite_nmt.evaluate.score import score
    from lite_nmt.idle import refuse_idle
    from lite_nmt.profiling.budget import quantity
    from lite_nmt.profiling.cost import cost
    from lite_nmt.train.run import train_model

    began = time.perf_counter()
    corpus = args.out / "corpus"
    settings = [parse_setting(text) for text in args.set]
    config = load_preset("demo", *settings)
    refuse_idle(config, *settings)
    if not all((corpus / f"{split}.{side}").exists() for split in ("train", "valid", "test") for side in ("de", "en")):
        write_corpus(corpus)
    result = train_model(config, corpus, ("de", "en"), args.out / "run", resume=True)
    trained = time.perf_counter()

    translator = Translator.load(result.model)
    source, reference = (list(read_lines(corpus / f"test.{language}")) for language in ("de", "en"))
    print(f"translating {len(source)} held-out sentences", file=sys.stderr)
    output = translator.translate(source)
    translated = time.perf_counter()
    bleu = score(output, reference).bleu
    total = cost(translator.config)
    if args.json:
        figures = {
            "bleu": bleu,
            "parameters": total.parameters(),
            "parameters_full": total.parameters("full"),
            "mult_adds": total.mult_adds(),
            "mult_adds_full": total.mult_adds("full"),
            "training_seconds": trained - began,
            "translation_seconds": translated - trained,
            "model": str(result.model),
        }
        print(json.dumps(figures))
        return 0
    for german, english in list(zip(source, output, strict=True))[:SHOWN]:
        print(f"  {german}\n    {english}")
    print(f"BLEU        {bleu:.1f} on {len(source)} held-out sentences (beam {config.decode.beam})")
    print(f"parameters  {quantity(total.parameters())} ({quantity(total.parameters('full'))} with embeddings)")
    print(
        f"Mult-Adds   {quantity(total.mult_adds())} for 30 to 30 tokens "
        f"({quantity(total.mult_adds('full'))} with the output projection)"
    )
    print(f"time        {trained - began:.0f} s training, {translated - trained:.1f} s translating")
    program = shlex.quote(sys.argv[0]) if sys.argv[0].endswith("lite-nmt") else "lite-nmt"
    print(f"Try it: echo {shlex.quote(source[0])} | {program} translate {shlex.quote(str(result.model))}")
    return 0
