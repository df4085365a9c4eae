"""Sources longer than anything seen in training, cut where it hurts least."""

from __future__ import annotations

from collections.abc import Sequence

from lite_nmt.config import Config
from lite_nmt.data.vocabulary import EOS, Vocabulary

_WIDE_ENDS = tuple("。！？")  # no space follows these
_ENDS = (*".!?…", *_WIDE_ENDS)
_CLOSERS = "\"'”’»)]"
_WORD = "▁"  # SentencePiece's mark of a space before a piece
_SHORTEST = 8  # pieces; what ends sooner is more often an abbreviation than a sentence


def longest(config: Config) -> int:
    """Pieces of a line that a model reads at once, the most seen in training; the end marker is not counted."""
    return max(config.vocabulary.max_length - 1, 1)


def parts(
    sources: Sequence[Sequence[int]], config: Config, vocabulary: Vocabulary
) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
    """Lines as a model reads them: whole, in several parts, or the beginning alone where it summarises.

    Args:
        sources: token numbers of each line, closed by the end marker.

    Returns:
        All parts, closed likewise; and for each line its parts' numbers, with where in the line each starts. A blank
        line has none.
    """
    limit = longest(config)
    found: list[list[int]] = []
    runs: list[list[tuple[int, int]]] = []
    for tokens in sources:
        ids = list(tokens[:-1])
        if config.task == "summarize":
            ids = ids[:limit]
        cuts = split(vocabulary.source.id_to_piece(ids), limit) if ids else []
        runs.append([(len(found) + i, cut.start) for i, cut in enumerate(cuts)])
        found += [[*ids[cut], EOS] for cut in cuts]
    return found, runs


def join(texts: Sequence[str]) -> str:
    """What the parts of a line came to, as one."""
    return " ".join(text for text in texts if text)


def split(pieces: Sequence[str], limit: int) -> list[slice]:
    """Cut SentencePiece pieces into runs of at most ``limit``; what fits stays whole.

    What does not fit is cut into its sentences, not into the longest runs that fit: a model that learnt from
    sentences says little more than one sentence, however long its source. A sentence over the limit is cut before
    the last word that does not fit, and a word over the limit between two characters.
    """
    if len(pieces) <= limit:
        return [slice(0, len(pieces))]
    runs, start = [], 0
    while start < len(pieces):
        end = _end(pieces, start, min(start + limit, len(pieces)))
        runs.append(slice(start, end))
        start = end
    return runs


def _end(pieces: Sequence[str], start: int, stop: int) -> int:
    """Where a run from ``start`` ends, ``stop`` at the latest."""
    for i in range(start + _SHORTEST, stop + 1):
        if i < len(pieces) and _sentence_ends(pieces, i):
            return i
    if stop == len(pieces):
        return stop
    places = range(stop, start, -1)
    words = (i for i in places if pieces[i].startswith(_WORD))
    characters = (i for i in places if not _continues(pieces[i]))
    return next(words, None) or next(characters, stop)


def _sentence_ends(pieces: Sequence[str], i: int) -> bool:
    """Whether piece ``i`` begins a sentence."""
    ends = _ENDS if pieces[i].startswith(_WORD) else _WIDE_ENDS
    return "".join(pieces[i - 3 : i]).rstrip(_CLOSERS).endswith(ends)


def _continues(piece: str) -> bool:
    """Whether a piece is a byte, written <0x80> to <0xBF>, in the middle of a UTF-8 character."""
    return len(piece) == 6 and piece.startswith("<0x") and 0x80 <= int(piece[3:5], 16) < 0xC0
