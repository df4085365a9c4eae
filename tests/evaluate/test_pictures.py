"""Pictures show the maps they are given, under the pieces they belong to, on one scale."""

from __future__ import annotations

from xml.etree import ElementTree

import matplotlib
import numpy as np
import torch
from matplotlib.patches import Rectangle

from lite_nmt.evaluate.attention import CROSS, DECODER, ENCODER, Maps, Reading
from lite_nmt.evaluate.pictures import average, layers, pictures, windows

SOURCE, WRITTEN = ("▁Ein", "$x_$", "小", "</s>"), ("▁A", "&<", "</s>")


def reading(model: str = "first", source: tuple[str, ...] = SOURCE, talk: bool = False) -> Reading:
    torch.manual_seed(len(model))
    s, t = len(source), len(WRITTEN)
    maps = [
        Maps(ENCODER, "attention", torch.rand(2, s, s), None),
        Maps(
            ENCODER, "talk" if talk else "lightconv", 0.1 * torch.rand(3, s, s), torch.ones(3, s, 2) if talk else None
        ),
        Maps(DECODER, "attention", torch.rand(1, t, t), None),
        Maps(CROSS, "attention", torch.rand(1, t, s), None),
    ]
    return Reading(model, source, ("<s>", *WRITTEN[:-1]), WRITTEN, "A &<", tuple(maps))


def test_average_shows_means_over_layers() -> None:
    one, two = reading("first"), reading("second one")
    axes = np.array(average([one, two]).axes[:12]).reshape(3, 4)
    assert [a.get_title() for a in axes[0]] == [
        "first\nencoder attention",
        "first\nencoder lightconv",
        "second one\nencoder attention",
        "second one\nencoder lightconv",
    ]
    expected = two.maps[1].layers.mean(0).numpy()
    np.testing.assert_allclose(axes[0, 3].images[0].get_array(), expected, rtol=1e-6)
    assert [label.get_text() for label in axes[2, 0].get_yticklabels()] == list(WRITTEN)
    assert [label.get_text() for label in axes[2, 0].get_xticklabels()] == list(SOURCE)
    assert [label.get_text() for label in axes[1, 0].get_yticklabels()] == ["<s>", *WRITTEN[:-1]]
    shown = [a for a in axes.flat if a.images]
    assert len(shown) == 8
    largest = max(float(maps.layers.mean(0).max()) for r in (one, two) for maps in r.maps)
    assert {(a.images[0].norm.vmin, a.images[0].norm.vmax) for a in shown} == {(0, largest)}


def test_layers_stand_side_by_side() -> None:
    one = reading()
    axes = np.array(layers([one, reading("second one")]).axes[:24]).reshape(8, 3)
    assert [a.get_ylabel() for a in axes[:, 0]] == [
        "first\nencoder attention",
        "first\nencoder lightconv",
        "second one\nencoder attention",
        "second one\nencoder lightconv",
        "first\ndecoder attention",
        "second one\ndecoder attention",
        "first\ncross-attention",
        "second one\ncross-attention",
    ]
    np.testing.assert_array_equal(axes[1, 2].images[0].get_array(), one.maps[1].layers[2].numpy())
    assert [len(a.images) for a in axes[0]] == [1, 1, 0]
    identity = Maps(ENCODER, "attention", torch.stack([torch.eye(4), torch.eye(4).flip(0)]), None)
    drawn = layers([Reading("m", SOURCE, WRITTEN, WRITTEN, "", (identity,))])
    assert [a.get_title() for a in drawn.axes[:2]] == ["layer 1: distance 0.0", "layer 2: distance 2.0"]


def test_windows_are_bars_cut_at_the_ends() -> None:
    assert windows([reading()]) is None
    reach = torch.tensor([[[5.0, 0.5], [0.25, 0.0], [1.0, 3.0], [0.0, 0.0]]])
    maps = Maps(ENCODER, "talk", torch.ones(1, 4, 4), reach)
    figure = windows([Reading("m", SOURCE, WRITTEN, WRITTEN, "", (maps,))])
    assert figure is not None
    [axes] = figure.axes
    bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches if isinstance(bar, Rectangle)]
    assert bars == [(-0.5, 1.0), (0.25, 1.5), (0.5, 3.5), (2.5, 3.5)]
    assert axes.get_title() == "layer 1: 1.6 left, 0.9 right"


def test_files() -> None:
    size = matplotlib.rcParams["font.size"]
    files = pictures([reading(talk=True)])
    names = ["average", "layers", "windows"]
    assert list(files) == [f"{name}.{kind}" for name in names for kind in ("png", "svg")]
    assert files == pictures([reading(talk=True)])
    assert matplotlib.rcParams["font.size"] == size
    for name in names:
        assert files[f"{name}.png"].startswith(b"\x89PNG")
        assert b"date>" not in files[f"{name}.svg"]
        text = set(ElementTree.fromstring(files[f"{name}.svg"]).itertext())
        assert "first" in text
    assert {*SOURCE, *WRITTEN} <= set(ElementTree.fromstring(files["average.svg"]).itertext())


def test_labels_of_a_long_sentence_are_thinned() -> None:
    source = tuple(f"p{i}" for i in range(130))
    axes = average([reading(source=source)]).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == list(source[::3])
    assert list(axes.get_yticks()) == list(range(0, 130, 3))
