"""How much a model would miss its heads, channels and layers: by their weights, or by the loss on sentence pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from lite_nmt.compress.units import Group, Weights, only_layers
from lite_nmt.config import Config
from lite_nmt.data.batches import fixed_order, gather
from lite_nmt.data.encoded import Encoded
from lite_nmt.evaluate.pairs import negative_log_likelihood
from lite_nmt.models.checkpoint import restore
from lite_nmt.models.translation import TranslationModel
from lite_nmt.train.loss import translation_loss

BATCH_TOKENS = 2048


class Importance(Protocol):
    """Scores that may be added up; the least important is the lowest."""

    def units(self, config: Config, weights: Weights, among: Sequence[Group]) -> list[Tensor]:
        """Of each group's heads, or of its channels."""

    def layers(self, config: Config, weights: Weights, side: str) -> list[float]:
        """Of the layers of one side."""


class WeightNorm:
    """The squared L2 norm of all weights that would go (Li et al. 2017, Pruning Filters for Efficient ConvNets, there
    the L1 norm of a filter)."""

    def units(self, config: Config, weights: Weights, among: Sequence[Group]) -> list[Tensor]:
        """Weights into the unit, out of it, and what its taps are made with."""
        found = []
        for group in among:
            score = torch.zeros(group.channels)
            for cut in group.cuts:
                laid_out = weights[cut.tensor].unflatten(cut.dim, (-1, group.channels, cut.span))
                score += laid_out.square().transpose(0, cut.dim + 1).flatten(1).sum(1)
            found.append(group.pooled(score))
        return found

    def layers(self, config: Config, weights: Weights, side: str) -> list[float]:
        """All weights of a layer."""
        return [
            sum(float(w.square().sum()) for name, w in weights.items() if name.startswith(f"{side}.{i}."))
            for i in range(getattr(config.model, side).layers)
        ]


class LossIncrease:
    """What the loss on sentence pairs would rise by, in nats over all of them.

    For a head or channel it is estimated to first order: a gate of 1 on it, and E|dL/dgate| over sentences (Michel,
    Levy and Neubig 2019, Are Sixteen Heads Really Better than One?, equation 2). Differs from the paper: scores are not
    normalised within a layer, so that those of all layers and kinds compare. For a layer it is measured.
    """

    def __init__(self, pairs: Encoded) -> None:
        self.pairs = pairs

    def units(self, config: Config, weights: Weights, among: Sequence[Group]) -> list[Tensor]:
        """One pass forward and back over the pairs."""
        model = _model(config, weights).requires_grad_(False)
        found = [torch.zeros(group.units if group.kind == "heads" else group.channels) for group in among]
        for indices in fixed_order(self.pairs, BATCH_TOKENS):
            batch = gather(self.pairs, indices)
            gates = [torch.ones(len(batch.source), 1, group.channels, requires_grad=True) for group in among]
            hooks = [
                model.get_submodule(f"{group.module}.out").register_forward_pre_hook(_gating(gate))
                for group, gate in zip(among, gates, strict=True)
            ]
            with torch.enable_grad():
                slopes = torch.autograd.grad(translation_loss(model, batch)[0], gates)
            for hook in hooks:
                hook.remove()
            for group, score, slope in zip(among, found, slopes, strict=True):
                score += group.pooled(slope.squeeze(1)).abs().sum(0)
        return found

    def layers(self, config: Config, weights: Weights, side: str) -> list[float]:
        """One pass without each."""
        every = range(getattr(config.model, side).layers)
        rest = ([j for j in every if j != i] for i in every)
        return [self.loss(*only_layers(config, weights, side, kept)) for kept in rest] if len(every) > 1 else [0.0]

    def loss(self, config: Config, weights: Weights) -> float:
        """Nats over all target tokens."""
        found = negative_log_likelihood(_model(config, weights), self.pairs, BATCH_TOKENS)
        return found * len(self.pairs.target)


def _gating(gate: Tensor) -> Any:
    def hook(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (inputs[0] * gate,)

    return hook


def _model(config: Config, weights: Weights) -> TranslationModel:
    model = TranslationModel(config).eval()
    restore(model, weights, "the pruned model")
    return model
