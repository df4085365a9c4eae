"""A matrix product in each of the forms that ONNX and ONNX Runtime have for int8, here and on an emulated Cortex-A72.

    python benchmarks/int8_operators.py --output benchmarks/results/int8-operators.md

Each form multiplies by 64 matrices of 256 x 256, one after the other, so that weights come from memory as they do in a
model (4.2 MB in int8). Batch 1, one thread; the rows are those of a decoder's step and of a sentence's encoder.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WIDTH, PRODUCTS = 256, 64
ROWS = 1, 30
BLOCK = 32  # weights that share a scale in MatMulNBits
FORMS = {
    "float32": "MatMul",
    "MatMulInteger, signed": "DynamicQuantizeLinear, MatMulInteger; a scale for each output channel",
    "MatMulInteger, unsigned": "the same with weights from 0 to 255",
    "QDQ, signed": "DynamicQuantizeLinear and DequantizeLinear on both sides of a MatMul, which ONNX Runtime fuses",
    "MatMulNBits, 8": f"ONNX Runtime's own: a scale for each {BLOCK} weights, inputs rounded to int8",
    "MatMulNBits, 4": "the same with 4 bits a weight",
}


def build(form: str, weights: list[np.ndarray]) -> bytes:
    """One form's graph, from ``x``, T C, to ``y``."""
    from onnx import TensorProto, helper, numpy_helper

    constants, nodes = [], []

    def constant(name: str, values: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def node(kind: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes: Any) -> None:
        nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **attributes))

    x = "x"
    for i, weight in enumerate(weights):
        y = "y" if i == len(weights) - 1 else f"x{i}"
        kind, _, variant = form.partition(", ")
        scale = np.abs(weight).max(0) / 127
        codes = np.rint(weight / scale).astype(np.int8)
        if kind == "float32":
            node("MatMul", [x, constant(f"w{i}", weight)], [y])
        elif kind == "MatMulNBits":
            bits = int(variant)
            blocks = weight.T.reshape(WIDTH, -1, BLOCK)
            middle = 2 ** (bits - 1)
            scales = np.abs(blocks).max(-1) / (middle - 1)
            packed = (np.rint(blocks / scales[..., None]) + middle).astype(np.uint8)
            if bits == 4:
                packed = packed[..., ::2] | packed[..., 1::2] << 4
            inputs = [x, constant(f"w{i}", packed), constant(f"s{i}", scales.reshape(WIDTH, -1).astype(np.float32))]
            sizes = {"K": WIDTH, "N": WIDTH, "bits": bits, "block_size": BLOCK}
            node("MatMulNBits", inputs, [y], "com.microsoft", accuracy_level=4, **sizes)
        else:
            zero = 128 if variant == "unsigned" else 0
            codes = (codes.astype(np.int16) + 128).astype(np.uint8) if zero else codes
            w, s = constant(f"w{i}", codes), constant(f"s{i}", scale.astype(np.float32))
            quantised = [f"q{i}", f"qs{i}", f"qz{i}"]
            node("DynamicQuantizeLinear", [x], quantised)
            if kind == "QDQ":
                node("DequantizeLinear", quantised, [f"dx{i}"])
                z = constant(f"z{i}", np.zeros(WIDTH, np.int8))
                node("DequantizeLinear", [w, s, z], [f"dw{i}"], axis=1)
                node("MatMul", [f"dx{i}", f"dw{i}"], [y])
            else:
                more = [constant(f"z{i}", np.array(zero, np.uint8))] if zero else []
                node("MatMulInteger", [quantised[0], w, quantised[2], *more], [f"p{i}"])
                node("Cast", [f"p{i}"], [f"f{i}"], to=TensorProto.FLOAT)
                node("Mul", [quantised[1], s], [f"m{i}"])
                node("Mul", [f"f{i}", f"m{i}"], [y])
        x = y
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", WIDTH]) for name in "xy"]
    graph = helper.make_graph(nodes, "products", sides[:1], sides[1:], constants)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return model.SerializeToString()  # type: ignore[no-untyped-call]  # protobuf's


def subject(path: str) -> Callable[[str], str]:
    """What the emulator runs for a "sentence", which is a number of rows; it answers with the sum of the result."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    given = {rows: np.random.default_rng(rows).standard_normal((rows, WIDTH), np.float32) for rows in ROWS}
    return lambda rows: f"{session.run(None, {'x': given[int(rows)]})[0].sum():.6g}"


def main() -> None:
    """Build the graphs, take turns, write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--machine", help="what to call the machine, if it is not this one's plain description")
    parser.add_argument("--output", type=Path, required=True, help="Markdown file")
    args = parser.parse_args()
    from machine import machine, spread

    from lite_nmt.bench.emulated import count, find_emulator

    draw = np.random.default_rng(1)
    weights = [draw.standard_normal((WIDTH, WIDTH), np.float32) / WIDTH**0.5 for _ in range(PRODUCTS)]
    lines = [
        "# int8 products",
        "",
        f"`python benchmarks/int8_operators.py` on {args.machine or machine()}.",
        "",
        f"{PRODUCTS} products by {WIDTH} x {WIDTH}, one thread, ONNX Runtime. Here: CPU microseconds a product, median "
        f"of {args.rounds} rounds in turns, with quartiles. Emulated Cortex-A72: instructions and bytes from DRAM a "
        "product (docs/bench-arm.md).",
        "",
        "| form | rows | KB of graph | µs here | thousand instructions, A72 | DRAM, KB, A72 |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        paths = {form: Path(folder) / f"{number}.onnx" for number, form in enumerate(FORMS)}
        for form, path in paths.items():
            path.write_bytes(build(form, weights))
        runs = {form: subject(str(path)) for form, path in paths.items()}
        emulator = find_emulator()
        for rows in map(str, ROWS):
            times: dict[str, list[float]] = {form: [] for form in FORMS}
            for number in range(args.rounds + 1):
                for form, run in runs.items():
                    start = time.process_time()
                    run(rows)
                    if number:
                        times[form].append((time.process_time() - start) * 1e6 / PRODUCTS)
            for form, path in paths.items():
                here = [Path(__file__).resolve().parent]
                counts = count(emulator, "int8_operators:subject", [str(path)], [rows] * 4, path=here)
                middle, low, high = spread(times[form])
                lines.append(
                    f"| {form} | {rows} | {path.stat().st_size / 1e3:,.0f} | **{middle:.2f}** [{low:.2f}, {high:.2f}] "
                    f"| {counts.instructions / PRODUCTS / 1e3:.1f} | {counts.dram_bytes / PRODUCTS / 1e3:.1f} |"
                )
                print(lines[-1], flush=True)
    lines += ["", *(f"- **{form}**: {what}" for form, what in FORMS.items())]
    args.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
