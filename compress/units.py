"""What structured pruning takes out of a model, and where its weights lie: heads, channels, whole layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lite_nmt.config import Config, StackConfig, at

Weights = Mapping[str, Tensor]
"""A model's tensors by name."""


@dataclass(frozen=True)
class Cut:
    """A dimension of a tensor along which a module's inner channels lie, once or several times over (Q, K and V; a
    GLU's two halves), ``span`` entries each."""

    tensor: str
    dim: int
    span: int = 1


@dataclass(frozen=True)
class Group:
    """The units of one module: equal parts of the channels between its input and its ``out`` projection.

    Attributes:
        kind: ``heads``, ``ffn`` or ``conv_channels``.
        setting: the schedule in the configuration that says how many there are.
        side, layer: ``encoder`` or ``decoder``, counted from 0.
        module: its name, as ``decoder.0.cross``.
        channels: inner channels, laid out head by head.
        heads: of them. A unit of ``heads`` is one; of ``conv_channels``, a channel of each, since they share one width.
    """

    kind: str
    setting: str
    side: str
    layer: int
    module: str
    channels: int
    heads: int
    cuts: tuple[Cut, ...]

    @property
    def units(self) -> int:
        """How many there are."""
        return self.heads if self.kind == "heads" else self.channels // self.heads

    def size(self, units: int) -> int:
        """What the configuration says for so many units."""
        return units if self.kind == "heads" else units * self.heads

    def pooled(self, channels: Tensor) -> Tensor:
        """Sums for each head, where it is heads that are removed: ... channels -> ... heads."""
        return channels.unflatten(-1, (self.heads, -1)).sum(-1) if self.kind == "heads" else channels

    def ranked(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The units from the least important to the most.

        Args:
            scores: of the heads, or of the channels.

        Returns:
            Each unit's score, and its channels, units by channels a unit.
        """
        table = torch.arange(self.channels).view(self.heads, -1)
        if self.kind == "heads":
            scores, order = scores.sort()
            return scores, table[order]
        ordered, order = scores.view(self.heads, -1).sort(1)
        return ordered.sum(0), table.gather(1, order).t()


def groups(config: Config) -> list[Group]:
    """All modules of which units can be removed."""
    return [
        group
        for side in ("encoder", "decoder")
        for layer in range(getattr(config.model, side).layers)
        for group in _of_layer(config, side, layer)
    ]


def _of_layer(config: Config, side: str, layer: int) -> Iterator[Group]:
    model, name = config.model, f"{side}.{layer}"
    stack: StackConfig = getattr(model, side)

    def group(kind: str, setting: str, module: str, channels: int, heads: int, *cuts: tuple[str, int, int]) -> Group:
        places = tuple(Cut(f"{module}.{tensor}", dim, span) for tensor, dim, span in cuts)
        return Group(kind, setting, side, layer, module, channels, heads, places)

    def attention(module: str, setting: str, heads: int, head_width: int, *inputs: str) -> Group:
        before = ((f"{linear}.{part}", 0, 1) for linear in inputs for part in ("weight", "bias"))
        return group("heads", setting, module, heads * head_width, heads, *before, ("out.weight", 1, 1))

    mixed = model.width // 2 if stack.mixer == "lsra" else model.width
    near = stack.conv if stack.mixer == "lsra" else stack.mixer
    if stack.mixer in ("attention", "lsra") and not stack.persistent:  # heads with persistent vectors stay
        module = f"{name}.mixer" + (".attention" if stack.mixer == "lsra" else "")
        yield attention(module, "kept_heads", stack.heads_of(layer), mixed // stack.heads, "qkv")
    if near in ("lightconv", "dynamicconv", "talk"):
        module = f"{name}.mixer" + (".convolution" if stack.mixer == "lsra" else "")
        cuts = [("inner.weight", 0, 1), ("inner.bias", 0, 1), ("out.weight", 1, 1)]
        producer = {"lightconv": "weight", "dynamicconv": "linear.weight", "talk": "offsets.weight"}[near]
        if near != "lightconv":
            cuts.append((f"producer.{producer}", 1, 1))
        if not stack.conv_heads:  # each channel has taps of its own
            cuts.append((f"producer.{producer}", 0, stack.kernel(layer) if near == "dynamicconv" else 1))
            cuts += [("producer.offsets.bias", 0, 1)] if near == "talk" else []
        width = stack.conv_width(layer, mixed)
        yield group("conv_channels", "conv_widths", module, width, stack.conv_heads or 1, *cuts)
    if side == "decoder":
        heads, head_width = model.cross_heads_of(layer), model.width // model.cross_heads
        yield attention(f"{name}.cross", "kept_cross_heads", heads, head_width, "q", "kv")
    inner = (("inner.weight", 0, 1), ("inner.bias", 0, 1), ("out.weight", 1, 1))
    if stack.ffn_width(layer):
        yield group("ffn", "ffn_widths", f"{name}.ffn", stack.ffn_width(layer), 1, *inner)


def resized(config: Config, units: Mapping[Group, int]) -> Config:
    """The configuration in which some modules have so many units, and the others as many as they had."""
    sizes: dict[tuple[str, str], list[int]] = {}
    for group in groups(config):
        sizes.setdefault((group.side, group.setting), []).append(group.size(units.get(group, group.units)))
    changed = {(group.side, group.setting) for group in units}
    model = config.model
    for (side, setting), schedule in sizes.items():
        if (side, setting) in changed:
            change: dict[str, Any] = {setting: tuple(schedule)}
            stack: StackConfig = getattr(model, side)
            if setting != "kept_cross_heads":
                change = {side: dataclasses.replace(stack, **change)}
            model = dataclasses.replace(model, **change)
    return dataclasses.replace(config, model=model)


def sliced(weights: Weights, kept: Mapping[Group, Tensor]) -> dict[str, Tensor]:
    """The weights of some modules' channels alone, which are named in rising order."""
    result = dict(weights)
    for group, channels in kept.items():
        for cut in group.cuts:
            laid_out = result[cut.tensor].unflatten(cut.dim, (-1, group.channels, cut.span))
            result[cut.tensor] = laid_out.index_select(cut.dim + 1, channels).flatten(cut.dim, cut.dim + 2)
    return result


def only_layers(config: Config, weights: Weights, side: str, kept: Sequence[int]) -> tuple[Config, dict[str, Tensor]]:
    """The model with some layers of one side alone; schedules follow the layers that stay."""
    stack: StackConfig = getattr(config.model, side)
    renamed = {}
    for name, tensor in weights.items():
        top, layer, rest = (*name.split(".", 2), "", "")[:3]
        if top != side:
            renamed[name] = tensor
        elif int(layer) in kept:
            renamed[f"{side}.{kept.index(int(layer))}.{rest}"] = tensor

    def follow(schedule: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(at(schedule, layer) for layer in kept) if schedule else ()

    schedules = ("kernels", "windows", "kept_heads", "conv_widths", "ffn_widths")
    followed: dict[str, Any] = {name: follow(getattr(stack, name)) for name in schedules}
    change: dict[str, Any] = {side: dataclasses.replace(stack, layers=len(kept), **followed)}
    if side == "decoder":
        change["kept_cross_heads"] = follow(config.model.kept_cross_heads)
    return dataclasses.replace(config, model=dataclasses.replace(config.model, **change)), renamed
