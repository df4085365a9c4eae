"""ONNX files from anywhere."""

from __future__ import annotations

import warnings
from pathlib import Path

import onnx
import onnx.helper as oh
import pytest
import torch
from onnx import TensorProto
from torch import nn

from lite_nmt.errors import LiteNmtError
from lite_nmt.profiling.graph import count, count_file

FLOAT = TensorProto.FLOAT


def graph(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, list[int | str]],
    output: str,
    weights: dict[str, list[int]] | None = None,
) -> onnx.ModelProto:
    tensors = [
        oh.make_tensor(name, FLOAT, dims, [0.0] * int(torch.Size(dims).numel()))
        for name, dims in (weights or {}).items()
    ]
    values = [oh.make_tensor_value_info(name, FLOAT, dims) for name, dims in inputs.items()]
    made = oh.make_graph(nodes, "test", values, [oh.make_tensor_value_info(output, FLOAT, None)], tensors)
    return oh.make_model(made, opset_imports=[oh.make_opsetid("", 23), oh.make_opsetid("com.microsoft", 1)])


@pytest.mark.parametrize(
    ("node", "inputs", "weights", "expected"),
    [
        (oh.make_node("MatMul", ["x", "w"], ["y"]), {"x": [2, 5, 8]}, {"w": [8, 3]}, 2 * 5 * 8 * 3),
        (oh.make_node("Gemm", ["x", "w"], ["y"], transA=1), {"x": [8, 5]}, {"w": [8, 3]}, 5 * 8 * 3),
        (oh.make_node("Conv", ["x", "w"], ["y"], group=2), {"x": [1, 4, 9]}, {"w": [6, 2, 3]}, 6 * 7 * 2 * 3),
        (oh.make_node("ConvTranspose", ["x", "w"], ["y"]), {"x": [1, 4, 9]}, {"w": [4, 6, 3]}, 4 * 9 * 6 * 3),
        (oh.make_node("Einsum", ["x", "w"], ["y"], equation="bi,ij->bj"), {"x": [2, 8]}, {"w": [8, 3]}, 2 * 8 * 3),
        (oh.make_node("Attention", ["x", "x", "x"], ["y"]), {"x": [1, 2, 5, 8]}, {}, 2 * 2 * 25 * 8),
        (
            oh.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=3),
            {"x": [5, 2, 8]},
            {"w": [1, 12, 8], "r": [1, 12, 3]},
            5 * 2 * 12 * 11,
        ),
        (oh.make_node("Mul", ["x", "w"], ["y"]), {"x": [2, 8]}, {"w": [8]}, 0),
    ],
)
def test_operators(
    node: onnx.NodeProto, inputs: dict[str, list[int | str]], weights: dict[str, list[int]], expected: int
) -> None:
    total = count(graph([node], inputs, "y", weights), {})
    assert total.mult_adds("full") == expected
    assert total.parameters("full") == sum(int(torch.Size(dims).numel()) for dims in weights.values())
    assert not total.uncounted


def test_symbolic_dimensions_are_asked_for_by_name() -> None:
    model = graph([oh.make_node("MatMul", ["x", "w"], ["y"])], {"x": ["batch", "tokens", 8]}, "y", {"w": [8, 3]})
    assert count(model, {"batch": 2, "tokens": 5}).mult_adds() == 2 * 5 * 8 * 3
    with pytest.raises(LiteNmtError, match="dimension tokens of input x has no size; give it: --dim tokens=1"):
        count(graph([], {"x": ["batch", "tokens", 8]}, "y"), {"batch": 2})


def test_what_is_unknown_is_named() -> None:
    nodes = [
        oh.make_node("Secret", ["x"], ["h"], domain="com.microsoft"),
        oh.make_node("MatMul", ["h", "w"], ["y"], name="late"),
        oh.make_node("Loop", ["", "", "x"], ["z"], body=oh.make_graph([], "body", [], [])),
    ]
    total = count(graph(nodes, {"x": [2, 8]}, "y", {"w": [8, 3]}), {})
    assert total.uncounted == (
        "node late (MatMul), as the shape of 'y' is unknown",
        "operator Loop, 1 times",
        "operator com.microsoft.Secret, 1 times",
    )


def test_activations_are_freed_after_their_last_use() -> None:
    nodes = [
        oh.make_node("Relu", ["x"], ["a"]),
        oh.make_node("Reshape", ["a", "s"], ["b"]),  # a view
        oh.make_node("Relu", ["b"], ["c"]),
        oh.make_node("Relu", ["c"], ["d"]),
        oh.make_node("Transpose", ["w"], ["t"]),  # of weights alone: once, at load
        oh.make_node("MatMul", ["d", "t"], ["y"]),
    ]
    model = graph(nodes, {"x": [4, 8]}, "y", {"w": [3, 8]})
    model.graph.initializer.append(oh.make_tensor("s", TensorProto.INT64, [2], [4, 8]))
    total = count(model, {})
    assert total.activations("full") == 4 * 2 * 32
    assert total.by_kind()["MatMul"].activations == 4 * (32 + 12)


def test_a_network_exported_with_a_free_batch(tmp_path: Path) -> None:
    """PyTorch's exporter; weights in a file beside the graph, which is taken away before counting."""
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 100), nn.Linear(100, 10))
    path = tmp_path / "network.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batch = torch.export.Dim("batch", min=1, max=64)
        torch.onnx.export(
            network.eval(),
            (torch.zeros(2, 3, 8, 8),),
            path,
            dynamo=True,
            dynamic_shapes=({0: batch},),
            external_data=True,
            verbose=False,
        )
    (tmp_path / "network.onnx.data").unlink()
    total = count_file(path, {"batch": 3})
    assert total.mult_adds() == 3 * (8 * 36 * 27 + 288 * 100 + 1000)
    assert total.parameters() == sum(p.numel() for p in network.parameters())
    assert {part.name: part.kind for part in total.parts} == {"0": "convolution", "3": "linear", "4": "linear"}
    assert not total.uncounted


@pytest.mark.parametrize("content", [b"", b"\x00", b"not a graph at all", bytes(range(256))])
def test_what_is_no_graph(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(content)
    with pytest.raises(LiteNmtError, match="is not an ONNX model"):
        count_file(path, {})
    with pytest.raises(LiteNmtError, match=r"cannot read .*: No such file"):
        count_file(tmp_path / "absent.onnx", {})
