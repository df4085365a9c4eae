"""``translate`` and ``evaluate`` on a checkpoint that knows nothing."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from lite_nmt.cli.main import main

NASTY = (
    b"Ein Hund\n\n\xff\xfe kaputt\r\n" + b"Hund \0 \xe2\x80\xa8 Katze\n" + b"y" * 5000 + b"\n\xf0\x9f\x98\x80"
)  # six lines


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "nasty").write_bytes(NASTY)
    (tmp_path / "test.de").write_text("Ein Hund\ndie Wiese\n")
    (tmp_path / "test.en").write_text("A dog\nthe meadow\n")
    (tmp_path / "short.en").write_text("A dog\n")
    (tmp_path / "empty.de").touch()
    (tmp_path / "empty.en").touch()
    return tmp_path


def give(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    stream = io.BytesIO(data)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stream))


@pytest.mark.filterwarnings("default")
def test_one_line_for_each_line(
    saved: str, files: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    give(monkeypatch, NASTY)
    assert main(["translate", saved]) == 0
    out, err = capfdbinary.readouterr()
    lines = out.decode().split("\n")
    assert len(lines) == 7
    assert not lines[-1]
    assert [bool(line) for line in lines[:6]] == [True, False, True, True, True, True]
    assert out.decode().splitlines() == lines[:6]
    assert err.decode().splitlines() == [
        "lite-nmt: warning: standard input: invalid UTF-8 was replaced in 1 line (3).",
        "lite-nmt: warning: lines longer than 63 pieces, the most seen in training, are translated in parts.",
    ]
    # The same from files, one after the other, line by line, and into a file.
    target = files / "out"
    target.write_text("old")
    args = ["--buffer", "1", "--output", str(target)]
    assert main(["translate", saved, str(files / "nasty"), str(files / "nasty"), *args]) == 0
    assert target.read_bytes() == out * 2
    assert capfdbinary.readouterr().err.count(b"in parts") == 1
    assert sorted(p.name for p in files.iterdir() if p.name.startswith(".")) == []
    assert capfdbinary.readouterr().out == b""


def test_nothing_in_nothing_out(
    saved: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    give(monkeypatch, b"")
    assert main(["translate", saved]) == 0
    assert capfdbinary.readouterr() == (b"", b"")


def test_what_else_can_be_shown(saved: str, files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = str(files / "test.de")

    def lines(*options: str) -> list[str]:
        assert main(["translate", saved, source, *options]) == 0
        return capfd.readouterr().out.splitlines()

    plain = lines()
    scored = [line.split(" ||| ") for line in lines("--scores", "--alignments")]
    assert [fields[0] for fields in scored] == plain
    best = [line.split(" ||| ") for line in lines("--nbest", "2")]
    assert [fields[0] for fields in best] == ["0", "0", "1", "1"]
    assert [best[0][1:], best[2][1:]] == [fields[:2] for fields in scored]
    assert float(best[0][2]) >= float(best[1][2])
    records = [json.loads(line) for line in lines("--json", "--nbest", "2", "--alignments")]
    assert [r["line"] for r in records] == [0, 1]
    assert [r["source"] for r in records] == ["Ein Hund", "die Wiese"]
    for record, fields in zip(records, scored, strict=True):
        first = record["translations"][0]
        assert first["text"] == fields[0]
        assert f"{first['score']:.4f}" == fields[1]
        assert " ".join(f"{s}-{t}" for s, t in first["alignment"]) == fields[2]
        assert len(first["alignment"]) == len(first["pieces"])
        assert all(s < len(record["pieces"]) for s, _ in first["alignment"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--beam", "0"], "decode.beam is 0"),
        (["--length-penalty", "nan"], "decode.length_penalty is nan"),
        (["--nbest", "3"], "nbest is 3; it must be between 1 and decode.beam = 2"),
        (["--min-length", "9"], "decode.min_length is 9, more than decode.max_length = 5"),
        (["--device", "tpu9"], "no device 'tpu9'"),
        (["missing.txt"], "cannot read missing.txt: No such file or directory."),
        (["."], "cannot read .: Is a directory."),
        (["--output", "missing/folder/out"], "cannot write missing/folder/out: No such file or directory."),
        (["--output", "."], "cannot write .: Is a directory."),
    ],
)
def test_refusals(
    saved: str, files: Path, options: list[str], sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["translate", saved, str(files / "test.de"), *options]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("lite-nmt: error: ")
    assert sentence in err
    assert err.count("\n") == 1


def test_output_is_not_input(saved: str, files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = files / "test.de"
    (files / "link").symlink_to(source)
    assert main(["translate", saved, str(source), "--output", str(files / "link")]) == 1
    assert "is an input as well" in capfd.readouterr().err
    assert source.read_text() == "Ein Hund\ndie Wiese\n"


def test_a_failed_run_leaves_the_old_output(saved: str, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = files / "out"
    target.write_text("old")

    def stop(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lite_nmt.decode.pytorch.search", stop)
    assert main(["translate", saved, str(files / "test.de"), "--output", str(target)]) == 130
    assert target.read_text() == "old"
    assert not list(files.glob(".*"))


def test_output_may_be_a_device(saved: str, files: Path) -> None:
    assert main(["translate", saved, str(files / "test.de"), "--output", "/dev/null"]) == 0
    assert not Path("/dev/null").is_file()


def test_evaluate(saved: str, files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", saved, str(files / "test.de"), "--output", str(files / "hyp")]) == 0
    text = ["--hypotheses", str(files / "hyp"), "--references", str(files / "test.en"), "--json"]
    assert main(["evaluate", *text, "--lowercase", "--tokenize", "char"]) == 0
    scores = json.loads(capfd.readouterr().out)
    assert scores["sentences"] == 2
    assert "case:lc" in scores["bleu_signature"]
    assert "tok:char" in scores["bleu_signature"]
    save = ["--save", str(files / "saved")]
    assert main(["evaluate", saved, "--data", str(files), "--json", "--lowercase", "--tokenize", "char", *save]) == 0
    translated = json.loads(capfd.readouterr().out)
    assert translated.pop("seconds") > 0
    assert translated.pop("sentences_per_second") > 0
    assert translated == scores
    assert (files / "saved").read_bytes() == (files / "hyp").read_bytes()
    pair = ["--source", str(files / "test.de"), "--references", str(files / "test.en")]
    assert main(["evaluate", saved, *pair, "--beam", "1"]) == 0
    out = capfd.readouterr().out
    for word in ("BLEU", "chrF", "nrefs:1|case:mixed|eff:no|tok:13a", "sentences/s"):
        assert word in out


def test_evaluate_refusals(saved: str, files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    de, en, short = (str(files / name) for name in ("test.de", "test.en", "short.en"))
    for arguments, sentence in (
        (["--hypotheses", en, "--references", short], f"{en} has 2 lines and {short} has 1"),
        ([saved, "--source", de, "--references", short], f"{de} has 2 lines and {short} has 1"),
        ([saved, "--data", str(files), "--split", "empty"], "is empty; there is nothing to score"),
        ([saved, "--data", str(files), "--split", "dev"], "dev.de: No such file or directory"),
    ):
        assert main(["evaluate", *arguments]) == 1
        assert sentence in capfd.readouterr().err
    for arguments in (
        [],
        ["--hypotheses", en],
        ["--hypotheses", en, "--references", en, "--save", "x"],
        [saved],
        [saved, "--source", de],
        [saved, "--data", str(files), "--source", de],
        [saved, "--hypotheses", en, "--references", en],
    ):
        with pytest.raises(SystemExit) as exit_:
            main(["evaluate", *arguments])
        assert exit_.value.code == 2
