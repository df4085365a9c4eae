"""Searches within a shortlist, against PyTorch with all other types forbidden."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lite_nmt.config import DecodeConfig
from lite_nmt.data.vocabulary import EOS, PAD
from lite_nmt.decode.pytorch import PyTorchEngine
from lite_nmt.export import bundle, graphs, parity
from lite_nmt.export.onnx_graphs import export_graphs, serialize
from lite_nmt.export.runtime import OnnxEngine
from lite_nmt.export.shortlist import Shortlist
from lite_nmt.models import checkpoint
from lite_nmt.models.translation import TranslationModel

pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def model(teacher: Path) -> TranslationModel:
    return checkpoint.load(teacher).model()


@pytest.fixture(scope="module")
def shortlist(model: TranslationModel) -> Shortlist:
    """Types of many sentences more than once, and the end marker where there are too few."""
    draw = np.random.default_rng(6)
    types = model.target.weight.shape[0]
    frequent = np.unique([EOS, *draw.integers(EOS, types, 12)]).astype(np.int32)
    table = draw.integers(EOS, types, (model.source.weight.shape[0], 4)).astype(np.int32)
    table[draw.random(table.shape) < 0.2] = EOS
    table[PAD] = EOS  # as in every one that is built: padding is never aligned
    return Shortlist(frequent, table)


@pytest.fixture(scope="module")
def engine(
    teacher: Path, model: TranslationModel, shortlist: Shortlist, tmp_path_factory: pytest.TempPathFactory
) -> OnnxEngine:
    saved = checkpoint.load(teacher)
    files = serialize(export_graphs(model, saved.config.decode, shortlist=shortlist)) | saved.vocabulary.files()
    path = tmp_path_factory.mktemp("shortlist") / "bundle"
    bundle.save(path, {}, saved.config, saved.languages, files)
    return OnnxEngine(bundle.load(path), threads=1)


@contextmanager
def only(model: TranslationModel, rows: np.ndarray) -> Iterator[None]:
    """Forbid all types but these."""
    forbidden = torch.full((model.target.weight.shape[0],), -torch.inf)
    forbidden[torch.from_numpy(rows).long()] = 0

    def mask(module: nn.Module, inputs: object, logits: Tensor) -> Tensor:
        return logits + forbidden

    handle = model.project.register_forward_hook(mask)
    try:
        yield
    finally:
        handle.remove()


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("settings", [{}, {"min_length": 4, "max_length": 9, "length_penalty": 0.5}])
def test_it_is_a_search_among_the_rows(
    beam: int, settings: dict[str, float], model: TranslationModel, shortlist: Shortlist, engine: OnnxEngine
) -> None:
    decode = DecodeConfig(**{**dataclasses.asdict(engine.bundle.config.decode), "beam": beam, **settings})
    sources = [s[-12:] for s in parity.made_up(model, 6, np.random.default_rng(7))] + [[EOS + 9, EOS]]
    together = engine.search(sources, decode, beam)
    reference = PyTorchEngine(model)
    for source, found in zip(sources, together, strict=True):
        rows = shortlist.rows(source)
        with only(model, rows):
            [expected] = reference.search([source], decode, beam)
        [alone] = engine.search([source], decode, beam)
        for theirs in (found, alone):
            assert [h.tokens for h in theirs] == [h.tokens for h in expected]
            assert [h.score for h in theirs] == pytest.approx([h.score for h in expected], abs=1e-4)
            assert [h.logprob for h in theirs] == pytest.approx([h.logprob for h in expected], abs=1e-4)
        assert {token for h in found for token in h.tokens} <= set(rows.tolist())


def test_what_is_forbidden_among_the_rows(model: TranslationModel, shortlist: Shortlist) -> None:
    source = torch.tensor([s[-12:] for s in parity.made_up(model, 1, np.random.default_rng(7))])
    for listed in (shortlist, None):
        project = graphs.Projection(model, listed)
        chosen = graphs.Choose(model, shortlist)(source) if listed else {}
        others = project(torch.zeros(1, 2, model.target.weight.shape[1]), chosen)[0][..., 1:]
        types = project.types(torch.arange(others.shape[-1])[None], chosen)
        said = torch.stack([types[0, :3], types[0, -3:]])[None]
        said[0, 0, 1] = PAD
        found = project.among(said, others, chosen)
        assert found.tolist() == [[[t in row and t != PAD for t in types[0].tolist()] for row in said[0].tolist()]]


def test_the_step_computes_all_types(model: TranslationModel, engine: OnnxEngine) -> None:
    assert parity.check_logits(model, engine) < parity.LOGITS
