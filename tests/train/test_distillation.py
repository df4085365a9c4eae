"""Sequence-level and word-level distillation, each against its plain definition."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from lite_nmt.config import Config, DecodeConfig, merge
from lite_nmt.config import from_dict as config_from_dict
from lite_nmt.data.batches import epoch_order, gather
from lite_nmt.data.corpus import read_lines
from lite_nmt.data.encoded import Array, Encoded
from lite_nmt.data.vocabulary import PAD
from lite_nmt.decode.translator import Translator
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint
from lite_nmt.models.translation import TranslationModel
from lite_nmt.train import distill as distill_module
from lite_nmt.train import loss as loss_module
from lite_nmt.train.distill import Job, Result, distill
from lite_nmt.train.loss import Lesson, linear_cross_entropy
from lite_nmt.train.metrics import read_metrics
from lite_nmt.train.processes import Processes
from lite_nmt.train.run import train_model
from lite_nmt.train.trainer import Trainer

LANGUAGES = ("de", "en")
Tiny = Callable[..., Config]


@pytest.fixture(scope="module")
def data(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text with lines that repeat, that are blank, and that are too long for the teacher."""
    folder = tmp_path_factory.mktemp("distill")
    for language in LANGUAGES:
        lines = list(read_lines(corpus / f"train.{language}"))[:80]
        lines = [*lines[:20], "", *lines[5:15], "sehr " * 80, *lines[20:], " ", lines[0]]
        if language == "en":
            lines[25] = "Another one."  # a source line that repeats, translated otherwise
        (folder / f"train.{language}").write_text("\n".join(lines))
    for name in ("valid.de", "valid.en", "test.de"):
        (folder / name).write_bytes((corpus / name).read_bytes())
    return folder


def job(teacher: Path, data: Path, out: Path) -> Job:
    saved = checkpoint.load(teacher)
    return Job(data, out, LANGUAGES, saved.checksum, saved.config.decode, block=16)


def run(work: Job, teacher: Path) -> Result:
    result = distill(work, Translator.load(teacher), Processes(torch.device("cpu")))
    assert result is not None
    return result


def written(folder: Path) -> list[tuple[str, str]]:
    source, target = (read_lines(folder / f"train.{language}") for language in LANGUAGES)
    return list(zip(source, target, strict=True))


