"""What is installed is what lies on disk."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def setuptools() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, Any] = table["tool"]["setuptools"]
    return found


def folders(package: Path) -> list[Path]:
    """The package's folders that hold code or presets, through the links to the stages at the root."""
    kept = []
    for folder, names, files in os.walk(package, followlinks=True):
        names[:] = [name for name in names if name != "__pycache__"]
        if any(file.endswith((".py", ".toml")) for file in files):
            kept.append(Path(folder))
    return kept


def test_each_folder_is_packaged(setuptools: dict[str, Any]) -> None:
    on_disk = {".".join(folder.relative_to(ROOT).parts) for folder in folders(ROOT / "lite_nmt")}
    assert set(setuptools["packages"]) == on_disk
    assert len(setuptools["packages"]) == len(on_disk)


def test_each_stage_is_a_relative_link(setuptools: dict[str, Any]) -> None:
    links = {f"lite_nmt.{path.name}": path for path in (ROOT / "lite_nmt").iterdir() if path.is_symlink()}
    assert setuptools["package-dir"].keys() == links.keys()
    for name, link in links.items():
        target = os.readlink(link)
        assert not os.path.isabs(target)
        assert link.resolve() == (ROOT / setuptools["package-dir"][name]).resolve()


def test_files_that_are_no_code_are_packaged(setuptools: dict[str, Any]) -> None:
    others = {
        (".".join(folder.relative_to(ROOT).parts), path.suffix or path.name)
        for folder in folders(ROOT / "lite_nmt")
        for path in folder.iterdir()
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    declared = {
        (package, Path(pattern).suffix)
        for package, patterns in setuptools["package-data"].items()
        for pattern in patterns
    }
    assert others == declared
