"""Kotlin to jar, by the compiler of Maven Central; no invokedynamic, so that dx can take it to Android 7."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from android_demo.tools.debian import run
from android_demo.tools.fetch import fetch

COMPILER = ("kotlin-compiler", "kotlin-stdlib", "kotlin-script-runtime", "coroutines", "annotations")
FLAGS = (
    *("-jvm-target", "1.8", "-Xjdk-release=1.8", "-Xlambdas=class", "-Xsam-conversions=class"),
    *("-Xstring-concat=inline", "-no-stdlib", "-no-reflect", "-Werror", "-progressive"),
)


def compile_kotlin(sources: Sequence[Path], libraries: Sequence[Path], jar: Path) -> Path:
    """Compile files and folders of Kotlin into ``jar``; the standard library is always there.

    Raises:
        LiteNmtError: it does not compile, or only with warnings.
    """
    jar.parent.mkdir(parents=True, exist_ok=True)
    compiler = class_path([fetch(alias) for alias in COMPILER])
    run(
        *("java", "-XX:TieredStopAtLevel=1", "-cp", compiler),
        *("org.jetbrains.kotlin.cli.jvm.K2JVMCompiler", *FLAGS),
        *("-cp", class_path([fetch("kotlin-stdlib"), *libraries]), "-d", str(jar), *map(str, sources)),
        purpose=f"compile {jar.stem}",
    )
    return jar


def class_path(jars: Sequence[Path]) -> str:
    """As Java wants it."""
    return os.pathsep.join(map(str, jars))
