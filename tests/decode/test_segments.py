"""Where long sources are cut."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lite_nmt.config import DecodeConfig, VocabularyConfig, load_preset
from lite_nmt.data.vocabulary import EOS, train_vocabulary
from lite_nmt.decode.segments import join, parts, split


def cut(pieces: list[str], limit: int) -> list[list[str]]:
    return [pieces[run] for run in split(pieces, limit)]


def sentence(*end: str) -> list[str]:
    return ["▁one", "▁two", "▁three", "▁four", "▁five", "▁six", "▁seven", "▁eight", *end]


@pytest.mark.parametrize("task", ["translate", "summarize"])
def test_lines_are_read_in_parts(task: str) -> None:
    vocabulary = train_vocabulary(VocabularyConfig(target=330), iter(["one two"]), iter(["three four"]), seed=1)
    limit, decode = VocabularyConfig(max_length=5), DecodeConfig(max_length=9)
    config = replace(load_preset("demo"), task=task, vocabulary=limit, decode=decode)
    sources = vocabulary.encode_source(["one two three four one two", "", "one"])
    found, runs = parts(sources, config, vocabulary)
    assert [[number for number, _ in run] for run in runs][1:] == [[], [len(found) - 1]]
    assert all(part[-1] == EOS and EOS not in part[:-1] and len(part) <= 5 for part in found)
    for source, run in zip(sources, runs, strict=True):
        said = [token for number, _ in run for token in found[number][:-1]]
        assert said == (source[:-1] if task == "translate" else source[:-1][:4])
        assert all(source[start : start + len(found[number]) - 1] == found[number][:-1] for number, start in run)
    assert len(runs[0]) == (1 if task == "summarize" else len(found) - 1)


def test_what_the_parts_came_to() -> None:
    assert join(["a b", "", "c"]) == "a b c"
    assert join([]) == ""


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
