"""The first command of the README, on a model too small to learn anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lite_nmt.cli.main import main

SMALL = [
    "model.width=16",
    "model.cross_heads=2",
    *(f"model.{side}.{key}" for side in ("encoder", "decoder") for key in ("heads=2", "conv_heads=2", "ffn=16")),
    "model.encoder.layers=1",
    "model.decoder.layers=1",
    "vocabulary.source=400",
    "vocabulary.target=400",
    "decode.beam=1",
    "decode.max_length=5",
    "train.steps=4",
    "train.threads=1",
]


def test_demo_goes_from_nothing_to_translations_and_on_from_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["demo", "--out", str(tmp_path / "demo"), *(f"--set={s}" for s in SMALL)]
    assert main([*arguments, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["parameters"] < first["parameters_full"]
    assert first["mult_adds"] < first["mult_adds_full"]
    assert main(arguments) == 0
    again = capsys.readouterr()
    assert "nothing to train: 4 of 4 updates are done" in again.err
    assert f"BLEU        {first['bleu']:.1f} on 500 held-out sentences" in again.out