def plain(work: Job, teacher: Path) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Line by line, everything in memory, as the documentation says it."""
    translator = Translator.load(teacher)
    pairs: list[tuple[str, str]] = []
    seen: set[str] = set()
    dropped = dict.fromkeys(("blank", "duplicate", "too long", "empty", "unfinished", "ratio"), 0)
    originals = read_lines(work.data / "train.en")
    for line, original in zip(read_lines(work.data / "train.de"), originals, strict=True):
        size = len(translator.vocabulary.source.encode(line))
        why, text = "", ""
        if not size:
            why = "blank"
        elif line in seen:
            why = "duplicate"
        elif size > 59:
            why = "too long"
        else:
            best = translator.translate_all([line])[0].candidates[0]
            text, length = best.text, len(best.pieces)
            if not text.strip():
                why = "empty"
            elif length == 3 * size // 2 + 20:
                why = "unfinished"
            elif max(size + 1, length + 1) / min(size + 1, length + 1) > work.max_ratio:
                why = "ratio"
        seen.add(line)
        if why:
            dropped[why] += 1
        elif (line, text) not in pairs:
            pairs.append((line, text))
        if work.keep_original and line.strip() and original.strip() and (line, original) not in pairs:
            pairs.append((line, original))
    return pairs, dropped


@pytest.mark.parametrize("keep_original", [False, True])
def test_the_corpus_is_that_of_translating_line_by_line(
    teacher: Path, data: Path, tmp_path: Path, keep_original: bool
) -> None:
    work = dataclasses.replace(job(teacher, data, tmp_path / "out"), keep_original=keep_original, max_ratio=12.0)
    result = run(work, teacher)
    pairs, dropped = plain(work, teacher)
    assert written(tmp_path / "out") == pairs
    assert result.dropped | {"duplicate": result.duplicates} == dropped
    assert result.lines == 94 == result.distilled + sum(dropped.values())
    assert result.kept == len(pairs) == result.distilled + result.original
    assert result.distilled > 20
    assert (dropped["blank"], dropped["duplicate"], dropped["too long"]) == (2, 11, 3)
    assert dropped["ratio"] > 5
    assert dropped["unfinished"] == 1
    assert result.original == (82 if keep_original else 0)  # 80 lines, one of them with two translations; the long one
    assert (tmp_path / "out" / "valid.en").read_bytes() == (data / "valid.en").read_bytes()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "distill.json", "distilled.json", "test.de", "train.de", "train.en", "valid.de", "valid.en",
    ]  # fmt: skip


def test_a_translation_that_search_had_to_end_is_dropped(teacher: Path, data: Path, tmp_path: Path) -> None:
    short = DecodeConfig(beam=2, max_length=2)
    result = run(dataclasses.replace(job(teacher, data, tmp_path / "out"), decode=short, max_ratio=1000.0), teacher)
    translator = Translator.load(teacher)
    lines = {line for line in read_lines(data / "train.de") if 0 < len(translator.vocabulary.source.encode(line)) < 60}
    lengths = [len(found.candidates[0].pieces) for found in translator.translate_all(sorted(lines), short)]
    assert 10 < lengths.count(2) < len(lengths)
    assert result.dropped["unfinished"] == lengths.count(2)
    assert result.distilled == len(lengths) - lengths.count(2)


class Killed(Exception):
    pass


def interrupted(work: Job, teacher: Path, blocks: int) -> None:
    """Die before translating one block more."""
    translate, done = distill_module.translate_block, 0

    def dies(work: Job, translator: Translator, lines: Sequence[str], new: Array) -> list[str]:
        nonlocal done
        if done == blocks:
            raise Killed
        done += 1
        return translate(work, translator, lines, new)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distill_module, "translate_block", dies)
        with pytest.raises(Killed):
            run(work, teacher)
    assert len(list((work.out / "blocks").glob("0*"))) == blocks


def test_an_interrupted_run_goes_on_to_the_same_bytes(
    teacher: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, broken = job(teacher, data, tmp_path / "whole"), job(teacher, data, tmp_path / "broken")
    run(whole, teacher)
    interrupted(broken, teacher, blocks=2)
    (broken.out / "blocks" / ".00000002.partial").write_text("cut o")  # killed while writing
    assert not list(broken.out.glob("train.*"))
    translated: list[int] = []
    translate = distill_module.translate_block

    def counts(work: Job, translator: Translator, lines: Sequence[str], new: Array) -> list[str]:
        translated.append(len(lines))
        return translate(work, translator, lines, new)

    monkeypatch.setattr(distill_module, "translate_block", counts)
    # Batch size is speed alone, and may change.
    result = run(dataclasses.replace(broken, batch_tokens=200), teacher)
    assert translated == [16, 16, 16, 14]
    assert written(broken.out) == written(whole.out)
    assert run(broken, teacher) == result  # done: nothing is translated again
    assert len(translated) == 4


def test_two_processes_finish_what_one_began_to_the_same_bytes(teacher: Path, data: Path, tmp_path: Path) -> None:
    whole, shared = job(teacher, data, tmp_path / "whole"), job(teacher, data, tmp_path / "shared")
    run(whole, teacher)
    interrupted(shared, teacher, blocks=1)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "lite_nmt"]
    command += ["distill", str(teacher), "--data", str(data), "--out", str(shared.out), "--buffer=16", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["lines"] == 94  # one object, from the first process alone
    for language in LANGUAGES:
        name = f"train.{language}"
        assert (shared.out / name).read_bytes() == (whole.out / name).read_bytes()


def test_a_run_is_resumed_only_as_it_was_started(teacher: Path, data: Path, tmp_path: Path) -> None:
    work = job(teacher, data, tmp_path / "out")
    interrupted(work, teacher, blocks=1)
    moved = tmp_path / "data"
    moved.mkdir()
    (moved / "train.de").write_text((data / "train.de").read_text().replace("Haus", "Hof").replace("der", "die"))
    for changed, what in (
        ({"teacher": "0" * 64}, "teacher"),
        ({"decode": DecodeConfig(beam=3)}, "beam"),
        ({"data": moved}, "train.de"),
        ({"max_ratio": 2.0, "block": 7}, "buffer and max-ratio"),
    ):
        with pytest.raises(LiteNmtError, match=f"was started with another {what};"):
            run(dataclasses.replace(work, **changed), teacher)


def test_a_damaged_block_is_named(teacher: Path, data: Path, tmp_path: Path) -> None:
    work = job(teacher, data, tmp_path / "out")
    interrupted(work, teacher, blocks=2)
    (work.out / "blocks" / "00000001").write_text("one line\n")
    with pytest.raises(LiteNmtError, match=r"00000001 is damaged: 1 lines, not 16"):
        run(work, teacher)


# Word level


@pytest.mark.parametrize(("share", "temperature", "smoothing"), [(0.5, 1.0, 0.1), (0.3, 2.5, 0.1), (1.0, 0.7, 0.0)])
def test_the_loss_and_its_gradients_are_the_definition(
    share: float, temperature: float, smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_module, "CHUNK", 7)  # several chunks, the last one short
    torch.manual_seed(0)
    hidden = torch.randn(19, 5, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(11, 5, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(11, (19,))
    lesson = Lesson(torch.randn(19, 3).double(), torch.randn(11, 3).double(), share, temperature)
    loss, nll = linear_cross_entropy(hidden, weight, labels, smoothing, torch.float64, lesson)
    (3 * loss).backward()
    found = hidden.grad, weight.grad
    hidden.grad = weight.grad = None
    scores = hidden @ weight.t()
    entropy = F.cross_entropy(scores, labels, reduction="sum", label_smoothing=smoothing)
    student, taught = ((s / temperature).softmax(-1) for s in (scores, lesson.hidden @ lesson.projection.t()))
    divergence = (taught * (taught / student).log()).sum()
    expected = (1 - share) * entropy + share * temperature**2 * divergence
    (3 * expected).backward()
    torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=0)
    torch.testing.assert_close(nll.double(), F.cross_entropy(scores, labels, reduction="sum"), rtol=1e-6, atol=0)
    for ours, theirs in zip(found, (hidden.grad, weight.grad), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def ordinary(tiny: Tiny, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ordinary run, which then serves as the teacher."""
    return train_model(
        tiny(), corpus, LANGUAGES, tmp_path_factory.mktemp("ordinary") / "run", device="cpu"
    ).model.parent


