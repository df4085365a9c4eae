"""Which implementation computes what has more than one."""

from __future__ import annotations

from torch import nn

from lite_nmt.modules.adaptive_span import AdaptiveSpan
from lite_nmt.modules.convolution import Convolution
from lite_nmt.ops.implementation import Implementation


def use_kernels(model: nn.Module, impl: Implementation) -> None:
    """Say it for all convolutions and adaptive spans of a model."""
    for module in model.modules():
        if isinstance(module, (Convolution, AdaptiveSpan)):
            module.impl = impl
