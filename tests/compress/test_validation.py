"""What is measured on validation pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lite_nmt.compress.validation import Validation
from lite_nmt.compress.weights import numbers
from lite_nmt.data.encoded import Encoded
from lite_nmt.models import checkpoint


def test_the_loss_is_the_trainings(trained: Path) -> None:
    saved = checkpoint.load(trained)
    validation = Validation(saved, Encoded.open(trained / "data" / "valid"), True, torch.device("cpu"))
    found = validation(numbers(saved.model()))
    assert found == {
        "nll": pytest.approx(saved.metrics["valid_nll"]),
        "bleu": pytest.approx(saved.metrics["valid_bleu"]),
    }
    zero = {name: np.zeros_like(w) for name, w in numbers(saved.model()).items()}
    types = saved.config.vocabulary.target
    assert validation(zero)["nll"] == pytest.approx(np.log(types), rel=1e-4)
