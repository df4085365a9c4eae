"""The ways to compute a banded product, or attention, that ``kernels.py`` compares. Each takes what its operator takes,
in B,T,C."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from lite_nmt.ops.adaptive_span.api import span_attend
from lite_nmt.ops.adaptive_span.reference import log_mask
from lite_nmt.ops.banded import band_matrix, normalize_taps, talk_taps
from lite_nmt.ops.dynamic_conv.api import dynamic_conv
from lite_nmt.ops.implementation import Implementation
from lite_nmt.ops.light_conv.api import light_conv
from lite_nmt.ops.talk_conv.api import talk_conv

Method = Callable[..., Tensor]
LARGEST_BAND = 20e9  # bytes; a band matrix beyond is not tried
RAMP = 32  # steps; of adaptive span


@dataclass(frozen=True)
class Problem:
    """One operator at one size: ``light``, ``dynamic``, ``talk``, ``attention``, ``span`` or ``causal attention``.

    Of ``span``, ``taps`` is what the first head sees; the others see a ramp. Attention sees a window of as much, or
    everything where that is 0. ``training`` adds what a layer has in training: DropConnect, padding and a bias.
    """

    op: str
    batch: int
    length: int
    channels: int
    heads: int
    taps: int
    dtype: torch.dtype
    training: bool = False

    @property
    def padding(self) -> int:
        """The encoder's; the decoder's where attention is causal."""
        return self.taps - 1 if self.op == "causal attention" else self.taps // 2

    @property
    def banded(self) -> bool:
        """Whether bytes bound its time, and not products."""
        return self.op in ("light", "dynamic", "talk")

    def inputs(self, device: str) -> list[Tensor]:
        """Random, as leaves."""
        normal = functools.partial(torch.randn, device=device)
        made = [normal(self.batch, self.length, self.channels)]
        rows = (self.batch, self.length, self.heads)
        match self.op:
            case "light":
                made.append(normal(self.heads, self.taps))
            case "dynamic":
                made.append(normal(*rows, self.taps))
            case "talk":
                made += [offsets(rows, most, device) for most in (self.padding, self.taps - 1 - self.padding)]
            case "attention" | "causal attention":
                made += [torch.randn_like(made[0]) for _ in range(2)]
            case "span":
                made += [torch.randn_like(made[0]) for _ in range(2)]
                made += [normal(self.taps, self.channels // self.heads)]
                made += [torch.tensor([self.taps - RAMP + 0.0] + [0.0] * (self.heads - 1))]
        if self.training:
            made.append(normal(self.channels))
        return [tensor.to(device, self.dtype).requires_grad_() for tensor in made]

    def floor(self, backward: bool) -> int:
        """Bytes that must move: each input read once, each output written once, nothing in between."""
        x = self.batch * self.length * self.channels
        rows = self.batch * self.length * self.heads
        weights = {"light": 0, "dynamic": rows * self.taps, "talk": 2 * rows}[self.op]
        moved = 2 * x + weights
        if backward:
            moved += 3 * x + 2 * weights  # the gradient, x and the weights again; two gradients out
        return moved * self.dtype.itemsize


def offsets(rows: tuple[int, ...], most: int, device: str) -> Tensor:
    """Of TaLK, in [0, 1]: anywhere but near whole steps, where the box has two slopes and each method takes its own."""
    whole = torch.randint(max(most, 1), rows, device=device)
    return (whole + 0.25 + 0.5 * torch.rand(rows, device=device)) / max(most, 1)


def reference(problem: Problem) -> Method:
    """The specification, in the dtype of its inputs."""
    if not problem.op.endswith("attention"):
        return methods(problem)["reference"]
    if not problem.taps:
        return functools.partial(_attention, problem, SDPBackend.MATH)

    def windowed(*qkv: Tensor) -> Tensor:
        far = torch.arange(problem.length, device=qkv[0].device)
        near = _near(problem, far - far.unsqueeze(1))
        q, k, v = (_heads(problem, x) for x in qkv)
        return F.scaled_dot_product_attention(q, k, v, near).transpose(1, 2).flatten(-2)

    return windowed


def methods(problem: Problem) -> dict[str, Method]:
    """Who takes part, by name; ``triton`` is ours, ``reference`` the specification."""
    found: dict[str, Method]
    if problem.op == "span":
        found = {name: functools.partial(_span, problem, name) for name in get_args(Implementation) if name != "auto"}
        if problem.batch * problem.heads * problem.length**2 * problem.dtype.itemsize < LARGEST_BAND:
            found["SDPA, T x T bias"] = functools.partial(_span_by_bias, problem)
        return found
    if not problem.banded and problem.taps:
        return {"FlexAttention, window K": _flex(problem)}
    if not problem.banded:
        backends = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION, "math": SDPBackend.MATH}
        return {f"SDPA {name}": functools.partial(_attention, problem, backend) for name, backend in backends.items()}
    if problem.training:
        both: tuple[Implementation, ...] = ("triton", "reference")
        return {name: functools.partial(_in_training, problem, name) for name in both}
    if problem.op == "talk":
        return {
            "triton": functools.partial(_talk, problem, "triton"),
            "reference": functools.partial(_talk, problem, "reference"),
            "torch.compile of shift-sum": torch.compile(functools.partial(_shift_sum, problem), dynamic=False),
            "prefix sum": functools.partial(_prefix_sum, problem),
        }
    found = {
        "triton": functools.partial(_convolution, problem, "triton"),
        "reference": functools.partial(_convolution, problem, "reference"),
        "torch.compile of shift-sum": torch.compile(functools.partial(_shift_sum, problem), dynamic=False),
        "unfold": functools.partial(_unfold, problem),
    }
    if problem.batch * problem.heads * problem.length**2 * problem.dtype.itemsize < LARGEST_BAND:
        found["band matrix"] = functools.partial(_band, problem)
    if problem.op == "light":
        found["conv1d"] = functools.partial(_conv1d, problem)
    return found


def _convolution(problem: Problem, impl: Implementation, x: Tensor, weights: Tensor) -> Tensor:
    function = light_conv if problem.op == "light" else dynamic_conv
    return function(x, weights, problem.padding, impl=impl)


def _talk(problem: Problem, impl: Implementation, x: Tensor, left: Tensor, right: Tensor) -> Tensor:
    return talk_conv(x, left, right, problem.padding, problem.taps - 1 - problem.padding, impl=impl)


def _in_training(problem: Problem, impl: Implementation, x: Tensor, *weights: Tensor) -> Tensor:
    lengths = torch.arange(problem.batch, device=x.device).unsqueeze(1) % 5  # up to four steps are padding
    keep = torch.arange(problem.length, device=x.device) < problem.length - lengths
    seed = torch.full((1,), 7, device=x.device)
    rest: Any = {"keep": keep, "dropout": 0.1, "bias": weights[-1], "seed": seed, "impl": impl}
    if problem.op == "talk":
        return talk_conv(x, weights[0], weights[1], problem.padding, problem.taps - 1 - problem.padding, **rest)
    return (light_conv if problem.op == "light" else dynamic_conv)(x, weights[0], problem.padding, **rest)


def _taps(problem: Problem, *weights: Tensor) -> Tensor:
    """In float32 or better: their gradients are sums over many channels, and LightConv's over all steps."""
    if problem.op == "talk":
        return talk_taps(weights[0], weights[1], problem.padding, problem.taps - 1 - problem.padding)
    return normalize_taps(weights[0], "softmax")


