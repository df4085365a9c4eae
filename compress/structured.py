"""Structured pruning: whole heads, channels and layers go, so that the matrices are shorter and Mult-Adds fall.

What is left computes exactly what the whole model would with the removed heads and channels masked to zero (a test
holds it to that); a layer that is removed is as if its residual branches and norms had never been.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from lite_nmt.compress.importance import Importance, WeightNorm
from lite_nmt.compress.units import Weights, groups, only_layers, resized, sliced
from lite_nmt.config import Config
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint
from lite_nmt.models.checkpoint import Checkpoint
from lite_nmt.profiling.budget import quantity
from lite_nmt.profiling.cost import cost

KINDS = {"heads": "attention heads", "ffn": "FFN channels", "conv_channels": "convolution channels"}
SCOPES = ("layer", "global")
GRAIN = 1000  # shares that a Mult-Adds target chooses from


@dataclass(frozen=True)
class Plan:
    """What to remove: layers first, then shares, then as much more as a target asks for.

    Attributes:
        heads, ffn, conv_channels: shares to remove, at least 0 and below 1, of the attention heads (to the sentence
            itself and to the source), the FFNs' channels, and the channels inside the convolutions.
        encoder_layers, decoder_layers: how many to keep.
        mult_adds: the most that the model may need, ``paper`` count, 30 to 30 tokens.
        scope: ``layer``: the same share of every module; ``global``: the least important of all for each Mult-Add that
            goes with them, though one unit of each module stays.
    """

    heads: float = 0.0
    ffn: float = 0.0
    conv_channels: float = 0.0
    encoder_layers: int | None = None
    decoder_layers: int | None = None
    mult_adds: int | None = None
    scope: str = "layer"

    def __post_init__(self) -> None:
        for kind, what in KINDS.items():
            share = getattr(self, kind)
            if not 0 <= share < 1:
                raise LiteNmtError(f"the share of {what} to remove is {share:g}; it must be at least 0 and below 1.")
        for side in ("encoder", "decoder"):
            layers = getattr(self, f"{side}_layers")
            if layers is not None and layers < 1:
                raise LiteNmtError(f"the {side} is to keep {layers} layers; at least one must stay.")
        if self.scope not in SCOPES:
            raise LiteNmtError(f"scope is {self.scope!r}; it must be one of {', '.join(SCOPES)}.")


def structured(
    config: Config, weights: Weights, plan: Plan, importance: Importance | None = None
) -> tuple[Config, dict[str, Tensor]]:
    """A smaller model's configuration and weights.

    Args:
        importance: decides what goes; by default the norm of the weights.

    Raises:
        LiteNmtError: the model has no such units, none of them would be left, or the target cannot be met.
    """
    importance = importance or WeightNorm()
    weights = dict(weights)
    for side, layers in (("encoder", plan.encoder_layers), ("decoder", plan.decoder_layers)):
        if layers is not None:
            config, weights = _drop_layers(config, weights, side, layers, importance)
    if any(getattr(plan, kind) for kind in KINDS):
        ranking = _Ranking(config, weights, importance)
        config, weights = ranking.removed(_by_shares(ranking, plan))
    if plan.mult_adds is not None and cost(config).mult_adds() > plan.mult_adds:
        ranking = _Ranking(config, weights, importance)
        config, weights = ranking.removed(_to_target(ranking, plan.mult_adds, plan.scope))
    return config, weights


def save_structured(saved: Checkpoint, plan: Plan, out: Path, importance: Importance | None = None) -> Checkpoint:
    """Prune a checkpoint into another folder; its metrics are left behind, since they are no longer true.

    Raises:
        LiteNmtError: as :func:`structured` does, or nothing would be removed.
    """
    config, weights = structured(saved.config, saved.weights(), plan, importance)
    if config == saved.config:
        raise LiteNmtError(
            f"nothing of {saved.folder} would be removed; take larger shares, fewer layers or fewer Mult-Adds."
        )
    checkpoint.save(out, config, saved.languages, saved.step, {}, saved.vocabulary, weights)
    return checkpoint.load(out)


def _drop_layers(
    config: Config, weights: dict[str, Tensor], side: str, count: int, importance: Importance
) -> tuple[Config, dict[str, Tensor]]:
    layers = getattr(config.model, side).layers
    if count > layers:
        raise LiteNmtError(f"the {side} is to keep {count} layers, but it has {layers}.")
    for left in range(layers, count, -1):
        scores = importance.layers(config, weights, side)
        least = scores.index(min(scores))
        config, weights = only_layers(config, weights, side, [i for i in range(left) if i != least])
    return config, weights


class _Ranking:
    """The units of a model, those of each module from the least important to the most."""

    def __init__(self, config: Config, weights: Mapping[str, Tensor], importance: Importance) -> None:
        self.config, self.weights, self.groups = config, weights, groups(config)
        self.channels: list[Tensor] = []
        order: list[tuple[float, int]] = []  # importance for each Mult-Add saved, and the group
        whole = cost(config).mult_adds()
        scores = importance.units(config, weights, self.groups)
        for i, (group, score) in enumerate(zip(self.groups, scores, strict=True)):
            ranked, channels = group.ranked(score)
            self.channels.append(channels)
            if group.units > 1:
                saved = whole - cost(resized(config, {group: group.units - 1})).mult_adds()
                order += [(value / saved, i) for value in ranked[:-1].tolist()]  # the last one always stays
        self.order = [i for _, i in sorted(order)]

    def of_kind(self, kind: str) -> list[int]:
        """The modules that have units of one kind."""
        return [i for i, group in enumerate(self.groups) if group.kind == kind]

    def first(self, count: int, among: Sequence[int]) -> dict[int, int]:
        """How many units each module loses, if the ``count`` least important of some modules go."""
        gone = [i for i in self.order if i in among][:count]
        return {i: gone.count(i) for i in among}

    def resized(self, gone: Mapping[int, int]) -> Config:
        """The configuration without so many units of each module."""
        return resized(self.config, {self.groups[i]: self.groups[i].units - n for i, n in gone.items() if n})

    def removed(self, gone: Mapping[int, int]) -> tuple[Config, dict[str, Tensor]]:
        """The model without them."""
        kept = {self.groups[i]: self.channels[i][n:].flatten().sort().values for i, n in gone.items() if n}
        return self.resized(gone), sliced(self.weights, kept)


def _by_shares(ranking: _Ranking, plan: Plan) -> dict[int, int]:
    gone: dict[int, int] = {}
    for kind, what in KINDS.items():
        share, among = getattr(plan, kind), ranking.of_kind(kind)
        if not share:
            continue
        if not among:
            raise LiteNmtError(f"the model has no {what} that could be removed.")
        units = {i: ranking.groups[i].units for i in among}
        if plan.scope == "global":
            count = round(share * sum(units.values()))
            if count > sum(units.values()) - len(units):
                raise LiteNmtError(f"removing {share:g} of the {what} leaves a module without any; remove fewer.")
            gone |= ranking.first(count, among)
            continue
        for i, n in units.items():
            gone[i] = round(share * n)
            if gone[i] == n:
                raise LiteNmtError(
                    f"removing {share:g} of the {what} leaves none of {n} in {ranking.groups[i].module}; remove fewer."
                )
    return gone


def _to_target(ranking: _Ranking, mult_adds: int, scope: str) -> dict[int, int]:
    """The fewest units to remove, so that the model needs no more than that."""
    every = range(len(ranking.groups))
    units = [group.units for group in ranking.groups]

    def gone(amount: int) -> dict[int, int]:
        if scope == "global":
            return ranking.first(amount, every)
        return {i: min(round(amount / GRAIN * n), n - 1) for i, n in enumerate(units)}

    def fits(amount: int) -> bool:
        return cost(ranking.resized(gone(amount))).mult_adds() <= mult_adds

    most = len(ranking.order) if scope == "global" else GRAIN
    if not fits(most):
        least = quantity(cost(ranking.resized(gone(most))).mult_adds())
        raise LiteNmtError(
            f"with one unit left in each module the model still needs {least} Mult-Adds, over {quantity(mult_adds)}; "
            "keep fewer layers."
        )
    return gone(bisect.bisect_left(range(most), True, key=fits))
