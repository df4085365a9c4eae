"""Where long sources are cut."""

from __future__ import annotations

import pytest

from lite_nmt.decode.segments import split


def cut(pieces: list[str], limit: int) -> list[list[str]]:
    return [pieces[run] for run in split(pieces, limit)]


def sentence(*end: str) -> list[str]:
    return ["▁one", "▁two", "▁three", "▁four", "▁five", "▁six", "▁seven", "▁eight", *end]


def test_what_fits_stays_whole() -> None:
    pieces = [*sentence("."), *sentence(".")]
    assert cut(pieces, len(pieces)) == [pieces]
    assert cut([], 3) == [[]]


def test_sentences_come_first() -> None:
    first, second, third = sentence("."), sentence("!", "”"), sentence(".")
    assert cut([*first, *second, *third], 25) == [first, second, third]


def test_an_abbreviation_is_not_a_sentence() -> None:
    assert cut(["▁Dr", ".", *sentence("."), *sentence()], 15) == [["▁Dr", ".", *sentence(".")], sentence()]


def test_then_a_word() -> None:
    assert cut(["▁a", "▁b", "c", "d", "▁e"], 3) == [["▁a"], ["▁b", "c", "d"], ["▁e"]]


def test_a_number_is_not_a_sentence_end() -> None:
    pieces = [*sentence("▁3", ".", "5"), *sentence()]
    assert cut(pieces, 15) == [pieces[:15], pieces[15:]]


def test_text_without_spaces() -> None:
    first = ["▁家", "で", "す", "か", "ら", "い", "い", "で", "す", "。"]
    assert cut([*first, "はい", "。"], 11) == [first, ["はい", "。"]]


@pytest.mark.parametrize("limit", [1, 2, 4, 5, 7, 255])
def test_a_word_longer_than_the_limit(limit: int) -> None:
    pieces = ["▁", *["<0xF0>", "<0x9F>", "<0x98>", "<0x80>"] * 100]
    runs = cut(pieces, limit)
    assert [piece for run in runs for piece in run] == pieces
    assert all(0 < len(run) <= limit for run in runs)
    if limit >= 4:  # no character is torn
        assert all(run[0] == "<0xF0>" for run in runs[1:])
