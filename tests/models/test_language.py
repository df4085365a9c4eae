"""Language models: one step at a time equals the whole text, blocks with a cache do too, and nothing looks ahead."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lite_nmt.config import Config, from_dict
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.language import LanguageModel
from lite_nmt.modules.adaptive import AdaptiveEmbedding, AdaptiveSoftmax, Bands
from lite_nmt.train.loss import language_loss

TYPES = 31
SPAN = {"mixer": "adaptive-span", "span": 20, "ramp": 3}
FAMILIES: dict[str, dict[str, Any]] = {
    "attention": {"mixer": "attention"},
    "window": {"mixer": "attention", "windows": [4]},
    "all-attention": {"mixer": "attention", "persistent": 6, "ffn": 0},
    "all-attention, window": {"mixer": "attention", "windows": [4], "persistent": 6, "ffn": 0},
    "adaptive span": SPAN,
    "adaptive span, all-attention": {**SPAN, "persistent": 6, "ffn": 0},
    "lightconv": {"mixer": "lightconv"},
    "dynamicconv": {"mixer": "dynamicconv", "glu": True},
    "talk": {"mixer": "talk"},
    "lsra": {"mixer": "lsra", "conv": "dynamicconv"},
    "average": {"mixer": "average"},
    "cnn": {"mixer": "cnn"},
}
ADAPTIVE = [name for name, stack in FAMILIES.items() if stack["mixer"] == "adaptive-span"]


def configure(name: str, **model: Any) -> Config:
    stack = {"layers": 2, "heads": 2, "conv_heads": 2, "kernels": [3, 6], "ffn": 24, **FAMILIES[name]}
    table = {"width": 16, "cutoffs": [9, 20], **model, "decoder": stack}
    return from_dict(Config, {"task": "lm", "model": table, "vocabulary": {"kind": "word", "target": TYPES}})


def build(config: Config) -> LanguageModel:
    torch.manual_seed(0)
    model = LanguageModel(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        for mixer, z in zip(model.spans(), ([0.09, 0.0], [0.33, 0.2]), strict=False):
            mixer.z.copy_(torch.tensor(z))  # 5 steps, and 10
    return model


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("tables", [{}, {"cutoffs": [], "norm": "pre"}, {"tie": "none"}], ids=["", "pre", "untied"])
@pytest.mark.parametrize("name", FAMILIES)
@torch.inference_mode()
def test_step_by_step_equals_the_whole_text(name: str, tables: dict[str, Any]) -> None:
    """Over 26 steps, more than any layer here has learned to see."""
    model = build(configure(name, **tables))
    tokens = torch.randint(0, TYPES, (3, 26))
    whole = model.project(model(tokens)[0])
    state = model.initial_state(3)
    shapes = {key: tensor.shape for key, tensor in state.items()}
    for position in range(tokens.shape[1]):
        scores, state = model.step(tokens[:, position], torch.tensor(position), state)
        close(scores, whole[:, position])
    if name in ADAPTIVE:
        assert [shapes[f"{i}.key"][2] for i in range(2)] == [4, 9]
        assert {key: tensor.shape for key, tensor in state.items()} == shapes, "the cache is cut to what is seen"


@pytest.mark.parametrize("name", ADAPTIVE)
@pytest.mark.parametrize("sizes", [[26], [5, 5, 5, 11], [1] * 6 + [20], [20, 2, 4]])
def test_blocks_with_a_cache_equal_the_whole_text(name: str, sizes: list[int]) -> None:
    model = build(configure(name))
    tokens = torch.randint(0, TYPES, (2, 26))
    whole = model(tokens)[0]
    found, cache = [], None
    for block in tokens.split(sizes, 1):
        hidden, cache = model(block, cache)
        found.append(hidden)
        assert not any(tensor.requires_grad for tensor in cache.values())
        assert cache["0"].shape[1] <= 4
        assert cache["1"].shape[1] <= 9
    close(torch.cat(found, 1), whole)


@pytest.mark.parametrize("name", FAMILIES)
@torch.inference_mode()
def test_nothing_looks_ahead(name: str) -> None:
    model = build(configure(name))
    tokens = torch.randint(0, TYPES, (1, 12))
    before = model(tokens)[0]
    tokens[0, 7] = (tokens[0, 7] + 1) % TYPES
    changed = (model(tokens)[0] - before).abs().amax(-1)[0] > 1e-9
    assert changed.nonzero()[0].item() == 7


@torch.inference_mode()
def test_a_layer_sees_no_further_than_its_span() -> None:
    model = build(configure("adaptive span"))
    tokens = torch.randint(0, TYPES, (1, 24))
    before = model(tokens)[0]
    tokens[0, 2] = (tokens[0, 2] + 1) % TYPES
    changed = (model(tokens)[0] - before).abs().amax(-1)[0] > 1e-9
    assert changed.nonzero().flatten().tolist() == list(range(2, 2 + 4 + 9 + 1))


def test_spans_learn_and_stay_in_bounds() -> None:
    model = LanguageModel(configure("adaptive span"))
    first, _ = model.spans()
    assert first.z.tolist() == [0, 0]
    assert first.sees() == 3
    hidden, _ = model(torch.randint(0, TYPES, (2, 15)))
    hidden.square().sum().backward()
    assert first.z.grad is not None
    assert first.z.grad.isfinite().all()
    assert first.z.grad.any()
    with torch.no_grad():
        first.z.copy_(torch.tensor([-0.5, 1.7]))
    first.clamp()
    assert first.z.tolist() == [0, 1]
    assert first.sees() == 20


def test_adaptive_softmax_is_pytorchs_where_the_same() -> None:
    torch.manual_seed(0)
    cutoffs, width = [9, 20], 16
    bands = Bands(TYPES, width, cutoffs, 4)
    softmax = AdaptiveSoftmax(bands)
    theirs = nn.AdaptiveLogSoftmaxWithLoss(width, TYPES, cutoffs, div_value=4.0)
    with torch.no_grad():
        theirs.head.weight.copy_(bands.tables[0] @ bands.maps[0].t())
        for b, tail in enumerate(theirs.tail, 1):
            tail.get_parameter("0.weight").copy_(bands.maps[b].t())
            tail.get_parameter("1.weight").copy_(bands.tables[b])
    x, labels = torch.randn(40, width), torch.randint(0, TYPES, (40,))
    close(softmax(x), theirs.log_prob(x))
    model = LanguageModel(configure("lightconv"))
    model.project = softmax
    loss, nll = language_loss(model, x, labels)
    close(loss / 40, theirs(x, labels).loss)
    close(nll / 40, loss.detach() / 40)
    # Every gradient: of the tables, whose rows the head's weight is made of.
    loss.backward()
    expected = torch.autograd.grad(-softmax(x).gather(1, labels[:, None]).sum(), list(bands.parameters()))
    for parameter, gradient in zip(bands.parameters(), expected, strict=True):
        assert parameter.grad is not None
        close(parameter.grad, gradient)


def test_adaptive_inputs_look_up_each_band() -> None:
    bands = Bands(TYPES, 16, [9, 20], 4)
    assert [tuple(t.shape) for t in bands.tables] == [(11, 16), (11, 4), (11, 1)]
    tokens = torch.arange(TYPES).view(1, -1)
    found = AdaptiveEmbedding(bands)(tokens, None)[0]
    for token in range(TYPES):
        b = 0 if token < 9 else 1 if token < 20 else 2
        row = bands.tables[b][token - (0, 9, 20)[b]]
        close(found[token], 4 * bands.maps[b] @ row)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"vocabulary": {"kind": "bpe"}}, 'task = "lm" needs "word"'),
        ({"model": {"cutoffs": [9, 9]}}, "each must be larger"),
        ({"model": {"cutoffs": [9, 40]}}, "the vocabulary has 31 types"),
        ({"model": {"cutoffs": [2, 3, 4], "cutoff_factor": 16, "width": 16}}, "leaves the last band no channel"),
        ({"train": {"stop_on": "bleu"}}, "has no BLEU"),
        ({"train": {"compile": True}, "model": {"decoder": {"mixer": "adaptive-span"}}}, "change what is computed"),
        ({"model": {"decoder": {"mixer": "talk", "persistent": 3}}}, '"talk" has no keys'),
        ({"train": {"span_loss": 1e-6}}, '"lsra" learns no span'),
        ({"model": {"decoder": {"mixer": "average", "ffn": 0}}}, '"average" needs one'),
        ({"task": "translate"}, 'vocabulary.kind = "word" is for language models'),
        (
            {
                "task": "translate",
                "vocabulary": {"kind": "bpe"},
                "model": {"encoder": {"mixer": "adaptive-span"}},
            },
            '"adaptive-span" is for language models',
        ),
    ],
)
def test_what_cannot_be_is_refused(table: dict[str, Any], message: str) -> None:
    voc = {"kind": "word", "target": TYPES, **table.pop("vocabulary", {})}
    with pytest.raises(LiteNmtError, match=message):
        from_dict(Config, {"task": "lm", "vocabulary": voc, **table})
