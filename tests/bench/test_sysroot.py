"""Setting up the emulated core: what is refused, and what is not done twice. Nothing is downloaded."""

import tomllib
from pathlib import Path

import pytest

from lite_nmt.bench import sysroot
from lite_nmt.errors import LiteNmtError


def test_releases_are_those_of_the_package() -> None:
    """The list stands twice: the setup runs before anything is installed, and an installed package has no pyproject."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = {*project["dependencies"], *extras["runtime"], *extras["bench"]}
    assert {*project["dependencies"], *extras["runtime"]} == {*sysroot.RUNTIME}
    assert declared.issuperset(sysroot.PEERS)


def test_a_step_is_done_once_for_each_recipe(tmp_path: Path) -> None:
    done = []

    def build(part: Path) -> None:
        done.append(part.name)
        part.mkdir()

    target = tmp_path / "thing"
    for recipe in (["a"], ["a"], ["a", "b"]):
        sysroot._make(target, recipe, build)
    assert done == ["thing.part", "thing.part"]
    assert target.is_dir()


def test_an_interrupted_step_starts_over(tmp_path: Path) -> None:
    def interrupted(part: Path) -> None:
        part.mkdir()
        (part / "half").touch()
        raise KeyboardInterrupt

    target = tmp_path / "thing"
    with pytest.raises(KeyboardInterrupt):
        sysroot._make(target, "a", interrupted)
    assert not target.exists()
    sysroot._make(target, "a", lambda part: part.mkdir())
    assert list(target.iterdir()) == []


def test_another_machine_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert sysroot.main(["--out", str(tmp_path / "new")]) == 1
    assert capsys.readouterr().err == (
        "error: the emulated Cortex-A72 is set up on x86-64 Linux; this is Linux riscv64.\n"
    )
    assert not (tmp_path / "new").exists()


def test_a_missing_tool_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(LiteNmtError, match="apt-get is missing; install apt"):
        sysroot.set_up(tmp_path)
