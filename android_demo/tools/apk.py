"""Make the Android app: ``python -m android_demo.tools.apk --bundle BUNDLE [--abi ABI ...] [--runtime AAR]``.

Debian's aapt2, zipalign and apksigner, and what Maven Central has: no Android SDK, no Gradle. Android Studio builds the
same sources from the project beside this folder.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from android_demo.tools.debian import run
from android_demo.tools.fetch import CACHE, DEMO, fetch, version
from android_demo.tools.kotlin import class_path, compile_kotlin
from android_demo.tools.shrink import shrink
from lite_nmt.errors import LiteNmtError
from lite_nmt.manifest import read_manifest, verify

ABIS = ("arm64-v8a", "x86_64")
APP = DEMO / "app/src/main"
TRANSLATOR = DEMO / "translator/src/main/kotlin"
PACKAGE = "litenmt.app"
FORMAT, VERSION = "lite-nmt bundle", 1  # as lite_nmt.export.bundle has them, which needs packages
KEY = CACHE / "debug.p12"
PASSWORD = "android"  # of a debug key, as the Android SDK's
STORED = ("-0", ".onnx", "-0", ".bin", "-0", ".spm")  # a bundle's large files: they hardly shrink


def build(bundle: Path, abis: Sequence[str], folder: Path, runtime: Path | None = None) -> list[Path]:
    """Make, sign and verify an APK for each ABI.

    Args:
        bundle: a folder or .zip that ``lite-nmt export`` made; it becomes the app's first model.
        runtime: ONNX Runtime's .aar; Maven Central's, if None.

    Raises:
        LiteNmtError: something could not be fetched, compiled or signed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as name:
        work = Path(name)
        _assets(bundle, work)
        library = runtime or fetch("onnxruntime-android")
        java, natives = _runtime(library, abis, work)
        base, resources = _resources(work)
        code = _compile(resources, java, work)
        dex = _dex([code, java, fetch("kotlin-stdlib")], work)
        return [_package(base, dex, natives[abi], abi, folder / f"lite-nmt-{abi}.apk") for abi in abis]


def _assets(bundle: Path, work: Path) -> None:
    """A bundle's files, as the app will verify them again."""
    source = bundle
    if zipfile.is_zipfile(bundle):
        source = work / bundle.name
        try:
            shutil.unpack_archive(bundle, source, "zip")
        except (OSError, zipfile.BadZipFile) as error:
            raise LiteNmtError(f"{bundle} is damaged: {error}; take another copy.") from error
    manifest = source / "manifest.json"
    if not manifest.is_file():
        raise LiteNmtError(f"{bundle} is no bundle; lite-nmt export makes one.")
    said = read_manifest(bundle / manifest.name, manifest.read_bytes(), FORMAT, VERSION)
    if said.get("config", {}).get("task", "translate") != "translate":
        raise LiteNmtError(f"{bundle} does not translate, as the app does; export a model that does.")
    files = said["files"]
    if not any(name.endswith(".onnx") for name in files):
        raise LiteNmtError(f"{bundle} is not for ONNX Runtime, which the app has; export it with --to onnx.")
    assets = work / "assets/bundle"
    assets.mkdir(parents=True)
    for name, about in files.items():
        verify(source, name, about)
        shutil.copy(source / name, assets)
    shutil.copy(manifest, assets)


def _runtime(library: Path, abis: Sequence[str], work: Path) -> tuple[Path, dict[str, list[Path]]]:
    """ONNX Runtime's classes, and its native libraries for each ABI."""
    try:
        with zipfile.ZipFile(library) as aar:
            aar.extractall(work, [name for name in aar.namelist() if name.startswith(("classes.jar", "jni/"))])
    except (OSError, zipfile.BadZipFile) as error:
        raise LiteNmtError(f"cannot read {library}: {error}; take ONNX Runtime's Android library.") from error
    java, natives = work / "classes.jar", {abi: sorted(work.glob(f"jni/{abi}/*.so")) for abi in abis}
    for abi, found in natives.items():
        if not found or not java.exists():
            raise LiteNmtError(f"{library} has nothing for {abi}; take ONNX Runtime's Android library.")
    return java, natives


def _resources(work: Path) -> tuple[Path, Path]:
    """The APK without code, and the numbers of its resources as Kotlin."""
    _say("resources")
    symbols, kotlin = work / "R.txt", work / "R.kt"
    base = link(work, work / "assets", "--output-text-symbols", symbols)
    kotlin.write_text(_resource_numbers(symbols.read_text()))
    return base, kotlin


