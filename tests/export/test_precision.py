"""Weights in int8 and in codes, in a graph of one table, two products and the table again as the projection."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from lite_nmt.compress.int8 import quantize_rows
from lite_nmt.errors import LiteNmtError
from lite_nmt.export.bundle import WEIGHTS
from lite_nmt.export.onnx_graphs import Axes, serialize, trace
from lite_nmt.export.precision import codebook, to_codes, to_int8

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
onnxruntime = pytest.importorskip("onnxruntime")

TYPES, WIDTH, INNER = 301, 33, 65  # odd, so that the last byte of 4-bit codes is half empty


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(TYPES, WIDTH)
        self.inner = nn.Linear(WIDTH, INNER)
        self.outer = nn.Linear(INNER, WIDTH, bias=False)
        self.project = nn.Linear(WIDTH, TYPES, bias=False)
        self.project.weight = self.table.weight

    def forward(self, source: Tensor) -> Tensor:
        x = self.table(source).flatten(0, 1)
        return self.project(self.outer(self.inner(x).relu()).unsqueeze(1))


def few_values(model: nn.Module, count: int) -> None:
    """Round every matrix to values of its own, not evenly spaced."""
    draw = np.random.default_rng(4)
    for parameter in {id(p): p for p in model.parameters() if p.dim() == 2}.values():
        book = np.sort(draw.normal(size=count)).astype(np.float32)
        codes = np.concatenate([np.arange(count), draw.integers(0, count, parameter.numel() - count)])
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(book[codes].reshape(parameter.shape)))


@pytest.fixture(scope="module")
def graph() -> Callable[..., Any]:
    """A model's graph; it is traced once, as weights are the only difference."""
    torch.manual_seed(3)
    traced = trace(Tied(), {"source": Axes((Dim("batch"), Dim("source")), torch.int64)}, ["logits"])

    def fill(model: Tied) -> Any:
        made, found = traced.clone(), dict(model.named_parameters())
        names = {tuple(value.shape): name for name, value in found.items()}
        for value in made.graph.initializers.values():
            assert value.const_value is not None
            shape = tuple(value.const_value.shape.numpy())
            name = names.get(shape) or names.get(shape[::-1])
            if name is not None:
                weight = found[name].detach().numpy()
                weight = weight if weight.shape == shape else weight.T
                value.const_value = _tensor(np.ascontiguousarray(weight), str(value.name))
        return made

    return fill


def _tensor(values: np.ndarray, name: str) -> Any:
    import onnx_ir

    return onnx_ir.tensor(values, name=name)


def converted(graph: Any, convert: Callable[[Any], None]) -> dict[str, bytes]:
    """As the exporter does it."""
    from onnx_ir.passes.common import RemoveUnusedNodesPass

    convert(graph)
    RemoveUnusedNodesPass()(graph)
    return serialize({"g.onnx": graph})


def run(files: dict[str, bytes], folder: Path, source: np.ndarray) -> np.ndarray:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    onnx.checker.check_model(str(folder / "g.onnx"), full_check=True)
    found: np.ndarray = onnxruntime.InferenceSession(folder / "g.onnx").run(None, {"source": source})[0]
    return found


def described(files: dict[str, bytes]) -> tuple[list[str], set[str], dict[str, Any]]:
    model = onnx.load_from_string(files["g.onnx"])
    initializers = {tensor.name: tensor for tensor in model.graph.initializer}
    return [node.op_type for node in model.graph.node], {entry.domain for entry in model.opset_import}, initializers


def source() -> np.ndarray:
    return np.random.default_rng(5).integers(0, TYPES, (3, 4))


def test_int8_is_signed_and_per_channel(graph: Callable[..., Any], tmp_path: Path) -> None:
    model = Tied()
    plain = serialize({"g.onnx": graph(model)})
    files = converted(graph(model), to_int8)
    operators, domains, initializers = described(files)
    assert domains <= {"", "com.microsoft"}
    assert not {"QuantizeLinear", "DequantizeLinear", "QLinearMatMul"} & set(operators)
    weights = {name: t for name, t in initializers.items() if t.data_type == onnx.TensorProto.INT8}
    shapes = sorted(tuple(sorted(t.dims)) for t in weights.values())
    assert shapes == [(WIDTH, INNER), (WIDTH, INNER), (WIDTH, TYPES)]  # the table is there once
    assert not [n for n, t in initializers.items() if t.data_type == onnx.TensorProto.FLOAT and len(t.dims) == 2]
    assert not [n for n, t in initializers.items() if t.data_type == onnx.TensorProto.UINT8 and len(t.dims) > 1]
    channels = (TYPES, INNER, WIDTH)
    numbers = 2 * WIDTH * INNER + WIDTH * TYPES
    assert len(files[WEIGHTS]) <= numbers + 4 * sum(channels) + 64 * 6
    assert len(files[WEIGHTS]) < 0.35 * len(plain[WEIGHTS])

    # The numbers are those of rounded weights, as far as inputs of eight bits go.
    with torch.no_grad():
        expected = model(torch.from_numpy(source())).numpy()
        for parameter in (model.table.weight, model.inner.weight, model.outer.weight):
            codes, scales = quantize_rows(parameter.numpy())
            parameter.copy_(torch.from_numpy(codes * scales[:, None]))
        rounded = model(torch.from_numpy(source())).numpy()
    found = run(files, tmp_path / "int8", source())
    assert np.abs(found - rounded).max() < 0.03 * np.abs(expected).max()
    assert np.abs(found - expected).max() > 0


@pytest.mark.parametrize("count", [2, 16, 17, 256])
def test_codes_are_exact_to_the_bit(count: int, graph: Callable[..., Any], tmp_path: Path) -> None:
    model = Tied()
    few_values(model, count)
    plain = serialize({"g.onnx": graph(model)})
    files = converted(graph(model), to_codes)
    _, domains, initializers = described(files)
    assert domains == {""}
    np.testing.assert_array_equal(run(files, tmp_path / "codes", source()), run(plain, tmp_path / "plain", source()))
    codes = {name: t for name, t in initializers.items() if name.endswith(".codes")}
    sizes = sorted(int(np.prod(t.dims)) for t in codes.values())
    numbers = sorted([WIDTH * INNER, WIDTH * INNER, WIDTH * TYPES])
    assert sizes == ([-(-n // 2) for n in numbers] if count <= 16 else numbers)
    assert all(t.data_type == onnx.TensorProto.UINT8 for t in codes.values())
    books = [t for name, t in initializers.items() if name.endswith(".book")]
    assert [list(t.dims) for t in books] == [[count]] * 3
    assert not [n for n, t in initializers.items() if t.data_type == onnx.TensorProto.FLOAT and len(t.dims) == 2]
    assert len(files[WEIGHTS]) < (0.15 if count <= 16 else 0.33) * len(plain[WEIGHTS])


def test_more_values_than_a_byte_counts_are_refused(graph: Callable[..., Any]) -> None:
    model = Tied()
    few_values(model, 257)
    with pytest.raises(LiteNmtError, match=r"has 257 different values, and kmeans stores at most 256"):
        to_codes(graph(model))


def test_a_codebook_gives_its_tensor_back() -> None:
    values = np.array([[0.5, -0.0, 0.0], [-1.5, 0.5, 1e-45]], np.float32)
    book, codes = codebook("w", values)
    np.testing.assert_array_equal(book[codes].reshape(values.shape), values)
