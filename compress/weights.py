"""A model's weights as numpy arrays, which pruning and codebooks are made of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from lite_nmt.compress.kmeans import Floats
from lite_nmt.models import checkpoint
from lite_nmt.models.translation import TranslationModel

Weights = dict[str, Floats]


def numbers(model: TranslationModel) -> Weights:
    """By name; on the CPU they are the model's own memory."""
    return {name: parameter.detach().cpu().numpy() for name, parameter in checkpoint.named_weights(model).items()}


def restore(model: TranslationModel, weights: Mapping[str, Floats], origin: Path | str) -> None:
    """As :func:`lite_nmt.models.checkpoint.restore`, of numpy arrays."""
    checkpoint.restore(model, {name: torch.from_numpy(tensor) for name, tensor in weights.items()}, origin)
