"""Six language models of equal Mult-Adds on WikiText-2: same words, updates and seed.

    python benchmarks/wikitext2.py --data DIR --output benchmarks/results/wikitext2.md

DIR holds train.txt, valid.txt and test.txt. Each run lies in its own folder under ``--runs``; what is there already is
gone on with, so the command may be stopped and given again. The table is written anew after each model.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from typing import Any

import numpy as np
import torch
from machine import machine
from trials import draw, options, publish, table

from lite_nmt.config import Config, load_preset, parse_setting
from lite_nmt.data.corpus import read_lines
from lite_nmt.evaluate.perplexity import negative_log_likelihood
from lite_nmt.models import checkpoint
from lite_nmt.profiling.cost import cost
from lite_nmt.train.metrics import read_metrics
from lite_nmt.train.run import train_model

MODELS = ("transformer", "lite-transformer", "dynamicconv", "talk", "adaptive-span", "all-attention")
CONTEXT = 64  # words before those that are scored, of a block's 128
PARTS = 40  # that the interval is estimated from
COLUMNS = (
    "model",
    "Mult-Adds",
    "with both ends",
    "parameters",
    "with embeddings",
    "test perplexity",
    "95%",
    f"context {CONTEXT}",
    "validation",
    "h",
)


def one(model: str, args: argparse.Namespace) -> dict[str, Any]:
    """Train (or go on with) one model, and score the test text with and without overlapping blocks."""
    config = load_preset(f"wikitext2-{model}", *map(parse_setting, args.set))
    run = args.runs / model
    result = train_model(config, args.data, ("txt", "txt"), run, resume=True, device=args.device)
    saved = checkpoint.load(run)
    trained = saved.language_model(torch.device("cpu"))
    block, rows = saved.config.train.block, 16
    words = np.concatenate([saved.vocabulary.encode_words(line) for line in read_lines(args.data / "test.txt")])
    words = words.astype(np.int32)

    def nll(tokens: np.ndarray, context: int = 0) -> float:
        return negative_log_likelihood(trained, tokens, block, context, 1 if trained.carries else rows) / len(tokens)

    context = 0 if trained.carries else CONTEXT
    parts = [nll(part, context) for part in np.array_split(words, PARTS)]
    total = cost(saved.config, target_length=block)
    more = cached(saved.config, block) if trained.carries else 0
    return {
        "model": model,
        "mult_adds": total.mult_adds() + more,
        "mult_adds_full": total.mult_adds("full") + more,
        "spans": list(saved.config.model.decoder.spans),
        "parameters": total.parameters(),
        "parameters_full": total.parameters("full"),
        "updates": result.step,
        "words": len(words),
        "block": block,
        "test": math.exp(nll(words)),
        "test_context": None if trained.carries else math.exp(nll(words, CONTEXT)),
        "nll_error": 1.96 * statistics.stdev(parts) / PARTS**0.5,
        "valid": math.exp(result.metrics["valid_nll"]),
        "hours": result.footprint.hours,
        "tokens_per_second": statistics.median(
            line["tokens_per_second"] for line in read_metrics(run) if "tokens_per_second" in line
        ),
    }


def cached(config: Config, block: int) -> int:
    """What a cache adds to the Mult-Adds of a block: keys before the block, and the keys and values of its inputs."""
    width, spans = config.model.width, config.model.decoder.spans
    return sum(3 * width * block * max(span - block, 0) + 2 * width**2 * (span - 1) for span in spans)


def report(rows: list[dict[str, Any]], args: argparse.Namespace) -> str:
    """The table, with what it takes to make it again."""
    settings = "".join(f" --set {s}" for s in args.set)
    first = rows[0]
    recipe = load_preset(f"wikitext2-{first['model']}", *map(parse_setting, args.set)).train
    cells = []
    for row in sorted(rows, key=best):
        cells.append(
            [
                row["model"],
                f"{row['mult_adds'] / 1e6:.1f}M",
                f"{row['mult_adds_full'] / 1e6:.0f}M",
                f"{row['parameters'] / 1e6:.2f}M",
                f"{row['parameters_full'] / 1e6:.2f}M",
                f"**{row['test']:.1f}**" if row["test_context"] is None else f"{row['test']:.1f}",
                f"±{best(row) * row['nll_error']:.1f}",
                "cache" if row["test_context"] is None else f"**{row['test_context']:.1f}**",
                f"{row['valid']:.1f}",
                f"{row['hours']:.2f}",
            ]
        )
    widths = next((row["spans"] for row in rows if row["spans"]), None)
    lines = [
        "# WikiText-2, six language models of equal Mult-Adds",
        "",
        f"`python benchmarks/wikitext2.py --data DIR{settings}` on {args.machine or machine()}.",
        "",
        f"{first['updates']:,} updates of {recipe.batch_tokens:,} words each, seed {recipe.seed}; the recipe is in "
        "`lite_nmt/presets/wikitext2-*.toml`, [train] alike in all but for what a span costs. Perplexity a word "
        f"and an end of line, of the {first['words']:,} of the test text, in blocks of {first['block']}; with "
        f"{CONTEXT} of them read again as context, each word has at least as many before it, and is read twice. A "
        "model of adaptive spans reads the whole text in order and carries its cache. The interval is of the "
        f"figure in bold, from the test text's {PARTS} parts, each begun without a cache; one run each: "
        f"differences between seeds are not in it. Mult-Adds of a block of {first['block']} words: the paper "
        "count, by which the presets are equal, and with embeddings and softmax; adaptive span's with its widest "
        "heads' learned spans for all, and with what its cache adds. Hours are wall time, of runs that shared the "
        "machine with others.",
        "",
        *table(COLUMNS, cells),
    ]
    if widths:
        most = load_preset("wikitext2-adaptive-span").model.decoder.span
        lines += [
            "",
            f"Adaptive span, steps that each layer's widest head sees: {', '.join(map(str, widths))} of {most}.",
        ]
    if args.output:
        lines += ["", f"![Validation perplexity over updates]({args.output.with_suffix('.png').name})"]
    return "\n".join(lines)


def best(row: dict[str, Any]) -> float:
    """The figure that a model is judged by."""
    return float(row["test_context"] or row["test"])


def main() -> None:
    """Run what is missing, and write the table after each model."""
    args = options(__doc__, "wikitext2", MODELS).parse_args()
    rows: list[dict[str, Any]] = []
    for model in args.models:
        print(f"== {model}", file=sys.stderr)
        rows.append(one(model, args))
        text = report(rows, args)
        if args.output:
            publish(args.output, text, rows)
            runs = {row["model"]: args.runs / row["model"] for row in rows}
            draw(runs, "valid_nll", "validation perplexity", args.output.with_suffix(".png"), math.exp)
    print(text)


if __name__ == "__main__":
    main()
