"""What a lexical shortlist costs in quality, and how many rows of the output projection it leaves.

    python benchmarks/shortlist.py --run RUN --data DIR --output benchmarks/results/shortlist.md

RUN is a finished run with its data; DIR holds test as text. Translation is greedy, each sentence limited to its own
shortlist.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import machine
from torch import Tensor

from lite_nmt.config import DecodeConfig
from lite_nmt.data.corpus import read_lines
from lite_nmt.data.vocabulary import EOS
from lite_nmt.decode.pytorch import PyTorchEngine
from lite_nmt.decode.translator import Translator
from lite_nmt.evaluate.bootstrap import bleu_difference
from lite_nmt.evaluate.score import score
from lite_nmt.export.shortlist import Shortlist, select, translations
from lite_nmt.models import checkpoint
from lite_nmt.models.checkpoint import Checkpoint, restore
from lite_nmt.models.translation import TranslationModel
from lite_nmt.modules.mixer import State
from lite_nmt.train.pairs import need_pairs

PER_WORD, FREQUENT = (4, 8, 16, 32, 64, 100), (0, 50, 100, 300)
GREEDY = DecodeConfig(beam=1)


class Limited(TranslationModel):
    """A model that gives each sentence its shortlist's types alone. Which these are travels with the memory."""

    def __init__(self, saved: Checkpoint, shortlist: Shortlist) -> None:
        super().__init__(saved.config)
        restore(self, saved.weights(), saved.folder)
        self.shortlist = shortlist
        self.allowed = torch.empty(0)

    def encode(self, source: Tensor, keep: Tensor) -> Tensor:
        self.allowed = torch.zeros(len(source), len(self.project.weight), dtype=torch.bool)
        for row, sentence, real in zip(self.allowed, source, keep, strict=True):
            row[torch.from_numpy(self.shortlist.rows(sentence[real].tolist()))] = True
        return super().encode(source, keep)

    def memory(self, encoded: Tensor) -> State:
        return super().memory(encoded) | {"allowed": self.allowed}

    def step(
        self, token: Tensor, position: int | Tensor, state: State, memory: State, keep: Tensor
    ) -> tuple[Tensor, State]:
        logits, state = super().step(token, position, state, memory, keep)
        allowed = memory["allowed"].repeat_interleave(len(logits) // len(memory["allowed"]), 0)
        return logits.masked_fill(~allowed, float("-inf")), state


def coverage(rows: Sequence[Any], sentences: Sequence[Sequence[int]]) -> float:
    """Share of the sentences' tokens that are in the sentence's rows."""
    there = sum(int(np.isin(tokens, own).sum()) for own, tokens in zip(rows, sentences, strict=True))
    return there / sum(map(len, sentences))


def main() -> None:
    """Align once, then try each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--name", default="a model", help="what to call it")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--machine", help="what to call the machine, if it is not this one's plain description")
    parser.add_argument("--output", type=Path, help="Markdown file; the figures go beside it as JSON")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    saved = checkpoint.load(args.run)
    vocabulary, piece = saved.vocabulary, saved.vocabulary.target
    lines, references = (list(read_lines(args.data / f"test.{language}")) for language in saved.languages)
    source, target = vocabulary.encode_source(lines), vocabulary.encode_target(references)
    train = need_pairs(saved, "train", None, args.run)
    began = time.process_time()
    links = translations(saved, train, len(train), "cpu")
    seconds = time.process_time() - began
    whole = Translator.load(args.run).translate_all(lines, GREEDY)
    output = [translation.text for translation in whole]
    pieces = [[*map(piece.piece_to_id, translation.candidates[0].pieces), EOS] for translation in whole]

    table: list[dict[str, Any]] = []
    for frequent in FREQUENT:
        for per_word in PER_WORD:
            shortlist = select(saved, train, links, per_word, frequent)
            rows = [shortlist.rows(ids) for ids in source]
            # Where a sentence's translation lies in its shortlist, a greedy search finds it again.
            leaving = [i for i, ids in enumerate(pieces) if not np.isin(ids, rows[i]).all()]
            limited = Translator(saved.config, vocabulary, PyTorchEngine(Limited(saved, shortlist)), saved.languages)
            found = list(output)
            changed = limited.translate_all([lines[i] for i in leaving], GREEDY)
            for i, translation in zip(leaving, changed, strict=True):
                found[i] = translation.text
            difference = bleu_difference(output, found, references)
            row = {
                "frequent": frequent,
                "per_word": per_word,
                "rows": float(np.mean([len(r) for r in rows])),
                "most_rows": max(map(len, rows)),
                "references": coverage(rows, target),
                "own": coverage(rows, pieces),
                "sentences_changed": len(leaving) / len(lines),
                "bytes": shortlist.bytes,
                "bleu": score(found, references).bleu,
                "difference": difference.bleu,
                "low": difference.low,
                "high": difference.high,
            }
            table.append(row)
            print(row, file=sys.stderr, flush=True)

    base = score(output, references)
    types = saved.config.vocabulary.target
    text = [
        f"# Shortlists for {args.name}",
        "",
        f"`python benchmarks/shortlist.py --run RUN --data DIR` on {args.machine or machine()}.",
        "",
        f"Greedy translation of the {len(lines):,} test sentences; without a shortlist {types:,} rows and "
        f"{base.bleu:.2f} BLEU. *Frequent* and *per word* are `build`'s `frequent` and `per_word`; rows count the end "
        "marker and the 256 pieces for bytes too. Coverage is the share of tokens that lie in their sentence's "
        "shortlist. The difference is to the BLEU without a shortlist, with the middle 95% of 1,000 paired bootstrap "
        f"samples. Alignment of {len(train):,} training pairs took {seconds:.0f} s of processor time.",
        "",
        "| frequent | per word | rows, mean | rows, most | references covered | own output covered | "
        "translations changed | kB | BLEU | difference | 95% |",
        "|" + "--:|" * 11,
    ]
    for row in table:
        text.append(
            f"| {row['frequent']} | {row['per_word']} | {row['rows']:.0f} | {row['most_rows']} | "
            f"{row['references']:.1%} | {row['own']:.1%} | {row['sentences_changed']:.1%} | {row['bytes'] / 1e3:.0f} | "
            f"**{row['bleu']:.2f}** | {row['difference']:+.2f} | {row['low']:+.2f} to {row['high']:+.2f} |"
        )
    text += ["", f"BLEU: `{base.bleu_signature}`."]
    if args.output:
        args.output.write_text("\n".join(text) + "\n", encoding="utf-8")
        args.output.with_suffix(".json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
