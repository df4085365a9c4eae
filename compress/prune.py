"""Magnitude pruning of single weights (Han et al. 2015, Learning both Weights and Connections, sections 3 and 4)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import nn

from lite_nmt.compress.kmeans import Floats
from lite_nmt.errors import LiteNmtError
from lite_nmt.modules.embedding import Embedding


def matrices(model: nn.Module) -> list[str]:
    """Names of the weights that may be pruned: those of linear layers, convolutions and embeddings, a shared one once.

    Biases and norms are few, and a tap of LightConv that is zero still weighs something after the softmax.
    """
    owned = dict(model.named_parameters())
    layers = (nn.Linear, nn.Conv1d, Embedding)
    names = [f"{name}.weight" for name, module in model.named_modules() if isinstance(module, layers)]
    return [name for name in names if name in owned]


def prune(tensors: Mapping[str, Floats], sparsity: float) -> tuple[dict[str, Floats], float]:
    """Make the smallest weights exactly zero: those below s standard deviations of their own tensor.

    One s serves all the tensors, so that of several together those with more small weights lose more of them.

    Args:
        sparsity: share of the weights to be zero, at least 0 and below 1. Weights of the same size stay together.

    Returns:
        The tensors, and s.

    Raises:
        LiteNmtError: the sparsity is out of range.
    """
    if not 0 <= sparsity < 1:
        raise LiteNmtError(f"the sparsity is {sparsity:g}; it must be at least 0 and below 1.")
    sizes = {name: np.abs(tensor) / max(float(tensor.std()), 1e-30) for name, tensor in tensors.items()}
    ranked = np.concatenate([size.ravel() for size in sizes.values()])
    count = round(sparsity * len(ranked))
    if not count:
        return dict(tensors), 0.0
    s = float(np.partition(ranked, count - 1)[count - 1])
    return {name: np.where(sizes[name] <= s, 0, tensor).astype(tensor.dtype) for name, tensor in tensors.items()}, s
