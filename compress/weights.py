"""A model's weights as numpy arrays, which pruning and codebooks are made of."""

from __future__ import annotations

from lite_nmt.compress.kmeans import Floats
from lite_nmt.models.checkpoint import named_weights
from lite_nmt.models.translation import TranslationModel

Weights = dict[str, Floats]


def numbers(model: TranslationModel) -> Weights:
    """By name; on the CPU they are the model's own memory."""
    return {name: parameter.detach().cpu().numpy() for name, parameter in named_weights(model).items()}
