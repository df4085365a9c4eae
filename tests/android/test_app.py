"""What the app's screens do that needs no Android, on this machine's JVM."""

from __future__ import annotations

import os
from pathlib import Path

from android_demo.tools.apk import APP, TRANSLATOR, simplify
from android_demo.tools.debian import run
from android_demo.tools.fetch import fetch
from android_demo.tools.kotlin import class_path, compile_kotlin


def test_the_state_of_the_screens(libraries: list[Path], exported: Path, tmp_path: Path) -> None:
    tests = APP.parent / "test/kotlin"
    jar = compile_kotlin([TRANSLATOR, APP / "kotlin/litenmt/app/state", tests], libraries, tmp_path / "tests.jar")
    names = [".".join(file.relative_to(tests).with_suffix("").parts) for file in tests.rglob("*Test.kt")]
    # As they go into the app, lambdas rewritten and the libraries shrunk; of the desktop's, native code alone is left.
    classes = simplify([jar, fetch("onnxruntime"), fetch("kotlin-stdlib")], tmp_path / "classes")
    path = class_path([classes, *(fetch(alias) for alias in ("onnxruntime", "junit", "hamcrest"))])
    run(
        *("java", "-Xss4m", "-XX:TieredStopAtLevel=1", f"-Dlitenmt.bundle={exported}"),
        *("-cp", path, "org.junit.runner.JUnitCore", *names),
        purpose=f"pass the tests of {os.path.basename(tests.parent)}",
    )
