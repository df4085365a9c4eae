"""Five architectures at about 54M Mult-Adds on multi30k: same data, vocabulary, updates and seed.

    python benchmarks/multi30k.py --data DIR --output benchmarks/results/multi30k.md

DIR holds train, valid and test (test 2016) as ``.de`` and ``.en``. Each run lies in its own folder under ``--runs``;
what is there already is gone on with, so the command may be stopped and given again. The table is written anew after
each model.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import torch
from machine import machine
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest
from trials import draw, options, publish

from lite_nmt.config import load_preset, parse_setting
from lite_nmt.data.corpus import read_lines
from lite_nmt.decode.translator import Translator
from lite_nmt.evaluate.score import score
from lite_nmt.models import checkpoint
from lite_nmt.profiling.cost import cost
from lite_nmt.train.metrics import read_metrics
from lite_nmt.train.run import train_model

MODELS = ("transformer", "lightconv", "dynamicconv", "talk", "lite-transformer")
SAMPLES = 1000
COLUMNS = (
    "model",
    "Mult-Adds",
    "with output",
    "parameters",
    "with embeddings",
    "BLEU",
    "95%",
    "vs Transformer",
    "p",
    "chrF",
    "valid BLEU, greedy",
    "training, h",
)


def one(model: str, args: argparse.Namespace) -> dict[str, Any]:
    """Train (or go on with) one model, translate the test side, score it."""
    config = load_preset(f"multi30k-{model}", *map(parse_setting, args.set))
    run = args.runs / model
    result = train_model(config, args.data, (args.src, args.tgt), run, resume=True, device=args.device)
    translator = Translator.load(run, threads=args.threads)
    source = list(read_lines(args.data / f"test.{args.src}"))
    began = time.perf_counter()
    output = translator.translate(source)
    seconds = time.perf_counter() - began
    (run / "test.hypotheses").write_text("".join(line + "\n" for line in output), encoding="utf-8")
    found = score(output, list(read_lines(args.data / f"test.{args.tgt}")))
    total = cost(translator.config)
    speeds = sorted(line["tokens_per_second"] for line in read_metrics(run) if "tokens_per_second" in line)
    return {
        "model": model,
        "mult_adds": total.mult_adds(),
        "mult_adds_full": total.mult_adds("full"),
        "parameters": total.parameters(),
        "parameters_full": total.parameters("full"),
        "updates": result.step,
        "bleu": found.bleu,
        "chrf": found.chrf,
        "bleu_signature": found.bleu_signature,
        "chrf_signature": found.chrf_signature,
        "valid_bleu_greedy": result.metrics["valid_bleu"],
        "valid_nll": result.metrics["valid_nll"],
        "hours": result.footprint.hours,
        "tokens_per_second": speeds[len(speeds) // 2],
        "sentences_per_second": len(source) / seconds,
        "vocabulary": translator.config.vocabulary.target,
        "weights_sha256": json.loads((run / "model" / checkpoint.MANIFEST).read_text())["files"][checkpoint.WEIGHTS][
            "sha256"
        ],
    }


def compare(rows: list[dict[str, Any]], args: argparse.Namespace) -> None:
    """Add to each row its BLEU difference to the Transformer, by paired bootstrap (Koehn 2004)."""
    names = [row["model"] for row in rows]
    if "transformer" not in names or len(rows) < 2:
        return
    names.sort(key=lambda name: name != "transformer")  # the baseline first
    systems: list[tuple[str, Sequence[str]]] = [
        (name, list(read_lines(args.runs / name / "test.hypotheses"))) for name in names
    ]
    reference = list(read_lines(args.data / f"test.{args.tgt}"))
    test = PairedTest(systems, {"BLEU": BLEU()}, [reference], test_type="bs", n_samples=SAMPLES)
    found = dict(zip(names, test()[1]["BLEU"], strict=True))
    for row in rows:
        result = found[row["model"]]
        row.update(interval=result.ci, p=result.p_value)


def report(rows: list[dict[str, Any]], args: argparse.Namespace) -> str:
    """The table, with what it takes to make it again."""
    settings = "".join(f" --set {s}" for s in args.set)
    baseline = next((row["bleu"] for row in rows if row["model"] == "transformer"), None)
    lines = [
        f"# multi30k {args.src}→{args.tgt}, five architectures at about 54M Mult-Adds",
        "",
        f"`python benchmarks/multi30k.py --data DIR{settings}` on {args.machine or machine()}.",
        "",
        f"29,000 training pairs, joint vocabulary of {rows[0]['vocabulary']:,} types trained on them, "
        f"{rows[0]['updates']:,} updates, seed 1; the recipe is in `lite_nmt/presets/multi30k-*.toml`, [train] alike "
        "in all. Test 2016, beam 4. One run each: differences between seeds are not in the intervals, which are of the "
        f"test set ({SAMPLES:,} bootstrap samples); p is of the paired difference to the Transformer. "
        "Hours are wall time, of runs that may have shared the machine; speed is in throughput.md.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|---|" + "--:|" * (len(COLUMNS) - 1),
    ]
    for row in sorted(rows, key=lambda row: -row["bleu"]):
        interval = f"±{row['interval']:.1f}" if "interval" in row else ""
        difference = f"{row['bleu'] - baseline:+.1f}" if baseline is not None else ""
        p = f"{row['p']:.3f}" if row.get("p") is not None else ""
        cells = [
            row["model"],
            f"{row['mult_adds'] / 1e6:.1f}M",
            f"{row['mult_adds_full'] / 1e6:.1f}M",
            f"{row['parameters'] / 1e6:.2f}M",
            f"{row['parameters_full'] / 1e6:.2f}M",
            f"**{row['bleu']:.1f}**",
            interval,
            difference,
            p,
            f"{row['chrf']:.1f}",
            f"{row['valid_bleu_greedy']:.1f}",
            f"{row['hours']:.2f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", f"BLEU: `{rows[0]['bleu_signature']}`; chrF: `{rows[0]['chrf_signature']}`."]
    if args.output:
        lines += ["", f"![Validation BLEU over updates]({args.output.with_suffix('.png').name})"]
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, and write the table after each model."""
    parser = options(__doc__, "multi30k", MODELS)
    parser.add_argument("--src", default="de")
    parser.add_argument("--tgt", default="en")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for model in args.models:
        print(f"== {model}", file=sys.stderr)
        rows.append(one(model, args))
        compare(rows, args)
        text = report(rows, args)
        if args.output:
            publish(args.output, text, rows)
            runs = {row["model"]: args.runs / row["model"] for row in rows}
            draw(runs, "valid_bleu", "validation BLEU, greedy", args.output.with_suffix(".png"))
    print(text)


if __name__ == "__main__":
    main()
