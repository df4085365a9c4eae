"""Three ways of counting, which must agree to the last unit; and models from outside."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import lite_nmt
from lite_nmt.config import Config, from_dict, load_preset, preset_names
from lite_nmt.errors import LiteNmtError
from lite_nmt.profiling.cost import Cost, Lengths, cost
from lite_nmt.profiling.einsum import einsum
from lite_nmt.profiling.graph import count_export
from lite_nmt.profiling.traced import profile, unallocated

ODD = Lengths(source=23, target=37, batch=2, beam=3)  # no two alike, so that none can stand for another


def figures(total: Cost) -> dict[str, tuple[str, int, int]]:
    """All but activations, by part. Norms are free, and a graph does not name an empty one."""
    assert not total.uncounted
    return {p.name: (p.kind, p.mult_adds, p.parameters) for p in total.parts}


def closed(config: Config, of: Lengths) -> Cost:
    return cost(config, of.source, of.target, of.batch, of.beam)


@pytest.mark.parametrize("preset", [name for name in preset_names() if load_preset(name).task == "translate"])
def test_closed_form_trace_and_graph_agree(preset: str) -> None:
    config = load_preset(preset)
    expected = figures(closed(config, ODD))
    assert figures(profile(*unallocated(config, ODD))) == expected
    assert figures(count_export(config, ODD)) == expected


@pytest.mark.parametrize(
    ("mixer", "cutoffs", "tie"),
    [("attention", [], "all"), ("attention", [7, 20], "none"), ("adaptive-span", [7, 20], "all")],
)
def test_they_agree_on_language_models(mixer: str, cutoffs: list[int], tie: str) -> None:
    """With persistent vectors and no feed-forward network, beyond what the spans have learned and within."""
    stack = {"mixer": mixer, "layers": 2, "heads": 2, "persistent": 5, "ffn": 0, "span": 50, "spans": [9, 50]}
    model = {"width": 16, "cutoffs": cutoffs, "tie": tie, "norm": "pre", "decoder": stack}
    table = {"task": "lm", "model": model, "vocabulary": {"kind": "word", "target": 61}}
    config = from_dict(Config, table)
    expected = figures(closed(config, ODD))
    assert figures(profile(*unallocated(config, ODD))) == expected
    assert figures(count_export(config, ODD)) == expected
    width, t, n = 16, ODD.target, ODD.batch * ODD.beam
    seen = [9, t] if mixer == "adaptive-span" else [t] * 2
    products = 3 if mixer == "adaptive-span" else 2
    by_hand = sum(n * t * width * (4 * width + products * s + 2 * 5) for s in seen)
    assert closed(config, ODD).mult_adds() == by_hand


@pytest.mark.parametrize("preset", [name for name in preset_names() if load_preset(name).task == "lm"])
def test_closed_form_and_trace_agree_on_language_models(preset: str) -> None:
    config = load_preset(preset, {"model": {"decoder": {"layers": 1}}})
    assert figures(profile(*unallocated(config, ODD))) == figures(closed(config, ODD))


def pruned(preset: str) -> Config:
    """Layers of which no two are alike."""
    model = load_preset(preset).model
    cross, stacks = model.cross_heads, {}
    for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        step = stack.conv_heads or 1
        stacks[side] = {
            "layers": 3,
            "kept_heads": [stack.heads, 1, max(1, stack.heads - 1)],
            "conv_widths": [5 * step, 3 * step, 8 * step],
            "ffn_widths": [24, 3 * model.width, 1],
        }
    return load_preset(preset, {"model": {"kept_cross_heads": [1, cross, cross - 1], **stacks}})


PRUNED = ["lite-transformer", "transformer", "lightconv", "dynamicconv", "talk"]


@pytest.mark.parametrize("preset", [f"multi30k-{name}" for name in PRUNED] + ["wmt-lite-transformer-90m"])
def test_they_agree_on_layers_of_different_widths(preset: str) -> None:
    config = pruned(preset)
    expected = figures(closed(config, ODD))
    assert figures(profile(*unallocated(config, ODD))) == expected
    assert figures(count_export(config, ODD)) == expected


@pytest.mark.parametrize("preset", ["multi30k-lightconv", "multi30k-transformer", "multi30k-talk"])
def test_they_agree_beyond_the_length_at_which_the_band_is_a_matrix(preset: str) -> None:
    config, of = load_preset(preset), Lengths(source=200, target=150)
    expected = figures(closed(config, of))
    assert figures(profile(*unallocated(config, of))) == expected
    assert figures(count_export(config, of)) == expected


@pytest.mark.parametrize("shape", [load_preset, pruned], ids=["whole", "pruned"])
@pytest.mark.parametrize("preset", [p for p in preset_names() if p.startswith("multi30k-")] + ["wmt-transformer-base"])
def test_activations_are_what_a_run_holds_or_a_little_less(preset: str, shape: Callable[[str], Config]) -> None:
    """PyTorch's frames hold a layer's input until the layer is done, and a short band is laid out as a matrix, several
    times over; the closed form counts neither."""
    config = shape(preset)
    heads = 0 if config.model.encoder.mixer == "attention" else config.model.encoder.conv_heads
    for of in (Lengths(), ODD):
        total, run = closed(config, of), profile(*unallocated(config, of))
        assert total.activations("full") == run.activations("full")
        steps = max(of.source, of.target)
        matrix = 4 * of.batch * of.beam * heads * steps**2
        assert total.activations("paper") <= run.activations("paper") <= 1.3 * total.activations("paper") + 5 * matrix
        frame = 4 * 2 * of.batch * of.beam * steps * config.model.width
        for kind in ("ffn", "attention", "convolution"):
            if kind in total.by_kind():
                mine, held = total.by_kind()[kind].activations, run.by_kind()[kind].activations
                assert mine <= held + 4096 <= mine + frame + 5 * matrix + 8192


def count(model: nn.Module, *inputs: Tensor) -> Cost:
    return lite_nmt.profile(model, inputs)


class Outside(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(*inputs)


def zeros(*shape: int) -> Tensor:
    return torch.zeros(shape)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize(
    ("build", "shapes", "expected"),
    [
        (lambda: nn.Linear(8, 5), [(3, 7, 8)], 3 * 7 * 8 * 5),
        (lambda: nn.Bilinear(3, 4, 5), [(2, 3), (2, 4)], 2 * 3 * 4 * 5),
        (lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), [(1, 4, 9, 9)], 6 * 25 * 2 * 9),
        (lambda: nn.ConvTranspose1d(4, 6, 3, groups=2), [(1, 4, 8)], 4 * 8 * 3 * 3),
        (lambda: nn.LSTM(8, 16, 2, bidirectional=True, batch_first=True), [(2, 5, 8)], 10 * 2 * 4 * 16 * (24 + 48)),
        (lambda: nn.LSTM(8, 16, bias=False), [(5, 2, 8)], 10 * 4 * 16 * (8 + 16)),
        (lambda: nn.GRU(8, 16), [(5, 2, 8)], 10 * 3 * 16 * (8 + 16)),
        (lambda: nn.Conv2d(4, 6, 3, padding="same"), [(1, 4, 9, 9)], 6 * 81 * 4 * 9),
        (lambda: nn.MultiheadAttention(8, 2), [(3, 1, 8)] * 3, 4 * 3 * 64 + 2 * 9 * 8),
        (lambda: nn.TransformerEncoderLayer(8, 2, 20), [(3, 1, 8)], 4 * 3 * 64 + 2 * 9 * 8 + 2 * 3 * 160),
        (lambda: Outside(torch.matmul), [(4, 1, 5, 6), (3, 6, 7)], 4 * 3 * 5 * 6 * 7),
        (lambda: Outside(torch.matmul), [(6,), (6, 7)], 6 * 7),
        (lambda: Outside(lambda x, y: x @ y + x.sin() * 2), [(6,), (6,)], 6),
        (lambda: Outside(lambda x, y: torch.tensordot(x, y, 1)), [(2, 3, 4), (4, 5, 6)], 6 * 4 * 30),
        (lambda: Outside(lambda x, y: torch.einsum("ij,ij->ij", x, y)), [(2, 3), (2, 3)], 0),
        (lambda: Outside(torch.addmm), [(5,), (4, 3), (3, 5)], 4 * 3 * 5),
        (lambda: Outside(torch.baddbmm), [(2, 4, 5), (2, 4, 3), (2, 3, 5)], 2 * 4 * 3 * 5),
        (lambda: Outside(F.scaled_dot_product_attention), [(2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 4)], 6 * 35 * 12),
        (lambda: Outside(lambda x, y: torch.einsum("...ij,jk->...ik", x, y)), [(2, 3, 4, 5), (5, 6)], 6 * 4 * 5 * 6),
    ],
)
def test_modules_from_outside(
    device: str, build: Callable[[], nn.Module], shapes: list[tuple[int, ...]], expected: int
) -> None:
    with torch.device(device):
        model = build()
        total = count(model, *(zeros(*shape) for shape in shapes))
    assert total.mult_adds("full") == expected
    assert total.parameters("full") == sum(p.numel() for p in model.parameters())
    assert not total.uncounted


def test_a_whole_network_by_module() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
    total = count(model, zeros(1, 3, 8, 8))
    parts = {part.name: (part.kind, part.mult_adds, part.parameters) for part in total.parts}
    assert parts == {
        "0": ("convolution", 8 * 36 * 27, 8 * 27 + 8),
        "1": ("norm", 0, 16),
        "4": ("linear", 2880, 2890),
    }
    assert total.activations("full") == 4 * 2 * 8 * 36  # into and out of the norm


def test_what_cannot_be_counted_is_named() -> None:
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.idle = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return torch.fft.rfft(self.used(x)).abs()

    total = count(Half(), zeros(2, 4))
    assert total.mult_adds() == 32
    assert total.uncounted == (
        "operator aten::fft_rfft, 1 times",
        "parameter idle.weight, which no operator used",
        "parameter idle.bias, which no operator used",
    )
    with pytest.raises(LiteNmtError, match="could not count all of Half: operator aten::fft_rfft, 1 times; parameter"):
        profile(Half(), zeros(2, 4), strict=True)


class Product(torch.autograd.Function):
    """Hides a matrix product from the tracer."""

    @staticmethod
    def forward(ctx: object, x: Tensor, y: Tensor) -> Tensor:
        return x @ y


def test_what_a_tracer_cannot_look_into_is_named() -> None:
    total = count(Outside(lambda x, y: Product.apply(x, y)), zeros(3, 4), zeros(4, 5))
    assert total.uncounted == ("operator prim::PythonOp.Product, 1 times",)


def test_packed_sequences_cost_their_steps() -> None:
    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(8, 16)

        def forward(self, x: Tensor) -> Tensor:
            packed = nn.utils.rnn.pack_padded_sequence(x, [5, 3])
            return self.lstm(packed)[0].data

    total = count(Packed(), zeros(5, 2, 8))
    assert (total.mult_adds(), total.uncounted) == (8 * 4 * 16 * (8 + 16), ())


def state(model: nn.Module) -> list[object]:
    return [(m.training, len(m._forward_hooks), len(m._forward_pre_hooks), sorted(vars(m))) for m in model.modules()]


def test_a_model_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(6, 2)).train()
    model[1].eval()
    before = state(model)
    count(model, zeros(1, 3, 8, 8))
    assert state(model) == before
    with pytest.raises(LiteNmtError, match=r"cannot trace Sequential: .*shapes cannot be multiplied"):
        count(model, zeros(1, 3, 8, 9))
    assert state(model) == before
    assert torch.backends.mha.get_fastpath_enabled()


def test_keyword_arguments_and_results_of_any_kind() -> None:
    @dataclass
    class Result:
        scores: Tensor
        note: str

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 5)

        def forward(self, x: Tensor, *, scale: Tensor, twice: Tensor | None = None) -> dict[str, Result]:
            y = self.linear(x * scale)
            return {"result": Result(y if twice is None else y @ twice, "fine")}

    model = Model()
    assert lite_nmt.profile(model, (zeros(3, 4),), {"scale": zeros(4)}).mult_adds() == 60
    assert lite_nmt.profile(model, (zeros(3, 4),), {"twice": zeros(5, 2), "scale": zeros(4)}).mult_adds() == 90
    assert lite_nmt.profile(torch.compile(nn.Linear(4, 5)), zeros(3, 4)).mult_adds() == 60  # type: ignore[arg-type]


def test_what_is_no_model_or_no_input() -> None:
    with pytest.raises(LiteNmtError, match=r"is no nn\.Module; wrap a function in one"):
        lite_nmt.profile(torch.relu, zeros(3))  # type: ignore[arg-type]
    with pytest.raises(LiteNmtError, match="the inputs of Linear are None; give a tensor or a tuple"):
        lite_nmt.profile(nn.Linear(4, 4), None)  # type: ignore[arg-type]


def test_a_layer_called_project_is_like_any_other() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.project(x)

    assert count(Model(), zeros(1, 4)).mult_adds() == 16


def test_a_tied_weight_is_counted_once() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    total = count(model, zeros(1, 4))
    assert (total.mult_adds(), total.parameters()) == (32, 16 + 4 + 4)


@pytest.mark.parametrize(
    ("equation", "shapes", "expected"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)], 24),
        ("bhtd,bhsd->bhts", [(2, 3, 4, 5), (2, 3, 6, 5)], 2 * 3 * 4 * 5 * 6),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)], 2 * 3 * 4 + 2 * 4 * 5),
        ("ij,jk", [(2, 3), (3, 4)], 24),
        ("...i,i", [(7, 3), (3,)], 21),
        ("ii->i", [(3, 3)], 0),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]], expected: int) -> None:
    assert einsum(equation, shapes) == expected


def test_the_closed_form_needs_no_torch() -> None:
    code = "import sys; from lite_nmt.cli.main import main; main(['profile', 'demo']); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
