"""Memory that activations take: the bytes of all tensors alive at once while a model runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import finalize

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _Alive(TorchDispatchMode):
    """Counts each storage that an operator makes, from then to its end. Views share their storage."""

    def __init__(self, known: Sequence[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.storages = {id(tensor.untyped_storage()) for tensor in known}
        self.used: set[int] = set()
        self.bytes = 0
        self.peaks: list[int] = []  # of the modules being run, outermost first

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.used |= {id(t.untyped_storage()) for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._add(tensor.untyped_storage())
        self.peaks = [max(peak, self.bytes) for peak in self.peaks]
        return result

    def _add(self, storage: torch.UntypedStorage) -> None:
        key, size = id(storage), storage.nbytes()
        if key not in self.storages:
            self.storages.add(key)
            self.bytes += size
            finalize(storage, self._drop, key, size)

    def _drop(self, key: int, size: int) -> None:
        self.storages.discard(key)
        self.bytes -= size


def observe(model: nn.Module, inputs: tuple[Any, ...], parts: Mapping[str, str]) -> tuple[dict[str, int], list[str]]:
    """Run a model once and see what it holds and what it uses.

    Parameters, buffers and inputs are not counted, nor what an operator allocates for itself. A model on PyTorch's
    meta device computes nothing and allocates nothing, and gives the same figures.

    Args:
        parts: the part that each module, by its path, belongs to.

    Returns:
        Bytes alive at most while each part runs, and the names of parameters that no operator was given.
    """
    held = [tensor for tensor in tree_leaves(inputs) if isinstance(tensor, Tensor)]
    alive = _Alive([*model.parameters(), *model.buffers(), *held])
    peaks: dict[str, int] = {}
    hooks = []

    def enter(*_: object) -> None:
        alive.peaks.append(alive.bytes)

    for name, module in model.named_modules():

        def leave(*_: object, part: str = parts.get(name, name)) -> None:
            peaks[part] = max(peaks.get(part, 0), alive.peaks.pop())

        hooks += [module.register_forward_pre_hook(enter), module.register_forward_hook(leave)]
    try:
        with torch.inference_mode(), alive:
            model(*inputs)
    finally:
        for hook in hooks:
            hook.remove()
    unused = [n for n, p in model.named_parameters() if p.numel() and id(p.untyped_storage()) not in alive.used]
    return peaks, unused
