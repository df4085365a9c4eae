"""The options of structured pruning."""

from __future__ import annotations

import argparse

import pytest

from lite_nmt.cli.structured_options import add_structured_options, importance_from, plan_from
from lite_nmt.compress.importance import WeightNorm
from lite_nmt.compress.structured import Plan
from lite_nmt.errors import LiteNmtError


def parse(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scope", default="layer")
    add_structured_options(parser)
    return parser.parse_args(arguments)


def test_options_become_a_plan() -> None:
    assert plan_from(parse()) is None
    shares = ["--heads", "0.25", "--ffn", "0.3", "--conv-channels", "0.1"]
    assert plan_from(parse(*shares, "--decoder-layers", "3")) == Plan(0.25, 0.3, 0.1, decoder_layers=3)
    assert plan_from(parse("--mult-adds", "40M", "--scope", "global")) == Plan(mult_adds=40_000_000, scope="global")
    assert isinstance(importance_from(parse(), None), WeightNorm)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--mult-adds", "few"], "--mult-adds is 'few'; give Mult-Adds as 100M"),
        (["--heads", "1.5"], "the share of attention heads to remove is 1.5"),
        (["--ffn", "-0.1"], "the share of FFN channels to remove is -0.1"),
        (["--conv-channels", "inf"], "the share of convolution channels to remove is inf"),
    ],
)
def test_values_out_of_range_are_one_sentence(arguments: list[str], sentence: str) -> None:
    with pytest.raises(LiteNmtError, match=sentence):
        plan_from(parse(*arguments))


@pytest.mark.parametrize("arguments", [["--decoder-layers", "0"], ["--heads", "many"], ["--importance", "taste"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(*arguments)


def test_the_loss_needs_pairs() -> None:
    with pytest.raises(LiteNmtError, match="--importance loss needs sentence pairs; give --data"):
        importance_from(parse("--importance", "loss"), None)
