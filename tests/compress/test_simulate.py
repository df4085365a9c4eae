"""Simulated int8: the forward pass rounds as a device does, gradients pass, and a model learns to live with it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.func import functional_call

from lite_nmt.compress.finetune import FineTuner
from lite_nmt.compress.int8 import dequantize_rows, quantize_rows
from lite_nmt.compress.prune import matrices
from lite_nmt.compress.simulate import round_input, round_inputs, train_in_int8
from lite_nmt.compress.validation import Validation
from lite_nmt.compress.weights import Weights, numbers
from lite_nmt.data.batches import gather
from lite_nmt.data.encoded import Encoded
from lite_nmt.data.vocabulary import PAD
from lite_nmt.models import checkpoint
from lite_nmt.train.loss import linear_cross_entropy
from lite_nmt.train.metrics import Metrics
from lite_nmt.train.processes import Processes
from lite_nmt.train.trainer import hash_seed
from lite_nmt.train.translation import TranslationTrainer

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data(trained: Path) -> Encoded:
    return Encoded.open(trained / "data" / "train")


@pytest.fixture
def trainer(trained: Path, data: Encoded, tmp_path: Path) -> TranslationTrainer:
    saved = checkpoint.load(trained)
    config = dataclasses.replace(saved.config, train=dataclasses.replace(saved.config.train, clip=0.0))
    run = Processes(CPU), Metrics(tmp_path, first=False)
    trainer = TranslationTrainer(config, saved.languages, saved.vocabulary, data, None, tmp_path, *run)
    checkpoint.restore(trainer.model, saved.weights(), tmp_path)
    trainer.model.train()
    return trainer


def on_grid(weights: Weights, names: list[str]) -> Weights:
    return weights | {name: dequantize_rows(*quantize_rows(weights[name])) for name in names}


def test_inputs_are_rounded_by_hand() -> None:
    x = torch.tensor([[[-1.0, 0.0, 0.301], [1.55, 0.0034, -0.4]], [[2.0, 4.0, 510.0], [1.0, 3.0, 0.5]]])
    steps = torch.tensor([2.55 / 255, 510 / 255]).reshape(2, 1, 1)
    expected = (x / steps).round() * steps  # zero points are whole here
    torch.testing.assert_close(round_input(x), expected, rtol=0, atol=1e-6)
    assert (round_input(x)[x == 0] == 0).all()
    for edge in (torch.zeros(2, 3, 4), torch.full((2, 3, 4), -3.0)):
        torch.testing.assert_close(round_input(edge), edge)


def test_inputs_are_rounded_as_onnx_says() -> None:
    runtime = pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    value = onnx.helper.make_tensor_value_info
    names = ["y", "scale", "zero"]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("DynamicQuantizeLinear", ["x"], names)],
        "round",
        [value("x", onnx.TensorProto.FLOAT, None)],
        [value(n, onnx.TensorProto.FLOAT if n == "scale" else onnx.TensorProto.UINT8, None) for n in names],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    torch.manual_seed(0)
    for shift in (-3.0, -0.5, 0.0, 0.5, 3.0):
        x = torch.randn(1, 13, 16) + shift
        y, scale, zero = session.run(None, {"x": x.numpy()})
        expected = (y.astype(np.float32) - zero) * scale
        np.testing.assert_allclose(round_input(x).numpy(), expected, rtol=1e-6, atol=1e-6)


def test_gradients_pass_straight_through() -> None:
    x = torch.randn(3, 5, 4, requires_grad=True)
    weight = torch.randn(3, 5, 4)
    (round_input(x) * weight).sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, weight, rtol=0, atol=0)


def test_every_product_sees_rounded_inputs(trainer: TranslationTrainer) -> None:
    model = trainer.model.eval()
    seen: dict[str, int] = {}
    handles = round_inputs(model)
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):

            def note(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], name: str = name) -> None:
                seen[name] = max(len(row.unique()) for row in inputs[0].detach())

            handles.append(module.register_forward_pre_hook(lambda m, i, name=name: note(m, i, name)))
    batch = gather(trainer.train_data, np.arange(8))
    hidden = model(batch.source, batch.keep, batch.target)
    assert max(len(row.unique()) for row in hidden) <= 256
    linear = {name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    assert seen.keys() == linear - {"project"}
    assert max(seen.values()) <= 256
    for handle in handles:
        handle.remove()
    assert max(len(row.unique()) for row in model(batch.source, batch.keep, batch.target)) > 256


def test_an_update_moves_the_masters_by_the_gradient_at_the_rounded_weights(
    trainer: TranslationTrainer, data: Encoded
) -> None:
    names = matrices(trainer.model)
    with torch.no_grad():
        checkpoint.named_weights(trainer.model)["encoder.0.ffn.inner.weight"][0, :5] = 0
    before = {name: w.copy() for name, w in numbers(trainer.model).items()}
    train_in_int8(trainer, names)
    rounded = on_grid(before, names)
    for name, w in numbers(trainer.model).items():
        np.testing.assert_array_equal(w, rounded[name])
    masters = trainer.optimizer.param_groups[0]["params"][: len(names)]
    group, tokens = next(trainer.groups())
    seen: list[torch.Tensor] = []
    trainer.optimizer.register_step_pre_hook(lambda *_: seen.extend(m.grad.clone() for m in masters))
    trainer.update((group, tokens))
    held = {name: w.copy() for name, w in numbers(trainer.model).items()}

    leaves = {name: torch.from_numpy(w).requires_grad_() for name, w in rounded.items()}
    batch = gather(data, group[0])
    torch.manual_seed(hash_seed(trainer.recipe.seed, 1, 0))
    hidden = functional_call(trainer.model, leaves, (batch.source, batch.keep, batch.target))
    real = batch.labels != PAD
    smoothing = trainer.recipe.label_smoothing
    loss = linear_cross_entropy(hidden[real], leaves["target.weight"], batch.labels[real], smoothing)[0]
    (loss / tokens).backward()

    rate = trainer.optimizer.param_groups[0]["lr"]
    for name, master, found in zip(names, masters, seen, strict=True):
        gradient = leaves[name].grad
        assert gradient is not None
        start = torch.from_numpy(before[name])
        gradient = gradient * (start != 0)
        torch.testing.assert_close(found, gradient, rtol=1e-3, atol=1e-6)
        # AdamW's first step is the sign of the gradient.
        expected = start * (1 - rate * trainer.recipe.weight_decay) - rate * found / (found.abs() + 1e-8)
        torch.testing.assert_close(master, expected, rtol=1e-4, atol=1e-6)
        assert (master[start == 0] == 0).all()
        np.testing.assert_array_equal(held[name], dequantize_rows(*quantize_rows(master.numpy())))


def test_tuning_lowers_the_loss_of_the_quantised_model(trained: Path, data: Encoded) -> None:
    saved = checkpoint.load(trained)
    weights = {name: w.copy() for name, w in numbers(saved.model()).items()}
    names = matrices(saved.model())
    # A large weight in each row makes a coarse grid, that rounding alone does badly on.
    for name in names:
        weights[name][:, 0] = 40 * np.abs(weights[name]).max()
    measure = Validation(saved, data, False, CPU)
    untuned = measure(on_grid(weights, names), int8=True)["nll"]
    tuned = FineTuner(saved, data, 20, 1e-3, CPU).in_int8(weights, names)
    for name in names:
        np.testing.assert_array_equal(tuned[name], dequantize_rows(*quantize_rows(tuned[name])))
    assert measure(tuned, int8=True)["nll"] < untuned - 0.05
    assert not np.array_equal(tuned["decoder.0.ffn.inner.bias"], weights["decoder.0.ffn.inner.bias"])


def test_measuring_in_int8_leaves_nothing_behind(trained: Path) -> None:
    saved = checkpoint.load(trained)
    measure = Validation(saved, Encoded.open(trained / "data" / "valid"), False, CPU)
    weights = numbers(saved.model())
    plain = measure(weights)
    assert measure(weights, int8=True) != plain
    assert measure(weights) == plain
