"""Learning rates over time."""

from __future__ import annotations

import math

from lite_nmt.config import TrainConfig


def learning_rate(config: TrainConfig, step: int) -> float:
    """Rate of update ``step``, counted from 1.

    Linear warm-up from ``warmup_lr``, then either lr * sqrt(warmup / step) (Vaswani et al. 2017, section 5.3) or one
    half cosine down to ``min_lr`` at the last update (Lite Transformer's WMT recipe).
    """
    if step < config.warmup:
        return config.warmup_lr + (config.lr - config.warmup_lr) * step / config.warmup
    if config.schedule == "inverse_sqrt":
        return config.lr * math.sqrt(max(config.warmup, 1) / step)
    done = (step - config.warmup) / max(config.steps - config.warmup, 1)
    return config.min_lr + (config.lr - config.min_lr) * (1 + math.cos(math.pi * min(done, 1.0))) / 2
