"""Every family's graphs in ONNX Runtime, against the model itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from lite_nmt.config import Config, DecodeConfig, from_dict
from lite_nmt.data.vocabulary import EOS, PAD
from lite_nmt.decode.engine import pad
from lite_nmt.decode.search import search
from lite_nmt.errors import LiteNmtError
from lite_nmt.export import bundle, fuse, onnx_graphs, parity
from lite_nmt.export.onnx_graphs import export_graphs, serialize
from lite_nmt.export.precision import CONVERSIONS
from lite_nmt.export.runtime import ADVANCE, BEAM, BEGIN, ENCODER, GREEDY, STEP, OnnxEngine
from lite_nmt.models.translation import TranslationModel

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

TYPES = 60
STACK = {"layers": 1, "mixer": "lsra", "heads": 2, "conv_heads": 2, "kernels": [3], "ffn": 32}
FAMILIES: dict[str, dict[str, Any]] = {
    "attention": {"mixer": "attention"},
    "windows": {"mixer": "attention", "windows": [3]},
    "all-attention": {"mixer": "attention", "persistent": 5, "ffn": 0},
    "lightconv": {"mixer": "lightconv"},
    "dynamicconv, glu": {"mixer": "dynamicconv", "glu": True},
    "talk": {"mixer": "talk"},
    "lsra": {"mixer": "lsra"},
    "lsra over dynamicconv, glu": {"mixer": "lsra", "conv": "dynamicconv", "glu": True},
    "average": {"mixer": "average"},
    "cnn": {"mixer": "cnn"},
}


def tiny(stack: dict[str, Any], model: dict[str, Any] | None = None, seed: int = 1) -> tuple[Config, TranslationModel]:
    """One layer a side, with weights large enough that choices differ clearly."""
    config = from_dict(
        Config,
        {
            "model": {
                "width": 32,
                "cross_heads": 2,
                "encoder": {**STACK, **stack},
                "decoder": {**STACK, **stack},
                **(model or {}),
            },
            "vocabulary": {"source": TYPES, "target": TYPES},
            "decode": {"beam": 3, "max_length": 0},
        },
    )
    torch.manual_seed(seed)
    built = TranslationModel(config).eval()
    with torch.no_grad():
        built.project.weight.mul_(3)
    return config, built


def exported(config: Config, model: TranslationModel, folder: Path, precision: str = "fp32") -> OnnxEngine:
    """An engine on a bundle that has graphs and no vocabulary."""
    files = serialize(export_graphs(model, config.decode, CONVERSIONS[precision]))
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return OnnxEngine(bundle.Bundle(folder, {"files": files}, config, ("de", "en"), None), threads=1)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def traced() -> dict[tuple[str, type], Any]:
    """Parts of each family's model, as they were traced."""
    return {}


