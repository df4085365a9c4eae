"""One run, from text files to a finished model in a folder."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch

from lite_nmt.config import Config
from lite_nmt.errors import LiteNmtError
from lite_nmt.manifest import write_whole
from lite_nmt.models import checkpoint
from lite_nmt.models.device import device as find_device
from lite_nmt.train.average import average
from lite_nmt.train.footprint import Footprint, footprint
from lite_nmt.train.metrics import Metrics
from lite_nmt.train.prepare import SETTINGS, Settings, Teacher
from lite_nmt.train.processes import Processes
from lite_nmt.train.start import starting_point
from lite_nmt.train.tasks import TASKS
from lite_nmt.train.trainer import Trainer, saved_checkpoints

StrPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Result:
    """What a run ends with."""

    model: Path
    step: int
    metrics: dict[str, float]
    footprint: Footprint


def train_model(
    config: Config,
    data: StrPath | None,
    languages: tuple[str, str],
    run: StrPath,
    resume: bool = False,
    device: str = "auto",
    teacher: StrPath | None = None,
    init: StrPath | None = None,
) -> Result:
    """Train a model into ``run``, or go on with the one that is there.

    Args:
        config: on resumption its model must be the run's; recipe and search may differ, and are kept from then on.
        data: a folder with ``train.*`` and, if there is one, ``valid.*``; a prepared run needs none.
        languages: the endings of the source's and the target's files.
        teacher: a checkpoint or run for word-level distillation, see ``train.distill_weight``; a prepared run knows it.
        init: a checkpoint to start from, whose model and vocabulary ``config`` must have; a prepared run knows its own.

    Raises:
        LiteNmtError: the data or the teacher cannot be used, the run folder is taken, or there is nothing to resume.
    """
    folder = Path(run)
    given, taught, begun = (None if path is None else Path(path) for path in (data, teacher, init))
    processes = Processes(find_device(device))
    metrics = Metrics(folder, processes.first)
    try:
        resume = resume or processes.restarted
        refusal = None
        if processes.first:
            try:
                _start(config, given, languages, folder, resume, metrics, taught, begun)
            except LiteNmtError as error:
                refusal = error
        if processes.agree(refusal is not None):
            raise refusal or LiteNmtError("the first process could not start the run.")
        return _continue(folder, resume, processes, metrics)
    finally:
        processes.close()


def _start(
    config: Config,
    data: Path | None,
    languages: tuple[str, str],
    run: Path,
    resume: bool,
    metrics: Metrics,
    teacher: Path | None,
    init: Path | None,
) -> None:
    """Prepare the run folder, or check that the run in it can go on as asked."""
    followed = None if teacher is None else checkpoint.load(teacher)
    if (run / SETTINGS).exists():
        if not resume:
            raise LiteNmtError(f"{run} already holds a run; add --resume to go on with it, or choose another --out.")
        saved = Settings.load(run)
        if (config.task, config.model) != (saved.config.task, saved.config.model):
            raise LiteNmtError(f"{run} trains another model than the one asked for; choose another --out.")
        if saved.teacher is None and config.vocabulary not in (saved.asked, saved.config.vocabulary):
            raise LiteNmtError(f"{run} has another vocabulary than the one asked for; choose another --out.")
        # What the text was laid out by, and where it carries a cache, how many lie side by side.
        kept = ("block", "batch_tokens", "accumulate") if config.model.carries else ("block",)
        for name in kept if config.task == "lm" else ():
            asked, had = getattr(config.train, name), getattr(saved.config.train, name)
            if asked != had:
                raise LiteNmtError(
                    f"train.{name} is {asked}, and {run} began with {had}; leave it, or choose another --out."
                )
        if followed is not None and (saved.teacher is None or saved.teacher.checksum != followed.checksum):
            started = "without a teacher" if saved.teacher is None else "with another teacher"
            raise LiteNmtError(f"{run} was started {started}; resume it without --teacher, or choose another --out.")
        _need_teacher(config, saved.teacher is not None)
        _need_best(config, run)
        changed = dataclasses.replace(saved.config, train=config.train, decode=config.decode)
        # The same teacher may have moved.
        place = saved.teacher if followed is None else Teacher.of(followed)
        if changed != saved.config or place != saved.teacher:
            dataclasses.replace(saved, config=changed, teacher=place).save(run)
        return
    _need_teacher(config, followed is not None)
    if data is None:
        raise LiteNmtError(f"{run} holds no run to resume; give --data, --src and --tgt to start one.")
    missing = not run.exists()
    try:
        run.mkdir(parents=True, exist_ok=True)
        TASKS[config.task].prepare(config, data, languages, run, metrics, followed, init)
    except (OSError, LiteNmtError) as error:
        if missing:
            shutil.rmtree(run, ignore_errors=True)
        if isinstance(error, LiteNmtError):
            raise
        raise LiteNmtError(f"cannot write the run folder {run}: {error.strerror or error}.") from error


def _need_teacher(config: Config, there: bool) -> None:
    if config.train.distill_weight and not there:
        raise LiteNmtError(
            f"train.distill_weight is {config.train.distill_weight:g}, but the run has no teacher; start one with "
            "--teacher."
        )


def _need_best(config: Config, run: Path) -> None:
    """The best weights are kept while training; once it is done there are none to choose."""
    last = saved_checkpoints(run)[-1:]
    done = last and int(last[0].name.removeprefix("step-")) >= config.train.steps
    validated = (run / "data" / "valid").exists()
    if config.train.finish == "best" and done and validated and not checkpoint.find(run / "best"):
        raise LiteNmtError(
            f'train.finish is "best", and {run} kept no best weights while it trained; choose "average" or "last", or '
            "more train.steps."
        )


def _continue(run: Path, resume: bool, processes: Processes, metrics: Metrics) -> Result:
    saved = Settings.load(run)
    config = saved.config
    if config.train.threads:
        torch.set_num_threads(config.train.threads)
    trainer = TASKS[config.task].open(saved, run, processes, metrics)
    done = None
    if resume and trainer.resume():
        done = trainer.done()
        step = f"resuming at step {trainer.progress.step} of {config.train.steps}"
        metrics.say(f"nothing to train: {done}" if done else step)
    elif saved.init is not None:
        start = starting_point(Path(saved.init), config, saved.languages)
        checkpoint.restore(trainer.model, start.weights(), start.folder)
    found = finished(trainer) if processes.first and done else None
    if not processes.agree(found is not None):
        metrics.rewind(trainer.progress.step)
        with metrics.open(config.train.log_every):
            if not done:
                trainer.fit()
    spent = footprint(trainer.progress.seconds, processes.device, processes.count)
    if processes.first and found is None:
        write_whole(run / "footprint.json", json.dumps(dataclasses.asdict(spent), indent=1).encode())
        found = finish(trainer)  # last, so that where there is a model, nothing is missing
    processes.wait()
    return Result(run / "model", trainer.progress.step, found or {}, spent)


def finished(trainer: Trainer) -> dict[str, float] | None:
    """What was measured of the run's model where it is what :func:`finish` would write; None where it is not."""
    folder = checkpoint.find(trainer.run / "model")
    if folder is None:
        return None
    saved, now = checkpoint.load(folder), trainer.config
    due, had = ((c.train.finish, c.train.average, c.decode) for c in (now, saved.config))
    return saved.metrics if saved.step == trainer.progress.step and due == had else None


def finish(trainer: Trainer) -> dict[str, float]:
    """Write the run's model: the average of its last checkpoints, the best one, or the last, measured again."""
    recipe, run = trainer.recipe, trainer.run
    folders = saved_checkpoints(run)
    best = run / "best"
    if recipe.finish == "best" and checkpoint.find(best):
        weights = checkpoint.load(best).weights()
    elif recipe.finish == "average" and recipe.average > 1:
        weights = average(folders[-recipe.average :])
    else:
        weights = average(folders[-1:])
    checkpoint.restore(trainer.model, weights, run)
    trainer.model.eval()
    found = trainer.measure(bleu=True) or {}
    trainer.write(run / "model", found)
    return found
