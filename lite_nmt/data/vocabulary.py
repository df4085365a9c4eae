"""SentencePiece vocabularies: one that serves both sides, or one for each; of pieces or of words."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lite_nmt.config import VocabularyConfig
from lite_nmt.errors import LiteNmtError

if TYPE_CHECKING:
    import sentencepiece  # models want the numbers below alone

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SOURCE_FILE, TARGET_FILE = "source.spm", "target.spm"
SPACE, UNKNOWN = "\u2581", "<unk>"


class Vocabulary:
    """Text to token numbers and back. The four special tokens have the same numbers on both sides."""

    def __init__(self, source: bytes, target: bytes | None) -> None:
        """
        Args:
            source: a SentencePiece model; it serves both sides where ``target`` is None.
        """
        self.source_model, self.target_model = source, target
        self.source = _processor(source)
        self.target = self.source if target is None else _processor(target)

    @classmethod
    def load(cls, folder: Path, joint: bool) -> Vocabulary:
        """Read what :meth:`files` was written to."""
        source, target = folder / SOURCE_FILE, folder / TARGET_FILE
        try:
            return cls(source.read_bytes(), None if joint else target.read_bytes())
        except OSError as error:
            raise LiteNmtError(f"cannot read the vocabulary {error.filename}: {error.strerror}.") from error

    def files(self) -> dict[str, bytes]:
        """File names and contents, for a checkpoint or a bundle."""
        files = {SOURCE_FILE: self.source_model}
        if self.target_model is not None:
            files[TARGET_FILE] = self.target_model
        return files

    def encode_source(self, lines: Sequence[str]) -> list[list[int]]:
        """Token numbers, each sentence closed by EOS."""
        return [[*ids, EOS] for ids in self.source.encode(list(lines))]

    def encode_target(self, lines: Sequence[str]) -> list[list[int]]:
        """Token numbers, each sentence closed by EOS."""
        return [[*ids, EOS] for ids in self.target.encode(list(lines))]

    def encode_words(self, line: str) -> list[int]:
        """A tokenised line's words, one number each, closed by EOS; for a vocabulary of words."""
        words = line.split()
        return [*(self.target.piece_to_id([SPACE + word for word in words]) if words else ()), EOS]

    def decode_words(self, tokens: Sequence[int]) -> str:
        """The text of words' numbers."""
        return " ".join(str(self.target.id_to_piece(token)).removeprefix(SPACE) for token in tokens)

    def decode(self, tokens: Sequence[int]) -> str:
        """Target text of token numbers; special tokens are left out."""
        return str(self.target.decode([t for t in tokens if t > EOS]))


def _processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    import sentencepiece

    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise LiteNmtError("the vocabulary is not a SentencePiece model; train or copy it again.") from error
    special = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if special != (PAD, UNK, BOS, EOS):
        raise LiteNmtError(f"the vocabulary numbers pad, unk, bos, eos as {special}; it must be (0, 1, 2, 3).")
    return processor


def train_vocabulary(config: VocabularyConfig, source: Iterator[str], target: Iterator[str], seed: int) -> Vocabulary:
    """Train on the training side alone; sizes shrink where the text is too small for them."""

    def both() -> Iterator[str]:
        yield from source
        yield from target

    if config.joint:
        return Vocabulary(_train(config, config.target, both(), seed), None)
    return Vocabulary(_train(config, config.source, source, seed), _train(config, config.target, target, seed))


def _train(config: VocabularyConfig, size: int, lines: Iterator[str], seed: int) -> bytes:
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.set_random_generator_seed(seed)
    # A text's own <unk> is its unknown word, and no other; words keep all their characters.
    pieces = {"character_coverage": config.coverage, "byte_fallback": True, "max_sentence_length": 16_384}
    words = {
        "character_coverage": 1.0,
        "byte_fallback": False,
        "normalization_rule_name": "identity",
        "max_sentence_length": 2**30,
        "unk_piece": SPACE + UNKNOWN,
        "unk_surface": " " + UNKNOWN,
    }
    if config.kind == "word":
        lines = (line.replace(UNKNOWN, "") for line in lines)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=lines,
            model_writer=model,
            model_type=config.kind,
            vocab_size=size,
            hard_vocab_limit=False,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            input_sentence_size=5_000_000,
            shuffle_input_sentence=True,
            num_threads=1,  # more threads give another result
            minloglevel=2,
            **(words if config.kind == "word" else pieces),
        )
    except (RuntimeError, OSError) as error:
        if needed := re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error)):
            raise LiteNmtError(
                f"a vocabulary of {size} types is too small: the text's characters alone need {needed[1]}; raise "
                "vocabulary.source and target."
            ) from error
        raise LiteNmtError(f"SentencePiece could not train a vocabulary of {size} types: {error}") from error
    return model.getvalue()
