"""Output projection, softmax and label-smoothed cross-entropy as one, a chunk of positions at a time.

At 8,000 types the scores of a batch are fifty times larger than all its activations. Loss and gradient of a chunk
are computed while its scores are still in the cache, and the scores are never kept. The same holds for a teacher's
scores in word-level distillation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lite_nmt.data.vocabulary import PAD

if TYPE_CHECKING:
    from lite_nmt.data.batches import Batch
    from lite_nmt.models.language import LanguageModel
    from lite_nmt.models.translation import TranslationModel

CHUNK = 512  # positions at once; on a GPU at least
GPU_SCORES = 2**26  # at once there, where a small chunk would leave most of the device idle


@dataclass(frozen=True)
class Lesson:
    """What a teacher makes of the same positions: word-level distillation (Kim and Rush 2016, section 3.1).

    The loss becomes (1 - w) CE + w T^2 KL(teacher || student), both distributions at temperature T; T^2 keeps the
    gradient's size when T changes (Hinton et al. 2015, section 2).

    Attributes:
        hidden: N C', the teacher's decoder output; C' need not be the student's width.
        projection: V C', its output matrix.
        weight: w.
        temperature: T.
    """

    hidden: Tensor
    projection: Tensor
    weight: float
    temperature: float = 1.0


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        labels: Tensor,
        smoothing: float,
        dtype: torch.dtype,
        lesson: Lesson | None,
        need_gradient: bool,
    ) -> tuple[Tensor, Tensor]:
        types = weight.shape[0]
        low = weight.to(dtype)
        grad_hidden = torch.empty_like(hidden) if need_gradient else hidden.new_empty(0)
        grad_weight = torch.zeros_like(weight) if need_gradient else weight.new_empty(0)
        loss = hidden.new_zeros((), dtype=torch.float32)
        nll = hidden.new_zeros((), dtype=torch.float32)
        chunk = CHUNK if hidden.device.type == "cpu" else max(CHUNK, GPU_SCORES // types)
        for begin in range(0, len(labels), chunk):
            h, y = hidden[begin : begin + chunk].to(dtype), labels[begin : begin + chunk, None]
            log_p = (h @ low.t()).float()
            torch.log_softmax(log_p, -1, out=log_p)  # in place: a second matrix of this size would cost as much again
            own = -log_p.gather(1, y).sum()
            nll += own
            # - sum_v q_v log p_v for q = (1 - e) one-hot + e / V
            entropy = own if not smoothing else (1 - smoothing) * own - smoothing / types * log_p.sum()
            if lesson:
                taught = lesson.hidden[begin : begin + chunk].to(dtype) @ lesson.projection.to(dtype).t()
                divergence, grad_divergence = _divergence(log_p, taught.float(), lesson.temperature)
                entropy = (1 - lesson.weight) * entropy + lesson.weight * divergence
            loss += entropy
            if need_gradient:
                slope = log_p.exp_()  # minus q is the gradient
                if smoothing:
                    slope.sub_(smoothing / types)
                slope.scatter_add_(1, y, torch.full_like(y, -(1 - smoothing), dtype=slope.dtype))
                if lesson:
                    slope.mul_(1 - lesson.weight).add_(grad_divergence, alpha=lesson.weight)
                grad = slope.to(dtype)
                grad_hidden[begin : begin + chunk] = grad @ low
                grad_weight += grad.t() @ h
        ctx.save_for_backward(grad_hidden, grad_weight)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden * grads[0], grad_weight * grads[0], None, None, None, None, None


def _divergence(scores: Tensor, taught: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """T^2 KL(teacher || student), summed over positions, and its gradient with respect to the student's scores.

    Scores may be log-probabilities: what is the same for all types makes no difference.
    """
    log_p, log_q = (s.div(temperature).log_softmax(-1) for s in (scores, taught))
    q = log_q.exp()
    divergence = temperature**2 * (q * (log_q - log_p)).sum()
    return divergence, log_p.exp_().sub_(q).mul_(temperature)


def linear_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    labels: Tensor,
    smoothing: float = 0.0,
    dtype: torch.dtype = torch.float32,
    lesson: Lesson | None = None,
) -> tuple[Tensor, Tensor]:
    """Sum over positions of the smoothed cross-entropy, mixed with a teacher's lesson where there is one, and of
    the plain negative log-likelihood.

    Args:
        hidden: N C.
        weight: V C.
        labels: N.
        smoothing: share of the probability spread evenly over all types (Szegedy et al. 2016).
        dtype: of the matrix products; sums and softmax are in float32.
        lesson: it has no gradient.

    Returns:
        Two float32 scalars, in nats; only the first has a gradient.
    """
    need = torch.is_grad_enabled() and (hidden.requires_grad or weight.requires_grad)
    apply: Any = _LinearCrossEntropy.apply  # typed in some releases of torch and not in others
    loss, nll = apply(hidden, weight, labels, smoothing, dtype, lesson, need)
    return loss, nll


def language_loss(
    model: LanguageModel, hidden: Tensor, labels: Tensor, smoothing: float = 0.0, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """:func:`linear_cross_entropy` of a language model's output, N C, whose softmax may be in parts."""
    found = [linear_cross_entropy(*part, smoothing, dtype) for part in model.parts(hidden, labels)]
    loss, nll = (torch.stack(sums).sum() for sums in zip(*found, strict=True))
    return loss, nll


def translation_loss(
    model: TranslationModel,
    batch: Batch,
    smoothing: float = 0.0,
    dtype: torch.dtype = torch.float32,
    lesson: Lesson | None = None,
) -> tuple[Tensor, Tensor]:
    """:func:`linear_cross_entropy` of a batch of pairs.

    Args:
        dtype: of all products.
    """
    real = batch.labels != PAD
    with torch.autocast(batch.source.device.type, dtype, enabled=dtype is not torch.float32):
        hidden = model(batch.source, batch.keep, batch.target)
    # In float16 the gradients of single scores would vanish here, before loss scaling could lift them.
    exact = torch.float32 if dtype is torch.float16 else dtype
    return linear_cross_entropy(hidden[real], model.project.weight, batch.labels[real], smoothing, exact, lesson)
