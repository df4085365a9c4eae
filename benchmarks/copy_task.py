"""Adaptive span beside full attention where all that matters lies near: sequences of 1,024 tokens that copy themselves.

    python benchmarks/copy_task.py --output benchmarks/results/copy-task.md

Each token is one of 16 symbols with one of five orders: the next symbol is the one 17, 37, 61 or 90 tokens before it,
or a new one. Whoever looks back 90 tokens can know all but what is drawn anew, ln 5 + ln 16 / 5 = 2.164 nats a token;
the models may look back 1,024. Runs lie under ``--runs``; what is there already is gone on with.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import machine, spread
from torch import Tensor
from trials import publish, table

from lite_nmt.config import Config, from_dict, merge
from lite_nmt.data.corpus import read_lines
from lite_nmt.data.vocabulary import BOS
from lite_nmt.evaluate.perplexity import negative_log_likelihood
from lite_nmt.models import checkpoint
from lite_nmt.models.language import LanguageModel
from lite_nmt.modules.mixer import State
from lite_nmt.profiling.cost import cost
from lite_nmt.train.loss import language_loss
from lite_nmt.train.metrics import read_metrics
from lite_nmt.train.run import train_model

LENGTH, SYMBOLS, ORDERS = 1024, 16, (0, 17, 37, 61, 90)
FLOOR = math.log(len(ORDERS)) + math.log(SYMBOLS) / len(ORDERS)
EQUAL = 0.02  # nats: losses that are nearer than this to one another
ROUNDS = 15
BASE: dict[str, Any] = {
    "task": "lm",
    "model": {"width": 64, "norm": "pre", "dropout": 0.0, "decoder": {"layers": 2, "heads": 4, "ffn": 128}},
    "vocabulary": {"kind": "word", "target": 100},
    "train": {
        "steps": 800,
        "batch_tokens": 4 * LENGTH,
        "block": LENGTH,
        "lr": 2e-3,
        "schedule": "cosine",
        "warmup": 100,
        "weight_decay": 0.0,
        "clip": 1.0,
        "label_smoothing": 0.0,
        "log_every": 50,
        "valid_every": 50,
        "save_every": 200,
        "finish": "last",
        "threads": 1,
    },
}
MODELS: dict[str, dict[str, Any]] = {
    "adaptive span": {
        "model": {"decoder": {"mixer": "adaptive-span", "span": LENGTH, "ramp": 32}},
        "train": {"span_loss": 1e-5},
    },
    # A ramp as long as the span: every head sees all of it, its mask falling evenly from 1 to 0.
    "full attention, relative positions": {
        "model": {"decoder": {"mixer": "adaptive-span", "span": LENGTH, "ramp": LENGTH}}
    },
    "full attention, sinusoids": {"model": {"decoder": {"mixer": "attention"}}},
}
COLUMNS = (
    "model",
    "test loss, nats",
    "Mult-Adds",
    "attention's",
    "kept for the backward pass, MB",
    "state, kB",
    "training step, ms",
    "steps seen by layer and head",
)


def corpus(folder: Path) -> None:
    """Write the three texts, each a single line."""
    for seed, (split, tokens) in enumerate((("train", 1_000_000), ("valid", 32 * LENGTH), ("test", 64 * LENGTH)), 1):
        draw = np.random.default_rng(seed)
        symbol, order = draw.integers(0, SYMBOLS, tokens), draw.integers(0, len(ORDERS), tokens)
        for t in range(tokens - 1):
            back = ORDERS[order[t]]
            if 0 < back <= t + 1:
                symbol[t + 1] = symbol[t + 1 - back]
        words = (f"{chr(97 + s)}{ORDERS[o]}" for s, o in zip(symbol, order, strict=True))
        (folder / f"{split}.txt").write_text(" ".join(words) + "\n", encoding="utf-8")


def one(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Train (or go on with) one model, and weigh it."""
    run = args.runs / name.replace(",", "").replace(" ", "-")
    config = from_dict(Config, merge(BASE, MODELS[name]))
    train_model(config, args.runs / "data", ("txt", "txt"), run, resume=True, device="cpu")
    saved = checkpoint.load(run)
    model = saved.language_model(torch.device("cpu"))
    [line] = read_lines(args.runs / "data" / "test.txt")
    words = np.array(saved.vocabulary.encode_words(line), np.int32)
    total = cost(saved.config, target_length=LENGTH)
    heads = [[math.ceil(mixer.ramp + mixer.span * float(z)) for z in mixer.z] for mixer in model.spans()]
    return {
        "model": name,
        "run": run.name,
        "loss": negative_log_likelihood(model, words, LENGTH) / len(words),
        "mult_adds": total.mult_adds(),
        "attention": total.by_kind()["attention"].mult_adds,
        "kept": kept(model),
        "state": state(model),
        "heads": [[min(seen, LENGTH) for seen in layer] for layer in heads],
        "parameters": total.parameters("full"),
    }


def forward(model: LanguageModel, tokens: Tensor, cache: State) -> Tensor:
    """The loss of one sequence after another, of which the model has its cache, if it carries one."""
    hidden = model(tokens, cache)[0]
    return language_loss(model, hidden.flatten(0, 1), tokens.flatten())[0]


def example() -> Tensor:
    """Any sequence: what is computed does not depend on it."""
    return torch.from_numpy(np.random.default_rng(1).integers(BOS + 2, 80, (1, LENGTH)))


