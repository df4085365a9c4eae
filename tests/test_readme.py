"""The README's examples, run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_examples_run(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    shell, python = blocks("bash"), blocks("python")
    assert shell
    assert python
    for example in shell:
        command = ["bash", "-euo", "pipefail", "-c", example]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "BLEU" in done.stdout
    for example in python:
        command = [sys.executable, "-c", example]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("[")


def test_relative_links_lead_somewhere() -> None:
    root = README.parent
    pages = [README, root / "CONTRIBUTING.md", root / "CHANGELOG.md"]
    pages += [*root.glob("docs/**/*.md"), *root.glob("benchmarks/**/*.md")]
    for page in pages:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"
