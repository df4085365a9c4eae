"""Every family of language models as an ExecuTorch program, against the model itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from lite_nmt.config import Config, from_dict
from lite_nmt.decode.language import PyTorchReader
from lite_nmt.errors import LiteNmtError
from lite_nmt.evaluate.surprise import surprise
from lite_nmt.export.executorch import Int8Bands, describe_language_model, export_language_executorch
from lite_nmt.export.executorch_runtime import ExecutorchReader
from lite_nmt.models.language import LanguageModel
from lite_nmt.modules.adaptive import AdaptiveEmbedding, AdaptiveSoftmax, Bands

TYPES, BLOCK = 31, 20
FAMILIES: dict[str, dict[str, Any]] = {
    "attention": {"mixer": "attention"},
    "window": {"mixer": "attention", "windows": [4]},
    "adaptive span, all-attention": {"mixer": "adaptive-span", "span": 20, "ramp": 3, "persistent": 6, "ffn": 0},
    "lightconv": {"mixer": "lightconv", "renormalize": True},
    "talk": {"mixer": "talk"},
    "lsra": {"mixer": "lsra", "conv": "dynamicconv", "glu": True},
    "average": {"mixer": "average"},
    "cnn": {"mixer": "cnn"},
}


def tiny(family: str, **model: Any) -> tuple[Config, LanguageModel]:
    """The last of the three bands has one channel."""
    stack = {"layers": 2, "heads": 2, "conv_heads": 2, "kernels": [3, 6], "ffn": 24, "spans": [5, 10]}
    if "span" not in FAMILIES[family]:
        del stack["spans"]
    table = {"width": 16, "cutoffs": [9, 20], **model, "decoder": stack | FAMILIES[family]}
    sizes = {"kind": "word", "target": TYPES}
    config = from_dict(Config, {"task": "lm", "model": table, "vocabulary": sizes, "train": {"block": BLOCK}})
    torch.manual_seed(0)
    built = LanguageModel(config).eval()
    with torch.no_grad():
        for mixer, z in zip(built.spans(), ([0.09, 0.0], [0.33, 0.2]), strict=False):
            mixer.z.copy_(torch.tensor(z))
    return config, built


def program(folder: Path, config: Config, model: LanguageModel, int8: bool) -> ExecutorchReader:
    pytest.importorskip("executorch")
    (folder / "model.pte").write_bytes(export_language_executorch(model, config, int8))
    return ExecutorchReader(folder / "model.pte")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(family: str, tmp_path: Path) -> None:
    from lite_nmt.export.language import check

    config, model = tiny(family)
    theirs = program(tmp_path, config, model, False)
    assert check(model, theirs, TYPES, BLOCK) < 1e-4
    assert theirs.about == {**describe_language_model(model, config), "precision": "fp32"}
    grows = family in ("attention", "lsra")
    assert theirs.about.get("max_past") == (BLOCK - 1 if grows else None)
    state = json.loads(theirs.about["state"])
    assert {name: (1, *shape) for name, shape in state.items()} == {n: x.shape for n, x in theirs.start().items()}
    if grows:
        with pytest.raises(LiteNmtError, match=r"20 words before the last one are more than .* 19"):
            theirs.read(5, BLOCK, theirs.start())


@pytest.mark.parametrize("tables", [{}, {"tie": "none"}, {"cutoffs": []}], ids=["tied", "untied", "one table"])
def test_int8_is_near(tables: dict[str, Any], tmp_path: Path) -> None:
    config, model = tiny("lsra", **tables)
    theirs = program(tmp_path, config, model, True)
    assert theirs.about["precision"] == "int8"
    text = torch.randint(3, TYPES, (60,)).tolist()
    ours = surprise(PyTorchReader(model), text, BLOCK)
    assert 0 < abs(surprise(theirs, text, BLOCK) - ours) < 0.01


def test_int8_bands_are_bands() -> None:
    """To what rounding leaves."""
    torch.manual_seed(0)
    bands = Bands(TYPES, 16, [9, 20], 4)
    rounded = Int8Bands(bands)
    tokens, x = torch.arange(TYPES), torch.randn(5, 16)
    torch.testing.assert_close(
        AdaptiveEmbedding(rounded)(tokens, tokens), AdaptiveEmbedding(bands)(tokens, tokens), rtol=0, atol=0.05
    )
    torch.testing.assert_close(AdaptiveSoftmax(rounded)(x), AdaptiveSoftmax(bands)(x))  # rounded with all products
