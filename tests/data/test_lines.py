"""Nasty input, line by line."""

from __future__ import annotations

import io
import warnings

import pytest

from lite_nmt.data.lines import chunks, clean, read_lines


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"\n\n", ["", ""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\n", ["a b"]),
        (b"  a\n", ["  a"]),
        (b"a\0b\n", ["a b"]),
        (b"a\tb\x0bc\x0cd\x1ce\x7ff\n", ["a b c d e f"]),
        ("a\x85b\u2028c\u2029d\n".encode(), ["a b c d"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        ("😀👩‍👩‍👧\nдом house 家\n".encode(), ["😀👩‍👩‍👧", "дом house 家"]),
        (b"x" * 5000 + b"\n", ["x" * 5000]),
    ],
)
def test_lines(data: bytes, lines: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(read_lines(io.BytesIO(data), "in")) == lines


def test_invalid_utf8_is_replaced_and_reported_once() -> None:
    with pytest.warns(UserWarning, match="invalid UTF-8") as caught:
        lines = list(read_lines(io.BytesIO(b"good\n\xffbad\ngood\n\xc3\n"), "in.txt"))
    assert lines == ["good", "\ufffdbad", "good", "\ufffd"]
    assert [str(w.message) for w in caught] == ["in.txt: invalid UTF-8 was replaced in 2 lines (2, 4)."]


def test_many_invalid_lines_make_a_short_warning() -> None:
    with pytest.warns(UserWarning, match=r"in 1000 lines \(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, \.\.\.\)\."):
        assert len(list(read_lines(io.BytesIO(b"\xff\n" * 1000), "in"))) == 1000


def test_lines_come_as_they_are_read() -> None:
    stream = io.BytesIO(b"a\nb\nc\n")
    lines = read_lines(stream, "in")
    assert next(lines) == "a"
    assert stream.tell() == 2


def test_clean_leaves_one_line() -> None:
    every = "".join(map(chr, range(0x3000))) + "\ud800\udfff"
    assert len(clean(every).splitlines()) == 1
    assert len(clean(every)) == len(every)
    clean(every).encode()


def test_chunks() -> None:
    assert list(chunks("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(chunks([], 2)) == []
