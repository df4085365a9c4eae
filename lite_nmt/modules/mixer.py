"""What every mixer is: it moves information across time, with its state in plain sight."""

from __future__ import annotations

from torch import Tensor, nn

State = dict[str, Tensor]
"""Named tensors, batch first. A fixed set of names for each mixer, so that beams can be reordered and graphs
exported without knowing which mixer it is."""


class Mixer(nn.Module):
    """Mixes B T C across T. The whole-sequence form trains and encodes, the one-step form decodes; both compute
    the same function, and only a causal mixer has the second."""

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """Whole sequence.

        Args:
            x: B T C.
            keep: B T, true where a position is not padding; None where nothing is.

        Returns:
            B T C; padded positions hold no meaning.
        """
        raise NotImplementedError

    def weights(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """How much of step j (columns) the output at step t (rows) takes: B H T T, for ``x`` and ``keep`` as above.

        It serves to look into a model; nothing is computed with it. Padded columns are zero, padded rows hold no
        meaning.
        """
        raise NotImplementedError

    def initial_state(self, x: Tensor) -> State:
        """State before the first step for a batch like ``x`` (N C), on its device and in its dtype."""
        raise NotImplementedError

    def step(self, x: Tensor, position: int | Tensor, state: State) -> tuple[Tensor, State]:
        """One step of a causal mixer.

        Args:
            x: N C, the input at ``position`` (counted from 0).
            state: what :meth:`initial_state` or the last step returned; it is not changed.

        Returns:
            N C, and the next state.
        """
        raise NotImplementedError


def prefixed(prefix: str, state: State) -> State:
    """Put a mixer's state among others'."""
    return {f"{prefix}.{name}": tensor for name, tensor in state.items()}


def without_prefix(prefix: str, state: State) -> State:
    """Take a mixer's own state back from among others'."""
    start = prefix + "."
    return {name[len(start) :]: tensor for name, tensor in state.items() if name.startswith(start)}
