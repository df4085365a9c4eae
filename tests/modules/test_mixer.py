"""The weights a mixer tells of are those it computes with."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from lite_nmt.modules.adaptive_span import AdaptiveSpan
from lite_nmt.modules.attention import SelfAttention, merge_heads, split_heads
from lite_nmt.modules.average import AverageAttention
from lite_nmt.modules.convolution import Convolution, DynamicTaps, LightTaps, PlainConvolution, TalkTaps, Taps
from lite_nmt.modules.lsra import LSRA
from lite_nmt.modules.mixer import Mixer

WIDTH, HEADS = 8, 2


def randomised(mixer: Mixer) -> Mixer:
    """Nothing is zero: a bias that starts at 0 would hide its part in an error."""
    for parameter in mixer.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return mixer.double().eval()


def batch(length: int, padded: bool) -> tuple[Tensor, Tensor | None]:
    x = torch.randn(2, length, WIDTH, dtype=torch.float64)
    return x, torch.arange(length) < torch.tensor([[length], [(length + 1) // 2]]) if padded else None


def close(ours: Tensor, theirs: Tensor, keep: Tensor | None) -> None:
    there = torch.ones(ours.shape[:2], dtype=torch.bool) if keep is None else keep
    torch.testing.assert_close(ours[there], theirs[there], rtol=0, atol=1e-6)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("window", [None, 1, 4])
@pytest.mark.parametrize("causal", [False, True])
@torch.inference_mode()
def test_attention(causal: bool, window: int | None, padded: bool) -> None:
    torch.manual_seed(0)
    mixer = randomised(SelfAttention(WIDTH, HEADS, causal, window))
    assert isinstance(mixer, SelfAttention)
    x, keep = batch(9, padded)
    weights = mixer.weights(x, keep)
    assert weights.shape == (2, HEADS, 9, 9)
    values = split_heads(mixer.qkv(x).chunk(3, -1)[2], HEADS)
    close(mixer.out(merge_heads(weights @ values)), mixer(x, keep), keep)
    close(weights.sum(-1).mean(1), torch.ones(2, 9, dtype=torch.float64), keep)
    if causal:
        assert not weights.triu(1).any()


@pytest.mark.parametrize("persistent", [0, 3])
@pytest.mark.parametrize("kind", ["attention", "adaptive-span"])
@torch.inference_mode()
def test_adaptive_span_and_persistent_vectors(kind: str, persistent: int) -> None:
    """What the text's steps are given, and what the persistent values take of the rest."""
    torch.manual_seed(0)
    made = (
        SelfAttention(WIDTH, HEADS, True, persistent=persistent)
        if kind == "attention"
        else AdaptiveSpan(WIDTH, HEADS, 20, 3, persistent=persistent)
    )
    mixer = randomised(made)
    assert isinstance(mixer, SelfAttention)
    if isinstance(mixer, AdaptiveSpan):
        mixer.z.copy_(torch.tensor([0.14, 0.02]))
    x, _ = batch(9, False)
    weights = mixer.weights(x)
    q, _, v = (split_heads(part, HEADS) for part in mixer.qkv(x).chunk(3, -1))
    mixed = weights @ v
    rest = 1 - weights.sum(-1, keepdim=True)
    if persistent:
        key, value = mixer.memory()
        mixed = mixed + rest * ((q @ key.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1) @ value)
    close(mixer.out(merge_heads(mixed)), mixer(x), None)
    assert not weights.triu(1).any()
    assert (rest > 0.01).all() == bool(persistent)
    if kind == "adaptive-span":
        assert not weights.tril(-6).any(), "the widest head sees 6 steps"


def producer(kind: str, taps: int, padding: int, norm: str, renormalize: bool) -> Taps:
    if kind == "light":
        return LightTaps(HEADS, taps, padding, norm, 0.0, renormalize)
    if kind == "dynamic":
        return DynamicTaps(WIDTH, HEADS, taps, padding, norm, 0.0, renormalize)
    return TalkTaps(WIDTH, HEADS, padding, taps - 1 - padding, 0.0)


@pytest.mark.parametrize("length", [1, 3, 12, 131])  # 1, below K, above K, and where the taps are shifted and summed
@pytest.mark.parametrize(
    ("kind", "taps", "padding", "norm", "renormalize"),
    [
        *product(("light", "dynamic", "talk"), (5,), (2, 4), ("softmax",), (False,)),
        ("light", 4, 2, "tanh", False),
        ("dynamic", 5, 2, "softmax", True),
        ("talk", 1, 0, "softmax", False),
    ],
)
@torch.inference_mode()
def test_convolutions(kind: str, taps: int, padding: int, norm: str, renormalize: bool, length: int) -> None:
    torch.manual_seed(0)
    made = producer(kind, taps, padding, norm, renormalize)
    mixer = randomised(Convolution(WIDTH, made, glu=True))
    assert isinstance(mixer, Convolution)
    for padded in (False, True):
        x, keep = batch(length, padded)
        weights = mixer.weights(x, keep)
        assert weights.shape == (2, HEADS, length, length)
        values = split_heads(mixer.project(x), HEADS)
        close(mixer.out(merge_heads(weights @ values)), mixer(x, keep), keep)
        if keep is not None:
            assert not weights[~keep[:, None, None, :].expand_as(weights)].any()
        elif kind != "talk" and norm == "softmax":
            inside = slice(None) if renormalize else slice(padding, length - (taps - 1 - padding))
            sums = weights.sum(-1)[:, :, inside]
            torch.testing.assert_close(sums, torch.ones_like(sums))


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@torch.inference_mode()
def test_average(causal: bool, padded: bool) -> None:
    torch.manual_seed(0)
    mixer = randomised(AverageAttention(WIDTH, 12, causal))
    assert isinstance(mixer, AverageAttention)
    x, keep = batch(6, padded)
    weights = mixer.weights(x, keep)
    assert weights.shape == (2, 1, 6, 6)
    there = x if keep is None else x.masked_fill(~keep.unsqueeze(-1), 0)
    close(mixer.mix(there, weights[:, 0].double() @ x), mixer(x, keep), keep)
    first = [1, 0, 0, 0, 0, 0] if causal else [1 / 6] * 6
    torch.testing.assert_close(weights[0, 0, 0], torch.tensor(first, dtype=torch.float))


@torch.inference_mode()
def test_a_full_convolution_tells_the_norms_of_its_taps() -> None:
    mixer = PlainConvolution(2, 3, 1, glu=False)
    mixer.conv.weight.copy_(torch.tensor([1.0, 3.0, 0.0]).expand(2, 2, 3))
    weights = mixer.weights(torch.zeros(1, 3, 2), torch.tensor([[True, True, False]]))
    expected = torch.tensor([[0.75, 0, 0], [0.25, 0.75, 0], [0, 0.25, 0]])
    torch.testing.assert_close(weights, expected[None, None])


def test_lsra_leaves_it_to_its_parts() -> None:
    half = SelfAttention(4, 2, causal=False)
    with pytest.raises(NotImplementedError):
        LSRA(half, half).weights(torch.zeros(1, 3, 8))
