"""Models with the kernels inside: a training step is the reference's."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from lite_nmt.config import Config, ModelConfig, StackConfig, VocabularyConfig
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.translation import TranslationModel
from lite_nmt.modules.convolution import Convolution, DynamicTaps, LightTaps, TalkTaps
from lite_nmt.modules.kernels import use_kernels
from lite_nmt.ops.implementation import Implementation

MIXERS = ["lsra", "lightconv", "dynamicconv", "talk"]


def model(mixer: str) -> TranslationModel:
    stack = StackConfig(layers=1, mixer=mixer, heads=2, conv="dynamicconv", conv_heads=2, kernels=(5,), ffn=8)
    torch.manual_seed(0)
    config = Config(
        ModelConfig(width=12, encoder=stack, decoder=stack, cross_heads=2, dropout=0.0),
        VocabularyConfig(source=16, target=16),
    )
    return TranslationModel(config).train()


def gradients(trained: nn.Module, device: str, impl: Implementation) -> list[Tensor]:
    """Of a loss of one padded batch, after the loss itself."""
    use_kernels(trained, impl)
    source = torch.arange(14, device=device).view(2, 7)
    keep = torch.arange(7, device=device) < torch.tensor([[7], [4]], device=device)
    loss = trained(source, keep, source[:, :6]).square().mean()
    return [loss, *torch.autograd.grad(loss, [p for p in trained.parameters() if p.requires_grad], allow_unused=True)]


@pytest.mark.parametrize("mixer", MIXERS)
def test_a_training_step_is_the_references(mixer: str, device: str) -> None:
    trained = model(mixer).to(device)
    ours, theirs = (gradients(trained, device, impl) for impl in ("triton", "reference"))
    for mine, reference in zip(ours, theirs, strict=True):
        assert (mine is None) == (reference is None)
        if mine is not None:
            torch.testing.assert_close(mine, reference, rtol=1e-4, atol=1e-6)


def producers() -> list[LightTaps | DynamicTaps | TalkTaps]:
    return [
        LightTaps(2, 5, 2, "softmax", 0.1, False),
        DynamicTaps(8, 2, 5, 2, "softmax", 0.1, False),
        TalkTaps(8, 2, 2, 2, 0.1),
        TalkTaps(8, 2, 4, 0, 0.1),
    ]


@pytest.mark.parametrize("kind", range(4))
def test_autocast(kind: int, device: str) -> None:
    torch.manual_seed(0)
    mixer = Convolution(8, producers()[kind], glu=True).to(device).eval()
    x = torch.randn(1, 9, 8, device=device)
    expected = mixer(x)
    mixer.impl = "triton"
    with torch.autocast(device, torch.bfloat16):
        out = mixer(x)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), expected, rtol=0.1, atol=0.02)
    out.float().sum().backward()
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in mixer.parameters())


@pytest.mark.parametrize("kind", range(4))
def test_weight_dropout_drops_in_training_alone(kind: int, device: str) -> None:
    torch.manual_seed(0)
    mixer = Convolution(8, producers()[kind], glu=False).to(device)
    mixer.impl = "triton"
    x = torch.randn(1, 9, 8, device=device)
    assert not torch.equal(mixer(x), mixer(x))
    mixer.eval()
    assert torch.equal(mixer(x), mixer(x))


def test_refuses_other_norms_by_name(device: str) -> None:
    mixer = Convolution(8, LightTaps(2, 5, 2, "tanh", 0.0, False), glu=False).to(device)
    x = torch.randn(1, 9, 8, device=device)
    mixer(x)  # "auto" leaves it to the reference
    mixer.impl = "triton"
    with pytest.raises(LiteNmtError, match="softmax"):
        mixer(x)


def test_refuses_to_be_exported(device: str) -> None:
    mixer = Convolution(8, LightTaps(2, 5, 2, "softmax", 0.0, False), glu=False).to(device).eval()
    x = torch.randn(1, 9, 8, device=device)
    held = {str(node.target) for node in torch.export.export(mixer, (x,)).graph.nodes}
    assert not any("lite_nmt" in name for name in held)
    mixer.impl = "triton"
    with pytest.raises(Exception, match="standard operators"):
        torch.export.export(mixer, (x,))


def test_refuses_float64_by_name(device: str) -> None:
    mixer = Convolution(8, LightTaps(2, 5, 2, "softmax", 0.0, False), glu=False).to(device).double()
    mixer.impl = "triton"
    with pytest.raises(LiteNmtError, match="float64"):
        mixer(torch.randn(1, 9, 8, device=device, dtype=torch.float64))