def link(work: Path, assets: Path | None, *options: str | Path) -> Path:
    """The APK without code, made in ``work``; ``options`` are aapt2's."""
    base, manifest = work / "base.apk", work / "AndroidManifest.xml"
    text = (APP / "AndroidManifest.xml").read_text()  # without the package, which Gradle has in a file of its own
    manifest.write_text(text.replace("<manifest", f'<manifest package="{PACKAGE}"'))
    run("aapt2", "compile", "--dir", APP / "res", "-o", work / "res.zip", purpose="compile the resources")
    packed: tuple[str | Path, ...] = ("-A", assets, *STORED) if assets else ()
    run(
        *("aapt2", "link", "-o", base, "-I", fetch("android-all"), "--manifest", manifest),
        *("--min-sdk-version", version("minSdk"), "--target-sdk-version", version("targetSdk")),
        *("--version-code", version("code"), "--version-name", version("name"), *options),
        *(*packed, work / "res.zip"),
        purpose="link the resources",
    )
    return base


def _resource_numbers(symbols: str) -> str:
    kinds: dict[str, list[str]] = {}
    for line in symbols.splitlines():
        form, kind, name, value = line.split(" ", 3)
        if form == "int":
            kinds.setdefault(kind, []).append(f"const val {name} = {value}")
    objects = (f"object {kind} {{\n{chr(10).join(lines)}\n}}" for kind, lines in kinds.items())
    return f"package {PACKAGE}\n\nobject R {{\n" + "\n".join(objects) + "\n}\n"


def _compile(resources: Path, java: Path, work: Path) -> Path:
    _say("Kotlin")
    sources = [TRANSLATOR, APP / "kotlin", resources]
    return compile_kotlin(sources, [java, fetch("android-all")], work / "app.jar")


def _dex(jars: Sequence[Path], work: Path) -> Path:
    _say("dex")
    dex = work / "classes.dex"
    run(
        *("java", "-Xss8m", "-cp", fetch("dalvik-dx"), "com.android.dx.command.Main", "--dex"),
        *(f"--min-sdk-version={version('minSdk')}", f"--output={dex}", simplify(jars, work / "classes")),
        purpose="make the dex",
    )
    return dex


def simplify(jars: Sequence[Path], classes: Path) -> Path:
    """Unpack the jars' classes that are needed, in a form that dx and Android 7 take."""
    tools = class_path([fetch("kotlin-compiler"), fetch("kotlin-stdlib")])
    run("java", "-cp", tools, DEMO / "tools/Desugar.java", classes, *jars, purpose="rewrite lambdas")
    shrink(classes)
    return classes


def _package(base: Path, dex: Path, natives: Sequence[Path], abi: str, out: Path) -> Path:
    _say(f"{out}")
    loose = shutil.copy(base, base.with_name(out.name))
    with zipfile.ZipFile(loose, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as apk:
        apk.write(dex, dex.name)
        for file in natives:  # compressed: 25 MB of ONNX Runtime become 10; Android unpacks them as it installs
            apk.write(file, f"lib/{abi}/{file.name}")
    aligned = base.with_name(f"{out.stem}.aligned")
    run("zipalign", "-f", "4", loose, aligned, purpose="align the APK")
    if not KEY.exists():
        _make_key()
    key = ("--ks", KEY, "--ks-pass", f"pass:{PASSWORD}")
    run("apksigner", "sign", *key, "--v1-signing-enabled=false", "--v4-signing-enabled=false", aligned, purpose="sign")
    run("apksigner", "verify", aligned, purpose="verify the signature")
    return aligned.replace(out)


def _make_key() -> None:
    with tempfile.TemporaryDirectory(dir=KEY.parent) as scratch:  # its own: two builds may be at it
        part = Path(scratch) / KEY.name
        run(
            *("keytool", "-genkeypair", "-keystore", part, "-storetype", "PKCS12", "-storepass", PASSWORD),
            *("-alias", "debug", "-keyalg", "RSA", "-keysize", "2048", "-validity", "10000", "-dname", "CN=Debug"),
            purpose="make a debug key",
        )
        part.replace(KEY)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m android_demo.tools.apk", description="Make the Android app.")
    parser.add_argument("--bundle", type=Path, required=True, help="folder or .zip of lite-nmt export")
    parser.add_argument("--abi", nargs="+", choices=ABIS, default=ABIS[:1], help=f"default: {ABIS[0]}")
    parser.add_argument("--runtime", type=Path, metavar="AAR", help="ONNX Runtime's; default: Maven Central's")
    parser.add_argument("--out", type=Path, default=DEMO / "build", metavar="DIR", help="default: android_demo/build")
    args = parser.parse_args(argv)
    try:
        made = build(args.bundle, args.abi, args.out, args.runtime)
    except LiteNmtError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for apk in made:
        print(f"{apk}: {apk.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
