"""Text in, text out: the Python interface, and what the command line stands on."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from lite_nmt.config import Config, DecodeConfig, from_dict
from lite_nmt.data.lines import clean
from lite_nmt.data.vocabulary import Vocabulary
from lite_nmt.decode.engine import Alignment, Engine
from lite_nmt.decode.hypothesis import Hypothesis
from lite_nmt.decode.segments import join, longest, parts
from lite_nmt.errors import LiteNmtError


@dataclass(frozen=True)
class Candidate:
    """One translation of a line.

    Of a line that was translated in parts, ``score`` and ``logprob`` are the sums over the parts, and
    ``alignment`` counts pieces from the start of the line.
    """

    text: str
    score: float  # length-penalised log-probability, natural logarithm
    logprob: float
    pieces: tuple[str, ...]  # SentencePiece pieces, without the end marker
    alignment: Alignment | None  # (source piece, target piece) for each target piece, where asked for

    @property
    def pharaoh(self) -> str:
        """The alignment as ``0-0 1-2``, source first."""
        return " ".join(f"{source}-{target}" for source, target in self.alignment or ())


@dataclass(frozen=True)
class Translation:
    """A line and what it may be translated to, the best first. A blank line has one candidate, blank."""

    source: str
    pieces: tuple[str, ...]  # the source's, without the end marker
    candidates: tuple[Candidate, ...]

    @property
    def text(self) -> str:
        """The best translation."""
        return self.candidates[0].text


class Translator:
    """A model in the engine that runs it, its vocabulary, and its settings for the search."""

    def __init__(self, config: Config, vocabulary: Vocabulary, engine: Engine, languages: tuple[str, str]) -> None:
        self.config, self.vocabulary, self.engine, self.languages = config, vocabulary, engine, languages

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str = "cpu", threads: int | None = None) -> Translator:
        """Open a run, a checkpoint folder, or a bundle (a folder or .zip that ``lite-nmt export`` wrote).

        A bundle runs without PyTorch, unless its graph is ExecuTorch's.

        Args:
            device: as PyTorch names it: "cpu", "cuda", "cuda:1", "mps"; a bundle knows "cpu" alone.
            threads: CPU threads, for the whole process; None leaves the engine's choice.

        Raises:
            LiteNmtError: there is no whole checkpoint or bundle, or no such device.
        """
        from lite_nmt.export import bundle

        if threads is not None and not 1 <= threads <= 1024:
            raise LiteNmtError(f"threads is {threads}; it must be between 1 and 1024.")
        if bundle.is_bundle(Path(path)):
            from lite_nmt.export.runtime import open_engine

            opened = bundle.load(Path(path))
            return cls(opened.config, opened.vocabulary, open_engine(opened, device, threads), opened.languages)
        from lite_nmt.decode.pytorch import PyTorchEngine
        from lite_nmt.models import checkpoint

        saved = checkpoint.load(Path(path))
        return cls(saved.config, saved.vocabulary, PyTorchEngine.load(saved, device, threads), saved.languages)

    @overload
    def translate(
        self, lines: str, decode: DecodeConfig | None = None, batch_tokens: int = 4096, **search: Any
    ) -> str: ...
    @overload
    def translate(
        self, lines: Iterable[str], decode: DecodeConfig | None = None, batch_tokens: int = 4096, **search: Any
    ) -> list[str]: ...
    def translate(
        self, lines: Iterable[str], decode: DecodeConfig | None = None, batch_tokens: int = 4096, **search: Any
    ) -> str | list[str]:
        """The best translation of one line, or of each of several, in their order.

        The arguments are :meth:`translate_all`'s: ``translate(lines, beam=1)`` searches greedily.
        """
        if isinstance(lines, str):
            return self.translate_all([lines], decode, batch_tokens, **search)[0].text
        return [translation.text for translation in self.translate_all(lines, decode, batch_tokens, **search)]

    def translate_all(
        self,
        lines: Iterable[str],
        decode: DecodeConfig | None = None,
        batch_tokens: int = 4096,
        nbest: int = 1,
        alignments: bool = False,
        **search: Any,
    ) -> list[Translation]:
        """Translate with all that is known of the result.

        Args:
            lines: any text; control characters and line breaks are read as spaces.
            decode: how to search; None takes the checkpoint's settings.
            batch_tokens: source tokens at once, padding included; it changes speed and memory, not results.
            nbest: candidates a line, at most the beam. A line may have fewer, never none.
            alignments: say for each target piece which source piece the last layer looked at most.
            search: fields of :class:`DecodeConfig`, laid over ``decode``: ``beam=1``, ``length_penalty=1.0``.

        Warns:
            UserWarning: a line is longer than any the model saw in training, and is translated in parts, or summarised
                by its beginning.

        Raises:
            LiteNmtError: the lines are a text, the settings contradict one another, or the model's scores are not
                numbers.
        """
        if isinstance(lines, str):
            raise LiteNmtError("lines is a text, and each letter would be a line; give a list, or call translate().")
        decode = from_dict(DecodeConfig, dataclasses.asdict(decode or self.config.decode) | search, "decode")
        texts = [clean(line) for line in lines]
        tokens = self.vocabulary.encode_source(texts)
        limit, summarizes = longest(self.config), self.config.task == "summarize"
        if summarizes and not decode.max_length:
            raise LiteNmtError("decode.max_length is 0; a model that summarises must be told how long it may write.")
        if any(len(ids) - 1 > limit for ids in tokens):
            what = "summarised by their beginning" if summarizes else "translated in parts"
            warnings.warn(f"lines longer than {limit} pieces, the most seen in training, are {what}.", stacklevel=2)
        pieces = [tuple(self.vocabulary.source.id_to_piece(ids[:-1])) for ids in tokens]
        found = self.candidates(tokens, decode, batch_tokens, nbest, alignments)
        return [Translation(*line) for line in zip(texts, pieces, found, strict=True)]

    def candidates(
        self,
        sources: Sequence[Sequence[int]],
        decode: DecodeConfig,
        batch_tokens: int = 4096,
        nbest: int = 1,
        alignments: bool = False,
    ) -> list[tuple[Candidate, ...]]:
        """The same of token numbers, those of each line closed by the end marker."""
        read, runs = parts(sources, self.config, self.vocabulary)
        found = self._search(read, decode, batch_tokens, nbest, alignments)
        return [_join([found[part] for part, _ in run], [start for _, start in run]) for run in runs]

    def _search(
        self,
        parts: Sequence[list[int]],
        decode: DecodeConfig,
        batch_tokens: int,
        nbest: int,
        alignments: bool,
    ) -> list[list[Candidate]]:
        found: list[list[Candidate]] = [[] for _ in parts]
        for batch in _batches([len(ids) for ids in parts], batch_tokens):
            sources = [parts[i] for i in batch]
            hypotheses = self.engine.search(sources, decode, nbest)
            aligned = self.engine.align(sources, hypotheses) if alignments else None
            for row, i in enumerate(batch):
                pairs = aligned[row] if aligned else [None] * len(hypotheses[row])
                found[i] = [self._candidate(h, a) for h, a in zip(hypotheses[row], pairs, strict=True)]
        return found

    def _candidate(self, hypothesis: Hypothesis, alignment: Alignment | None) -> Candidate:
        tokens = list(hypothesis.tokens)
        pieces = tuple(self.vocabulary.target.id_to_piece(tokens))
        text = clean(self.vocabulary.decode(tokens))
        return Candidate(text, hypothesis.score, hypothesis.logprob, pieces, alignment)


def _join(parts: Sequence[list[Candidate]], starts: Sequence[int]) -> tuple[Candidate, ...]:
    """The first candidates of all parts side by side, then the second ones, ..."""
    if len(parts) <= 1:
        return tuple(parts[0]) if parts else (Candidate("", 0.0, 0.0, (), ()),)
    joined = []
    for rank in range(max(map(len, parts))):
        chosen = [part[min(rank, len(part) - 1)] for part in parts]
        pairs: list[tuple[int, int]] = []
        done = 0
        for candidate, start in zip(chosen, starts, strict=True):
            pairs += [(source + start, target + done) for source, target in candidate.alignment or ()]
            done += len(candidate.pieces)
        joined.append(
            Candidate(
                text=join([c.text for c in chosen]),
                score=sum(c.score for c in chosen),
                logprob=sum(c.logprob for c in chosen),
                pieces=tuple(piece for c in chosen for piece in c.pieces),
                alignment=None if chosen[0].alignment is None else tuple(pairs),
            )
        )
    return tuple(joined)


def _batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Indices of lines of like length, the longest first: what does not fit in memory says so at once."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and lengths[batch[0]] * (len(batch) + 1) > batch_tokens:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
