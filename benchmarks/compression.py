"""Lite Transformer's Figure 5 for a model of ours: size in both accountings and quality at each stage.

    python benchmarks/compression.py --run RUN --data DIR --output benchmarks/results/compression.md

RUN is a finished run with its data; DIR holds test as text. Each compressed model lies in its own folder under
``--models``; what is there already is not made again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from machine import machine

from lite_nmt.config import load_preset
from lite_nmt.data.corpus import read_lines
from lite_nmt.decode.translator import Translator
from lite_nmt.evaluate.bootstrap import bleu_difference
from lite_nmt.evaluate.score import score
from lite_nmt.models import checkpoint
from lite_nmt.profiling.cost import cost

BASE = 4 * cost(load_preset("wmt-transformer-base")).parameters()  # bytes, as Figure 5 counts: float32, no embeddings


def stages(steps: int, target: str) -> dict[str, list[str]]:
    """Options of ``lite-nmt compress`` for each row."""
    tune = ["--finetune-steps", str(steps)]
    found = {f"{bits} bits": ["--bits", str(bits)] for bits in (8, 6, 5, 4, 3)}
    found["8 bits, 45% zeros, tuned"] = ["--bits", "8", "--prune", "0.45", *tune]
    found["4 bits, tuned"] = ["--bits", "4", *tune]
    found["4 bits, 45% zeros, tuned"] = ["--bits", "4", "--prune", "0.45", *tune]
    if target:
        found[f"by sensitivity, {target}B"] = ["--curves", "CURVES", "--target-size", target]
    return found


def compress(options: Sequence[str], folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """What ``lite-nmt compress --json`` says, remembered beside the model that it made."""
    log = folder.with_suffix(".json")
    if not log.exists():
        command = [sys.executable, "-m", "lite_nmt", "compress", str(args.run), "--out", str(folder), *options]
        made = subprocess.run([*command, "--json"], check=True, stdout=subprocess.PIPE, text=True)
        log.write_text(made.stdout)
    return dict(json.loads(log.read_text()))


def measure(name: str, model: Path, reference: list[str] | None, args: argparse.Namespace) -> dict[str, Any]:
    """Translate the test side, score it, and compare with the model as it was trained."""
    translator = Translator.load(model, threads=args.threads)
    source, target = translator.languages
    output = translator.translate(list(read_lines(args.data / f"test.{source}")))
    references = list(read_lines(args.data / f"test.{target}"))
    found = score(output, references)
    row = {"stage": name, "bleu": found.bleu, "chrf": found.chrf, "signature": found.bleu_signature, "output": output}
    if reference is not None:
        difference = bleu_difference(reference, output, references)
        row |= {"difference": difference.bleu, "low": difference.low, "high": difference.high}
    return row


def size(folder: Path) -> int:
    """Bytes of all that is needed to translate."""
    return sum(path.stat().st_size for path in folder.iterdir() if path.name != checkpoint.TRAINING)


def report(rows: list[dict[str, Any]], args: argparse.Namespace) -> str:
    """The table, with what it takes to make it again."""
    saved = checkpoint.load(args.run)
    total = cost(saved.config)
    options = f"--steps {args.steps}" + (f" --target {args.target}" if args.target else "")
    lines = [
        f"# Compression of {args.name}",
        "",
        f"`python benchmarks/compression.py --run RUN --data DIR {options}` on {args.machine or machine()}.",
        "",
        f"The model: {total.mult_adds() / 1e6:.1f}M Mult-Adds, {total.parameters() / 1e6:.2f}M parameters without "
        f"embeddings, {total.parameters('full') / 1e6:.2f}M with, {saved.step:,} updates. Tuned: {args.steps} updates "
        "after pruning, and as many after quantisation, on the training side. Test side, default beam; the difference "
        "is to the model as trained, with the middle 95% of 1,000 paired bootstrap samples of the test side.",
        "",
        "*Paper* counts as Lite Transformer's Figure 5: bits of the weights that are not zero; no embeddings, no "
        f"codebooks, positions or vocabulary. Its ratio is to Transformer base as there, {BASE / 1e6:.1f} MB. "
        "*Artefact* is the whole folder on disk: embeddings, codebooks, positions, vocabulary and manifest.",
        "",
        "| stage | zeros | paper, MB | to base | artefact, MB | to float32 | BLEU | difference | 95% | chrF |",
        "|---|" + "--:|" * 9,
    ]
    first = rows[0]
    for row in rows:
        interval = f"{row['low']:+.2f} to {row['high']:+.2f}" if "low" in row else ""
        cells = [
            row["stage"],
            f"{row['zeros']:.0%}",
            f"{row['paper_bytes'] / 1e6:.3f}",
            f"{BASE / row['paper_bytes']:.1f}x",
            f"{row['bytes'] / 1e6:.3f}",
            f"{first['bytes'] / row['bytes']:.1f}x",
            f"**{row['bleu']:.2f}**",
            f"{row['difference']:+.2f}" if "difference" in row else "",
            interval,
            f"{row['chrf']:.1f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", f"BLEU: `{first['signature']}`."]
    return "\n".join(lines)


def main() -> None:
    """Make what is missing, measure, and write the table after each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--name", default="a Lite Transformer", help="what to call the model")
    parser.add_argument("--models", type=Path, default=Path("runs/compression"))
    parser.add_argument("--steps", type=int, default=300, help="fine-tuning updates")
    parser.add_argument("--target", default="", help="a size for the row that sensitivity allocates, such as 2.5M")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--machine", help="what to call the machine, if it is not this one's plain description")
    parser.add_argument("--output", type=Path, help="Markdown file; the figures go beside it as JSON")
    args = parser.parse_args()
    args.models.mkdir(parents=True, exist_ok=True)
    curves = args.models / "curves"
    wanted = stages(args.steps, args.target)
    if args.target and not curves.exists():
        command = [sys.executable, "-m", "lite_nmt", "compress", str(args.run), "--out", str(curves), "--sensitivity"]
        subprocess.run(command, check=True, stdout=sys.stderr)
    rows: list[dict[str, Any]] = []
    for name, options in wanted.items():
        print(f"== {name}", file=sys.stderr)
        folder = args.models / name.replace(" ", "-").replace(",", "").replace("%", "")
        made = compress([str(curves / "sensitivity.json") if o == "CURVES" else o for o in options], folder, args)
        if not rows:
            saved = checkpoint.load(args.run)
            rows.append({**measure("as trained, float32", args.run, None, args), "bytes": size(saved.folder)})
            rows[0] |= {key: made["stages"][0][key] for key in ("zeros", "paper_bytes")}
        found = {key: made["stages"][-1][key] for key in ("zeros", "paper_bytes")}
        rows.append({**measure(name, folder, rows[0]["output"], args), "bytes": size(folder), **found})
        text = report(rows, args)
        if args.output:
            args.output.parent.mkdir(parents=True, exist_ok=True)
            args.output.write_text(text + "\n", encoding="utf-8")
            figures = [{key: value for key, value in row.items() if key != "output"} for row in rows]
            args.output.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
