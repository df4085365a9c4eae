"""Every family as an ExecuTorch program, against the model itself."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lite_nmt.compress.int8 import dequantize_rows, quantize_rows
from lite_nmt.config import Config, from_dict
from lite_nmt.data.vocabulary import BOS, EOS, PAD
from lite_nmt.decode.pytorch import PyTorchEngine
from lite_nmt.errors import LiteNmtError
from lite_nmt.export.executorch import Table, describe, export_executorch
from lite_nmt.export.executorch_runtime import ExecutorchEngine, ExecutorchModel, check_logits
from lite_nmt.models.translation import TranslationModel
from lite_nmt.modules.embedding import Embedding

TYPES = 60
STACK = {"layers": 1, "mixer": "lsra", "heads": 2, "conv_heads": 2, "kernels": [3], "ffn": 32}
FAMILIES: dict[str, dict[str, Any]] = {
    "attention": {"mixer": "attention"},
    "windows": {"mixer": "attention", "layers": 2, "windows": [3, 5]},
    "lightconv": {"mixer": "lightconv", "renormalize": True},
    "dynamicconv": {"mixer": "dynamicconv", "glu": True},
    "talk": {"mixer": "talk"},
    "lsra": {"mixer": "lsra", "conv": "dynamicconv", "glu": True},
    "average": {"mixer": "average"},
    "cnn": {"mixer": "cnn"},
}
Made = tuple[TranslationModel, Path]


def tiny(family: str) -> tuple[Config, TranslationModel]:
    """Weights are large enough that choices differ clearly."""
    stack = {**STACK, **FAMILIES[family]}
    config = from_dict(
        Config,
        {
            "model": {"width": 32, "cross_heads": 2, "encoder": stack, "decoder": stack},
            "vocabulary": {"source": TYPES, "target": TYPES, "max_length": 50},
            "decode": {"beam": 3},
        },
    )
    torch.manual_seed(1)
    model = TranslationModel(config).eval()
    with torch.no_grad():
        model.project.weight.mul_(3)
    return config, model


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, bool], Made]:
    """A model and its program, made once."""
    pytest.importorskip("executorch")
    known: dict[tuple[str, bool], Made] = {}

    def make(family: str, int8: bool) -> Made:
        if (family, int8) not in known:
            config, model = tiny(family)
            path = tmp_path_factory.mktemp("program") / "model.pte"
            path.write_bytes(export_executorch(model, config, int8))
            known[family, int8] = model, path
        return known[family, int8]

    return make


def sources(count: int = 7) -> list[list[int]]:
    draw = np.random.default_rng(3)
    return [[*draw.integers(EOS + 1, TYPES, draw.integers(1, 12)).tolist(), EOS] for _ in range(count)]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(family: str, made: Callable[[str, bool], Made]) -> None:
    model, path = made(family, False)
    engine = ExecutorchEngine(path)
    assert check_logits(model, engine.model) < 1e-4
    for beam in (1, 3):
        decode = dataclasses.replace(tiny(family)[0].decode, beam=beam)
        ours, theirs = PyTorchEngine(model).search(sources(), decode, beam), engine.search(sources(), decode, beam)
        for mine, other in zip(ours, theirs, strict=True):
            assert [h.tokens for h in other] == [h.tokens for h in mine]
            assert [h.score for h in other] == pytest.approx([h.score for h in mine], abs=1e-4)


def test_int8_is_smaller_and_near(made: Callable[[str, bool], Made]) -> None:
    model, path = made("lsra", True)
    program = ExecutorchModel(path)
    assert program.about["precision"] == "int8"
    assert path.stat().st_size < made("lsra", False)[1].stat().st_size
    with pytest.raises(LiteNmtError, match="disagrees with the model"):
        check_logits(model, program)
    assert check_logits(model, program, tolerance=1.0) < 1.0  # of scores up to 30


def test_what_a_program_says_of_itself(made: Callable[[str, bool], Made]) -> None:
    model, path = made("lsra", False)
    about = ExecutorchModel(path).about
    assert about == {**describe(model, tiny("lsra")[0]), "precision": "fp32"}
    assert (about["pad"], about["bos"], about["eos"], about["max_source"]) == (PAD, BOS, EOS, 50)
    assert json.loads(about["state"]) == {
        "0.attention.key": [2, 0, 8],
        "0.attention.value": [2, 0, 8],
        "0.convolution.inputs": [2, 16],
    }
    assert json.loads(about["memory"]) == {"0.key": [2, 0, 16], "0.value": [2, 0, 16]}


def test_what_is_too_long_is_refused(made: Callable[[str, bool], Made]) -> None:
    _, path = made("lsra", False)
    engine = ExecutorchEngine(path)
    decode = tiny("lsra")[0].decode
    with pytest.raises(LiteNmtError, match=r"51 source tokens are more than .* 50"):
        engine.search([[*[5] * 50, EOS]], decode, 1)
    with pytest.raises(LiteNmtError, match="9 hypotheses"):
        engine.search([[5, EOS]], dataclasses.replace(decode, beam=9), 1)
    most = engine.model.about["max_past"]
    with pytest.raises(LiteNmtError, match=f"{most + 1} target tokens"):
        engine.search([[5, EOS]], dataclasses.replace(decode, min_length=most + 5, max_length=most + 5), 1)


def test_what_is_no_program_is_refused(made: Callable[[str, bool], Made], tmp_path: Path) -> None:
    _, path = made("lsra", False)
    with pytest.raises(LiteNmtError, match="cannot read"):
        ExecutorchModel(tmp_path / "missing.pte")
    for content in (b"", b"not a program", path.read_bytes()[:5000]):
        (tmp_path / "bad.pte").write_bytes(content)
        with pytest.raises(LiteNmtError, match="ExecuTorch cannot open"):
            ExecutorchModel(tmp_path / "bad.pte")


def test_it_takes_as_many_threads_as_it_is_told(made: Callable[[str, bool], Made]) -> None:
    from executorch.extension.pybindings import _portable_lib

    _, path = made("lsra", False)
    for threads in (2, 1):
        ExecutorchEngine(path, threads)
        assert _portable_lib._threadpool_get_thread_count() == threads


def test_without_executorch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("executorch", "executorch.runtime", "executorch.exir"):
        monkeypatch.setitem(sys.modules, name, None)
    config, model = tiny("lsra")
    for call in (lambda: export_executorch(model, config, False), lambda: ExecutorchModel(tmp_path)):
        with pytest.raises(LiteNmtError, match=r"pip install 'lite-nmt\[executorch\]'"):
            call()


def test_an_int8_table_holds_weights_on_its_grid_exactly() -> None:
    embedding = Embedding(TYPES, 16)
    codes = quantize_rows(embedding.weight.detach().numpy())
    embedding.weight.data = torch.from_numpy(dequantize_rows(*codes))
    tokens, positions = torch.arange(TYPES), torch.arange(TYPES)
    torch.testing.assert_close(Table(embedding)(tokens, positions), embedding(tokens, positions), atol=1e-6, rtol=0)
