"""A language model's checkpoint, read by PyTorch."""

from __future__ import annotations

import numpy as np
import torch

from lite_nmt.models.language import LanguageModel
from lite_nmt.modules.mixer import State


class PyTorchReader:
    """As :class:`~lite_nmt.decode.generate.Reader` says."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model.eval()

    def start(self) -> State:
        return self.model.initial_state(1)

    @torch.inference_mode()
    def read(self, token: int, position: int, state: State) -> tuple[np.ndarray, State]:
        scores, state = self.model.step(torch.tensor([token]), position, state)
        return scores[0].numpy(), state
