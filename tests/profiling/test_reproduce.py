"""Every printed figure comes out, and the Evolved Transformer's closed form is that of its layers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest
import torch
from rich.console import Console
from torch import Tensor, nn
from torch.nn import functional as F

from lite_nmt.errors import LiteNmtError
from lite_nmt.profiling.cost import EMBEDDING, OUTPUT
from lite_nmt.profiling.evolved import evolved_transformer
from lite_nmt.profiling.reproduce import Row, as_json, render, rows


def row(printed: str, ours: int) -> Row:
    return Row("Table 9: none", "Transformer", "preset", "Mult-Adds", printed, ours)


def text(*shown: Row) -> str:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(render(shown))
    return capture.get()


def test_every_printed_figure_comes_out() -> None:
    assert [r for r in rows() if not r.passes] == []


def test_every_table_is_there() -> None:
    tables = Counter(r.table.partition(":")[0] for r in rows())
    assert tables == {"Table 1": 18, "Table 2": 12, "Table 3": 12, "Table 4": 6, "Table 5": 6, "Figure 5": 1}
    assert len(set(rows())) == 55


@pytest.mark.parametrize(
    ("table", "configuration", "what", "printed", "ours"),
    [
        ("Table 1", "iwslt-transformer-63m", "Mult-Adds", "63M", 63_129_600),
        ("Table 1", "iwslt-lightconv-204m", "parameters", "8.4M", 8_422_700),
        ("Table 1", "iwslt-lite-transformer-209m", "parameters", "8.9M", 8_927_664),
        ("Table 2", "wmt-lite-transformer-527m", "Mult-Adds", "527M", 528_745_920),
        ("Table 3", "wmt-lite-transformer-90m", "parameters", "2.9M", 2_884_400),
        ("Table 3", "3 + 4 cells of 128 (inferred)", "parameters", "3.0M", 2_981_632),
        ("Table 3", "3 + 4 cells of 128 (inferred)", "Mult-Adds", "94M", 93_020_160),
        ("Table 3", "3 + 4 cells of 256 (inferred)", "parameters", "11.8M", 11_812_352),
        ("Table 3", "3 + 4 cells of 256 (inferred)", "Mult-Adds", "364M", 361_512_960),
        ("Table 4", "cnndm-lite-transformer", "Mult-Adds at 100 tokens", "1.5G", 1_457_605_120),
        ("Table 5", "wikitext103-transformer-512", "parameters", "37.8M", 37_829_632),
        ("Table 5", "wikitext103-transformer-512", "Mult-Adds at 1,000 tokens", "50.3G", 50_036_736_000),
        ("Table 5", "wikitext103-lite-transformer", "parameters", "37.2M", 37_182_208),
        ("Table 5", "wikitext103-lite-transformer", "Mult-Adds at 1,000 tokens", "48.7G", 48_070_400_000),
        ("Figure 5", "wmt-transformer-base", "parameters", "44.1M", 44_138_496),
    ],
)
def test_printed_and_ours(table: str, configuration: str, what: str, printed: str, ours: int) -> None:
    [found] = [r for r in rows() if r.table.startswith(table) and (r.configuration, r.what) == (configuration, what)]
    assert (found.printed, found.ours) == (printed, ours)


@pytest.mark.parametrize(
    ("printed", "ours", "passes"),
    [
        ("63M", 64_260_000, True),  # 2% over
        ("63M", 64_270_000, False),
        ("63M", 61_740_000, True),  # 2% under
        ("63M", 61_730_000, False),
        ("1.5G", 1_450_000_000, True),  # 3.3% under, and the same digit
        ("1.5G", 1_449_000_000, False),
        ("0.8G", 850_000_000, True),
        ("0.8G", 851_000_000, False),
    ],
)
def test_what_passes(printed: str, ours: int, passes: bool) -> None:
    assert row(printed, ours).passes == passes


def test_deviation_is_in_percent_of_the_printed_figure() -> None:
    assert row("50M", 51_000_000).deviation == pytest.approx(2)
    assert row("29.9G", 29_601_000_000).deviation == pytest.approx(-1)


def test_render_shows_both_figures_and_the_verdict() -> None:
    lines = [
        line.split() for line in text(row("50M", 51_000_000), row("50M", 60_000_000), row("8M", 7_999_999)).splitlines()
    ]
    assert lines[0] == ["Table", "9:", "none"]
    assert lines[2] == ["Transformer", "Mult-Adds", "50M", "51M", "+2.0%", "pass"]
    assert lines[3] == ["preset", "Mult-Adds", "50M", "60M", "+20.0%", "FAIL"]
    assert lines[4] == ["Mult-Adds", "8M", "8M", "+0.0%", "pass"]
    assert lines[-1][:3] == ["2", "of", "3"]


def test_render_has_one_block_a_table() -> None:
    shown = text(*rows())
    assert shown.count("deviation") == 6
    assert "FAIL" not in shown
    assert "55 of 55 figures" in shown


def test_json_holds_all_of_it() -> None:
    first = json.loads(json.dumps(as_json([row("50M", 51_000_000)])))
    assert first == [
        {
            "table": "Table 9: none",
            "model": "Transformer",
            "configuration": "preset",
            "what": "Mult-Adds",
            "printed": "50M",
            "ours": 51_000_000,
            "deviation": pytest.approx(2),
            "passes": True,
        }
    ]


def test_needs_no_torch() -> None:
    code = "import sys; from lite_nmt.profiling.reproduce import rows; rows(); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


class Attention(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.products = 0

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        self.products = 2 * x.shape[1] * memory.shape[1] * x.shape[2]
        return self.out(F.scaled_dot_product_attention(self.query(x), self.key(memory), self.value(memory)))


class Separable(nn.Module):
    """Over B T C, padded to the same length; which side makes no difference to the count."""

    def __init__(self, inputs: int, outputs: int, taps: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv1d(inputs, inputs, taps, padding=taps // 2, groups=inputs, bias=False)
        self.pointwise = nn.Conv1d(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.pointwise(self.depthwise(x.mT)).mT


def padded(x: Tensor, width: int) -> Tensor:
    return F.pad(x, (0, width - x.shape[-1]))


class EncoderCell(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(4))
        self.values, self.gates = nn.Linear(d, d), nn.Linear(d, d)
        self.wide, self.narrow = nn.Linear(d, 4 * d), nn.Conv1d(d, d // 2, 3, padding=1)
        self.between, self.separable = nn.LayerNorm(4 * d), Separable(4 * d, d // 2, 9)
        self.attention = Attention(d)
        self.feed = nn.Sequential(nn.Linear(d, 4 * d), nn.ReLU(), nn.Linear(4 * d, d))

    def forward(self, x: Tensor) -> Tensor:
        d = x.shape[-1]
        y = self.norms[0](x)
        x = x + self.values(y) * self.gates(y).sigmoid()
        y = self.norms[1](x)
        y = self.wide(y).relu() + padded(self.narrow(y.mT).mT.relu(), 4 * d)
        x = x + padded(self.separable(self.between(y)), d)
        y = self.norms[2](x)
        x = x + self.attention(y, y)
        return x + self.feed(self.norms[3](x))


class DecoderCell(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(5))
        self.attentions = nn.ModuleList(Attention(d) for _ in range(4))
        self.wide, self.narrow = Separable(d, 2 * d, 11), Separable(d, d // 2, 7)
        self.between, self.separable = nn.LayerNorm(2 * d), Separable(2 * d, d, 7)
        self.feed = nn.Sequential(nn.Linear(d, 4 * d), nn.SiLU(), nn.LayerNorm(4 * d), nn.Linear(4 * d, d))

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        y = self.norms[0](x)
        x = x + self.attentions[0](y, y) + self.attentions[1](y, memory)
        y = self.norms[1](x)
        x = x + self.separable(self.between(self.wide(y).relu() + padded(self.narrow(y), 2 * x.shape[-1])))
        y = self.norms[2](x)
        x = x + self.attentions[2](y, y)
        x = x + self.attentions[3](self.norms[3](x), memory)
        return x + self.feed(self.norms[4](x))


class EvolvedTransformer(nn.Module):
    def __init__(self, d: int, types: int) -> None:
        super().__init__()
        self.table = nn.Embedding(types, d)
        self.encoder = nn.Sequential(*(EncoderCell(d) for _ in range(3)), nn.LayerNorm(d))
        self.decoder = nn.ModuleList(DecoderCell(d) for _ in range(4))
        self.norm, self.project = nn.LayerNorm(d), nn.Linear(d, types, bias=False)
        self.project.weight = self.table.weight

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, x = self.encoder(self.table(source)), self.table(target)
        for cell in self.decoder:
            x = cell(x, memory)
        return self.project(self.norm(x))


@pytest.mark.parametrize(("width", "source", "target"), [(128, 30, 30), (256, 30, 30), (6, 11, 4)])
def test_evolved_transformer_is_counted_as_it_is_built(width: int, source: int, target: int) -> None:
    types, counted = 50, 0
    with torch.device("meta"):
        model = EvolvedTransformer(width, types)
        pair = torch.zeros(1, source, dtype=torch.long), torch.zeros(1, target, dtype=torch.long)

    def count(layer: nn.Module, inputs: tuple[Tensor], output: Tensor) -> None:
        nonlocal counted
        counted += output.numel() * layer.get_parameter("weight")[0].numel()

    for layer in model.modules():
        if isinstance(layer, nn.Linear | nn.Conv1d):
            layer.register_forward_hook(count)
    assert model(*pair).shape == (1, target, types)
    products = sum(layer.products for layer in model.modules() if isinstance(layer, Attention))
    total = evolved_transformer(width, source, target, types)
    assert total.mult_adds("full") == counted + products
    assert total.mult_adds("full") - total.mult_adds() == target * types * width
    assert total.parameters("full") == sum(p.numel() for p in model.parameters())
    assert total.parameters("full") - total.parameters() == types * width
    assert {EMBEDDING, OUTPUT} < {part.kind for part in total.parts}


@pytest.mark.parametrize(("width", "source"), [(0, 30), (7, 30), (128, 0)])
def test_evolved_transformers_that_cannot_be(width: int, source: int) -> None:
    with pytest.raises(LiteNmtError, match="to count for is"):
        evolved_transformer(width, source)
