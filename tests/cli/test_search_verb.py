"""``lite-nmt search``: tables, TOML, calibrations and what is refused."""

from __future__ import annotations

import functools
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lite_nmt.cli.main import main
from lite_nmt.config import Config, from_dict
from lite_nmt.profiling import calibrate as calibration_module
from lite_nmt.profiling import search
from lite_nmt.profiling.calibrate import trials
from lite_nmt.profiling.latency import measure
from lite_nmt.profiling.predict import STAGES, Calibration, CortexA72, features

ESTIMATE = ("search", "--budget", "60M", "--target", "cortex-a72")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three depths, one ratio."""
    monkeypatch.setattr(search, "DEPTHS", ((3, 3), (6, 1), (4, 2)))
    monkeypatch.setattr(search, "FFN_RATIOS", (2,))


@pytest.fixture
def calibration() -> Calibration:
    """A machine on which everything has a price."""
    encode, step = (
        {name: 0.5 for config in trials() for name in features(config, stage, 4_000_000)} for stage in STAGES
    )
    return Calibration("a machine", 2, 4_000_000, encode, step, {"mobile-100m": (10, 12)})


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 1) -> str:
    if code == 2:
        with pytest.raises(SystemExit) as left:
            main([*map(str, arguments)])
        assert left.value.code == 2
    else:
        assert main([*map(str, arguments)]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err.splitlines()[-1]


def test_the_table_says_what_the_json_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ESTIMATE, "--top", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = printed(capsys, *ESTIMATE, "--top", 2)
    assert len(found["shapes"]) == 2
    assert "estimated ms" in lines[0]
    for i, shape in enumerate(found["shapes"]):
        cells = lines[i + 1].split()
        depths = f"{shape['encoder_layers']}+{shape['decoder_layers']}"
        assert cells[:5] == [str(i + 1), "lite-transformer", depths, str(shape["width"]), str(2 * shape["width"])]
        assert cells[-1] == f"{shape['milliseconds']:.1f}"
        assert shape["mult_adds"]["paper"] <= 60_000_000
    assert "ESTIMATE for Cortex-A72, none is measured" in " ".join(lines)
    assert (found["target"], found["threads"], found["milliseconds"]) == ("cortex-a72", 1, "estimated ms")


def test_families_ranks_counts_and_each(capsys: pytest.CaptureFixture[str]) -> None:
    every = printed(capsys, *ESTIMATE, "--family", "all", "--top", 1000, "--each", 100, "--count", "full")["shapes"]
    assert {shape["family"] for shape in every} == set(search.FAMILIES)
    assert max(shape["mult_adds"]["full"] for shape in every) <= 60_000_000
    taken = [shape["milliseconds"] for shape in every]
    assert taken == sorted(taken)
    fullest = printed(capsys, *ESTIMATE, "--family", "talk", "--rank", "mult-adds")["shapes"]
    spent = [shape["mult_adds"]["paper"] for shape in fullest]
    assert len(spent) == 3
    assert spent == sorted(spent, reverse=True)
    faster = printed(capsys, *ESTIMATE, "--threads", 4)["shapes"]
    assert faster[0]["milliseconds"] < printed(capsys, *ESTIMATE)["shapes"][0]["milliseconds"]


def test_the_chosen_shape_is_a_configuration_for_train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "chosen.toml"
    base = (*ESTIMATE, "--set", "vocabulary.target=500", "--set", "vocabulary.source=500", "--write", file)
    for choice, number in (((), 0), (("--choose", 3), 2)):
        found = printed(capsys, *base, *choice)
        assert found["write"] == str(file)
        shape = found["shapes"][number]
        config = from_dict(Config, tomllib.loads(file.read_text()))
        assert (config.model.width, config.model.encoder.layers) == (shape["width"], shape["encoder_layers"])
        assert (config.model.cross_heads, config.vocabulary.target) == (shape["heads"], 500)
        assert CortexA72().predict(config) == shape["milliseconds"]


def test_a_calibration_is_made_once_and_reused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, calibration: Calibration
) -> None:
    file = tmp_path / "calibration.json"
    asked: list[int] = []

    def calibrate(threads: int) -> Calibration:
        asked.append(threads)
        return calibration

    monkeypatch.setattr(calibration_module, "calibrate", calibrate)
    host = ("search", "--budget", "60M", "--calibration", file)
    first = printed(capsys, *host, "--threads", 2)
    assert Calibration.load(file) == calibration
    assert first["shapes"] == printed(capsys, *host)["shapes"]
    assert asked == [2]
    assert first["milliseconds"] == "predicted ms"
    assert "1 presets held out the prediction was 20% off" in first["caption"]
    error = refused(capsys, *host, "--threads", 3)
    assert error.endswith("was measured with --threads 2, not 3; calibrate into another file.")
    file.write_text("{}")
    assert "is not a calibration of this release" in refused(capsys, *host)


def test_a_poor_calibration_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, calibration: Calibration
) -> None:
    calibration.held_out["mobile-100m"] = (10, 13)
    monkeypatch.setattr(calibration_module, "calibrate", lambda _: calibration)
    assert main(["search", "--budget", "60M"]) == 0
    assert "lite-nmt: warning: predictions of models held out were 30% off (median)" in capsys.readouterr().err


def test_the_best_are_trained(
    tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lite_nmt.profiling.contest.measure", functools.partial(measure, repeats=5))
    vocabulary = ("vocabulary.source=400", "vocabulary.target=400")
    small = (*vocabulary, "train.threads=1", "train.batch_tokens=300", "decode.max_length=5")
    arguments = (
        *("search", "--budget", "8M", "--family", "lightconv", "--target", "cortex-a72"),
        *(f"--set={setting}" for setting in small),
        *("--train-top", 2, "--data", corpus, "--out", tmp_path / "runs", "--steps", 2, "--device", "cpu"),
    )
    found = printed(capsys, *arguments)
    assert [row["name"] for row in found["trained"]] == [shape["name"] for shape in found["shapes"][:2]]
    assert [row["steps"] for row in found["trained"]] == [2, 2]
    assert main([*map(str, arguments)]) == 0
    captured = capsys.readouterr()
    assert f"{found['trained'][0]['valid_nll']:.3f}" in captured.out
    assert "updates" in captured.out
    assert "step 1" not in captured.err  # a finished one is not trained again
    error = main([*map(str, arguments), "--set=train.lr=0.1"])
    assert error == 1
    assert "trains with another recipe; choose another --out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--data", "x"], "--data is for training; add --train-top N."),
        (["--steps", "5"], "--steps is for training; add --train-top N."),
        (["--train-top", "2"], "--train-top needs --data and --out."),
        (["--train-top", "2", "--data", "x"], "--train-top needs --data and --out."),
        (["--train-top", "0"], "'0' is not a whole number of at least 1"),
        (["--choose", "2"], "--choose says which shape to write; add --write FILE."),
        (["--calibration", "x"], "--calibration is for --target host"),
        (["--family", "rnn"], "invalid choice"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str) -> None:
    assert sentence in refused(capsys, *ESTIMATE, *arguments, code=2)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--budget", "lots"], "--budget is 'lots'"),
        (["--budget", "1K"], "no shape of lite-transformer fits 1K Mult-Adds (paper count)"),
        (["--threads", "5"], "--threads is 5; a Cortex-A72 as estimated here has 4 cores."),
        (["--set", "model.width=64"], "model.width is what the search chooses"),
        (["--set", "model=3"], "model is 3; it must be a table"),
        (["--set", "nonsense"], "is not of the form key=value"),
        (["--train-top", "1", "--out", "x", "--data", "nowhere"], "the data folder nowhere does not exist."),
    ],
)
def test_bad_values(capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str) -> None:
    assert sentence in refused(capsys, *ESTIMATE, *arguments)


def test_files_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = tmp_path / "nowhere" / "file"
    assert "cannot write" in refused(capsys, *ESTIMATE, "--write", nowhere)
    assert "--choose is 9 and 3 shapes are listed" in refused(
        capsys, *ESTIMATE, "--write", tmp_path / "file", "--choose", 9
    )
    monkeypatch.setattr(calibration_module, "calibrate", lambda _: pytest.fail("measured all the same"))
    assert "cannot write" in refused(capsys, "search", "--budget", "60M", "--calibration", nowhere)
    assert not list(tmp_path.iterdir())
