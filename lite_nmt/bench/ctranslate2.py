"""A Transformer run by CTranslate2, the fastest CPU engine that knows the architecture, to measure against.

Our search and its search differ in four things, none of which is seen in greedy search:

- it normalises scores again over what is left when padding, BOS and UNK are forbidden;
- at the length limit it lets a hypothesis break off where ours must end;
- with no length penalty it stops as soon as its first hypothesis ends, and does not wait for ``beam`` of them;
- among equals it may take another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lite_nmt.config import DecodeConfig
from lite_nmt.data.vocabulary import BOS, EOS, PAD
from lite_nmt.decode.hypothesis import length_limit
from lite_nmt.errors import LiteNmtError


@dataclass(frozen=True)
class CTranslate2Model:
    """What ``lite_nmt.bench.conversion`` wrote, ready to translate on the CPU."""

    translator: Any  # ctranslate2.Translator
    source: list[str]  # piece of each token
    target: dict[str, int]  # token of each piece
    never: list[list[str]]  # what is not to be generated, beside UNK

    @classmethod
    def load(cls, folder: str | os.PathLike[str], compute_type: str = "default", threads: int = 1) -> CTranslate2Model:
        """Open a converted model.

        Args:
            compute_type: "float32", "int8" or another that CTranslate2 has; "default" is the one it was saved in.
            threads: of each matrix product; one batch is translated at a time.

        Raises:
            LiteNmtError: CTranslate2 is not installed, or cannot open the folder so.
        """
        place = Path(folder)
        try:
            source, target = (_pieces(place, side) for side in ("source", "target"))
            translator = engine().Translator(
                str(place), compute_type=compute_type, inter_threads=1, intra_threads=threads
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise LiteNmtError(f"CTranslate2 cannot open {place} as {compute_type}: {error}") from error
        numbers = {piece: token for token, piece in enumerate(target)}
        return cls(translator, source, numbers, [[target[PAD]], [target[BOS]]])

    def translate(self, sentences: Sequence[Sequence[int]], decode: DecodeConfig, batch: int = 1) -> list[list[int]]:
        """The best translation of each sentence, in their order.

        Args:
            sentences: source tokens, without the end marker, none empty.
            decode: as for our search; the length penalty must be "power".
            batch: sentences at once, of like length.

        Returns:
            Target tokens, without the end marker.

        Raises:
            LiteNmtError: CTranslate2 has no such length penalty.
        """
        if decode.penalty != "power":
            raise LiteNmtError(f'decode.penalty is "{decode.penalty}"; CTranslate2 knows "power" alone.')
        found: list[list[int]] = [[] for _ in sentences]
        order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
        for start in range(0, len(order), batch):
            rows = order[start : start + batch]
            limits = [length_limit(len(sentences[i]), decode) for i in rows]
            results = self.translator.translate_batch(
                [[self.source[token] for token in sentences[i]] for i in rows],
                beam_size=decode.beam,
                length_penalty=decode.length_penalty,
                no_repeat_ngram_size=decode.no_repeat_ngram,
                min_decoding_length=decode.min_length,
                max_decoding_length=max(limits) + 1,  # with the end marker
                max_input_length=0,
                disable_unk=True,
                suppress_sequences=self.never,
                return_end_token=True,  # so that the length penalty counts it, as ours does
            )
            for i, limit, result in zip(rows, limits, results, strict=True):
                tokens = [self.target[piece] for piece in result.hypotheses[0]]
                found[i] = [token for token in tokens if token != EOS][:limit]
        return found


def engine() -> Any:
    """The package, or one sentence on where to get it."""
    try:
        import ctranslate2
    except ImportError as error:
        raise LiteNmtError('CTranslate2 is not installed; give "pip install lite-nmt[bench]".') from error
    return ctranslate2


def _pieces(folder: Path, side: str) -> list[str]:
    """A vocabulary as CTranslate2 saves it: one file where both sides have the same."""
    shared = folder / "shared_vocabulary.json"
    path = shared if shared.exists() else folder / f"{side}_vocabulary.json"
    return [str(piece) for piece in json.loads(path.read_text(encoding="utf-8"))]
