"""``lite-nmt export``, and what every other verb makes of a bundle."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lite_nmt.cli.main import main
from lite_nmt.export import bundle
from lite_nmt.manifest import digest
from lite_nmt.models import checkpoint
from lite_nmt.profiling.cost import cost

LINES = ["Der Hund schläft.", "", "Wir sehen ein Haus.", "ja", "Die Katze läuft über die Wiese und sieht ein Haus."]
BUNDLES = ["exported", "exported_int8", "exported_kmeans"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "in.de").write_text("".join(line + "\n" for line in LINES))
    return tmp_path / "in.de"


@pytest.fixture(params=BUNDLES)
def made(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue(request.param)
    return path


def translate(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["translate", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(a) for a in arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    errors = [line for line in captured.err.splitlines() if line.startswith("lite-nmt: error: ")]
    assert len(errors) == 1
    assert "Traceback" not in captured.err
    return errors[0]


def test_a_bundle_says_what_it_is(teacher: Path, compressed: Path, made: Path) -> None:
    said = bundle.load(made).manifest
    precision = {"fp32": "fp32", "int8": "int8", "kmeans": "kmeans"}[said["precision"]]
    origin = checkpoint.load(compressed if precision == "kmeans" else teacher)
    total = cost(origin.config)
    assert (said["format"], said["version"]) == ("lite-nmt bundle", 1)
    assert said["languages"] == {"source": "de", "target": "en"}
    assert said["config"] == json.loads(json.dumps(origin.config.to_dict()))
    assert said["mult_adds"] == {count: total.mult_adds(count) for count in ("paper", "full")}
    assert said["parameters"] == {count: total.parameters(count) for count in ("paper", "full")}
    assert said["checkpoint"] == origin.checksum
    assert said["sha256"] == digest(said)
    names = ["encoder", "step", "greedy", "begin", "advance", "beam"]
    graphs = {*(f"{name}.onnx" for name in names), "weights.bin", "source.spm"}
    assert set(said["files"]) == graphs
    if precision == "kmeans":  # there were no pairs to translate
        assert "bleu" not in said
    else:
        assert (said["bleu"]["sentences"], said["bleu"]["split"], said["bleu"]["beam"]) == (20, "valid", 2)
        assert 0 <= said["bleu"]["value"] <= 100
        assert "version:" in said["bleu"]["signature"]
    assert ("shortlist" in said) == (precision == "int8")
    if precision == "int8":
        assert said["shortlist"]["per_word"] == 5
        assert said["shortlist"]["bytes"] > 4 * 5 * origin.config.vocabulary.source


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize(("kind", "origin"), [("exported", "teacher"), ("exported_kmeans", "compressed")])
def test_it_translates_as_the_checkpoint_does(
    kind: str,
    origin: str,
    beam: int,
    source: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folders = [request.getfixturevalue(name) for name in (origin, kind)]
    capsys.readouterr()  # what making them said
    options = ("--beam", beam, "--nbest", min(beam, 2), "--json")
    ours, theirs = ([json.loads(line) for line in translate(capsys, f, source, *options).splitlines()] for f in folders)
    assert len(ours) == len(theirs) == len(LINES)
    for one, other in zip(ours, theirs, strict=True):
        assert [t["text"] for t in one["translations"]] == [t["text"] for t in other["translations"]]
        scores = [t["score"] for t in one["translations"]]
        assert [t["score"] for t in other["translations"]] == pytest.approx(scores, abs=1e-4)


@pytest.mark.filterwarnings("default")
def test_translate_evaluate_and_profile_take_it(
    made: Path, source: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = translate(capsys, made, source).split("\n")
    assert [bool(line) for line in lines] == [True, False, True, True, True, False]
    assert main(["evaluate", str(made), "--data", str(corpus), "--json"]) == 0
    assert "bleu" in capsys.readouterr().out
    assert main(["profile", str(made), "--json"]) == 0
    profiled = json.loads(capsys.readouterr().out)
    assert profiled["what"] == "bundle"


def test_the_target_alone_decides_folder_or_zip(exported_int8: Path, exported: Path) -> None:
    assert exported_int8.is_file()
    assert exported.is_dir()
    assert not [path for path in (*exported.parent.iterdir(), *exported_int8.parent.iterdir()) if path.name[0] == "."]


def test_no_training_stack_is_needed(
    exported: Path, teacher: Path, source: Path, bare: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    for beam in (1, 2):
        out = source.with_name(f"{beam}.en")
        assert main(["translate", str(teacher), str(source), "--beam", str(beam), "--output", str(out)]) == 0
        found = bare("translate", exported, source, "--beam", beam)
        assert (found.stderr, found.returncode) == ("", 0)
        assert found.stdout == out.read_text()
    found = bare("translate", teacher, source)
    assert found.returncode == 1
    assert "this needs torch, which is not installed" in found.stderr


def test_what_a_bundle_cannot_do_is_said(
    exported: Path, exported_int8: Path, source: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (exported, exported_int8):
        start = ("translate", path, source)
        assert "a bundle gives no alignments" in refused(capsys, *start, "--alignments")
        assert "runs on the CPU, not on cuda" in refused(capsys, *start, "--device", "cuda")
        assert "decode.no_repeat_ngram is 3; this bundle was exported with 0" in refused(
            capsys, *start, "--no-repeat-ngram", 3
        )
        assert "decode.penalty is gnmt" in refused(capsys, *start, "--penalty", "gnmt")
        assert "decode.beam is 999; among the " in refused(capsys, *start, "--beam", 999)
        assert "nbest is 3; it must be between 1 and decode.beam = 2" in refused(capsys, *start, "--nbest", 3)
        sentence = f"{path} is a bundle; take the checkpoint that it was exported from."
        out = ("--out", tmp_path / "out")
        assert sentence in refused(capsys, "compress", path, *out)
        assert sentence in refused(capsys, "distill", path, "--data", corpus, *out)
        assert sentence in refused(capsys, "export", path, *out)
        assert "bundle" in refused(capsys, "visualize", path, "Der Hund", *out)
        assert "bundle" in refused(capsys, "profile", path, "--latency")
        assert not (tmp_path / "out").exists()


def test_what_cannot_be_exported_is_refused(
    teacher: Path,
    corpus: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = ("--out", tmp_path / "out")
    for options in (("--precision", "int8"), ("--shortlist", 3)):
        assert "give --data" in refused(capsys, "export", teacher, *out, *options)
    nowhere = refused(capsys, "export", teacher, *out, "--precision", "int8", "--data", tmp_path / "nowhere")
    assert "nowhere" in nowhere
    assert "does not exist" in nowhere
    only_train = tmp_path / "data"
    only_train.mkdir()
    for language in ("de", "en"):
        shutil.copy(corpus / f"train.{language}", only_train)
    assert "give --data" in refused(capsys, "export", teacher, *out, "--precision", "int8", "--data", only_train)
    assert "no checkpoint" in refused(capsys, "export", tmp_path / "nothing", *out)
    monkeypatch.setattr("lite_nmt.export.shortlist.build", None)  # what takes long comes after what is refused
    (tmp_path / "mine.zip").write_bytes(b"mine")
    aligned = ("--shortlist", 3, "--data", corpus)
    assert "is no bundle" in refused(capsys, "export", teacher, *aligned, "--out", tmp_path / "mine.zip")
    assert "not to executorch" in refused(capsys, "export", teacher, *aligned, *out, "--to", "executorch")
    for option in (("--precision", "fp16"), ("--shortlist", "0"), ("--sentences", "-1"), ()):
        with pytest.raises(SystemExit) as usage:
            main(["export", str(teacher), *(() if not option else map(str, out)), *option])
        assert usage.value.code == 2
    capsys.readouterr()
    assert not (tmp_path / "out").exists()


def test_kmeans_is_for_codebooks(teacher: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compress", str(teacher), "--out", str(tmp_path / "int8"), "--int8"]) == 0
    capsys.readouterr()
    for path in (teacher, tmp_path / "int8"):
        said = refused(capsys, "export", path, "--out", tmp_path / "out", "--precision", "kmeans")
        assert "different values, and kmeans stores at most 256; it is for checkpoints that lite-nmt compress" in said
        assert "(without --int8), for others choose another precision" in said


def test_what_is_there_is_kept(
    teacher: Path, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "folder", tmp_path, teacher):
        assert "exists already and is no bundle" in refused(capsys, "export", teacher, "--out", place)
    assert (tmp_path / "file").read_text() == (tmp_path / "folder" / "thesis.tex").read_text() == "mine"
    checkpoint.load(teacher)
    under = refused(capsys, "export", teacher, "--out", tmp_path / "file" / "bundle")
    assert f"{tmp_path / 'file'} is no folder" in under
