"""What int8 arithmetic does to a model, simulated in float32, to measure it and to train for it.

Jacob et al. 2018, Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference,
section 3: the forward pass rounds, the gradient passes through as if it did not (the straight-through estimator).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from lite_nmt.compress.int8 import dequantize_rows, quantize_rows
from lite_nmt.models.checkpoint import named_weights
from lite_nmt.models.translation import TranslationModel
from lite_nmt.train.translation import TranslationTrainer


class _Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        flat = x.flatten(1)
        low, high = flat.amin(1).clamp(max=0), flat.amax(1).clamp(min=0)
        scale = ((high - low) / 255).clamp(min=torch.finfo(x.dtype).tiny)
        zero = (-low / scale).round()
        scale, zero = (v.reshape(-1, *(1,) * (x.dim() - 1)) for v in (scale, zero))
        return ((x / scale).round().add_(zero).clamp_(0, 255) - zero) * scale

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return grads[0]


def round_input(x: Tensor) -> Tensor:
    """Round activations to uint8 and back as ONNX's DynamicQuantizeLinear: 256 even steps from min(x, 0) to max(x, 0),
    of which one is exactly zero. Straight-through.

    Args:
        x: N ...; each of the N is a tensor of its own, as on a device that translates one sentence at a time.
    """
    apply: Any = _Round.apply  # typed in some releases of torch and not in others
    return apply(x)


def round_inputs(model: TranslationModel) -> list[RemovableHandle]:
    """From now on, round what enters each linear layer, each convolution with a bank of filters, and the projection
    to the vocabulary, until the handles are removed."""

    def entering(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return round_input(inputs[0]), *inputs[1:]

    def leaving(module: nn.Module, inputs: tuple[Tensor, ...], hidden: Tensor) -> Tensor:
        return round_input(hidden)

    layers = [module for module in model.modules() if isinstance(module, nn.Linear | nn.Conv1d)]
    handles = [layer.register_forward_pre_hook(entering) for layer in layers]
    # Teacher forcing ends before the projection, which is part of the loss.
    return [*handles, model.register_forward_hook(leaving)]


def train_in_int8(trainer: TranslationTrainer, names: Sequence[str]) -> None:
    """Let the trainer see the model as int8 arithmetic does, from now on: inputs rounded, and the weights of ``names``
    on their rows' grids. What the optimizer moves are float32 masters of these weights, by the gradients of the
    rounded ones. Weights that are zero stay it.
    """
    round_inputs(trainer.model)
    parameters = named_weights(trainer.model)
    rounded = [parameters[name] for name in names]
    masters = [parameter.detach().clone() for parameter in rounded]
    masks = [master != 0 for master in masters]
    single = [parameter for name, parameter in parameters.items() if name not in names]
    trainer.optimizer = trainer.make_optimizer([*masters, *single])

    def before(*_: Any) -> None:
        for master, mask, parameter in zip(masters, masks, rounded, strict=True):
            if parameter.grad is not None:
                master.grad, parameter.grad = parameter.grad.mul_(mask), None

    def after(*_: Any) -> None:
        for master, parameter in zip(masters, rounded, strict=True):
            # By the one definition of the grid, which is numpy's.
            parameter.data.copy_(torch.from_numpy(dequantize_rows(*quantize_rows(master.cpu().numpy()))))

    after()
    trainer.optimizer.register_step_pre_hook(before)
    trainer.optimizer.register_step_post_hook(after)
