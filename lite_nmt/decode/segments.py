"""Sources longer than anything seen in training, cut where it hurts least."""

from __future__ import annotations

from collections.abc import Sequence

_WIDE_ENDS = tuple("。！？")  # no space follows these
_ENDS = (*".!?…", *_WIDE_ENDS)
_WORD = "▁"  # SentencePiece's mark of a space before a piece


def split(pieces: Sequence[str], limit: int) -> list[slice]:
    """Cut SentencePiece pieces into runs of at most ``limit``.

    Each run ends after the last sentence end in the second half of the limit, else before the last word that
    does not fit, else, in a word longer than all of it, between two characters.
    """
    runs, start = [], 0
    while len(pieces) - start > limit:
        end = _cut(pieces, start, start + limit)
        runs.append(slice(start, end))
        start = end
    return [*runs, slice(start, len(pieces))]


def _cut(pieces: Sequence[str], start: int, stop: int) -> int:
    """Where a run from ``start`` ends, ``stop`` at the latest."""
    places = range(stop, start, -1)
    for i in places[: (stop - start + 1) // 2]:
        ends = _ENDS if pieces[i].startswith(_WORD) else _WIDE_ENDS
        if pieces[i - 1].rstrip("\"'”’»)]").endswith(ends):
            return i
    words = (i for i in places if pieces[i].startswith(_WORD))
    characters = (i for i in places if not _continues(pieces[i]))
    return next(words, None) or next(characters, stop)


def _continues(piece: str) -> bool:
    """Whether a piece is a byte, written <0x80> to <0xBF>, in the middle of a UTF-8 character."""
    return len(piece) == 6 and piece.startswith("<0x") and 0x80 <= int(piece[3:5], 16) < 0xC0
