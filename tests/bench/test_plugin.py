"""The counting plugin compiles without a warning and without qemu's headers."""

import shutil
import subprocess
from pathlib import Path

import pytest

from lite_nmt.bench import sysroot


def test_plugin_compiles(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler, cc")
    library = tmp_path / "icount.so"
    source = sysroot.SOURCES / "icount.c"
    strict = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
    subprocess.run([compiler, "-O2", *strict, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    assert b"qemu_plugin_install" in library.read_bytes()
