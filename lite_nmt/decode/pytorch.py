"""A checkpoint run by PyTorch: the reference that every other engine is held against."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lite_nmt.config import DecodeConfig
from lite_nmt.data.vocabulary import BOS, EOS, PAD
from lite_nmt.decode.engine import Alignment, Engine, pad
from lite_nmt.decode.hypothesis import Hypothesis
from lite_nmt.decode.search import search
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.checkpoint import Checkpoint
from lite_nmt.models.device import device as find_device
from lite_nmt.models.translation import TranslationModel


def model_of(engine: Engine) -> TranslationModel:
    """The PyTorch model that an engine runs.

    Raises:
        LiteNmtError: it runs a bundle, which has none.
    """
    if not isinstance(engine, PyTorchEngine):
        raise LiteNmtError("a bundle's graph cannot be looked into; give the checkpoint that it was exported from.")
    return engine.model


class PyTorchEngine:
    """A model on its device."""

    def __init__(self, model: TranslationModel) -> None:
        """
        Args:
            model: on the device to use; it is put in eval mode.
        """
        self.model = model.eval()
        self.device = model.target.weight.device

    @classmethod
    def load(cls, saved: Checkpoint, device: str = "cpu", threads: int | None = None) -> PyTorchEngine:
        """Put a checkpoint's model on a device; ``threads`` are the process'."""
        place = find_device(device)
        if threads is not None:
            torch.set_num_threads(threads)
        return cls(saved.model(place))

    def search(self, sources: Sequence[Sequence[int]], decode: DecodeConfig, nbest: int) -> list[list[Hypothesis]]:
        """As :class:`Engine` says."""
        source = torch.tensor(pad(sources), device=self.device)
        return search(self.model, source, source != PAD, decode, nbest)

    @torch.inference_mode()
    def align(
        self, sources: Sequence[Sequence[int]], hypotheses: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Alignment]]:
        """Read each hypothesis once more, with the target given: what the last layer looked at, averaged over heads."""
        source = torch.tensor(pad(sources), device=self.device)
        index = torch.tensor([row for row, best in enumerate(hypotheses) for _ in best], device=self.device)
        keep = source != PAD
        memory = {k: v[index] for k, v in self.model.memory(self.model.encode(source, keep)).items()}
        target = torch.tensor(pad([[BOS, *h.tokens] for best in hypotheses for h in best]), device=self.device)
        weights = self.model.alignment(target, memory, keep[index])  # B T S
        # A target piece stands for a source piece: the end marker, where attention often rests, is left out.
        weights = weights.masked_fill((source[index] == EOS).unsqueeze(1), -1)
        looked = iter(weights.argmax(-1).tolist())
        return [
            [tuple((where, t) for t, where in enumerate(next(looked)[: len(h.tokens)])) for h in best]
            for best in hypotheses
        ]
