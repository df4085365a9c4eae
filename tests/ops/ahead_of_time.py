"""Compiles the kernels for GPUs that need not be there, and tells what ptxas made of them.

    python tests/ops/ahead_of_time.py          # the largest and the smallest tiles, as in the tests
    python tests/ops/ahead_of_time.py --all    # every default configuration

One JSON object a line: registers, bytes of local memory (spills), matrix and vector instructions. It must run without
TRITON_INTERPRET.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lite_nmt.ops.band_kernels import band_backward, band_forward
from lite_nmt.ops.band_triton import MODES, constants

TYPES = {torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16"}
POINTERS = {"keep_ptr": "*u8", "seed_ptr": "*i64", "dbias_ptr": "*fp32"}  # others are of the tensors' type
OPTIONS = ("num_warps", "num_stages", "enable_fp_fusion")


class Variant(NamedTuple):
    """One kernel as one GPU gets it: K taps, H heads of R channels."""

    backward: bool
    mode: str
    taps: int
    heads: int
    shared: int
    dtype: torch.dtype
    capability: int


def default_configurations() -> Iterator[Variant]:
    """Each chunk size and more than one chunk, heads that begin at vectors (64, 128) and that do not (62, 51)."""
    for backward in (True, False):  # the larger first
        for mode in MODES:
            for taps in (3, 7, 15, 31, 63):
                for heads, shared in ((16, 64), (8, 128), (4, 62), (4, 51)):
                    for dtype in TYPES:
                        for capability in (80, 90):
                            yield Variant(backward, mode, taps, heads, shared, dtype, capability)


def tested() -> Iterator[Variant]:
    """Of each operator those that need most registers, the backward over odd heads; the one that needs most of all; and
    the smallest tiles."""
    for mode, capability in (("light", 80), ("dynamic", 90), ("talk", 90)):
        yield Variant(True, mode, 31, 4, 62, torch.bfloat16, capability)
        yield Variant(True, mode, 31, 4, 62, torch.float32, 80)
    yield Variant(True, "light", 63, 4, 62, torch.float32, 90)
    yield Variant(True, "dynamic", 63, 4, 62, torch.bfloat16, 80)
    yield Variant(True, "light", 7, 4, 62, torch.bfloat16, 90)
    yield Variant(False, "talk", 31, 4, 62, torch.bfloat16, 90)


def compiled(variant: Variant) -> dict[str, Any]:
    """What became of one variant, as a caller with every optional argument would have it compiled."""
    kernel = band_backward if variant.backward else band_forward
    channels = variant.heads * variant.shared
    shape = (variant.heads, variant.shared, variant.taps, variant.taps // 2)
    fixed = dict(constants(variant.backward, variant.mode, *shape, math.gcd(8, channels), variant.dtype))
    options = {name: fixed.pop(name) for name in OPTIONS}
    absent = () if variant.mode == "talk" else ("right_ptr", "dright_ptr")
    fixed |= {name: None for name in absent if name in kernel.arg_names}
    signature, hints = {}, {}
    for number, name in enumerate(kernel.arg_names):
        if name in fixed:
            signature[name] = "constexpr"
        elif name == "dw_ptr" and variant.mode == "light":
            signature[name] = "*fp32"
        elif name.endswith("_ptr"):
            signature[name] = POINTERS.get(name, TYPES[variant.dtype])
        else:
            signature[name] = "fp32" if name == "scale" else "i32"
        step = name.endswith("_step") and channels % 16 == 0
        if signature[name][0] == "*" or step:
            hints[(number,)] = [["tt.divisibility", 16]]
    constexprs = {(kernel.arg_names.index(name),): value for name, value in fixed.items()}
    source = ASTSource(kernel, signature, constexprs, hints)
    built = triton.compile(source, target=GPUTarget("cuda", variant.capability, 32), options=options)
    registers, stack, local = resources(built.asm["cubin"])
    ptx = built.asm["ptx"]
    return {
        **variant._asdict(),
        "dtype": str(variant.dtype),
        "registers": registers,
        "local_bytes": stack + local,
        "shared_bytes": built.metadata.shared,
        "mma": len(re.findall(r"\bw?gmma\b|\bmma\.sync|wgmma\.mma", ptx)),
        "vector_loads": len(re.findall(r"ld\.global[.\w]*\.v[24]", ptx)),
    }


def resources(cubin: bytes) -> tuple[int, int, int]:
    """Registers, and bytes of stack and local memory, of the one kernel in a binary."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [triton.knobs.nvidia.cuobjdump.path, "-res-usage", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+) .*LOCAL:(\d+)", text)
    assert found, text
    registers, stack, local = map(int, found.groups())
    return registers, stack, local


def main() -> None:
    """Compile in two processes, print as they come."""
    chosen = default_configurations() if "--all" in sys.argv[1:] else tested()
    with ProcessPoolExecutor(2) as pool:
        for line in pool.map(compiled, chosen):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
