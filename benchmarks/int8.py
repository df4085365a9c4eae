"""What int8 costs a model in BLEU: its weights rounded, then its activations too, with and without training for it.

    python benchmarks/int8.py --run RUN --data DIR --steps 100 --output benchmarks/results/int8.md

RUN is a finished run with its data; DIR holds test as text. Each model lies in its own folder under ``--models``; what
is there already is not made again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from compression import compress, size
from machine import machine

from lite_nmt.compress.simulate import round_inputs
from lite_nmt.data.corpus import read_lines
from lite_nmt.decode.pytorch import model_of
from lite_nmt.decode.translator import Translator
from lite_nmt.evaluate.bootstrap import bleu_difference
from lite_nmt.evaluate.score import score
from lite_nmt.models import checkpoint


def main() -> None:
    """Make what is missing, measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", type=Path, default=Path("runs/int8"))
    parser.add_argument("--steps", type=int, default=100, help="fine-tuning updates")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--machine", help="what to call the machine, if it is not this one's plain description")
    parser.add_argument("--output", type=Path, help="Markdown file")
    args = parser.parse_args()
    args.models.mkdir(parents=True, exist_ok=True)
    tune = ["--finetune-steps", str(args.steps)]
    wanted = {
        "int8": [],
        f"int8, {args.steps} updates": tune,
        f"int8, {args.steps} updates at a tenth of the rate": [*tune, "--finetune-lr", f"{_rate(args.run) / 30:g}"],
    }
    dense: list[str] = []
    lines = [
        "# BLEU in int8",
        "",
        f"`python benchmarks/int8.py --run RUN --data DIR --steps {args.steps}` on {args.machine or machine()}.",
        "",
        "Test side, default beam; differences to the model as trained, with the middle 95% of 1,000 paired bootstrap "
        "samples. *Activations* rounds them too, simulated; the range of a decoder's step is that of one hypothesis.",
        "",
        "| model | bytes | activations | validation perplexity | BLEU | difference | 95% |",
        "|---|--:|---|--:|--:|--:|--:|",
    ]
    for name, options in {"as trained": None, **wanted}.items():
        folder, nll = args.run, checkpoint.load(args.run).metrics["valid_nll"]
        if options is not None:
            folder = args.models / name.replace(" ", "-").replace(",", "")
            nll = compress(["--int8", *options], folder, args)["stages"][-1]["nll"]
        for rounded in (False,) if options is None else (False, True):
            translator = Translator.load(folder, threads=args.threads)
            if rounded:
                round_inputs(model_of(translator.engine))
            source, target = translator.languages
            output = translator.translate(list(read_lines(args.data / f"test.{source}")))
            references = list(read_lines(args.data / f"test.{target}"))
            dense = dense or output
            difference = bleu_difference(dense, output, references)
            cells = [
                name,
                f"{size(checkpoint.load(folder).folder):,}",
                "int8" if rounded else "float32",
                f"{torch.tensor(nll).exp():.3f}" if rounded or options is None else "",
                f"{score(output, references).bleu:.2f}",
                *(
                    ["", ""]
                    if options is None
                    else [f"{difference.bleu:+.2f}", f"{difference.low:+.2f} to {difference.high:+.2f}"]
                ),
            ]
            lines.append("| " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    if args.output:
        args.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _rate(run: Path) -> float:
    return checkpoint.load(run).config.train.lr


if __name__ == "__main__":
    main()
