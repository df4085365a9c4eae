"""``lite-nmt bench``: a table, JSON, and plain refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lite_nmt.cli.main import main


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["bench", *map(str, arguments)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    errors = [line for line in captured.err.splitlines() if line.startswith("lite-nmt: error: ")]
    assert len(errors) == 1
    assert "Traceback" not in captured.err
    return errors[0]


def test_json_and_table(exported_int8: Path, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bench", str(exported_int8), "--data", str(corpus), "--sentences", "4", "--rounds", "2", "--beam", "1"]
    assert main([*arguments, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {key: said[key] for key in ("threads", "sentences", "beam", "rounds")} == {
        "threads": 1,
        "sentences": 4,
        "beam": 1,
        "rounds": 2,
    }
    [result] = said["results"]
    assert result["name"] == "bundle.zip, bundle"
    assert result["bytes"] == exported_int8.stat().st_size
    assert result["torch"] is False
    assert result["mult_adds"] > 0
    assert result["per_second"].keys() == {"1", "32"}
    assert {"load_s", "rss", "peak", "ms", "cpu_ms", "tokens", "encode_ms", "token_ms", "bleu"} <= result.keys()
    assert main(arguments) == 0
    table, progress = capsys.readouterr()
    assert "bundle.zip, bundle" in table
    assert "1 thread;" in table
    assert "round 2 of 2" in progress


def test_what_cannot_be_measured_is_refused(
    saved: str, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ("--data", corpus)
    assert "--rounds is 1; a spread needs at least 2" in refused(capsys, saved, *data, "--rounds", 1)
    assert "--target is 'phone'; it must be host" in refused(capsys, saved, *data, "--target", "phone")
    for target in ("ssh:", "ssh:a b", "ssh:-oProxyCommand=id", "ssh:host:port"):
        assert "is not of the form ssh:user@host" in refused(capsys, saved, *data, "--target", target)
    assert "measures one bundle" in refused(capsys, saved, saved, *data, "--target", "ssh:me@here")
    assert "No such file" in refused(capsys, saved, "--data", tmp_path)
    assert "No such file" in refused(capsys, saved, *data, "--split", "dev")
    assert "holds no checkpoint" in refused(capsys, tmp_path / "nothing", *data)
    assert "cannot read" in refused(capsys, tmp_path / "nothing.zip", *data)
    for language, text in (("de", "a\nb\n"), ("en", "a\n")):
        (tmp_path / f"test.{language}").write_text(text)
    assert "has 2 and 1 sentences in test.*; make them agree" in refused(capsys, saved, "--data", tmp_path)
    for option in (("--threads", "0"), ("--sentences", "many"), ("--vs", "marian"), ("--beam", "-1")):
        with pytest.raises(SystemExit) as usage:
            main(["bench", saved, *map(str, data), *option])
        assert usage.value.code == 2
    capsys.readouterr()
