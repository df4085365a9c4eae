"""Entropy coders for the codes of a quantised model: bytes as a multiple of the order-0 entropy.

Each matrix of a checkpoint is pruned, clustered and coded by itself; codebooks and headers are left out, but for the
histograms that ANS needs. ANS comes with ``pip install constriction``, and is left out where that is missing.
"""

from __future__ import annotations

import argparse
import importlib.util
import lzma
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import zstandard
from machine import machine

from lite_nmt.compress.kmeans import Codes, make_book
from lite_nmt.compress.packing import encode
from lite_nmt.compress.prune import matrices, prune
from lite_nmt.compress.weights import numbers
from lite_nmt.models import checkpoint

LEAST = {"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 0, "pb": 0}  # no context: codes have no neighbours


def ours(codes: Codes, bits: int) -> int:
    """zstandard as packed files have it."""
    return sum(map(len, encode(codes, bits, zero=True)[1:]))


def gaps(codes: Codes, bits: int) -> int:
    """Deep Compression's relative positions, in zstandard, in place of a bit for each."""
    where = np.flatnonzero(codes)
    distance = np.minimum(np.diff(where, prepend=-1) - 1, 255).astype(np.uint8)
    return len(zstandard.compress(distance.tobytes(), 19)) + len(encode(codes[where] - 1, bits, zero=False)[2])


def huffman(codes: Codes, bits: int) -> int:
    """Deflate without matches, a code a byte."""
    coder = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_HUFFMAN_ONLY)
    return len(coder.compress(codes.tobytes()) + coder.flush())


def lzma_alone(codes: Codes, bits: int) -> int:
    """LZMA, a code a byte."""
    return len(lzma.compress(codes.tobytes(), lzma.FORMAT_RAW, filters=[LEAST]))


def ans(codes: Codes, bits: int) -> int:
    """Asymmetric numeral systems over one static histogram, stored as two bytes a code."""
    stream = importlib.import_module("constriction").stream
    counts = np.bincount(codes, minlength=2**bits).astype(np.float64)
    coder = stream.stack.AnsCoder()
    coder.encode_reverse(codes.astype(np.int32), stream.model.Categorical(counts / counts.sum(), perfect=False))
    return int(coder.get_compressed().nbytes) + 2 * 2**bits


CODERS: dict[str, Callable[[Codes, int], int]] = {
    "zstandard, as packed": ours,
    "zstandard, gaps": gaps,
    "ANS": ans,
    "Huffman": huffman,
    "LZMA": lzma_alone,
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--bits", type=int, nargs="+", default=[8, 6, 5, 4, 3, 2])
    parser.add_argument("--prune", type=float, nargs="+", default=[0.0, 0.45, 0.9])
    parser.add_argument("--machine", help="what to call the machine, if it is not this one's plain description")
    args = parser.parse_args()
    coders = dict(CODERS)
    if importlib.util.find_spec("constriction") is None:
        del coders["ANS"]
        print("constriction is not installed; ANS is left out", file=sys.stderr)
    model = checkpoint.load(args.checkpoint).model()
    weights = numbers(model)
    print(f"`python benchmarks/codecs.py CHECKPOINT` on {args.machine or machine()}.\n")
    print("| bits | zeros | entropy, bits a weight | " + " | ".join(coders) + " |")
    print("|--:|--:|--:|" + "--:|" * len(coders))
    for bits in args.bits:
        for share in args.prune:
            total, entropy, count = dict.fromkeys(coders, 0), 0.0, 0
            for name in matrices(model):
                pruned, _ = prune({name: weights[name]}, share)
                codes = make_book(pruned, bits).codes[name].ravel()
                counts = np.bincount(codes)
                entropy -= (counts[counts > 0] * np.log2(counts[counts > 0] / len(codes))).sum() / 8
                count += len(codes)
                for coder, coded in coders.items():
                    total[coder] += coded(codes, bits) if coder != "zstandard, gaps" or share else 0
            cells = [f"{size / entropy:.3f}" if size else "" for size in total.values()]
            print(f"| {bits} | {share:.0%} | {8 * entropy / count:.3f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
