"""The emulated Cortex-A72: what it counts, what it refuses. Skipped where it was not set up."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from lite_nmt.bench.emulated import Counts, Emulator, count, differences, execute, find_emulator
from lite_nmt.errors import LiteNmtError

ENGINES = Path(__file__).parent


@pytest.fixture(scope="module")
def emulator() -> Emulator:
    try:
        return find_emulator()
    except LiteNmtError as error:
        pytest.skip(str(error))


def counted(emulator: Emulator, engine: str, *arguments: str, lines: list[str], passes: int = 1) -> Counts:
    return count(emulator, f"guest_engines:{engine}", arguments, lines, passes=passes, path=[ENGINES])


def test_counts_grow_with_the_work_and_are_reproducible(emulator: Emulator) -> None:
    one, four = (
        counted(emulator, "reads", str(size), lines=["never seen", "nor this"], passes=2) for size in (1 << 20, 4 << 20)
    )
    assert one.translations == ("0", "0")
    assert max(one.spread, four.spread) < 1e-3
    assert four.instructions == pytest.approx(4 * one.instructions, rel=0.02)
    assert four.load_instructions > 1 << 20
    assert four.dram_bytes == pytest.approx(4 << 20, rel=0.05)


def test_dram_bytes_are_those_that_no_cache_holds(emulator: Emulator) -> None:
    found = counted(emulator, "reads", str(512 << 10), lines=["never seen"])
    assert found.dram_bytes < 0.1 * (512 << 10)  # fits in the L2
    assert found.dram_bytes_shared == pytest.approx(512 << 10, rel=0.1)  # but not in a quarter of it


def test_the_guest_is_a_raspberry_pi_with_a_pinned_environment(emulator: Emulator, tmp_path: Path) -> None:
    names = ["machine", "PYTHONHASHSEED", "OMP_NUM_THREADS", "PATH"]
    assert counted(emulator, "environment", lines=names).translations == ("aarch64", "0", "1", "")


def test_a_graph_gives_the_same_numbers_here_and_there(emulator: Emulator, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    import numpy as np

    weights = np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32)
    kinds = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["rows", "weights"], ["sums"])],
        "tiny",
        [onnx.helper.make_tensor_value_info("rows", kinds, ["n", 8])],
        [onnx.helper.make_tensor_value_info("sums", kinds, ["n", 4])],
        [onnx.numpy_helper.from_array(weights, "weights")],
    )
    path = tmp_path / "tiny.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), path)
    there = counted(emulator, "onnx", str(path), lines=["1 2 3 4 5 6 7 8", "1 0 0 0 0 0 0 0"]).translations
    here = [
        " ".join(f"{value:.4f}" for value in np.array(row, np.float32) @ weights)
        for row in ([1, 2, 3, 4, 5, 6, 7, 8], [1, 0, 0, 0, 0, 0, 0, 0])
    ]
    assert differences(here, there) == []


def test_an_instruction_that_the_core_lacks_is_named(emulator: Emulator, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.touch(0o755)
    program.write_bytes(executable([0xD2800000, 0xD2800BA8, 0xD4000001]))  # exit(0)
    assert execute(emulator, [], [str(program)], "", {}) == ""
    program.write_bytes(executable([0x4E829420]))  # sdot v0.4s, v1.16b, v2.16b
    with pytest.raises(LiteNmtError, match=r"an instruction that Cortex-A72 lacks: 0x00400078: 4e829420"):
        execute(emulator, [], [str(program)], "", {})


def executable(words: list[int]) -> bytes:
    """The smallest static arm64 program: two headers and its instructions."""
    code = struct.pack(f"<{len(words)}I", *words)
    base, headers = 0x400000, 64 + 56
    size = headers + len(code)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 183, 1, base + headers, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return header + struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x10000) + code


def test_a_failing_engine_says_why(emulator: Emulator) -> None:
    with pytest.raises(LiteNmtError, match=r"failed in the emulator: the graph is broken"):
        counted(emulator, "fails", lines=["x"])
    with pytest.raises(LiteNmtError, match="no sentences"):
        counted(emulator, "environment", lines=[])


def test_no_emulator_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_NMT_CORTEX_A72", str(tmp_path))
    with pytest.raises(LiteNmtError, match=r"set it up with: python -m lite_nmt\.bench\.sysroot --out"):
        find_emulator()


def test_differences_are_numbered_from_one() -> None:
    found = differences(["a", "b", "c"], ["a", "x", "c"])
    assert [(one.number, one.here, one.there) for one in found] == [(2, "b", "x")]
