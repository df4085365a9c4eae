"""``lite-nmt profile``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.helper as oh
import pytest

from lite_nmt.cli.main import main
from lite_nmt.config import Config, load_preset
from lite_nmt.export import bundle
from lite_nmt.profiling.cost import cost


def profile(capsys: pytest.CaptureFixture[str], *args: str | Path) -> dict[str, object]:
    assert main(["profile", *map(str, args), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert isinstance(data, dict)
    return data


def refused(capsys: pytest.CaptureFixture[str], *args: str | Path) -> str:
    assert main(["profile", *map(str, args)]) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("lite-nmt: error: ")
    assert error.count("\n") == 1
    return error


def test_prints_both_counts_by_kind_and_by_module(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "wmt-lite-transformer-90m"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["cross-attention", "30.96M", "964.8K", "360KB", "11%"] in lines
    assert ["paper", "90.66M", "2.88M", "365.76KB", "32%"] in lines
    assert ["full", "287.27M", "9.44M", "3.96MB", "100%"] in lines
    assert ["100M", "Mult-Adds", "yes", "no"] in lines
    assert ["10M", "parameters", "yes", "yes"] in lines
    assert ["encoder.3.mixer.convolution", "1.36M", "42.7K", "77.76KB", "0.5%"] in lines


def test_lengths_batch_and_beam(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--src-len", "7", "--tgt-len", "9", "--batch", "2", "--beam", "3")
    for counter in ("closed", "traced", "onnx"):
        data = profile(capsys, "multi30k-talk", *options, "--counter", counter, "--strict")
        total = cost(load_preset("multi30k-talk"), 7, 9, 2, 3)
        assert data["mult_adds"] == {count: total.mult_adds(count) for count in ("paper", "full")}
        assert data["parameters"] == {count: total.parameters(count) for count in ("paper", "full")}
        assert data["sizes"] == {"source": 7, "target": 9, "batch": 2, "beam": 3}
        assert data["counter"] == counter


def test_budget(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "wmt-lite-transformer-90m", "--budget", "100M"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["profile", "wmt-lite-transformer-90m", "--budget", "100M", "--count", "full"]) == 3
    out, error = capsys.readouterr()
    assert "90.66M" in out
    assert error == (
        "lite-nmt: wmt-lite-transformer-90m needs 287.27M Mult-Adds (full count), over the budget of 100M.\n"
    )
    assert main(["profile", "wmt-lite-transformer-90m", "--budget", "90659999", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["budget"] == {"mult_adds": 90659999, "count": "paper", "exceeded": True}


def test_a_configuration_and_settings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[model.encoder]\nlayers = 2\n")
    expected = cost(Config())
    assert profile(capsys, path)["mult_adds"] != {"paper": expected.mult_adds(), "full": expected.mult_adds("full")}
    data = profile(capsys, path, "--set", "model.encoder.layers=6")
    assert data["mult_adds"] == {"paper": expected.mult_adds(), "full": expected.mult_adds("full")}


def test_a_bundle_folder_or_zip(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, tiny: Callable[..., Config]
) -> None:
    config = tiny()
    for name in ("bundle", "bundle.zip"):
        bundle.save(tmp_path / name, {}, config, ("de", "en"), {"source.spm": b""})
    for target in (tmp_path / "bundle", tmp_path / "bundle.zip"):
        data = profile(capsys, target)
        assert data["what"] == "bundle"
        assert data["mult_adds"] == {count: cost(config).mult_adds(count) for count in ("paper", "full")}


def test_an_onnx_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    nodes = [oh.make_node("MatMul", ["x", "w"], ["h"]), oh.make_node("Mystery", ["h"], ["y"], domain="other")]
    values = [oh.make_tensor_value_info("x", 1, ["batch", "steps", 8])]
    weights = [oh.make_tensor("w", 1, [8, 3], [0.0] * 24)]
    graph = oh.make_graph(nodes, "g", values, [oh.make_tensor_value_info("y", 1, None)], weights)
    path = tmp_path / "model.onnx"
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 20), oh.make_opsetid("other", 1)]), path)
    data = profile(capsys, path, "--batch", "2", "--dim", "steps=5")
    assert data["sizes"] == {"batch": 2, "steps": 5}
    assert data["mult_adds"] == {"paper": 240, "full": 240}
    assert data["uncounted"] == ["operator other.Mystery, 1 times"]
    assert data["limits"]["full"] == dict.fromkeys(  # type: ignore[index]
        ("100M Mult-Adds", "500M Mult-Adds", "10M parameters")
    )
    assert "could not count all" in refused(capsys, path, "--dim", "steps=5", "--strict")
    assert "dimension steps of input x has no size; give it: --dim steps=1" in refused(capsys, path)
    assert "no symbolic dimension tokens; it has batch, steps" in refused(capsys, path, "--dim", "tokens=5")
    assert "no symbolic dimension source" in refused(capsys, path, "--src-len", "5")
    assert "--beam is for configurations" in refused(capsys, path, "--beam", "2")
    assert main(["profile", str(path), "--dim", "steps=5", "--budget", "1M"]) == 0
    out, error = capsys.readouterr()
    assert "unknown" in out
    assert error == "lite-nmt: warning: not all could be counted; the budget may be exceeded.\n"


def test_the_folder_one_stands_in(
    capsys: pytest.CaptureFixture[str], saved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved)
    assert profile(capsys, ".")["what"] == "checkpoint"
    assert "holds no checkpoint" in refused(capsys, "/")


def test_a_checkpoint_with_latency(capsys: pytest.CaptureFixture[str], saved: str) -> None:
    options = ("--latency", "--modules", "--threads", "1", "--src-len", "4", "--tgt-len", "5", "--beam", "2")
    data = profile(capsys, saved, *options)
    assert data["what"] == "checkpoint"
    latency = data["latency"]
    assert isinstance(latency, dict)
    assert (latency["threads"], latency["source_length"], latency["target_length"], latency["beam"]) == (1, 4, 5, 2)
    assert latency["encode"]["low"] <= latency["encode"]["median"] <= latency["encode"]["high"]
    assert main(["profile", saved, *options]) == 0
    assert "decoder.0.cross" in capsys.readouterr().out


def test_reproduce(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--reproduce"]) == 0
    text = capsys.readouterr().out
    assert "FAIL" not in text
    assert text.count("pass") >= 50
    assert main(["profile", "--reproduce", "--json"]) == 0
    assert all(row["passes"] for row in json.loads(capsys.readouterr().out))


def test_bad_input(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "name a preset" in refused(capsys)
    assert "there is no preset dmeo; the nearest is demo" in refused(capsys, "dmeo")
    assert "holds no checkpoint" in refused(capsys, tmp_path)
    (tmp_path / "x.txt").write_text("x")
    assert "neither a .toml configuration" in refused(capsys, tmp_path / "x.txt")
    assert "cannot read" in refused(capsys, tmp_path / "absent.toml")
    (tmp_path / "x.zip").write_text("x")
    assert "is not a bundle" in refused(capsys, tmp_path / "x.zip")
    (tmp_path / "manifest.json").write_text("[1]")
    assert "does not describe a lite-nmt bundle" in refused(capsys, tmp_path)
    (tmp_path / "x.onnx").write_text("x")
    assert "is not an ONNX model" in refused(capsys, tmp_path / "x.onnx")
    assert "only --counter onnx" in refused(capsys, tmp_path / "x.onnx", "--counter", "closed")
    assert "--dim 'batch' is not of the form" in refused(capsys, tmp_path / "x.onnx", "--dim", "batch")
    assert "--dim is for ONNX files" in refused(capsys, "demo", "--dim", "batch=1")
    assert "the source length to count for is 10000000000" in refused(capsys, "demo", "--src-len", "10000000000")
    assert "--budget is 'many'" in refused(capsys, "demo", "--budget", "many")
    assert "batch 1, not 2" in refused(capsys, "demo", "--latency", "--batch", "2")
    assert "unknown setting model.widht" in refused(capsys, "demo", "--set", "model.widht=3")
    assert "--set changes a preset" in refused(capsys, tmp_path / "x.onnx", "--set", "model.width=3")
    assert "--threads 1 is not for counting, only for --latency" in refused(capsys, "demo", "--threads", "1")
    assert "leave out demo" in refused(capsys, "demo", "--reproduce")
    with pytest.raises(SystemExit, match="2"):
        main(["profile", "demo", "--src-len", "0"])
