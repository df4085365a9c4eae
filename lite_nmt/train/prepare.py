"""What comes before the first update: the corpus checked, the vocabulary trained, both sides encoded."""

from __future__ import annotations

import dataclasses
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from lite_nmt.config import Config, VocabularyConfig, from_dict
from lite_nmt.data.corpus import read_lines, sides
from lite_nmt.data.encoded import encode
from lite_nmt.data.vocabulary import train_vocabulary
from lite_nmt.errors import LiteNmtError
from lite_nmt.manifest import write_durably, write_whole
from lite_nmt.models import checkpoint
from lite_nmt.train.metrics import Metrics
from lite_nmt.train.start import starting_point

SETTINGS = "run.json"


@dataclass(frozen=True)
class Teacher:
    """The model that word-level distillation follows, so that a resumed run can tell it from another."""

    path: str
    checksum: str

    @classmethod
    def of(cls, saved: checkpoint.Checkpoint) -> Teacher:
        """Where it lies and what it is."""
        return cls(str(saved.folder.resolve()), saved.checksum)

    def load(self) -> checkpoint.Checkpoint:
        """Open it.

        Raises:
            LiteNmtError: it is no longer there, or is another model now.
        """
        found = checkpoint.load(Path(self.path))
        if found.checksum != self.checksum:
            raise LiteNmtError(
                f"{self.path} is not the teacher that the run was started with; name that one with --teacher."
            )
        return found


@dataclass(frozen=True)
class Settings:
    """What a run folder is about. The configuration holds the vocabulary's real sizes, ``asked`` those asked for."""

    config: Config
    asked: VocabularyConfig
    data: str
    languages: tuple[str, str]
    teacher: Teacher | None = None
    init: str | None = None  # the checkpoint that training starts from

    @classmethod
    def load(cls, run: Path) -> Settings:
        """Read what :meth:`save` wrote."""
        try:
            saved = json.loads((run / SETTINGS).read_text(encoding="utf-8"))
            source, target = saved["languages"]
            asked = from_dict(VocabularyConfig, saved["asked"])
            config = from_dict(Config, saved["config"])
            teacher = Teacher(**saved["teacher"]) if saved.get("teacher") else None
            return cls(config, asked, saved["data"], (source, target), teacher, saved.get("init"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LiteNmtError(
                f"cannot read {run / SETTINGS} ({error}); if several processes train, they must share the run folder."
            ) from error

    def save(self, run: Path) -> None:
        """Write them whole; their presence says that the run is prepared."""
        saved = {**dataclasses.asdict(self), "config": self.config.to_dict()}
        write_whole(run / SETTINGS, json.dumps(saved, indent=1).encode())


def run_of(saved: checkpoint.Checkpoint) -> Path | None:
    """The run that a checkpoint lies in: a run's model one level down, its checkpoints one level further."""
    return next((folder for folder in saved.folder.resolve().parents[:2] if (folder / SETTINGS).exists()), None)


def prepare(
    config: Config,
    data: Path,
    languages: tuple[str, str],
    run: Path,
    metrics: Metrics,
    teacher: checkpoint.Checkpoint | None = None,
    init: Path | None = None,
) -> None:
    """Make a run folder ready to train in; what an interrupted preparation left there is dropped.

    A student takes its teacher's vocabulary, since it learns probabilities of the teacher's types.
    """
    start = starting_point(init, config, languages) if init else None
    if teacher is not None:
        if teacher.languages != languages:
            pairs = [" to ".join(pair) for pair in (teacher.languages, languages)]
            raise LiteNmtError(f"the teacher {teacher.folder} translates {pairs[0]}, not {pairs[1]}.")
        if start and start.vocabulary.files() != teacher.vocabulary.files():
            raise LiteNmtError(f"{init} and the teacher {teacher.folder} have different vocabularies; leave one out.")
        own = dataclasses.replace(teacher.config.vocabulary, max_length=config.vocabulary.max_length)
        config = dataclasses.replace(config, vocabulary=own)
    if languages[0] == languages[1]:
        raise LiteNmtError(f"source and target are both {languages[0]!r}; they must be two files.")
    corpus = sides(data, "train", *languages)
    if corpus.lines < 2:
        raise LiteNmtError(f"{corpus.source} and {corpus.target} hold one pair; training needs at least two.")
    validated = any((data / f"valid.{language}").exists() for language in languages)
    valid = sides(data, "valid", *languages) if validated else None
    if valid is None and (config.train.finish == "best" or config.train.stop_on != "none"):
        raise LiteNmtError(
            f'train.finish = "best" and train.stop_on need {data / "valid"}.{languages[0]} and .{languages[1]}, '
            "which are missing."
        )
    metrics.say(f"{corpus.lines:,} pairs to train on, {valid.lines if valid else 0:,} to validate on")
    for part in ("vocabulary", "data"):
        shutil.rmtree(run / part, ignore_errors=True)
    if start or teacher:
        vocabulary = (start or teacher).vocabulary  # type: ignore[union-attr]  # one of them is there
    else:
        vocabulary = train_vocabulary(
            config.vocabulary, read_lines(corpus.source), read_lines(corpus.target), config.train.seed
        )
    (run / "vocabulary").mkdir(parents=True)
    for name, content in vocabulary.files().items():
        write_durably(run / "vocabulary" / name, content)
    longest = config.vocabulary.max_length
    cut = longest if config.task == "summarize" else None
    encoded = encode(corpus, vocabulary, run / "data" / "train", longest, cut)
    for why, count in encoded.left_out.items():
        if count:
            metrics.say(f"left out {count:,} training pairs: {why}")
    if valid is not None:
        # Every validation pair counts, however long.
        encode(valid, vocabulary, run / "data" / "valid", None, cut)
    sized = dataclasses.replace(
        config.vocabulary,
        source=vocabulary.source.get_piece_size(),
        target=vocabulary.target.get_piece_size(),
        # What a translator may hold to: it cuts lines that are longer than any the model has seen.
        max_length=max(int(encoded.lengths()[0].max()), start.config.vocabulary.max_length if start else 0),
    )
    sized_config = dataclasses.replace(config, vocabulary=sized)
    followed = None if teacher is None else Teacher.of(teacher)
    place = str(init.resolve()) if init else None
    Settings(sized_config, config.vocabulary, str(data.resolve()), languages, followed, place).save(run)
