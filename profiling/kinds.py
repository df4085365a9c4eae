"""To which part of a model an operator belongs: one rule for every counter that sees a model run."""

from __future__ import annotations

from collections.abc import Mapping

from lite_nmt.profiling.cost import EMBEDDING, OUTPUT

KINDS = {
    "lite_nmt.modules.adaptive.AdaptiveEmbedding": EMBEDDING,
    "lite_nmt.modules.adaptive_span.AdaptiveSpan": "attention",
    "lite_nmt.modules.attention.SelfAttention": "attention",
    "lite_nmt.modules.attention.CrossAttention": "cross-attention",
    "lite_nmt.modules.average.AverageAttention": "average attention",
    "lite_nmt.modules.convolution.Convolution": "convolution",
    "lite_nmt.modules.convolution.PlainConvolution": "convolution",
    "lite_nmt.modules.embedding.Embedding": EMBEDDING,
    "lite_nmt.modules.layer.FeedForward": "ffn",
    "torch.nn.modules.activation.MultiheadAttention": "attention",
    "torch.nn.modules.linear.Linear": "linear",
    "torch.nn.modules.linear.Bilinear": "linear",
    "torch.nn.modules.sparse.Embedding": EMBEDDING,
    **{
        f"torch.nn.modules.conv.Conv{transposed}{n}d": "convolution"
        for n in (1, 2, 3)
        for transposed in ("", "Transpose")
    },
    **{f"torch.nn.modules.rnn.{name}": "recurrent" for name in ("RNN", "LSTM", "GRU")},
    **{f"torch.nn.modules.batchnorm.BatchNorm{n}d": "norm" for n in (1, 2, 3)},
    **{f"torch.nn.modules.normalization.{name}": "norm" for name in ("LayerNorm", "GroupNorm", "RMSNorm")},
}


def part_of(module: str, classes: Mapping[str, str]) -> tuple[str, str]:
    """Name and kind of the part that a module belongs to.

    Args:
        module: its path, as ``encoder.0.ffn.inner``.
        classes: of modules by their path, as ``torch.nn.modules.linear.Linear``.

    Returns:
        The outermost module with a kind of its own; where there is none, the innermost one and its class. The layer
        that projects to the vocabulary is a kind of its own.
    """
    steps = module.split(".") if module else []
    for i in range(len(steps) + 1):
        path = ".".join(steps[:i])
        name = classes.get(path, "")
        if path == "project" and classes.get("", "").startswith("lite_nmt."):
            return path, OUTPUT
        if KINDS.get(name) == EMBEDDING and name.startswith("lite_nmt"):
            return EMBEDDING, EMBEDDING
        if name in KINDS:
            return path, KINDS[name]
    return module, classes.get(module, "").rpartition(".")[2] or "model"