def same_weights(a: Path, b: Path) -> bool:
    first, second = checkpoint.load(a).weights(), checkpoint.load(b).weights()
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


def test_with_weight_0_training_is_the_ordinary_one(tiny: Tiny, corpus: Path, tmp_path: Path, ordinary: Path) -> None:
    taught = train_model(tiny(), corpus, LANGUAGES, tmp_path / "run", device="cpu", teacher=ordinary)
    assert same_weights(taught.model, ordinary)


def test_training_follows_the_teacher_with_dropout_off(
    tiny: Tiny, corpus: Path, tmp_path: Path, ordinary: Path
) -> None:
    recipe = tiny(steps=1, distill_weight=0.6, distill_temperature=2.0).to_dict()
    config = config_from_dict(Config, merge(recipe, {"model": {"dropout": 0.0}}))
    result = train_model(config, corpus, LANGUAGES, tmp_path / "run", device="cpu", teacher=ordinary)
    student = checkpoint.load(result.model)
    assert student.vocabulary.files() == checkpoint.load(ordinary).vocabulary.files()
    torch.manual_seed(1)
    fresh, teacher = TranslationModel(student.config), checkpoint.load(ordinary).model()
    data = Encoded.open(tmp_path / "run" / "data" / "train")
    batch = gather(data, next(epoch_order(data, 300, seed=1, epoch=0)))
    with torch.no_grad():
        ours, theirs = (m.project(m(batch.source, batch.keep, batch.target)).double() for m in (fresh, teacher))
    real = batch.labels != PAD
    entropy = F.cross_entropy(ours[real], batch.labels[real], label_smoothing=0.1)
    divergence = F.kl_div((ours[real] / 2).log_softmax(-1), (theirs[real] / 2).softmax(-1), reduction="batchmean")
    assert float(divergence) > 0.01
    [line] = [line for line in read_metrics(tmp_path / "run") if "loss" in line]
    assert line["loss"] == pytest.approx(float(0.4 * entropy + 0.6 * 4 * divergence), rel=1e-5)
    assert line["nll"] == pytest.approx(float(F.cross_entropy(ours[real], batch.labels[real])), rel=1e-5)


def test_a_resumed_student_is_the_same_bit_for_bit(tiny: Tiny, corpus: Path, tmp_path: Path, ordinary: Path) -> None:
    config = tiny(distill_weight=0.5)
    train_model(config, corpus, LANGUAGES, tmp_path / "whole", device="cpu", teacher=ordinary)
    seen = Trainer.update

    def dies(self: Trainer, group: object) -> None:
        if self.progress.step == 10:
            raise Killed
        seen(self, group)  # type: ignore[arg-type]  # passed through

    broken = tmp_path / "broken"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "update", dies)
        with pytest.raises(Killed):
            train_model(config, corpus, LANGUAGES, broken, device="cpu", teacher=ordinary)
    with pytest.raises(LiteNmtError, match="was started with another teacher"):
        train_model(config, None, LANGUAGES, broken, resume=True, teacher=ordinary / "checkpoints" / "step-00000004")
    recorded = json.loads((broken / "run.json").read_text())
    assert recorded["teacher"]["checksum"] == checkpoint.load(ordinary).checksum
    other = {**recorded, "teacher": {**recorded["teacher"], "checksum": "0" * 64}}
    (broken / "run.json").write_text(json.dumps(other))
    with pytest.raises(LiteNmtError, match="is not the teacher that the run was started with"):
        train_model(config, None, LANGUAGES, broken, resume=True, device="cpu")
    (broken / "run.json").write_text(json.dumps(recorded))
    train_model(config, None, LANGUAGES, broken, resume=True, device="cpu")
    assert same_weights(broken / "model", tmp_path / "whole" / "model")
    assert not same_weights(broken / "model", ordinary)


def test_a_teacher_of_another_kind_is_refused(tiny: Tiny, corpus: Path, tmp_path: Path, ordinary: Path) -> None:
    with pytest.raises(LiteNmtError, match=r"train.distill_weight is 0.5, but the run has no teacher"):
        train_model(tiny(distill_weight=0.5), corpus, LANGUAGES, tmp_path / "run", device="cpu")
    with pytest.raises(LiteNmtError, match="translates de to en, not en to de"):
        train_model(tiny(), corpus, ("en", "de"), tmp_path / "run", device="cpu", teacher=ordinary)
    with pytest.raises(LiteNmtError, match="was started without a teacher"):
        train_model(tiny(), None, LANGUAGES, ordinary, resume=True, device="cpu", teacher=ordinary)
    assert not (tmp_path / "run").exists()
