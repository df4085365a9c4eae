"""Whether a graph is being exported, which must hold standard operators."""

from __future__ import annotations

import torch


def is_exporting() -> bool:
    """True under ``torch.export``, and not under ``torch.compile``.

    PyTorch's function of this name is taken to be true while anything is compiled in release 2.11; what it reads is
    not.
    """
    return torch.compiler._is_exporting_flag
