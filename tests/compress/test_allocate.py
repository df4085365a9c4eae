"""Bits and sparsity by layer: within the target, and well spent."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from lite_nmt.compress.allocate import Choice, added, allocate, apply, choices, within
from lite_nmt.compress.pipeline import CompressConfig, compress
from lite_nmt.compress.prune import matrices
from lite_nmt.compress.sensitivity import Curves, Layer, measure
from lite_nmt.compress.weights import numbers
from lite_nmt.errors import LiteNmtError
from lite_nmt.models import checkpoint


def layer(weights: int, tender: float, scatter: float = 0.0) -> Layer:
    """A layer that loses ``tender`` for all its weights' squares: 0.12 of them at 2 bits, a quarter at each further."""

    def point(error: float) -> dict[str, float]:
        return {"nll": 1 + tender * error + scatter, "error": error}

    return Layer(
        weights=weights,
        pruned={share: point(share**4) for share in (0.3, 0.6, 0.9)},
        quantised={bits: point(0.12 * 4.0 ** (2 - bits)) for bits in (2, 4, 8)},
        bytes={bits: weights * bits // 8 for bits in (2, 4, 8)},
    )


def curves_of(**layers: Layer) -> Curves:
    """They add up."""
    together = layer(sum(own.weights for own in layers.values()), 0.0)
    for kind in ("pruned", "quantised"):
        for key, point in getattr(together, kind).items():
            point["nll"] += sum(getattr(own, kind)[key]["nll"] - 1 for own in layers.values())
    return Curves({"nll": 1.0}, layers, together)


CURVES = curves_of(tender=layer(1000, 2.0), tough=layer(1000, 0.01), large=layer(5000, 0.5))


def total(chosen: dict[str, Choice]) -> tuple[float, float]:
    return sum(c.bytes for c in chosen.values()), sum(c.loss for c in chosen.values())


def test_choices_add_losses_and_count_positions() -> None:
    found = {(c.bits, c.prune): c for c in choices(CURVES)["tender"]}
    assert len(found) == 12
    assert found[4, 0.0].bytes == 500
    assert found[4, 0.0].loss == pytest.approx(2 * 0.12 / 16)
    # 0.6 of 1,000 weights are zero: 200 bytes of codes, and 1,000 positions of 0.971 bits.
    assert found[4, 0.6].bytes == pytest.approx(200 + 1000 * 0.97095 / 8, abs=0.1)
    assert found[4, 0.6].loss == pytest.approx(2 * 0.12 / 16 + 2 * 0.6**4)


def test_a_lucky_measurement_is_not_believed() -> None:
    lucky = {"tender": layer(1000, 2.0), "lucky": layer(1000, 0.4, scatter=-0.5), "large": layer(5000, 0.5)}
    found = added(curves_of(**lucky), "quantised")["lucky"]
    for point, loss in zip(lucky["lucky"].quantised.values(), found.values(), strict=True):
        assert loss >= 0.5 * point["error"] * 0.999  # as the layer between the other two


def test_what_layers_add_only_together_is_shared() -> None:
    worse = curves_of(a=layer(1000, 1.0), b=layer(1000, 1.0))
    worse.together.quantised[2]["nll"] += 0.4
    before, after = added(curves_of(a=layer(1000, 1.0), b=layer(1000, 1.0)), "quantised"), added(worse, "quantised")
    assert after["a"][2] == pytest.approx(before["a"][2] + 0.2)
    assert after["b"][4] == before["b"][4]


@pytest.mark.parametrize("size", [1900, 2500, 3500, 5000, 6900])
def test_a_size_is_met_close_to_the_least_loss(size: int) -> None:
    bytes_, loss = total(allocate(CURVES, size=size))
    assert bytes_ <= size
    every = itertools.product(*choices(CURVES).values())
    sums = [(sum(c.bytes for c in one), sum(c.loss for c in one)) for one in every]
    # Lagrange multipliers find the lower convex hull of all allocations: nothing is smaller and better.
    assert not [s for s in sums if s[0] < bytes_ and s[1] < loss]
    assert loss <= 1.5 * min(s[1] for s in sums if s[0] <= 0.85 * size) + 1e-9


def test_what_is_tender_is_spared() -> None:
    chosen = allocate(CURVES, size=3000)
    assert chosen["tender"].bits > chosen["tough"].bits
    assert chosen["tender"].prune == 0


@pytest.mark.parametrize("loss", [0.01, 0.1, 1.0])
def test_a_loss_is_met(loss: float) -> None:
    bytes_, found = total(allocate(CURVES, loss=loss))
    assert found <= loss
    assert bytes_ < total(allocate(CURVES, size=10**6))[0]


def test_there_is_no_need_to_lose_anything_where_there_is_room() -> None:
    assert {(c.bits, c.prune) for c in allocate(CURVES, size=10**6).values()} == {(8, 0.0)}


def test_targets_out_of_reach_are_refused() -> None:
    with pytest.raises(LiteNmtError, match=r"no allocation is small enough: the smallest takes [\d,]+ bytes too many"):
        allocate(CURVES, size=100)
    with pytest.raises(LiteNmtError, match="no allocation adds as little as 1e-09 nats a token; the best adds"):
        allocate(CURVES, loss=1e-9)


def test_the_packed_size_is_met_not_the_estimated_one(trained: Path, tmp_path: Path) -> None:
    saved = checkpoint.load(trained)
    model = saved.model()
    weights = numbers(model)
    tender = {name: 1.0 + i % 3 for i, name in enumerate(matrices(model))}

    def loss(changed: object) -> dict[str, float]:
        assert isinstance(changed, dict)
        return {"nll": 1 + sum(f * float(abs(changed[name] - weights[name]).mean()) for name, f in tender.items())}

    curves = measure(weights, matrices(model), loss, "linear", lambda text: None)
    base = CompressConfig()

    def written(config: CompressConfig) -> int:
        out = tmp_path / "out"
        packed = compress(saved.model(), config)
        checkpoint.save(out, saved.config, saved.languages, 1, {}, saved.vocabulary, packed)
        return sum(path.stat().st_size for path in out.iterdir())

    said: list[str] = []
    size = written(base) - 6000
    chosen = within(saved, curves, base, size, said.append)
    assert 1 < len(said) < 6
    assert size - 2000 < written(apply(chosen, base)) <= size
    with pytest.raises(LiteNmtError, match="no allocation"):
        within(saved, curves, base, size - 15_000, said.append)
