"""Settings that nothing reads are refused where a person gives them, and nowhere else."""

from __future__ import annotations

import dataclasses
import itertools
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lite_nmt.cli.main import main
from lite_nmt.cli.presets import as_toml
from lite_nmt.config import (
    CONVOLUTIONS,
    MIXERS,
    Config,
    ModelConfig,
    StackConfig,
    from_dict,
    load_preset,
    load_toml,
    merge,
    parse_setting,
    preset_names,
)
from lite_nmt.errors import LiteNmtError
from lite_nmt.idle import READ_BY, idle, refuse_idle
from lite_nmt.models.build import build_mixer
from lite_nmt.modules.mixer import Mixer

LITE, LM, TRANSFORMER = "lite-transformer-mobile", "wikitext2-adaptive-span", "iwslt-transformer"


def lay(preset: str, *settings: str) -> tuple[Config, dict[str, Any]]:
    asked = merge({}, *map(parse_setting, settings))
    return load_preset(preset, asked), asked


@pytest.mark.parametrize(
    ("preset", "settings", "sentence"),
    [
        (LITE, ["model.encoder.span=7"], 'span is 7, which does nothing where model.encoder.mixer is "lsra"; leave it'),
        (LITE, ["model.decoder.spans=[7]"], "model.decoder.spans is [7], which training finds out by itself; leave it"),
        (LITE, ["model.decoder.conv=talk", "model.decoder.weight_norm=l1"], 'model.decoder.conv is "talk"'),
        (LITE, ["model.decoder.renormalize=true", "model.decoder.weight_norm=none"], "model.decoder.renormalize is tr"),
        (LITE, ["model.cutoff_factor=2"], 'model.cutoff_factor is 2, which does nothing where task is "translate"'),
        (LITE, ["train.block=9"], "train.block is 9"),
        (LITE, ["train.span_loss=0.1"], "train.span_loss is 0.1"),
        (LITE, ["train.momentum=0.5"], 'train.momentum is 0.5, which does nothing where train.optimizer is "adam"'),
        (LITE, ["train.optimizer=sgd", "train.betas=[0, 0]"], 'train.optimizer is "sgd"'),
        (LITE, ["train.min_lr=1e-5"], 'train.schedule is "inverse_sqrt"'),
        (LITE, ["train.warmup=0", "train.warmup_lr=1e-5"], "train.warmup is 0"),
        (LITE, ["train.distill_temperature=2"], "train.distill_weight is 0.0"),
        (LITE, ["train.distill_weight=1", "train.label_smoothing=0.2"], "train.distill_weight is 1.0"),
        (LITE, ["train.patience=3"], 'train.stop_on is "none"'),
        (LITE, ["train.finish=best", "train.average=3"], 'train.finish is "best"'),
        (LITE, ["train.average=11"], "train.average is 11, which needs train.keep of as much, not 10"),
        (LITE, ["vocabulary.source=99"], "vocabulary.source is 99, which does nothing where vocabulary.joint is true"),
        (TRANSFORMER, ["model.encoder.kernels=[3]"], 'model.encoder.mixer is "attention"'),
        (
            TRANSFORMER,
            ["train.kernels=reference"],
            'model.encoder.mixer is "attention" and model.decoder.mixer is "att',
        ),
        (
            TRANSFORMER,
            ["model.encoder.ffn=0", "model.decoder.ffn=0", "model.activation=swish"],
            "model.decoder.ffn is 0",
        ),
        (LM, ["vocabulary.source=99"], 'vocabulary.source is 99, which does nothing where task is "lm"'),
        (LM, ["vocabulary.max_length=99"], 'task is "lm"'),
        (LM, ["decode.beam=9"], 'decode.beam is 9, which does nothing where task is "lm"'),
        (LM, ["model.encoder.layers=2"], 'task is "lm"'),
        (LM, ["model.cross_heads=2"], 'task is "lm"'),
        (LM, ["model.decoder.windows=[9]"], 'model.decoder.mixer is "adaptive-span"'),
        (LM, ["model.cutoffs=[]", "model.cutoff_factor=2"], "model.cutoffs is []"),
        ("wikitext2-talk", ["model.attention_dropout=0.1"], 'task is "lm" and model.decoder.mixer is "talk"'),
        ("wikitext2-transformer", ["train.kernels=reference"], 'task is "lm" and model.decoder.mixer is "attention"'),
    ],
)
def test_refused_by_name_and_cause(preset: str, settings: list[str], sentence: str) -> None:
    config, asked = lay(preset, *settings)
    with pytest.raises(LiteNmtError) as refusal:
        refuse_idle(config, asked)
    assert sentence in str(refusal.value)
    assert str(refusal.value).endswith("; leave it out.")


