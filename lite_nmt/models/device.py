"""Where a model runs."""

from __future__ import annotations

import torch

from lite_nmt.errors import LiteNmtError


def device(name: str) -> torch.device:
    """The device of a name that PyTorch knows ("cpu", "cuda", "cuda:1", "mps"), or "auto": a GPU if there is one.

    Raises:
        LiteNmtError: there is no such device.
    """
    try:
        found = torch.device(name if name != "auto" else "cuda" if torch.cuda.is_available() else "cpu")
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise LiteNmtError(f"this machine or this PyTorch has no device {name!r}; try cpu.") from error
    return found