def _padded(problem: Problem, x: Tensor) -> Tensor:
    return F.pad(x, (0, 0, problem.padding, problem.taps - 1 - problem.padding))


def _shift_sum(problem: Problem, x: Tensor, *weights: Tensor) -> Tensor:
    taps = _taps(problem, *weights)
    ahead = _padded(problem, x).unflatten(-1, (problem.heads, -1))
    shifted = (ahead[:, k : k + problem.length] * taps[..., k].unsqueeze(-1) for k in range(problem.taps))
    return functools.reduce(torch.add, shifted).flatten(-2).to(x.dtype)


def _unfold(problem: Problem, x: Tensor, weights: Tensor) -> Tensor:
    windows = _padded(problem, x).unfold(1, problem.taps, 1).unflatten(2, (problem.heads, -1))  # B T H R K
    taps = _taps(problem, weights).to(x.dtype)
    return torch.einsum("bthrk,hk->bthr" if taps.dim() == 2 else "bthrk,bthk->bthr", windows, taps).flatten(-2)


def _band(problem: Problem, x: Tensor, weights: Tensor) -> Tensor:
    matrix = band_matrix(_taps(problem, weights), problem.length, problem.padding).to(x.dtype)
    values = x.unflatten(-1, (problem.heads, -1)).transpose(1, 2)
    return (matrix @ values).transpose(1, 2).flatten(-2)


