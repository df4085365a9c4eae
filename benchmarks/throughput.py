"""Training and decoding speed, beside a plain torch.nn.Transformer of equal Mult-Adds, in one run.

    python benchmarks/throughput.py --output benchmarks/results/throughput.md

The contestants take turns, a round each, so that a slow moment of the machine hits all of them. ``nn.Transformer`` is
what its documentation leads to: embedding, positions, output layer, ``F.cross_entropy``, AdamW, and decoding by
running the decoder over the whole prefix at each step, since it keeps no state but the encoded source.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from machine import machine, spread
from torch import Tensor, nn

from lite_nmt.config import Config, DecodeConfig, load_preset
from lite_nmt.data.vocabulary import BOS, EOS
from lite_nmt.decode.search import search
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.translation import TranslationModel
from lite_nmt.modules.embedding import Embedding
from lite_nmt.profiling.cost import cost
from lite_nmt.train.loss import linear_cross_entropy

PRESETS = (
    "multi30k-transformer",
    "multi30k-lite-transformer",
    "multi30k-lightconv",
    "multi30k-dynamicconv",
    "multi30k-talk",
)
LENGTH, SENTENCES = 15, 160  # the shape of a multi30k batch of 2,560 tokens
STEPS = 30


class PlainTransformer(nn.Module):
    """The baseline, with the widths of the ``multi30k-transformer`` preset."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        model = config.model
        self.embed = Embedding(config.vocabulary.target, model.width)
        self.body = nn.Transformer(
            model.width,
            model.encoder.heads,
            model.encoder.layers,
            model.decoder.layers,
            model.encoder.ffn,
            model.dropout,
            batch_first=True,
        )
        self.drop = nn.Dropout(model.dropout)

    def embedded(self, tokens: Tensor) -> Tensor:
        return self.drop(self.embed(tokens, torch.arange(tokens.shape[1])))

    def forward(self, source: Tensor, padding: Tensor, target: Tensor) -> Tensor:
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        hidden = self.body(
            self.embedded(source),
            self.embedded(target),
            tgt_mask=causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return F.linear(hidden, self.embed.weight)

    @torch.inference_mode()
    def greedy(self, source: Tensor, padding: Tensor, steps: int) -> Tensor:
        memory = self.body.encoder(self.embedded(source), src_key_padding_mask=padding)
        tokens = torch.full((len(source), 1), BOS)
        for _ in range(steps):
            causal = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
            hidden = self.body.decoder(
                self.embedded(tokens), memory, tgt_mask=causal, memory_key_padding_mask=padding, tgt_is_causal=True
            )
            tokens = torch.cat([tokens, F.linear(hidden[:, -1], self.embed.weight).argmax(-1, keepdim=True)], 1)
        return tokens


@torch.inference_mode()
def greedy_without_state(model: TranslationModel, source: Tensor, keep: Tensor, steps: int, memory: bool) -> Tensor:
    """Our model by its whole-sequence form alone, run over the prefix at each step: the whole model as it is trained,
    or the decoder alone, with the encoded source kept as ``memory``."""
    kept = model.memory(model.encode(source, keep)) if memory else None
    tokens = torch.full((len(source), 1), BOS)
    for _ in range(steps):
        hidden = model(source, keep, tokens) if kept is None else model.decode(tokens, kept, keep)
        scores = model.project(hidden[:, -1])
        scores[:, : EOS + 1] = -math.inf  # as search() is told by min_length
        tokens = torch.cat([tokens, scores.argmax(-1, keepdim=True)], 1)
    return tokens


@dataclass
class Contest:
    """Times of functions that take turns."""

    rounds: int

    def run(self, contestants: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
        """Seconds of each call; the first round warms up and is not counted."""
        times: dict[str, list[float]] = {name: [] for name in contestants}
        for turn in range(self.rounds + 1):
            print(f"  round {turn} of {self.rounds}", file=sys.stderr)
            for name, function in contestants.items():
                began = time.perf_counter()
                function()
                if turn:
                    times[name].append(time.perf_counter() - began)
        return times


def batch(config: Config, sentences: int, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Random tokens, a fifth of the sentences a little shorter: source, keep, target."""
    generator = torch.Generator().manual_seed(1)
    source, target = (
        torch.randint(EOS + 1, config.vocabulary.target, (sentences, length), generator=generator) for _ in range(2)
    )
    keep = torch.ones(sentences, length, dtype=torch.bool)
    keep[::5, -2:] = False
    return source, keep, target


def training(rounds: int) -> dict[str, list[float]]:
    """Seconds of one update of 2,400 target tokens."""
    torch.manual_seed(1)
    reference = load_preset(PRESETS[0])
    source, keep, target = batch(reference, SENTENCES, LENGTH)

    def plain() -> Callable[[], object]:
        model = PlainTransformer(reference).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

        def step() -> None:
            scores = model(source, ~keep, target)
            F.cross_entropy(scores.flatten(0, 1), target.flatten(), label_smoothing=0.1).backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    def ours(name: str) -> Callable[[], object]:
        model = TranslationModel(load_preset(name)).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

        def step() -> None:
            hidden = model(source, keep, target).flatten(0, 1)
            loss, _ = linear_cross_entropy(hidden, model.project.weight, target.flatten(), 0.1)
            (loss / target.numel()).backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    return Contest(rounds).run({"nn.Transformer": plain(), **{name: ours(name) for name in PRESETS}})


def decoding(rounds: int, sentences: int) -> dict[str, list[float]]:
    """Seconds to decode ``sentences`` greedily, 30 tokens each, with state and without."""
    torch.manual_seed(1)
    reference = load_preset(PRESETS[0])
    source, keep, _ = batch(reference, sentences, STEPS)
    exactly = DecodeConfig(beam=1, min_length=STEPS, max_length=STEPS)
    baseline = PlainTransformer(reference).eval()
    contestants: dict[str, Callable[[], object]] = {
        "nn.Transformer, source kept": lambda: baseline.greedy(source, ~keep, STEPS)
    }
    for name in PRESETS:
        model = TranslationModel(load_preset(name)).eval()
        found = [h[0].tokens for h in search(model, source, keep, exactly)]
        if found != [tuple(row[1:]) for row in greedy_without_state(model, source, keep, STEPS, True).tolist()]:
            raise LiteNmtError(f"{name} decodes other tokens with state than without; nothing is measured.")
        contestants[name] = lambda model=model: search(model, source, keep, exactly)  # type: ignore[misc]  # bound early
        for label, memory in (("no state", False), ("source kept", True)):
            contestants[f"{name}, {label}"] = lambda model=model, memory=memory: greedy_without_state(  # type: ignore[misc]  # bound early
                model, source, keep, STEPS, memory
            )
    return Contest(rounds).run(contestants)


def table(title: str, unit: str, amount: float, times: dict[str, list[float]], baseline: Callable[[str], str]) -> str:
    """Markdown: rates, with the ratio of medians to each row's baseline."""
    lines = [f"## {title}", "", f"| | {unit} | quartiles | against its baseline |", "|---|--:|--:|--:|"]
    for name, seconds in times.items():
        middle, low, high = spread(seconds)
        ratio = spread(times[baseline(name)])[0] / middle
        lines.append(
            f"| {name} | {amount / middle:,.1f} | {amount / high:,.1f} to {amount / low:,.1f} | {ratio:.2f}x |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=Path, help="Markdown file to write; raw times go beside it as JSON")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)

    trained = training(args.rounds)
    single, many = decoding(args.rounds, 1), decoding(max(args.rounds // 2, 3), 32)
    tokens = SENTENCES * LENGTH
    sizes = "; ".join(f"{name} {cost(load_preset(name)).mult_adds() / 1e6:.1f}M" for name in PRESETS)

    def stateless(name: str) -> str:
        name = name.split(",")[0]
        return f"{name}, no state" if name in PRESETS else f"{name}, source kept"

    report = "\n\n".join(
        [
            "# Training and decoding speed",
            f"`python benchmarks/throughput.py --rounds {args.rounds} --threads {args.threads}` on {machine()}.",
            f"Mult-Adds for 30 to 30 tokens: nn.Transformer as multi30k-transformer; {sizes}. Vocabulary 8,000. "
            'Random tokens and weights: speed does not depend on either. "No state" runs the whole model, as it is '
            'trained, over the prefix at each step; "source kept" runs the decoder alone, over the prefix.',
            table(
                f"Training, updates of {tokens} target tokens", "tokens/s", tokens, trained, lambda _: "nn.Transformer"
            ),
            table("Greedy decoding, one sentence of 30 tokens", "sentences/s", 1, single, stateless),
            table("Greedy decoding, 32 sentences of 30 tokens", "sentences/s", 32, many, stateless),
        ]
    )
    print(report)
    if args.output:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(report + "\n", encoding="utf-8")
        raw = {"machine": machine(), "training": trained, "decoding_1": single, "decoding_32": many}
        args.output.with_suffix(".json").write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