@pytest.fixture
def traced_once(family: str, traced: dict[tuple[str, type], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is traced once and copied after that: tracing takes nearly all of the time here."""
    trace = onnx_graphs.trace

    def copied(module: nn.Module, arguments: Mapping[str, onnx_graphs.Argument], outputs: Sequence[str] = ()) -> Any:
        part = family, type(module)
        if part not in traced:
            traced[part] = trace(module, arguments, outputs)
        return traced[part].clone()

    monkeypatch.setattr(onnx_graphs, "trace", copied)


def sources(count: int = 7) -> list[list[int]]:
    draw = np.random.default_rng(3)
    return [[*draw.integers(EOS + 1, TYPES, draw.integers(1, 12)).tolist(), EOS] for _ in range(count)]


def check_search(model: TranslationModel, engine: OnnxEngine, decode: DecodeConfig, nbest: int = 1) -> None:
    given = sources()
    for ours, theirs in zip(
        search(model, *_padded(given), decode, nbest), engine.search(given, decode, nbest), strict=True
    ):
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        assert [h.score for h in theirs] == pytest.approx([h.score for h in ours], abs=1e-4)
        assert [h.logprob for h in theirs] == pytest.approx([h.logprob for h in ours], abs=1e-4)


def check_steps(engine: OnnxEngine, decode: DecodeConfig) -> None:
    """A search whose steps are taken from outside finds what the whole one does."""
    given = sources(3)
    begin, advance = engine.session(BEGIN), engine.session(ADVANCE)
    feeds: dict[str, Any] = {
        "source": np.array(pad(given), np.int64),
        "beam": np.array(decode.beam),
        "max_length": np.array(decode.max_length),
        "min_length": np.array(decode.min_length),
        "length_penalty": np.array(decode.length_penalty, np.float32),
    }
    names = [value.name for value in begin.get_outputs()]
    inputs = {value.name: feeds[value.name] for value in begin.get_inputs()}
    feeds |= zip(names, begin.run(None, inputs), strict=True)
    assert {value.name for value in advance.get_inputs()} <= {*feeds, "position"}  # no more is needed
    for position in range(99):
        wanted = {value.name: feeds[value.name] for value in advance.get_inputs() if value.name in feeds}
        going, *changed = advance.run(None, {**wanted, "position": np.array(position)})
        for value, now in zip(advance.get_outputs()[1:], changed, strict=True):
            feeds[value.name.removeprefix("next.")] = now
        if not going:
            break
    for texts, scores, found in zip(feeds["texts"], feeds["scores"], engine.search(given, decode, 1), strict=True):
        assert tuple(token for token in texts[0] if token) == found[0].tokens
        assert scores[0] == pytest.approx(found[0].score, abs=1e-5)


@pytest.mark.usefixtures("traced_once")
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(family: str, tmp_path: Path) -> None:
    config, model = tiny(FAMILIES[family])
    engine = exported(config, model, tmp_path / "b")
    assert parity.check_logits(model, engine) < 1e-4
    for beam in (1, 3):
        check_search(model, engine, dataclasses.replace(config.decode, beam=beam), nbest=beam)
        check_steps(engine, dataclasses.replace(config.decode, beam=beam))
    for name in (ENCODER, STEP, GREEDY, BEGIN, ADVANCE, BEAM):
        graph = onnx.load(tmp_path / "b" / name)
        onnx.checker.check_model(str(tmp_path / "b" / name), full_check=True)
        assert {entry.domain for entry in graph.opset_import} == {""}


@pytest.mark.parametrize(
    "settings",
    [
        {"no_repeat_ngram": 2, "min_length": 15, "penalty": "stepwise", "length_penalty": 0.3},
        {"no_repeat_ngram": 1, "min_length": 30, "max_length": 33},  # there are not so many tokens
    ],
)
def test_what_summaries_need(settings: dict[str, Any], tmp_path: Path) -> None:
    config, model = tiny({"mixer": "lsra"})
    decode = dataclasses.replace(config.decode, **settings)
    engine = exported(dataclasses.replace(config, decode=decode), model, tmp_path / "b")
    for beam in (1, 3):
        check_search(model, engine, dataclasses.replace(decode, beam=beam), nbest=beam)
        check_steps(engine, dataclasses.replace(decode, beam=beam))
    assert "beam" not in {value.name for value in engine.session(GREEDY).get_inputs()}
    free = search(model, *_padded(sources()), dataclasses.replace(config.decode, beam=3, min_length=15))
    bound = search(model, *_padded(sources()), dataclasses.replace(decode, beam=3))
    assert [best[0].tokens for best in free] != [best[0].tokens for best in bound]  # it matters


def _padded(given: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.tensor(pad(given))
    return source, source != PAD


@pytest.mark.parametrize("stack", [{"mixer": "attention", "windows": [1]}, {"mixer": "lightconv", "kernels": [1]}])
def test_a_layer_without_a_state(stack: dict[str, Any], tmp_path: Path) -> None:
    config, model = tiny(stack)
    with pytest.raises(LiteNmtError, match="a window or kernel of 1"):
        export_graphs(model, config.decode)


@pytest.mark.usefixtures("traced_once")
@pytest.mark.parametrize("family", ["windows", "lsra"])
def test_attention_in_one_node(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32 the model's own scores; int8 has the same operators."""
    config, model = tiny(FAMILIES[family])
    monkeypatch.setitem(CONVERSIONS, "fused", fuse.attention)
    assert parity.check_logits(model, exported(config, model, tmp_path / "fused", "fused")) < 1e-4
    exported(config, model, tmp_path / "int8", "int8")
    for folder, whole in (("fused", "Attention"), ("int8", "QAttention")):
        encoder, step = (onnx.load(tmp_path / folder / name, load_external_data=False) for name in (ENCODER, STEP))
        assert {entry.domain for entry in encoder.opset_import} == {"", fuse.ORT}
        ours = [node.op_type for node in encoder.graph.node if node.domain == fuse.ORT]
        assert ours == ([] if family == "windows" else [whole])
        assert [node.op_type for node in step.graph.node if node.domain == fuse.ORT] == ["MultiHeadAttention"]
