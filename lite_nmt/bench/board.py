"""From what was counted to what a board would need: an estimate, and its formula.

n cores that translate a sentence each need together

    seconds = instructions / (IPC · hertz) + n · bytes / bandwidth

instructions and bytes being those of one sentence: the cores compute side by side, the memory serves one after the
other, and nobody computes while waiting. That is the slow end of what may happen, for a core that runs out of order
and fetches ahead overlaps the two. So is what stands in for the constants of ``PI_4``:

- 1.5 GHz and four cores are the first Raspberry Pi 4's.
- One instruction a cycle. The core decodes three, and can do one vector multiply-add of 128 bits in each cycle.
  HPL on one core of a Raspberry Pi 4 was measured at 3.2 floating-point operations a cycle (BLIS issue 754), and
  OpenBLAS's multiplication does 2.87 with an instruction (counted here): 1.1 instructions a cycle in a kernel
  tuned for this core.
- 4 GB/s. STREAM on one core was measured at 4.8 to 5.6 GB/s (sci-pi.org.uk).

It leaves out the kernel's own work, page tables, instruction misses and heat.
"""

from __future__ import annotations

from dataclasses import dataclass

from lite_nmt.bench.emulated import Counts


@dataclass(frozen=True)
class Board:
    """What the estimate needs to know."""

    name: str
    cores: int
    hertz: float
    instructions_per_cycle: float
    bandwidth: float  # bytes/s


PI_4 = Board("Raspberry Pi 4 (Cortex-A72, 4 × 1.5 GHz)", 4, 1.5e9, 1.0, 4e9)


@dataclass(frozen=True)
class Estimate:
    """Not measured. ``sentences_per_second`` is with each core at a sentence of its own."""

    board: Board
    milliseconds: float  # a sentence, one core at work
    sentences_per_second: float  # all cores at work


def estimate(counts: Counts, board: Board = PI_4) -> Estimate:
    """The formula above: with the whole L2 for one core alone, with a quarter of it for each of four."""
    computing = counts.instructions / (board.instructions_per_cycle * board.hertz)
    alone = computing + counts.dram_bytes / board.bandwidth
    together = computing + board.cores * counts.dram_bytes_shared / board.bandwidth
    return Estimate(board, alone * 1e3, board.cores / together)
