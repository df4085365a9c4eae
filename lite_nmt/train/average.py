"""Checkpoint averaging: the mean of the last weights (Vaswani et al. 2017, section 6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint


def average(folders: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of checkpoints' weights, summed in float64.

    Raises:
        LiteNmtError: there is none, or they are of different models.
    """
    if not folders:
        raise LiteNmtError("there is no checkpoint to average.")
    total: dict[str, Tensor] = {}
    for folder in folders:
        weights = checkpoint.load(folder).weights()
        if total and {k: v.shape for k, v in weights.items()} != {k: v.shape for k, v in total.items()}:
            raise LiteNmtError(f"{folder} holds another model than {folders[0]}; only like models can be averaged.")
        for name, tensor in weights.items():
            total[name] = total.get(name, torch.zeros(())) + tensor.double()
    return {name: (tensor / len(folders)).float() for name, tensor in total.items()}
