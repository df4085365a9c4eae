"""What is exported is told from what is compiled."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from lite_nmt.ops.attend import attend
from lite_nmt.ops.exporting import is_exporting


class Tells(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1 if is_exporting() else x


@pytest.mark.parametrize("strict", [False, True])
def test_exporting(strict: bool) -> None:
    x = torch.zeros(1)
    assert torch.export.export(Tells(), (x,), strict=strict).module()(x) == 1
    assert torch.compile(Tells(), fullgraph=True, backend="eager")(x) == 0


def test_a_compiled_attention_drops_weights() -> None:
    x = torch.randn(1, 1, 8, 4)
    compiled = torch.compile(attend, fullgraph=True, backend="eager")
    assert not torch.equal(compiled(x, x, x, dropout=0.5), compiled(x, x, x))
