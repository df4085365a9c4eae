"""softmax(Q K^T / sqrt(R)) V (Vaswani et al. 2017, equation 1)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from lite_nmt.ops.exporting import is_exporting


def attend(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, dropout: float = 0.0) -> Tensor:
    """Scaled dot-product attention.

    Args:
        q: B H T R.
        k: B H S R.
        v: B H S R.
        allowed: true where a query may look, broadcastable to B H T S, in every row at least once; None where each
            may look everywhere.
        dropout: of the attention's weights.

    Returns:
        B H T R.
    """
    if not is_exporting():
        return F.scaled_dot_product_attention(q, k, v, allowed, dropout)
    # PyTorch's exporter spells its own operator in three times as many nodes, and a step's time is that of its nodes.
    logits = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    if allowed is not None:
        logits = logits.masked_fill(~allowed, float("-inf"))
    return logits.softmax(-1) @ v