def _conv1d(problem: Problem, x: Tensor, weight: Tensor) -> Tensor:
    kernel = _taps(problem, weight).to(x.dtype).repeat_interleave(problem.channels // problem.heads, 0).unsqueeze(1)
    return F.conv1d(_padded(problem, x).transpose(1, 2), kernel, groups=problem.channels).transpose(1, 2)


def _prefix_sum(problem: Problem, x: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """TaLK as its paper computes it (equations 2 to 8), summed in float32: in half precision it would be wrong."""
    sums = F.pad(x.float().cumsum(1), (0, 0, 1, 0)).unflatten(-1, (problem.heads, -1))  # B T+1 H R
    here = torch.arange(1, problem.length + 1, device=x.device)[None, :, None]

    def at(position: Tensor) -> Tensor:
        low = position.floor()
        part = (position - low).unsqueeze(-1)
        rows = [
            (low.long() + n).clamp(0, problem.length).unsqueeze(-1).expand(-1, -1, -1, sums.shape[-1]) for n in (0, 1)
        ]
        below, above = (sums.gather(1, row) for row in rows)
        return (1 - part) * below + part * above

    ahead = problem.taps - 1 - problem.padding
    total = at(here + right.float() * ahead) - at(here - left.float() * problem.padding - 1)
    return (total / problem.taps).flatten(-2).to(x.dtype)


def _heads(problem: Problem, x: Tensor) -> Tensor:
    return x.unflatten(-1, (problem.heads, -1)).transpose(1, 2)


def _attention(problem: Problem, backend: SDPBackend, *qkv: Tensor) -> Tensor:
    q, k, v = (_heads(problem, x) for x in qkv)
    with sdpa_kernel(backend):
        out = F.scaled_dot_product_attention(q, k, v, is_causal=problem.op == "causal attention")
    return out.transpose(1, 2).flatten(-2)


def _mask(problem: Problem, z: Tensor) -> Tensor:
    """m, H W, in float32 at least; z in steps."""
    distance = torch.arange(problem.taps, device=z.device)
    exact = z.to(torch.promote_types(z.dtype, torch.float32)).unsqueeze(1)
    return ((RAMP + exact - distance) / RAMP).clamp(0, 1)


def _span(problem: Problem, impl: Implementation, q: Tensor, k: Tensor, v: Tensor, places: Tensor, z: Tensor) -> Tensor:
    q, k, v = (_heads(problem, x) for x in (q, k, v))
    return span_attend(q, k, v, places, _mask(problem, z), impl=impl).transpose(1, 2).flatten(-2)


def _span_by_bias(problem: Problem, q: Tensor, k: Tensor, v: Tensor, places: Tensor, z: Tensor) -> Tensor:
    """Every step against every other, with all that depends on the distance added."""
    q, k, v = (_heads(problem, x) for x in (q, k, v))
    steps = torch.arange(problem.length, device=q.device)
    distance = steps[:, None] - steps
    wide = torch.promote_types(q.dtype, torch.float32)
    bias = q.to(wide) @ places.t().to(wide) * q.shape[-1] ** -0.5 + log_mask(_mask(problem, z)).unsqueeze(1)
    spread = bias.gather(-1, distance.clamp(0, problem.taps - 1).expand(*bias.shape[:2], -1, -1))
    spread = spread.masked_fill((distance < 0) | (distance >= problem.taps), float("-inf"))
    out = F.scaled_dot_product_attention(q, k, v, spread.to(q.dtype))
    return out.transpose(1, 2).flatten(-2)


def _near(problem: Problem, ahead: Tensor) -> Tensor:
    return (ahead >= -problem.padding) & (ahead < problem.taps - problem.padding)


def _flex(problem: Problem) -> Method:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def near(b: Tensor, h: Tensor, t: Tensor, j: Tensor) -> Tensor:
        return _near(problem, j - t)

    compiled: Method = torch.compile(flex_attention, dynamic=False)

    def method(*qkv: Tensor) -> Tensor:
        out = compiled(*(_heads(problem, x) for x in qkv), block_mask=mask(qkv[0].device.type))
        return out.transpose(1, 2).flatten(-2)

    @functools.cache
    def mask(device: str) -> object:
        return create_block_mask(near, None, None, problem.length, problem.length, device=device)

    return method
