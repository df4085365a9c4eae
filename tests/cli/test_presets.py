"""``lite-nmt presets``."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib

import pytest

from lite_nmt.cli.main import main
from lite_nmt.config import Config, from_dict, load_preset, preset_names


def test_lists_every_preset_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets"]) == 0
    text = capsys.readouterr().out
    for name in preset_names():
        assert name in text
    row = next(line for line in text.splitlines() if line.startswith("iwslt-lite-transformer-54m"))
    assert row.split()[1:7] == ["54.71M", "86.54M", "2.77M", "5.25M", "100M", "10M"]


def test_json_holds_the_same_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == preset_names()
    assert rows["wmt-lite-transformer-360m"]["fits"] == {"100M": False, "500M": True, "10M parameters": False}
    assert rows["iwslt-lite-transformer-54m"]["parameters"] == {"paper": 2774704, "full": 5251504}


@pytest.mark.parametrize("name", ["demo", "wmt-talk"])
def test_one_preset_is_a_configuration_for_config(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets", name]) == 0
    text = capsys.readouterr().out
    assert from_dict(Config, tomllib.loads(text)) == load_preset(name)
    assert "cross-attention" in text
    assert main(["presets", name, "--json"]) == 0
    assert from_dict(Config, json.loads(capsys.readouterr().out)["config"]) == load_preset(name)


def test_an_unknown_preset_is_one_plain_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets", "dmeo"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("lite-nmt: error: there is no preset dmeo; the nearest is demo")
    assert error.count("\n") == 1


def test_needs_no_torch() -> None:
    code = "import sys; from lite_nmt.cli.main import main; main(['presets']); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
