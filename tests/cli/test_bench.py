"""``lite-nmt bench``: a table, JSON, and plain refusals."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from rich.table import Table

from lite_nmt.bench import ssh
from lite_nmt.cli.console import console
from lite_nmt.cli.main import main
from lite_nmt.models import checkpoint


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["bench", *map(str, arguments)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    errors = [line for line in captured.err.splitlines() if line.startswith("lite-nmt: error: ")]
    assert len(errors) == 1
    assert "Traceback" not in captured.err
    return errors[0]


def test_json_and_table(
    exported_int8: Path, corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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
    # A board gives the same back, under a name of its own, and scores nothing where it has no sacreBLEU.
    monkeypatch.setattr(ssh, "measure", lambda *_, **__: {**said, "results": [{**result, "name": "x", "bleu": None}]})
    for shown in ([], ["--json"]):
        assert main([*arguments, "--target", "ssh:me@there", *shown]) == 0
    board = capsys.readouterr().out.splitlines()
    assert any("bundle.zip, ssh:me@there" in line for line in board)
    [scored] = json.loads(board[-1])["results"]
    assert scored == {**result, "name": "bundle.zip, ssh:me@there"}
    assert scored["bleu"] is not None


def test_what_cannot_be_measured_is_refused(
    saved: str,
    exported_int8: Path,
    corpus: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = ("--data", corpus)
    assert "--rounds is 1; a spread needs at least 2" in refused(capsys, saved, *data, "--rounds", 1)
    assert "--target is 'phone'; it must be host" in refused(capsys, saved, *data, "--target", "phone")
    for target in ("ssh:", "ssh:a b", "ssh:-oProxyCommand=id", "ssh:host:port"):
        assert "is not of the form ssh:user@host" in refused(capsys, exported_int8, *data, "--target", target)
    assert "measures one bundle" in refused(capsys, saved, saved, *data, "--target", "ssh:me@here")
    assert "measures one bundle" in refused(capsys, saved, *data, "--target", "ssh:me@here")
    assert "no checkpoint of a Transformer" in refused(capsys, saved, *data, "--vs", "ctranslate2")
    monkeypatch.setenv("LITE_NMT_CORTEX_A72", str(tmp_path))
    (tmp_path / "versions.json").write_text("{}")
    emulated = (*data, "--target", "cortex-a72")
    assert "no bundle; PyTorch is not on" in refused(capsys, saved, *emulated)
    assert "--threads 2 is not for --target cortex-a72" in refused(capsys, saved, *emulated, "--threads", 2)
    own = checkpoint.load(Path(saved))
    weights = checkpoint.named_weights(own.model())
    checkpoint.save(tmp_path / "french", own.config, ("fr", "en"), 1, {}, own.vocabulary, weights)
    said = refused(capsys, saved, tmp_path / "french", *data)
    assert f"french translates fr to en, and {saved} de to en; measure them apart" in said
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


def test_a_missing_package_is_told_before_the_work(
    saved: str, corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lite_nmt.bench.host.measure", None)
    monkeypatch.setitem(sys.modules, "rich", None)
    assert "this needs rich" in refused(capsys, saved, "--data", corpus)
    monkeypatch.setattr("lite_nmt.decode.translator.Translator.translate", None)
    monkeypatch.delitem(sys.modules, "lite_nmt.evaluate.score", raising=False)
    monkeypatch.delattr("lite_nmt.evaluate.score", raising=False)
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    assert main(["evaluate", saved, "--data", str(corpus)]) == 1
    assert "this needs sacrebleu" in capsys.readouterr().err


def test_piped_tables_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(box=None)
    for _ in range(20):
        table.add_column("a column of figures", no_wrap=True)
    console().print(table)
    assert capsys.readouterr().out.count("figures") == 20
