"""``visualize`` on checkpoints that know nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from lite_nmt.cli.main import main
from lite_nmt.config import Config, from_dict
from lite_nmt.data.vocabulary import train_vocabulary
from lite_nmt.models import checkpoint
from lite_nmt.models.translation import TranslationModel

TEXT = ["Ein Hund läuft über die Wiese .", "A dog runs across the meadow ."]


def save(run: Path, encoder: dict[str, Any], languages: tuple[str, str] = ("de", "en")) -> str:
    vocabulary = train_vocabulary(Config().vocabulary, iter(TEXT[:1]), iter(TEXT[1:]), seed=1)
    types = vocabulary.target.get_piece_size()
    stack = {"layers": 1, "heads": 2, "conv_heads": 2, "kernels": [3], "ffn": 16}
    table = {
        "model": {"width": 16, "cross_heads": 2, "encoder": stack | encoder, "decoder": stack},
        "vocabulary": {"source": types, "target": types, "max_length": 64},
        "decode": {"beam": 1, "max_length": 5},
    }
    config = from_dict(Config, table)
    torch.manual_seed(5)  # with which it says something
    weights = checkpoint.named_weights(TranslationModel(config))
    checkpoint.save(run / "model", config, languages, 1, {}, vocabulary, weights)
    return str(run)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("runs")
    return {
        "plain": save(folder / "plain", {"mixer": "attention", "layers": 2}),
        "talk": save(folder / "talk", {"conv": "talk"}),
        "other": save(folder / "other", {}, ("fr", "en")),
    }


def test_table_and_pictures(runs: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "deep" / "out"
    arguments = ["visualize", runs["plain"], "Ein Hund", "--against", f"{runs['talk']}/model", "--out", str(out)]
    assert main([*arguments, "--target", "A dog runs"]) == 0
    printed, err = capfd.readouterr()
    assert err == ""
    lines = [line.split() for line in printed.splitlines()]
    assert lines[:2] == [["plain:", "A", "dog", "runs"], ["talk:", "A", "dog", "runs"]]
    assert [line[:3] for line in lines[3:6]] == [
        ["plain", "encoder", "attention"],
        ["talk", "encoder", "attention"],
        ["talk", "encoder", "talk"],
    ]
    assert lines[6][:3] == ["encoder", "evenly", "over"]
    names = [f"{name}.{kind}" for name in ("average", "layers", "windows") for kind in ("png", "svg")]
    assert printed.splitlines()[-6:] == [str(out / name) for name in names]
    assert sorted(path.name for path in out.iterdir()) == sorted(names)
    # The same again gives the same files; what else is there stays.
    (out / "notes").write_text("mine")
    before = {name: (out / name).read_bytes() for name in names}
    (out / "layers.svg").write_text("old")
    assert main([*arguments, "--target", "A dog runs"]) == 0
    assert {name: (out / name).read_bytes() for name in names} == before
    assert (out / "notes").read_text() == "mine"


def test_json(
    runs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["visualize", runs["plain"], "Ein Hund", "--against", runs["talk"], "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    first, second = found["models"]
    assert (first["model"], second["model"]) == ("plain", "talk")
    assert first["text"].strip()
    assert second["text"] == first["text"]  # the second reads the first's translation
    assert first["source"] == second["source"]
    assert "".join(first["source"]) == "▁Ein▁Hund</s>"
    assert all(Path(file).exists() for file in found["files"])
    assert found["files"][0] == "attention/average.png"
    assert found["near_pieces"] == 3
    rows = {(row["model"], row["side"], row["branch"]): row for row in found["branches"]}
    assert len(rows) == len(found["branches"]) == 9
    plain, talk = rows["plain", "encoder", "attention"], rows["talk", "encoder", "talk"]
    assert plain["distance"] == pytest.approx(sum(layer["distance"] for layer in plain["layers"]) / 2)
    assert talk["distance"] < 1  # a kernel of 3 reaches one step to each side
    assert talk["near"] == 1
    length = len(first["source"])
    even = rows["", "encoder", f"evenly over {length} pieces"]
    assert even["distance"] == pytest.approx((length**2 - 1) / (3 * length))


@pytest.mark.parametrize(
    ("sentence", "options", "reason"),
    [
        ("", [], "the sentence is empty; give some text."),
        ("Hund " * 99, [], "pieces; give one of at most 63."),
        ("Hund", ["--target", " "], "the target is empty; give some text."),
        ("Hund", ["--against", "nowhere"], "nowhere holds no checkpoint"),
        ("Hund", ["--against", "other"], "the models translate different languages: plain de-en and other fr-en"),
        ("Hund", ["--out", "file"], "file: File exists."),
        ("Hund", ["--out", "file/below"], "file/below: Not a directory."),
    ],
)
def test_refusals(
    runs: dict[str, str],
    sentence: str,
    options: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main(["visualize", runs["plain"], sentence, *(runs.get(option, option) for option in options)]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("lite-nmt: error: ")
    assert err.count("\n") == 1
    assert reason in err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_models_are_told_apart_whatever_their_names(
    runs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    names = ["[b]:ok:$x_$", "[b]:ok:$x_$/model"]  # of one run, so by its name alone they would be the same
    shutil.copytree(runs["plain"], tmp_path / names[0])
    monkeypatch.chdir(tmp_path)
    assert main(["visualize", names[0], "Hund", "--against", names[1]]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in lines[:2]] == names
    assert [line.split()[0] for line in lines[3:5]] == names
