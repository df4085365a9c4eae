"""What comes before a language model's first update: the text found, its words numbered, all of it encoded."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

from lite_nmt.config import Config
from lite_nmt.data.corpus import read_lines
from lite_nmt.data.text import encode_text, open_text
from lite_nmt.data.vocabulary import UNK, UNKNOWN, train_vocabulary
from lite_nmt.errors import LiteNmtError
from lite_nmt.manifest import write_durably
from lite_nmt.models.checkpoint import Checkpoint
from lite_nmt.train.metrics import Metrics
from lite_nmt.train.prepare import Settings


def prepare_text(
    config: Config,
    data: Path,
    languages: tuple[str, str],
    run: Path,
    metrics: Metrics,
    teacher: Checkpoint | None = None,
    init: Path | None = None,
) -> None:
    """Make a run folder ready to train in; what an interrupted preparation left there is dropped.

    Args:
        data: holds ``train.txt`` and perhaps ``valid.txt``, where ``txt`` is what ``languages`` say, twice.
    """
    if teacher or init:
        raise LiteNmtError("a language model is trained from the start; leave out --teacher and --init.")
    if not data.is_dir():
        raise LiteNmtError(f"the data folder {data} does not exist.")
    train, valid = (data / f"{split}.{languages[1]}" for split in ("train", "valid"))
    if not train.exists():
        raise LiteNmtError(f"{train} is missing; a language model reads that file, or train.X with --tgt X.")
    if not valid.exists() and (config.train.finish == "best" or config.train.stop_on != "none"):
        raise LiteNmtError(f'train.finish = "best" and train.stop_on need {valid}, which is missing.')
    if config.train.batch_tokens < config.train.block:
        raise LiteNmtError(
            f"train.batch_tokens is {config.train.batch_tokens}, less than train.block = {config.train.block}; a batch "
            "holds one block at least: raise the one or lower the other."
        )
    if not any(line.replace(UNKNOWN, "").strip() for line in read_lines(train)):
        raise LiteNmtError(f"{train} holds no word; a language model needs some to learn from.")
    for part in ("vocabulary", "data"):
        shutil.rmtree(run / part, ignore_errors=True)
        (run / part).mkdir(parents=True)
    vocabulary = train_vocabulary(config.vocabulary, read_lines(train), iter(()), config.train.seed)
    for name, content in vocabulary.files().items():
        write_durably(run / "vocabulary" / name, content)
    types = vocabulary.target.get_piece_size()
    for path, name in ((train, "train"), (valid, "valid")):
        if path.exists():
            encode_text(path, vocabulary, run / "data" / name)
            text = open_text(run / "data" / name)
            unknown = int((text == UNK).sum())
            metrics.say(f"{path.name}: {len(text):,} tokens ({unknown:,} unknown, {unknown / len(text):.1%})")
    sized = dataclasses.replace(config.vocabulary, source=types, target=types)
    sized_config = dataclasses.replace(config, vocabulary=sized)
    Settings(sized_config, config.vocabulary, str(data.resolve()), languages).save(run)