def kept(model: LanguageModel) -> int:
    """Bytes that wait for the backward pass of one sequence, each storage once, weights left out."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    storages: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor  # held by the graph, so that no address is used twice

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        loss = forward(model, example(), before(model))
    del loss
    return sum(storages.values())


@torch.no_grad()
def before(model: LanguageModel) -> State:
    """The cache that a sequence leaves."""
    cache: State = model(example(), None)[1]
    return cache


@torch.inference_mode()
def state(model: LanguageModel) -> int:
    """Bytes of the state after a whole sequence, token by token."""
    held = model.initial_state(1)
    for position, token in enumerate(example().unbind(1)):
        _, held = model.step(token, position, held)
    return sum(tensor.nbytes for tensor in held.values())


def milliseconds(rows: list[dict[str, Any]], args: argparse.Namespace) -> None:
    """Of a training step on one sequence, the models taking turns; one thread."""
    torch.set_num_threads(1)
    models = {row["model"]: checkpoint.load(args.runs / row["run"]).language_model(torch.device("cpu")) for row in rows}
    caches = {name: before(model) for name, model in models.items()}
    times: dict[str, list[float]] = {name: [] for name in models}
    for turn in range(ROUNDS + 1):
        for name, model in models.items():
            began = time.perf_counter()
            forward(model, example(), caches[name]).backward()
            if turn:  # the first warms up
                times[name].append(1e3 * (time.perf_counter() - began))
    for row in rows:
        row["ms"] = spread(times[row["model"]])


def report(rows: list[dict[str, Any]], args: argparse.Namespace) -> str:
    """The table, with what it takes to make it again."""
    cells = []
    for row in rows:
        middle, low, high = row["ms"]
        seen = "; ".join(", ".join(map(str, layer)) for layer in row["heads"])
        cells.append(
            [
                row["model"],
                f"{row['loss']:.3f}",
                f"**{row['mult_adds'] / 1e6:.1f}M**",
                f"{row['attention'] / 1e6:.1f}M",
                f"**{row['kept'] / 1e6:.1f}**",
                f"**{row['state'] / 1e3:.0f}**",
                f"{middle:.1f} [{low:.1f}, {high:.1f}]",
                seen or f"{LENGTH:,}",
            ]
        )
    ours, others = rows[0], rows[1:]
    equal = [row for row in others if abs(row["loss"] - ours["loss"]) <= EQUAL]
    lines = [
        "# Sequences that copy themselves: adaptive span beside full attention",
        "",
        f"`python benchmarks/copy_task.py` on {args.machine or machine()}.",
        "",
        f"{BASE['train']['steps']} updates of four sequences of {LENGTH:,} tokens, two layers of width 64, four heads; "
        f"the best possible loss is {FLOOR:.3f} nats a token. Mult-Adds of {LENGTH:,} tokens, paper count, the output "
        "left out; their attention with its projections; what one sequence keeps for the backward pass; keys and "
        f"values after {LENGTH:,} tokens, one at a time; forward and backward pass of one sequence, one thread, "
        f"median of {ROUNDS} and quartiles, the models in turns. The mask of full attention with relative positions "
        "falls evenly over the whole span.",
        "",
        *table(COLUMNS, cells),
        "",
    ]
    for row in equal:
        ratios = [row[key] / ours[key] for key in ("mult_adds", "kept", "state")] + [row["ms"][0] / ours["ms"][0]]
        lines.append(
            "At equal loss {} takes {:.1f} times the Mult-Adds, {:.1f} times the memory in training, {:.1f} times the "
            "state and {:.1f} times the time.".format(row["model"], *ratios)
        )
    lines += [f"{row['model'].capitalize()} did not come to the same loss." for row in others if row not in equal]
    if args.output:
        lines += ["", f"![Loss, span and cost]({args.output.with_suffix('.png').name})"]
    return "\n".join(lines)


def draw(rows: list[dict[str, Any]], runs: Path, path: Path) -> None:
    """Loss over updates, span over updates, and what each model costs in the end."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (loss, span, bars) = pyplot.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for row in rows:
        lines = [line for line in read_metrics(runs / row["run"]) if "valid_nll" in line]
        loss.plot([line["step"] for line in lines], [line["valid_nll"] for line in lines], label=row["model"])
        if row is rows[0]:
            span.plot([line["step"] for line in lines], [line["mean_span"] for line in lines])
    loss.axhline(FLOOR, color="grey", linestyle=":", label="best possible")
    loss.set(xlabel="updates", ylabel="validation loss, nats a token")
    loss.legend(fontsize=7)
    span.axhline(max(ORDERS), color="grey", linestyle=":")
    span.set(xlabel="updates", ylabel=f"mean learned span, of {LENGTH:,} (dotted: {max(ORDERS)})")
    keys = {"mult_adds": "Mult-Adds", "kept": "memory\nin training", "state": "state"}
    for i, row in enumerate(rows):
        places = [j + 0.27 * (i - 1) for j in range(len(keys))]
        bars.bar(places, [row[key] / rows[0][key] for key in keys], 0.25, label=row["model"])
    bars.set_xticks(range(len(keys)), list(keys.values()))
    bars.set_ylabel("times adaptive span's")
    bars.grid(axis="y", alpha=0.3)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def main() -> None:
    """Run what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/copy-task"))
    parser.add_argument("--machine", help="what to call the machine, if it is not this one's plain description")
    parser.add_argument("--output", type=Path, help="Markdown file; figures and picture go beside it")
    args = parser.parse_args()
    (args.runs / "data").mkdir(parents=True, exist_ok=True)
    corpus(args.runs / "data")
    rows = []
    for name in MODELS:
        print(f"== {name}", file=sys.stderr)
        rows.append(one(name, args))
    milliseconds(rows, args)
    text = report(rows, args)
    if args.output:
        publish(args.output, text, rows)
        draw(rows, args.runs, args.output.with_suffix(".png"))
    print(text)


if __name__ == "__main__":
    main()
