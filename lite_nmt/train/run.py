"""One run, from text files to a finished model in a folder."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import torch

from lite_nmt.config import Config, from_dict
from lite_nmt.data.corpus import Sides, read_lines, sides
from lite_nmt.data.encoded import Encoded, encode
from lite_nmt.data.vocabulary import Vocabulary, train_vocabulary
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint
from lite_nmt.models.device import device as find_device
from lite_nmt.train.average import average
from lite_nmt.train.footprint import Footprint, footprint
from lite_nmt.train.metrics import Metrics
from lite_nmt.train.processes import Processes
from lite_nmt.train.trainer import Trainer, saved_checkpoints

SETTINGS = "run.json"


@dataclass(frozen=True)
class Result:
    """What a run ends with."""

    model: Path
    step: int
    metrics: dict[str, float]
    footprint: Footprint


def prepare(config: Config, data: Path, languages: tuple[str, str], run: Path, metrics: Metrics) -> None:
    """Check the corpus, train the vocabulary on its training side, encode it, and note the settings last."""
    corpus = required(sides(data, "train", *languages))
    if corpus.lines < 2:
        raise LiteNmtError(f"{corpus.source} and {corpus.target} hold one pair; training needs at least two.")
    valid = sides(data, "valid", *languages, required=False)
    if valid is None and (config.train.finish == "best" or config.train.stop_on != "none"):
        raise LiteNmtError(
            f'train.finish = "best" and train.stop_on need {data / "valid"}.{languages[0]} and .{languages[1]}, '
            "which are missing."
        )
    metrics.say(f"{corpus.lines:,} pairs to train on, {valid.lines if valid else 0:,} to validate on")
    vocabulary = train_vocabulary(
        config.vocabulary, read_lines(corpus.source), read_lines(corpus.target), config.train.seed
    )
    sized = dataclasses.replace(
        config.vocabulary,
        source=vocabulary.source.get_piece_size(),
        target=vocabulary.target.get_piece_size(),
    )
    for name, content in vocabulary.files().items():
        (run / "vocabulary").mkdir(exist_ok=True)
        checkpoint.write_durably(run / "vocabulary" / name, content)
    encoded = encode(corpus, vocabulary, run / "data" / "train", config.vocabulary.max_length)
    # What a translator may hold to: it cuts lines that are longer than any the model has seen.
    sized = dataclasses.replace(sized, max_length=int(encoded.lengths()[0].max()))
    config = dataclasses.replace(config, vocabulary=sized)
    for why, count in encoded.left_out.items():
        if count:
            metrics.say(f"left out {count:,} training pairs: {why}")
    if valid is not None:
        # Every validation pair counts, however long.
        encode(valid, vocabulary, run / "data" / "valid", max_length=2**31)
    settings = {"languages": list(languages), "config": config.to_dict()}
    partial = run / f".{SETTINGS}.partial"
    checkpoint.write_durably(partial, json.dumps(settings, indent=1).encode())
    partial.replace(run / SETTINGS)


def required(corpus: Sides | None) -> Sides:
    """Narrow the type of sides that :func:`sides` was told to require."""
    assert corpus is not None
    return corpus


def train(
    config: Config | None,
    data: Path | None,
    languages: tuple[str, str] | None,
    run: Path,
    resume: bool = False,
    device: str = "auto",
) -> Result:
    """Train a model into ``run``.

    Args:
        config: None takes up the settings of the run that is resumed.
        data: a folder with ``train.*`` and, if there is one, ``valid.*``.

    Raises:
        LiteNmtError: the data cannot be used, the run folder is taken, or there is nothing to resume.
    """
    processes = Processes(find_device(device))
    metrics = Metrics(run, processes.first)
    try:
        resume = resume or processes.restarted
        if processes.first and not (resume and (run / SETTINGS).exists()):
            _start(config, data, languages, run, resume, metrics)
        processes.wait()
        return _continue(config, run, resume, processes, metrics)
    finally:
        processes.close()


def _start(
    config: Config | None,
    data: Path | None,
    languages: tuple[str, str] | None,
    run: Path,
    resume: bool,
    metrics: Metrics,
) -> None:
    if config is None or data is None or languages is None:
        raise LiteNmtError(f"{run} holds no run to resume; give --data, --src and --tgt to start one.")
    if (run / SETTINGS).exists() and not resume:
        raise LiteNmtError(f"{run} already holds a run; add --resume to go on with it, or choose another --out.")
    try:
        run.mkdir(parents=True, exist_ok=True)
        prepare(config, data, languages, run, metrics)
    except OSError as error:
        raise LiteNmtError(f"cannot write the run folder {run}: {error.strerror}.") from error


def _continue(config: Config | None, run: Path, resume: bool, processes: Processes, metrics: Metrics) -> Result:
    saved, languages = settings(run)
    if config is not None:
        # The vocabulary has its real size by now; only the recipe may change between resumptions.
        same = dataclasses.replace(config, train=saved.train, vocabulary=saved.vocabulary, decode=saved.decode)
        if resume and same.model != saved.model:
            raise LiteNmtError(f"{run} trains another model than the one asked for; resume it with its own settings.")
        saved = dataclasses.replace(saved, train=config.train)
    config = saved
    if config.train.threads:
        torch.set_num_threads(config.train.threads)
    vocabulary = Vocabulary.load(run / "vocabulary")
    data = Encoded.open(run / "data" / "train")
    valid = Encoded.open(run / "data" / "valid") if (run / "data" / "valid").exists() else None
    trainer = Trainer(config, languages, vocabulary, data, valid, run, processes, metrics)
    if resume and trainer.resume():
        metrics.rewind(trainer.progress.step)
        metrics.say(f"resuming at step {trainer.progress.step}")
    with metrics.open(config.train.log_every):
        trainer.fit()
    found = finish(trainer) if processes.first else {}
    processes.wait()
    spent = footprint(trainer.progress.seconds, processes.device, processes.count)
    if processes.first:
        checkpoint.write_durably(run / "footprint.json", json.dumps(dataclasses.asdict(spent), indent=1).encode())
    return Result(run / "model", trainer.progress.step, found, spent)


def settings(run: Path) -> tuple[Config, tuple[str, str]]:
    """What a run folder was started with."""
    try:
        saved = json.loads((run / SETTINGS).read_text(encoding="utf-8"))
        source, target = saved["languages"]
        return from_dict(Config, saved["config"]), (source, target)
    except (OSError, ValueError, KeyError) as error:
        raise LiteNmtError(
            f"cannot read {run / SETTINGS}: {error}; processes of one run must share its folder."
        ) from error


def finish(trainer: Trainer) -> dict[str, float]:
    """Write the run's model: the average of its last checkpoints, the best one, or the last, measured again."""
    recipe, run = trainer.recipe, trainer.run
    folders = saved_checkpoints(run)
    best = run / "best"
    if recipe.finish == "best" and checkpoint.exists(best):
        weights = checkpoint.load(best).weights()
    elif recipe.finish == "average" and recipe.average > 1:
        weights = average(folders[-recipe.average :])
    else:
        weights = average(folders[-1:])
    checkpoint.restore(trainer.model, weights, run)
    trainer.model.eval()
    found = {}
    if trainer.valid_data is not None:
        found["valid_nll"] = trainer.validation_nll(trainer.valid_data)
        found["valid_bleu"] = trainer.validation_bleu(trainer.valid_data)
    trainer.write(run / "model", found, with_training=False)
    return found
