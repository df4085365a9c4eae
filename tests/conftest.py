"""A corpus and a model small enough to train in a test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Read as torch is loaded. Small products gain nothing from threads, and processes would fight over the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

from lite_nmt.cli.main import EXTRAS, main
from lite_nmt.config import Config, DecodeConfig, ModelConfig, StackConfig, VocabularyConfig, from_dict, merge
from lite_nmt.data.corpus import read_lines
from lite_nmt.data.generated import write_corpus
from lite_nmt.data.vocabulary import EOS, train_vocabulary
from lite_nmt.models import checkpoint
from lite_nmt.models.translation import TranslationModel
from lite_nmt.train.run import train_model

RUNTIME = ("onnxruntime", "numpy", "sentencepiece")
WITHOUT = [name for name in EXTRAS if name not in RUNTIME]
TINY: dict[str, Any] = {
    "model": {
        "width": 16,
        "cross_heads": 2,
        "encoder": {"layers": 2, "mixer": "lsra", "heads": 2, "conv_heads": 2, "kernels": [3, 5], "ffn": 16},
        "decoder": {"layers": 2, "mixer": "lsra", "heads": 2, "conv_heads": 2, "kernels": [3, 5], "ffn": 16},
    },
    "vocabulary": {"source": 400, "target": 400},
    "train": {
        "steps": 12,
        "batch_tokens": 300,
        "lr": 3e-3,
        "warmup": 2,
        "log_every": 1,
        "valid_every": 6,
        "save_every": 4,
        "average": 2,
        "threads": 1,
    },
}


@pytest.fixture(scope="session")
def tiny() -> Callable[..., Config]:
    """Builds the tiny configuration, with another recipe laid over it."""
    return lambda **train: from_dict(Config, merge(TINY, {"train": train}))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated corpus of 300 training pairs."""
    folder = tmp_path_factory.mktemp("corpus") / "data"
    write_corpus(folder, train=300, valid=20, test=20, seed=1)
    return folder


@pytest.fixture(scope="session")
def trained(tiny: Callable[..., Config], corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny run that has learnt a little."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    recipe = tiny(steps=60, log_every=20, valid_every=60, save_every=60, valid_bleu=False, average=0)
    train_model(recipe, corpus, ("de", "en"), folder, device="cpu")
    return folder


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The run folder of a model that has learnt nothing."""
    text = ["Ein Hund läuft über die Wiese .", "A dog runs across the meadow ."]
    vocabulary = train_vocabulary(VocabularyConfig(target=330), iter(text[:1]), iter(text[1:]), seed=1)
    types = vocabulary.target.get_piece_size()
    stack = StackConfig(layers=1, mixer="lightconv", conv_heads=2, kernels=(3,), ffn=16)
    config = Config(
        ModelConfig(width=16, encoder=stack, decoder=stack, cross_heads=2),
        VocabularyConfig(source=types, target=types, max_length=64),
        decode=DecodeConfig(beam=2, max_length=5),
    )
    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("run") / "model"
    weights = checkpoint.named_weights(TranslationModel(config))
    checkpoint.save(folder, config, ("de", "en"), 1, {}, vocabulary, weights)
    return str(folder.parent)


@pytest.fixture(scope="session")
def teacher(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    """A checkpoint that has learnt nothing either, but whose translations differ and mostly end by themselves."""
    german, english = (read_lines(corpus / f"train.{language}") for language in ("de", "en"))
    vocabulary = train_vocabulary(VocabularyConfig(target=400), german, english, seed=1)
    types = vocabulary.target.get_piece_size()
    stack = StackConfig(layers=1, mixer="lightconv", conv_heads=2, kernels=(3,), ffn=16)
    config = Config(
        ModelConfig(width=16, encoder=stack, decoder=stack, cross_heads=2, tie="none"),
        VocabularyConfig(source=types, target=types, max_length=60),
        decode=DecodeConfig(beam=2),
    )
    torch.manual_seed(1)
    model = TranslationModel(config)
    last = [module for module in model.decoder.modules() if isinstance(module, torch.nn.LayerNorm)][-1]
    with torch.no_grad():
        # One channel is the end marker's alone, which then wins at about every tenth step.
        model.project.weight[:, 0] = 0
        model.project.weight[EOS] = torch.eye(16)[0]
        last.bias[0] = 2.0
    folder = tmp_path_factory.mktemp("teacher") / "model"
    checkpoint.save(folder, config, ("de", "en"), 1, {}, vocabulary, checkpoint.named_weights(model))
    return folder


@pytest.fixture(scope="session")
def exported(teacher: Path, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The teacher's bundle in float32."""
    return _export(tmp_path_factory.mktemp("fp32") / "bundle", teacher, "--data", corpus)


@pytest.fixture(scope="session")
def exported_int8(teacher: Path, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The teacher's bundle in int8, with a shortlist."""
    options = ("--data", corpus, "--precision", "int8", "--shortlist", 5)
    return _export(tmp_path_factory.mktemp("int8") / "bundle.zip", teacher, *options)


@pytest.fixture(scope="session")
def compressed(teacher: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The teacher with codebooks of 4 bits, the target table's of 6."""
    folder = tmp_path_factory.mktemp("compressed") / "model"
    options = ["--bits", "4", "--bits", "target=6"]
    assert main(["compress", str(teacher), "--out", str(folder), *options]) == 0
    return folder


@pytest.fixture(scope="session")
def exported_kmeans(compressed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of ``compressed``."""
    return _export(tmp_path_factory.mktemp("kmeans") / "bundle", compressed, "--precision", "kmeans")


def _export(out: Path, *arguments: object) -> Path:
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    assert main(["export", *map(str, arguments), "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="session")
def bare() -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command line with nothing but numpy, onnxruntime and sentencepiece: the rest cannot be imported."""
    program = f"import sys; sys.modules.update(dict.fromkeys({WITHOUT!r})); from lite_nmt.cli.main import main; "
    program += "sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)

    return run
