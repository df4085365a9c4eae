"""What runs a model: PyTorch, ONNX Runtime or ExecuTorch, all behind two calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lite_nmt.config import DecodeConfig
from lite_nmt.data.vocabulary import PAD
from lite_nmt.decode.hypothesis import Hypothesis

Alignment = tuple[tuple[int, int], ...]


class Engine(Protocol):
    """Translates token numbers. Sources are closed by the end marker, and never empty."""

    def search(self, sources: Sequence[Sequence[int]], decode: DecodeConfig, nbest: int) -> list[list[Hypothesis]]:
        """At most ``nbest`` translations of each source, the best first, at least one.

        Raises:
            LiteNmtError: the settings contradict one another, are beyond this engine, or the model's scores are not
                numbers.
        """
        ...

    def align(
        self, sources: Sequence[Sequence[int]], hypotheses: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Alignment]]:
        """For each hypothesis of each source, which source piece each target piece looks at most.

        Raises:
            LiteNmtError: this engine cannot tell.
        """
        ...


def pad(sentences: Sequence[Sequence[int]]) -> list[list[int]]:
    """All as long as the longest."""
    longest = max(map(len, sentences))
    return [[*sentence, *[PAD] * (longest - len(sentence))] for sentence in sentences]
