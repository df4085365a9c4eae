"""Draw the screens into android_demo/screens: ``python -m android_demo.tools.draw``.

Android's own layout library does it, on x86-64 Linux, with Java 17's JDK and Maven. Its icons and fonts are those of
Android 13.
"""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

from android_demo.tools.apk import APP, link
from android_demo.tools.fetch import CACHE, DEMO
from android_demo.tools.kotlin import class_path

SCREENS = DEMO / "screens"
WORK = CACHE / "screens"
OPENED = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "lang.reflect", "nio")]
# The renderer's signatures name it; nothing of it is called.
COMPOSER = "package androidx.compose.runtime; public interface Composer {}"


def main() -> None:
    """The command."""
    library = WORK / "lib"
    if not library.exists():
        command: list[str | Path] = ["mvn", "-q", "-f", SCREENS / "pom.xml", "dependency:copy-dependencies"]
        subprocess.run([*command, f"-DoutputDirectory={library}"], check=True)
    platform = _platform(library)
    classes = WORK / "classes"
    shutil.rmtree(classes, ignore_errors=True)
    generated = classes / "java"
    (generated / "androidx").mkdir(parents=True)
    (generated / "androidx/Composer.java").write_text(COMPOSER)
    link(classes, None, "--java", str(generated), "--non-final-ids")
    jars = [jar for jar in sorted(library.glob("*.jar")) if not jar.name.startswith("android-all")]
    path = class_path([classes, *jars])
    sources = [SCREENS / "Screens.java", *generated.rglob("*.java")]
    subprocess.run(["javac", "-nowarn", "-proc:none", "-d", classes, "-cp", path, *sources], check=True)
    settings = ["-Djdk.attach.allowAttachSelf=true", f"-Dpaparazzi.platform.data.root={platform}"]
    java: list[str | Path] = ["java", *OPENED, *settings, "-cp", path, "Screens", APP / "res", platform, SCREENS]
    subprocess.run(java, check=True, stderr=subprocess.DEVNULL)  # a warning for each resource it does not know


def _platform(library: Path) -> Path:
    """Android's fonts and native libraries, and the sources of its resources."""
    platform = WORK / "platform"
    if not platform.exists():
        part = WORK / "platform.part"
        shutil.rmtree(part, ignore_errors=True)
        for pattern, names in (("layoutlib-native-linux-*.jar", "data/"), ("android-all-*.jar", "raw-res/")):
            [jar] = library.glob(pattern)
            with zipfile.ZipFile(jar) as archive:
                archive.extractall(part, [n for n in archive.namelist() if n.startswith((names, "build.prop"))])
        (part / "raw-res/res").rename(part / "data/res")
        part.rename(platform)
    return platform


if __name__ == "__main__":
    main()
