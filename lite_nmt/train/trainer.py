"""The training loop: updates, validation, checkpoints, and a resumption that leaves no trace.

What is trained, on what and how it is scored is a task's: :mod:`lite_nmt.train.tasks`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from lite_nmt.config import Config, TrainConfig
from lite_nmt.data.vocabulary import Vocabulary
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint
from lite_nmt.modules.kernels import use_kernels
from lite_nmt.ops.implementation import Implementation
from lite_nmt.train.metrics import Metrics
from lite_nmt.train.processes import Processes
from lite_nmt.train.schedule import learning_rate

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclasses.dataclass
class Progress:
    """Where a run stands; saved with each checkpoint."""

    step: int = 0
    best: float = -math.inf  # validation by what training stops on, see Trainer.worth
    stale: int = 0  # validations since the best one
    seconds: float = 0.0  # of training, validation included, over all resumptions


Group = tuple[list[Any], int]
"""The batches of one update, in a task's own terms, and how many tokens they are to predict together."""


class Trainer:
    """Trains one model in one run folder, alone or as one of several processes.

    A task says what the model is, what an update's batches are, their loss, and the score.
    """

    model: nn.Module

    def __init__(
        self,
        config: Config,
        languages: tuple[str, str],
        vocabulary: Vocabulary,
        run: Path,
        processes: Processes,
        metrics: Metrics,
    ) -> None:
        self.config, self.recipe = config, config.train
        self.languages, self.vocabulary = languages, vocabulary
        self.run, self.processes, self.metrics = run, processes, metrics
        self.device = processes.device
        torch.manual_seed(self.recipe.seed)
        self.model = self.build().to(self.device)
        use_kernels(self.model, cast(Implementation, self.recipe.kernels))
        if self.recipe.compile:
            self.model.compile(dynamic=True)
        self.optimizer = self.make_optimizer(self.model.parameters())
        self.dtype = PRECISIONS[self.recipe.precision]
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.dtype is torch.float16)
        self.progress = Progress()

    def make_optimizer(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        """The recipe's optimizer; its learning rate is set at each update."""
        fused = {"fused": True} if self.device.type in ("cpu", "cuda") else {}
        decay = self.recipe.weight_decay
        if self.recipe.optimizer == "sgd":
            momentum = self.recipe.momentum
            return torch.optim.SGD(
                parameters, lr=0.0, momentum=momentum, nesterov=momentum > 0, weight_decay=decay, **fused
            )
        betas = (self.recipe.betas[0], self.recipe.betas[1])
        return torch.optim.AdamW(parameters, lr=0.0, betas=betas, weight_decay=decay, **fused)

    # The task

    def build(self) -> nn.Module:
        """The model."""
        raise NotImplementedError

    def endless(self, size: int) -> Iterator[Group]:
        """``size`` batches for each update, from the first one on; seed and number alone decide them."""
        raise NotImplementedError

    def batch_loss(self, batch: Any, number: int) -> tuple[Tensor, Tensor]:
        """What to train by, summed over a batch's tokens, and their plain negative log-likelihood, in nats.

        Args:
            number: of the batch in its update.
        """
        raise NotImplementedError

    def measure(self, bleu: bool) -> dict[str, float] | None:
        """``valid_nll``, nats a token, and ``valid_bleu`` where asked for and known; None without validation data."""
        raise NotImplementedError

    def updated(self) -> None:
        """Whatever is to be done after each update."""

    def carried(self) -> dict[str, Tensor]:
        """What is carried from one update to the next beside weights and optimizer."""
        return {}

    def carry(self, state: Mapping[str, Tensor]) -> None:
        """Go on with what :meth:`carried` gave."""

    def trained(self) -> Config:
        """The configuration, with what training found out."""
        return self.config

    # Updates

    def done(self) -> str | None:
        """Why there is nothing left to train, if so."""
        recipe = self.recipe
        if recipe.stop_on != "none" and self.progress.stale >= recipe.patience:
            return f"no better {recipe.stop_on} for {recipe.patience} validations"
        if self.progress.step >= recipe.steps:
            return f"{self.progress.step} of {recipe.steps} updates are done"
        return None

    def fit(self) -> None:
        """Train until the last step, or until validation no longer improves."""
        recipe = self.recipe
        self.model.train()
        clock = time.perf_counter()
        with self.metrics.progress(recipe.steps, self.progress.step):
            for group in self.groups():
                if self.progress.step >= recipe.steps:
                    break
                self.update(group)
                step = self.progress.step
                stop = False
                if step % recipe.valid_every == 0 or step == recipe.steps:
                    with self.metrics.aside():
                        stop = self.validate()
                now = time.perf_counter()
                self.progress.seconds, clock = self.progress.seconds + now - clock, now
                if step % recipe.save_every == 0 or step == recipe.steps or stop:
                    self.save()
                if stop:
                    self.metrics.say(
                        f"stopped at step {step}: no better {recipe.stop_on} for {recipe.patience} validations"
                    )
                    break

    def groups(self) -> Iterator[Group]:
        """The batches of each update still to come.

        An update's batches are the same however many processes share them: ``accumulate`` for each process.
        """
        groups = self.endless(self.recipe.accumulate * self.processes.count)
        return itertools.islice(groups, self.progress.step, None)  # not what a resumed run has already seen

    def update(self, group: Group) -> None:
        """One step of the optimizer over one group of batches."""
        parts, tokens = group
        step = self.progress.step + 1
        sums = torch.zeros(2, device=self.device)
        for i in range(self.processes.rank, len(parts), self.processes.count):
            torch.manual_seed(hash_seed(self.recipe.seed, step, i))
            loss, nll = self.batch_loss(parts[i], i)
            self.scaler.scale(loss / tokens).backward()
            sums += torch.stack([loss.detach(), nll])
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        self.processes.sum([*gradients, sums])
        self.scaler.unscale_(self.optimizer)
        limit = self.recipe.clip or math.inf
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), limit)
        rate = learning_rate(self.recipe, step)
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate
        # Loss scaling mends gradients that overflow in half precision, but not a loss that did.
        if not torch.isfinite(sums[0] if self.scaler.is_enabled() else norm):
            raise LiteNmtError(
                f"training diverged at step {step}: the loss or its gradient is not finite (learning rate {rate:g}); "
                "resume with a lower train.lr or with train.clip."
            )
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self.updated()
        self.progress.step = step
        self.metrics.update(step, sums, tokens, rate, norm)

    # Validation

    def validate(self) -> bool:
        """Measure the validation side, keep the best weights; true where training should stop."""
        stop = False
        if self.processes.first:
            self.model.eval()
            found = self.measure(self.recipe.valid_bleu)
            self.model.train()
        if self.processes.first and found is not None:
            if self.worth(found) > self.progress.best:
                self.progress.best, self.progress.stale = self.worth(found), 0
                if self.recipe.finish == "best":
                    self.write(self.run / "best", found)
            else:
                self.progress.stale += 1
            self.metrics.validated(self.progress.step, found)
            stop = self.recipe.stop_on != "none" and self.progress.stale >= self.recipe.patience
        return self.processes.agree(stop)

    def worth(self, found: Mapping[str, float]) -> float:
        """A validation by what training stops on; larger is better."""
        return found.get("valid_bleu", -math.inf) if self.recipe.stop_on == "bleu" else -found["valid_nll"]

    # Checkpoints

    def folder(self, step: int) -> Path:
        """Where the checkpoint of a step lies."""
        return self.run / "checkpoints" / f"step-{step:08d}"

    def save(self) -> None:
        """Write a checkpoint that training can go on from, then drop those beyond ``train.keep``."""
        training = self.training_state()  # to which several processes may contribute
        if self.processes.first:
            self.write(self.folder(self.progress.step), {}, training)
            for old in saved_checkpoints(self.run)[: -self.recipe.keep]:
                shutil.rmtree(old)
        self.processes.wait()

    def write(self, folder: Path, metrics: Mapping[str, float], training: Mapping[str, Tensor] | None = None) -> None:
        """Write the current weights to ``folder``."""
        weights = checkpoint.named_weights(self.model)
        checkpoint.save(
            folder, self.trained(), self.languages, self.progress.step, metrics, self.vocabulary, weights, training
        )

    def training_state(self) -> dict[str, Tensor]:
        """What the next update depends on beside the weights. No random state: each batch is seeded by its number."""
        state = {}
        for name, parameter in checkpoint.named_weights(self.model).items():
            for key, value in self.optimizer.state[parameter].items():
                state[f"optimizer.{name}.{key}"] = value
        for field, value in dataclasses.asdict(self.progress).items():
            state[f"progress.{field}"] = torch.tensor(value, dtype=torch.float64)
        if self.scaler.is_enabled():
            for key, value in self.scaler.state_dict().items():
                state[f"scaler.{key}"] = torch.tensor(value, dtype=torch.float64)
        return state | {f"carried.{name}": tensor for name, tensor in self.carried().items()}

    def resume(self) -> bool:
        """Go on from the newest checkpoint of the run; false where there is none."""
        found = saved_checkpoints(self.run)
        if not found:
            return False
        saved = checkpoint.load(found[-1])
        state = checkpoint.load_tensors(saved.folder / checkpoint.TRAINING)
        checkpoint.restore(self.model, saved.weights(), saved.folder)
        for name, parameter in checkpoint.named_weights(self.model).items():
            prefix = f"optimizer.{name}."
            self.optimizer.state[parameter] = {
                k[len(prefix) :]: v.to("cpu" if v.dim() == 0 and self.device.type == "cpu" else self.device)
                for k, v in state.items()
                if k.startswith(prefix)
            }
        if self.scaler.is_enabled() and "scaler.scale" in state:  # not where the run was in another precision
            scaler = {k[len("scaler.") :]: v.item() for k, v in state.items() if k.startswith("scaler.")}
            scaler["growth_interval"], scaler["_growth_tracker"] = (
                int(scaler["growth_interval"]),
                int(scaler["_growth_tracker"]),
            )
            self.scaler.load_state_dict(scaler)
        self.carry({k[len("carried.") :]: v.to(self.device) for k, v in state.items() if k.startswith("carried.")})
        for field in dataclasses.fields(Progress):
            kind = int if field.name in ("step", "stale") else float
            setattr(self.progress, field.name, kind(state[f"progress.{field.name}"].item()))
        self.compare_anew(saved.config.train)
        return True

    def compare_anew(self, before: TrainConfig) -> None:
        """Where better now means something else than before, compare with the weights that are kept, or with none."""
        other = (before.stop_on == "bleu") != (self.recipe.stop_on == "bleu")
        if other:
            self.progress.stale = 0
        if other or (self.recipe.finish == "best" and before.finish != "best"):
            kept = checkpoint.find(self.run / "best")
            self.progress.best = self.worth(checkpoint.load(kept).metrics) if kept else -math.inf


def saved_checkpoints(run: Path) -> list[Path]:
    """Whole checkpoints of a run, oldest first."""
    return sorted(p for p in (run / "checkpoints").glob("step-*") if (p / checkpoint.MANIFEST).exists())


def hash_seed(seed: int, step: int, batch: int) -> int:
    """A seed for one batch of one update, far from its neighbours'."""
    value = (seed * 1_000_003 + step) * 1_000_003 + batch
    value = (value ^ (value >> 31)) * 0x9E3779B97F4A7C15
    return (value ^ (value >> 29)) & (2**63 - 1)
