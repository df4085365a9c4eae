"""One process or many: the same training either way.

Batches are dealt out in turn, gradients are summed, and dropout is seeded by batch, not by process: two processes
compute what one does with twice the accumulation.
"""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor


class Processes:
    """This process among those that torchrun started, or alone."""

    def __init__(self, device: torch.device) -> None:
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        self.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        self.device = device
        if device.type == "cuda":
            self.device = torch.device("cuda", self.local_rank if device.index is None else device.index)
            torch.cuda.set_device(self.device)
        if self.count > 1 and not dist.is_initialized():
            _check_restarts()
            # The others wait while the first one prepares the corpus and validates.
            patience = datetime.timedelta(hours=6)
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=patience)
        # torchrun sets this when it starts workers again after one died, but only on the node where that happened.
        restarted = torch.tensor(int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")), device=self.device)
        self.sum([restarted])
        self.restarted = bool(restarted.item())

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes."""
        return self.rank == 0

    def wait(self) -> None:
        """Wait for all."""
        if self.count > 1:
            dist.barrier()

    def sum(self, tensors: Iterable[Tensor]) -> None:
        """Sum tensors over all processes, in place, in one message."""
        if self.count == 1:
            return
        parts = list(tensors)
        flat = torch.cat([t.reshape(-1) for t in parts])
        dist.all_reduce(flat)
        for tensor, summed in zip(parts, flat.split([t.numel() for t in parts]), strict=True):
            tensor.copy_(summed.view_as(tensor))

    def agree(self, value: bool) -> bool:
        """The first process's decision, in all of them."""
        if self.count == 1:
            return value
        decision = torch.tensor(int(value), device=self.device)
        dist.broadcast(decision, 0)
        return bool(decision.item())

    def close(self) -> None:
        """Leave the group."""
        if self.count > 1 and dist.is_initialized():
            dist.destroy_process_group()


def _check_restarts() -> None:
    """Warn where restarted workers would read the dead ones' addresses (pytorch issue 135712)."""
    shared = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if shared and int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")) and os.environ.get("LOCAL_RANK") == "0":
        warnings.warn(
            "workers that torchrun restarts will not find each other; set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 for it",
            stacklevel=2,
        )