@pytest.mark.parametrize(
    ("preset", "settings"),
    [
        (LITE, ["model.encoder.span=1024", "train.block=256"]),  # the defaults
        (LITE, ["vocabulary.source=99", "vocabulary.target=99"]),
        (LITE, ["model.decoder.mixer=attention", "train.kernels=reference"]),  # the encoder still has convolutions
        (LM, ["model.decoder.mixer=attention", "train.span_loss=0"]),  # the preset's span is nobody's wish
        ("wikitext2-talk", ["train.kernels=reference", "model.activation=relu"]),
    ],
)
def test_taken(preset: str, settings: list[str]) -> None:
    config, asked = lay(preset, *settings)
    refuse_idle(config, asked)


def test_a_file_may_say_what_a_later_setting_makes_idle() -> None:
    file, later = {"train": {"finish": "average", "average": 5}}, {"train": {"finish": "best"}}
    config = load_preset(LITE, file, later)
    refuse_idle(config, file, later)
    with pytest.raises(LiteNmtError, match=r"train\.average"):
        refuse_idle(config, merge(file, later))


def test_what_a_run_has_already_is_not_asked_for() -> None:
    config, asked = lay(LITE, "train.block=9")
    refuse_idle(config, asked, before=config)


@pytest.mark.parametrize("name", preset_names())
def test_presets_are_ready_for_use(name: str) -> None:
    config = load_preset(name)
    assert not idle(config, config.to_dict())
    assert from_dict(Config, tomllib.loads(as_toml(name, config))) == config


def test_what_is_printed_for_use_holds_nothing_idle() -> None:
    config = load_preset(LITE, {"model": {"encoder": {"mixer": "attention"}}})  # as a search does
    table = tomllib.loads(as_toml(LITE, config))
    assert "weight_dropout" not in table["model"]["encoder"]
    refuse_idle(load_preset(LITE, table), table)


def test_examples_hold_nothing_idle() -> None:
    for path in (Path(__file__).parents[1] / "examples").glob("*.toml"):
        table = load_toml(path)
        refuse_idle(load_preset(LITE, table), table)


OTHER: dict[str, Any] = {
    "heads": 4,
    "kept_heads": (1,),
    "persistent": 3,
    "span": 9,
    "ramp": 5,
    "kernels": (5,),
    "glu": True,
    "conv_heads": 4,
    "conv_widths": (4,),
    "weight_dropout": 0.5,
    "weight_norm": "l1",
    "renormalize": True,
    "windows": (5,),
    "conv": "talk",
}


@pytest.mark.parametrize(("mixer", "name"), list(itertools.product(MIXERS, READ_BY)))
def test_the_table_says_what_mixers_read(mixer: str, name: str) -> None:
    assert OTHER.keys() == READ_BY.keys()
    stack = StackConfig(mixer=mixer, heads=2, conv_heads=2, kernels=(3,), span=8, ramp=4, ffn=8)
    changed = dataclasses.replace(stack, **{name: OTHER[name]})
    found = [described(build_mixer(ModelConfig(width=16), one, 0, causal=True)) for one in (stack, changed)]
    assert (found[0] != found[1]) == (mixer in READ_BY[name])


@pytest.mark.parametrize("conv", CONVOLUTIONS)
def test_so_do_the_convolutions_of_lsra(conv: str) -> None:
    stack = StackConfig(mixer="lsra", conv=conv, heads=2, conv_heads=2, kernels=(3,), ffn=8)
    for name in ("weight_norm", "renormalize"):
        changed = dataclasses.replace(stack, **{name: OTHER[name]})
        found = [described(build_mixer(ModelConfig(width=16), one, 0, causal=True)) for one in (stack, changed)]
        assert (found[0] != found[1]) == (conv != "talk")


def described(mixer: Mixer) -> list[Any]:
    """All that a module is made with: plain attributes and shapes."""
    return [
        (
            name,
            type(module),
            {k: v for k, v in vars(module).items() if isinstance(v, int | float | str | None)},
            {k: tuple(v.shape) for k, v in module.named_parameters(recurse=False)},
        )
        for name, module in mixer.named_modules()
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "--data", "nowhere", "--out", "run", "--set", "train.block=9"],
        ["demo", "--out", "run", "--set", "train.block=9"],
        ["profile", LITE, "--set", "model.encoder.span=9"],
        ["profile", LITE, "--set", "train.lr=1"],
        ["search", "--budget", "20M", "--target", "cortex-a72", "--set", "train.lr=1"],
        ["search", "--budget", "20M", "--target", "cortex-a72", "--set", "model.encoder.span=9"],
    ],
)
def test_each_verb_that_takes_settings_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    assert "; leave it out." in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
