"""Configuration: what is wrong is refused by name, before anything is loaded."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lite_nmt.config import (
    Config,
    DecodeConfig,
    ModelConfig,
    StackConfig,
    TrainConfig,
    from_dict,
    load_preset,
    load_toml,
    merge,
    parse_setting,
    preset_names,
    preset_table,
)
from lite_nmt.errors import LiteNmtError


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        # Unknown keys: the nearest is suggested.
        ("modle.width=3", "unknown setting modle; the nearest is model"),
        ("model.encoder.layer=3", "unknown setting model.encoder.layer; the nearest is layers"),
        ("train.zzz=3", "unknown setting train.zzz; known are steps,"),
        # Wrong types.
        ('model.width="wide"', "model.width is 'wide'; it must be a whole number."),
        ("model.width=2.0", "model.width is 2.0; it must be a whole number."),
        ("model.width=true", "model.width is True; it must be a whole number."),
        ("train.lr=true", "train.lr is True; it must be a number."),
        ("train.compile=1", "train.compile is 1; it must be true or false."),
        ("train.schedule=1", "train.schedule is 1; it must be a string."),
        ("model.encoder.kernels=3", "model.encoder.kernels is 3; it must be a list of numbers."),
        ('model.encoder.kernels="3"', "model.encoder.kernels is '3'; it must be a list of numbers."),
        ("model.encoder.kernels=[3, 1.5]", "model.encoder.kernels[1] is 1.5; it must be a whole number."),
        ("model=3", "model is 3; it must be a table of keys and values."),
        ("model.encoder=[1]", "model.encoder is [1]; it must be a table of keys and values."),
        # Out of range.
        ("model.encoder.layers=0", "model.encoder.layers is 0; it must be between 1 and 1000."),
        ("model.encoder.kernels=[3, 0]", "model.encoder.kernels[1] is 0; it must be between 1 and 100000."),
        ("model.encoder.kernels=[]", "model.encoder.kernels is empty"),
        ("model.dropout=1.0", "model.dropout is 1.0; it must be between 0 and 0.99."),
        ("train.lr=nan", "train.lr is nan; it must be between 0 and 100."),
        ("train.steps=0", "train.steps is 0; it must be at least 1."),
        ("train.betas=[0.9, 1.0]", "train.betas[1] is 1.0; it must be between 0 and 1."),
        # Choices.
        ("model.encoder.mixer=mamba", "model.encoder.mixer is 'mamba'; it must be one of attention, lightconv,"),
        ("train.precision=fp8", "train.precision is 'fp8'; it must be one of fp32, bf16, fp16."),
        # What does not fit together.
        ("vocabulary.joint=false", 'model.tie is "all", which needs vocabulary.joint = true'),
    ],
)
def test_refused_by_name(setting: str, message: str) -> None:
    with pytest.raises(LiteNmtError) as refusal:
        from_dict(Config, parse_setting(setting))
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("train.steps=5", {"train": {"steps": 5}}),
        (" train.lr = 1e-3 ", {"train": {"lr": 1e-3}}),
        ("model.encoder.kernels=[3, 7]", {"model": {"encoder": {"kernels": [3, 7]}}}),
        ("model.tie=none", {"model": {"tie": "none"}}),
        ('model.tie="none"', {"model": {"tie": "none"}}),
        ("train.compile=true", {"train": {"compile": True}}),
        ("description=a = b", {"description": "a = b"}),
    ],
)
def test_settings(text: str, table: dict[str, Any]) -> None:
    assert parse_setting(text) == table


@pytest.mark.parametrize("text", ["train.steps", "=5", " =5"])
def test_settings_without_key_or_value_are_refused(text: str) -> None:
    with pytest.raises(LiteNmtError, match="not of the form key=value"):
        parse_setting(text)


def test_tables_lie_over_one_another() -> None:
    below = {"model": {"width": 8, "encoder": {"ffn": 8}}, "train": {"steps": 1}}
    above = {"model": {"encoder": {"ffn": 16}}}
    assert merge(below, above, parse_setting("train.steps=2")) == {
        "model": {"width": 8, "encoder": {"ffn": 16}},
        "train": {"steps": 2},
    }
    assert below["train"] == {"steps": 1}


def test_whole_numbers_serve_as_numbers() -> None:
    config = from_dict(Config, {"train": {"lr": 1}})
    assert isinstance(config.train.lr, float)


def test_a_configuration_survives_json() -> None:
    config = load_preset("wmt-lite-transformer-90m")
    assert from_dict(Config, json.loads(json.dumps(config.to_dict()))) == config


def test_schedules_repeat_their_last_value() -> None:
    stack = from_dict(Config, {"model": {"encoder": {"kernels": [3, 7], "windows": [5]}}}).model.encoder
    assert [stack.kernel(i) for i in range(4)] == [3, 7, 7, 7]
    assert [stack.window(i) for i in range(2)] == [5, 5]
    assert Config().model.encoder.window(0) is None


@pytest.mark.parametrize("name", preset_names())
def test_presets_load_and_say_what_they_are(name: str) -> None:
    config = load_preset(name)
    assert config.description
    assert not config.description.endswith(".")


@pytest.mark.parametrize("name", preset_names())
def test_presets_hold_only_what_differs(name: str) -> None:
    def repeated(table: dict[str, Any], default: dict[str, Any]) -> set[str]:
        below = [repeated(v, default[k]) for k, v in table.items() if isinstance(v, dict)]
        return {k for k, v in table.items() if v == default[k]}.union(*below)

    table = preset_table(name)
    table.pop("train", None)  # a comparison's recipe may be spelled out
    assert repeated(table, Config().to_dict()) <= {"mixer", "width", "ffn"}


@pytest.mark.parametrize(
    ("name", "message"),
    [("dmeo", "the nearest is demo"), ("mobile-100", "the nearest is mobile-100m"), ("../demo", "there is no preset")],
)
def test_unknown_presets_are_refused(name: str, message: str) -> None:
    with pytest.raises(LiteNmtError) as refusal:
        load_preset(name)
    assert message in str(refusal.value)


def test_presets_take_settings() -> None:
    assert load_preset("demo", parse_setting("model.encoder.layers=3")).model.encoder.layers == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot read"), (b"a = = 3", "is not valid TOML"), (b"a = '\xff'", "is not valid TOML")],
)
def test_unreadable_files(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "config.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LiteNmtError) as refusal:
        load_toml(path)
    assert message in str(refusal.value)
    assert str(path) in str(refusal.value)


def test_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[train]\nsteps = 3\n", encoding="utf-8")
    assert load_toml(path) == tomllib.loads(path.read_text(encoding="utf-8")) == {"train": {"steps": 3}}


def test_examples_load() -> None:
    found = sorted((Path(__file__).parents[1] / "examples").glob("*.toml"))
    assert found
    for path in found:
        assert load_preset("lite-transformer-mobile", load_toml(path)).description


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Config(train=TrainConfig(schedule="cosin")), "train.schedule is 'cosin'; it must be one of"),
        (lambda: Config(model=ModelConfig(dropout=-3.0)), "model.dropout is -3.0; it must be between 0 and 0.99."),
        (
            lambda: Config(model=ModelConfig(decoder=StackConfig(kernels=(3, 0)))),
            "model.decoder.kernels[1] is 0; it must be between 1 and 100000.",
        ),
        (lambda: Config(train=TrainConfig(steps="5")), "train.steps is '5'; it must be a whole number."),  # type: ignore[arg-type]
        (lambda: Config(model=3), "model is 3; it must be a ModelConfig."),  # type: ignore[arg-type]
        (lambda: DecodeConfig(beam=2.5), "decode.beam is 2.5; it must be a whole number."),  # type: ignore[arg-type]
        (lambda: DecodeConfig(penalty="Power"), "decode.penalty is 'Power'; it must be one of"),
        (lambda: DecodeConfig(min_length=5, max_length=4), "decode.min_length is 5, more than decode.max_length = 4."),
    ],
)
def test_refused_in_python_too(made: Callable[[], object], message: str) -> None:
    with pytest.raises(LiteNmtError) as refusal:
        made()
    assert message in str(refusal.value)


def test_lists_and_whole_numbers_are_taken() -> None:
    made = Config(train=TrainConfig(betas=[0.9, 0.98], lr=1))  # type: ignore[arg-type]
    assert (made.train.betas, made.train.lr) == ((0.9, 0.98), 1.0)
    assert made == from_dict(Config, {"train": {"betas": [0.9, 0.98], "lr": 1}})
