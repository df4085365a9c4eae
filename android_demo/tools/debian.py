"""The programs of the tool chain: those on PATH, or else Debian 12's, unpacked into the cache without root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from android_demo.tools.fetch import CACHE
from lite_nmt.bench.sysroot import Apt
from lite_nmt.errors import LiteNmtError

ROOT = CACHE / "debian"
PACKAGES = {  # named in full, with the libraries they need, since nothing is installed
    "java": ("openjdk-17-jre-headless",),
    "apksigner": ("apksigner", "libapksig-java"),
    "aapt2": (
        *("aapt", "android-libaapt", "android-libandroidfw", "android-libbacktrace", "android-libbase"),
        *("android-libcutils", "android-liblog", "android-libutils", "android-libziparchive"),
        *("libexpat1", "libpng16-16", "libprotobuf-lite32", "p7zip-full"),
    ),
    "zipalign": (
        *("zipalign", "android-libbacktrace", "android-libbase", "android-libcutils", "android-liblog"),
        *("android-libutils", "android-libziparchive", "libzopfli1", "p7zip-full"),
    ),
}
LIBRARIES = [f"usr/lib/{folder}" for folder in ("x86_64-linux-gnu", "x86_64-linux-gnu/android", "p7zip", "")]
JARS = "{0}/usr/share/java/apksigner.jar:{0}/usr/share/java/apksig.jar"


def run(tool: str, *arguments: str | Path, purpose: str) -> str:
    """Run one of ``PACKAGES``, or Java's keytool, and return what it prints.

    Raises:
        LiteNmtError: it failed, or there is none and Debian's could not be fetched.
    """
    command, environment = _command(tool)
    result = subprocess.run(
        [*command, *map(str, arguments)], env=environment, capture_output=True, text=True, errors="replace"
    )
    if result.returncode:
        lines = (result.stderr or result.stdout).strip().splitlines()
        raise LiteNmtError("\n".join([f"could not {purpose}:", *lines[:20]]))
    return result.stdout


def _command(tool: str) -> tuple[list[str], dict[str, str] | None]:
    if found := shutil.which(tool):
        return [found], None
    if tool == "keytool":
        return [str(Path(_command("java")[0][0]).with_name(tool))], None
    unpack(tool)
    folder = ROOT / tool
    if tool == "java":
        return [f"{folder}/usr/lib/jvm/java-17-openjdk-amd64/bin/java"], None
    if tool == "apksigner":
        java, environment = _command("java")
        return [*java, "-cp", JARS.format(folder), "com.android.apksigner.ApkSignerTool"], environment
    libraries = ":".join(f"{folder}/{library}" for library in LIBRARIES)
    return [f"{folder}/usr/bin/{tool}"], os.environ | {"LD_LIBRARY_PATH": libraries}


@cache
def _apt() -> Apt:
    """One, so that its index is fetched once."""
    return Apt(CACHE / "apt", None)


def unpack(tool: str) -> None:
    """Fetch one of ``PACKAGES``, unless it is on PATH or was fetched before."""
    folder = ROOT / tool
    if shutil.which(tool) or folder.exists():
        return
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise LiteNmtError(f"{tool} is missing, and without apt it cannot be fetched; put it on PATH.")
    print(f"fetching {tool} from Debian", file=sys.stderr, flush=True)
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.parent.mkdir(parents=True, exist_ok=True)
    for package in _apt().download(PACKAGES[tool], "amd64", part / "debs"):
        subprocess.run(["dpkg-deb", "--extract", package, part], check=True)
        package.unlink()
    for link in part.rglob("*"):  # links to /etc lead into the folder
        if link.is_symlink() and (target := os.readlink(link)).startswith("/"):
            link.unlink()
            link.symlink_to(os.path.relpath(part / target[1:], link.parent))
    part.rename(folder)
