"""Two models that summarise abstracts in a sentence, a Transformer and a Lite Transformer: same data, updates and seed.

    python benchmarks/scitldr.py --data DIR --output benchmarks/results/scitldr.md

DIR holds train, valid and test as ``.src`` and ``.tgt``, and ``test.tgt_all.jsonl`` with all references. Each run lies
in its own folder under ``--runs``; what is there already is gone on with. Beside them stands the abstract's first
sentence, which takes no training.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import warnings
from pathlib import Path
from typing import Any

from machine import machine
from trials import draw, options, publish, table

from lite_nmt.config import load_preset, parse_setting
from lite_nmt.data.corpus import read_lines
from lite_nmt.decode.translator import Translator
from lite_nmt.evaluate.rouge import MEASURES, rouge
from lite_nmt.profiling.cost import cost
from lite_nmt.train.run import train_model

MODELS = ("transformer", "lite-transformer")
SOURCE, TARGET = 250, 30  # tokens that Mult-Adds are counted for: the corpus' means
COLUMNS = ("summaries by", "Mult-Adds", "parameters", "ROUGE-1", "ROUGE-2", "ROUGE-L", "validation perplexity", "h")


def one(model: str, args: argparse.Namespace) -> dict[str, Any]:
    """Train (or go on with) one model, and score its summaries of the test side."""
    config = load_preset(f"scitldr-{model}", *map(parse_setting, args.set))
    run = args.runs / model
    result = train_model(config, args.data, ("src", "tgt"), run, resume=True, device=args.device)
    translator = Translator.load(run)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of abstracts that are cut
        said = translator.translate(list(read_lines(args.data / "test.src")))
    (run / "test.summaries").write_text("".join(line + "\n" for line in said), encoding="utf-8")
    total = cost(translator.config, SOURCE, TARGET)
    return {
        "model": model,
        "mult_adds": total.mult_adds(),
        "parameters": total.parameters(),
        "updates": result.step,
        "pairs": sum(1 for _ in read_lines(args.data / "train.src")),
        "longest": config.vocabulary.max_length,
        "types": translator.config.vocabulary.target,
        "seed": config.train.seed,
        "beam": config.decode.beam,
        "valid": math.exp(result.metrics["valid_nll"]),
        "hours": result.footprint.hours,
        **scores(said, args.data),
    }


def scores(said: list[str], data: Path) -> dict[str, Any]:
    """ROUGE against all references."""
    found = rouge(said, [json.loads(line) for line in read_lines(data / "test.tgt_all.jsonl")])
    values = {name: [measure.value, measure.spread] for name, measure in found.measures.items()}
    return {"summaries": found.summaries, "signature": found.signature, **values}


def lead(data: Path) -> dict[str, Any]:
    """The first sentence of each abstract."""
    sentences = [re.split(r"(?<=[.!?]) ", line.strip(), maxsplit=1)[0] for line in read_lines(data / "test.src")]
    return {"model": "the abstract's first sentence", **scores(sentences, data)}


def report(rows: list[dict[str, Any]], args: argparse.Namespace) -> str:
    """The table, with what it takes to make it again."""
    settings = "".join(f" --set {s}" for s in args.set)
    cells = []
    for row in rows:
        measures = [f"{row[name][0]:.1f} ±{row[name][1]:.1f}" for name in MEASURES]
        trained = "updates" in row
        cells.append(
            [
                row["model"],
                f"{row['mult_adds'] / 1e6:.0f}M" if trained else "",
                f"{row['parameters'] / 1e6:.2f}M" if trained else "",
                *measures,
                f"{row['valid']:.0f}" if trained else "",
                f"{row['hours']:.2f}" if trained else "",
            ]
        )
    lines = [
        "# SciTLDR, abstracts to one sentence",
        "",
        f"`python benchmarks/scitldr.py --data DIR{settings}` on {args.machine or machine()}.",
        "",
        f"{rows[-1]['pairs']:,} abstracts to train on, of which the first {rows[-1]['longest']} tokens are read, "
        f"{rows[-1]['types']:,} types, {rows[-1]['updates']:,} updates, seed {rows[-1]['seed']}; the recipe is in "
        f"`lite_nmt/presets/scitldr-*.toml`, [train] alike in both. ROUGE F1 of {rows[0]['summaries']} test "
        f"abstracts, beam {rows[-1]['beam']}, with half of the mean's 95% interval; one run each: differences "
        f"between seeds are not in it. Mult-Adds for {SOURCE} to {TARGET} tokens, paper count. Hours are wall "
        "time, of runs that shared the machine with others.",
        "",
        *table(COLUMNS, cells),
        "",
        f"`{rows[0]['signature']}`.",
    ]
    if args.output:
        lines += ["", f"![Validation perplexity over updates]({args.output.with_suffix('.png').name})"]
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, and write the table after each model."""
    args = options(__doc__, "scitldr", MODELS).parse_args()
    rows = [lead(args.data)]
    for model in args.models:
        print(f"== {model}", file=sys.stderr)
        rows.append(one(model, args))
        text = report(rows, args)
        if args.output:
            publish(args.output, text, rows)
            runs = {row["model"]: args.runs / row["model"] for row in rows if "updates" in row}
            draw(runs, "valid_nll", "validation perplexity", args.output.with_suffix(".png"), math.exp)
    print(text)


if __name__ == "__main__":
    main()
