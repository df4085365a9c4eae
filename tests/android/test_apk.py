"""``make android``'s APK: signed, right for its ABI, asking for nothing, and within what Android 7 has."""

from __future__ import annotations

import re
import shutil
import struct
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from android_demo.tools import debian
from android_demo.tools.apk import ABIS, APP, build
from android_demo.tools.dex import Kind, read_dex
from android_demo.tools.fetch import CACHE, catalogue, fetch, version
from android_demo.tools.signature import read_signature
from lite_nmt.errors import LiteNmtError
from lite_nmt.export.bundle import FORMAT, VERSION
from lite_nmt.manifest import seal, write_folder

MACHINES = {"arm64-v8a": 183, "x86_64": 62}  # of ELF
PAGE = 16384
NEEDED = ("android-all", "android-api", "dalvik-dx", "kotlin-compiler", "kotlin-stdlib", "onnxruntime")
# Library classes with code that Android 7 lacks something for; the app uses none of them.
NEWER = {
    "ai/onnxruntime/OrtTrainingSession": "java.nio.file",
    "ai/onnxruntime/OrtTrainingSession$OrtCheckpointState": "java.nio.file",
    "ai/onnxruntime/platform/Fp16Conversions": "method handles; it converts float16",
    "kotlin/internal/jdk8/JDK8PlatformImplementations": "named groups of regular expressions",
    "kotlin/internal/jdk8/JDK8PlatformImplementations$getSystemClock$1": "java.time, behind a check for Android 8",
    "kotlin/time/jdk8/InstantConversionsJDK8Kt": "java.time",
    **dict.fromkeys(
        (
            *("kotlin/UByte", "kotlin/UShort", "kotlin/UInt", "kotlin/ULong", "kotlin/UnsignedKt"),
            *("kotlin/collections/UArraySortingKt", "kotlin/collections/unsigned/UArraysKt___UArraysKt"),
            *("kotlin/internal/UProgressionUtilKt", "kotlin/random/URandomKt", "kotlin/ranges/UIntRange"),
            *("kotlin/ranges/UIntProgression", "kotlin/ranges/UIntProgressionIterator", "kotlin/ranges/ULongRange"),
            *("kotlin/ranges/ULongProgression", "kotlin/ranges/ULongProgressionIterator"),
            "kotlin/ranges/URangesKt___URangesKt",
        ),
        "unsigned numbers",
    ),
}
# And some that it does use, but not that part of them on Android 7.
CHECKED = {
    "ai/onnxruntime/OnnxRuntime": "java.nio.file, for a library that a desktop unpacks",
    "litenmt/app/Insets": "WindowInsets.Type, behind a check for Android 11",
}


@pytest.fixture(scope="module")
def apks(exported: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The APK for each ABI, around a tiny bundle."""
    known = catalogue()
    missing = [alias for alias in NEEDED if not (CACHE / "maven" / known[alias].path).exists()]
    missing += [tool for tool in debian.PACKAGES if not shutil.which(tool) and not (debian.ROOT / tool).exists()]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: python -m android_demo.tools.prepare")
    folder = tmp_path_factory.mktemp("android")
    library = CACHE / "maven" / known["onnxruntime-android"].path
    runtime = None if library.exists() else stand_in(folder / "runtime.aar")
    return dict(zip(ABIS, build(exported, ABIS, folder, runtime), strict=True))


def stand_in(aar: Path) -> Path:
    """Like ONNX Runtime's Android library: its Java classes, which are the desktop's, and empty native libraries."""
    classes = aar.with_name("classes.jar")
    with zipfile.ZipFile(fetch("onnxruntime")) as desktop, zipfile.ZipFile(classes, "w") as jar:
        for name in desktop.namelist():
            if name.endswith(".class"):
                jar.writestr(name, desktop.read(name))
    with zipfile.ZipFile(aar, "w") as made:
        made.write(classes, classes.name)
        for abi, machine in MACHINES.items():
            header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, machine, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
            loaded = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 120, 120, PAGE)
            for name in ("libonnxruntime.so", "libonnxruntime4j_jni.so"):
                made.writestr(f"jni/{abi}/{name}", header + loaded)
    return aar


def test_what_is_no_bundle_for_it_is_refused(exported: Path, tmp_path: Path) -> None:
    def refused(bundle: Path) -> str:
        with pytest.raises(LiteNmtError) as error:
            build(bundle, ABIS, tmp_path / "out")
        assert not list((tmp_path / "out").iterdir())
        return str(error.value)

    def altered(name: str, files: dict[str, bytes]) -> Path:
        write_folder(tmp_path / name, {file.name: file.read_bytes() for file in exported.iterdir()} | files)
        return tmp_path / name

    (tmp_path / "empty.zip").write_bytes(b"")
    for name in ("nowhere", "empty.zip", "."):
        assert "is no bundle" in refused(tmp_path / name)
    weights = (exported / "weights.bin").read_bytes()
    assert "truncated" in refused(altered("short", {"weights.bin": weights[1:]}))
    assert "checksum" in refused(altered("changed", {"weights.bin": b"x" + weights[1:]}))
    zipped = shutil.make_archive(str(tmp_path / "zipped"), "zip", tmp_path / "changed")
    assert "checksum" in refused(Path(zipped))
    other = seal({"format": FORMAT, "version": VERSION}, {"model.pte": b""}, {})
    write_folder(tmp_path / "executorch", {"manifest.json": other, "model.pte": b""})
    assert "not for ONNX Runtime" in refused(tmp_path / "executorch")
    other = seal({"format": FORMAT, "version": VERSION, "config": {"task": "lm"}}, {"step.onnx": b""}, {})
    write_folder(tmp_path / "lm", {"manifest.json": other, "step.onnx": b""})
    assert "does not translate" in refused(tmp_path / "lm")


def test_what_is_no_runtime_is_refused(exported: Path, tmp_path: Path) -> None:
    (tmp_path / "text.aar").write_text("no zip")
    with zipfile.ZipFile(tmp_path / "empty.aar", "w"):
        pass
    for name in ("nowhere.aar", "text.aar", "empty.aar"):
        with pytest.raises(LiteNmtError, match="take ONNX Runtime's Android library"):
            build(exported, ABIS, tmp_path / "out", tmp_path / name)


@pytest.fixture(scope="module")
def apk(apks: dict[str, Path]) -> Path:
    return apks["arm64-v8a"]


def test_it_is_signed(apk: Path) -> None:
    said = debian.run("apksigner", "verify", "--verbose", apk, purpose="verify")
    assert re.search(r"^Verified using v2 scheme .*: true$", said, re.M)
    assert re.search(r"^Verified using v3 scheme .*: true$", said, re.M)


def test_it_asks_for_nothing(apk: Path) -> None:
    said = debian.run("aapt2", "dump", "badging", apk, purpose="read the manifest")
    assert "uses-permission" not in said
    assert f"sdkVersion:'{version('minSdk')}'" in said
    assert f"targetSdkVersion:'{version('targetSdk')}'" in said
    assert "launchable-activity: name='litenmt.app.TranslateActivity'" in said
    assert "native-code: 'arm64-v8a'" in said


def test_what_other_apps_may_start(apk: Path) -> None:
    said = debian.run("aapt2", "dump", "xmltree", "--file", "AndroidManifest.xml", apk, purpose="read the manifest")
    parts = re.split(r"E: (activity|service|receiver|provider) ", said)
    found = {}
    for kind, text in zip(parts[1::2], parts[2::2], strict=True):
        attributes = dict(re.findall(r"android:(\w+)\(0x\w+\)=\"?([^\s\"]+)", text.split("E: ")[0]))
        found[attributes["name"]] = (kind, attributes["exported"], attributes.get("permission"))
    assert found == {
        ".TranslateActivity": ("activity", "true", None),
        ".ModelsActivity": ("activity", "false", None),
        ".BenchmarkActivity": ("activity", "true", "android.permission.DUMP"),
    }


def test_android_7_has_all_that_it_uses(apk: Path) -> None:
    with zipfile.ZipFile(apk) as archive:
        assert [name for name in archive.namelist() if name.endswith(".dex")] == ["classes.dex"]
        dex = read_dex(archive.read("classes.dex"))
    assert not dex.calls_custom
    known = read_signature(fetch("android-api")) | dex.classes
    missing = {}
    for name, kind in dex.classes.items():
        lacking = {use for use in kind.uses if not has(known, *use)}
        lacking |= {(parent, "") for parent in kind.parents if parent not in known}
        if lacking:
            missing[name] = lacking
    assert {name: uses for name, uses in missing.items() if name not in NEWER | CHECKED} == {}
    assert {
        use for name, kind in dex.classes.items() if name.startswith("litenmt/") for use, _ in kind.uses
    }.isdisjoint(NEWER)


def has(known: dict[str, Kind], name: str, member: str) -> bool:
    if name in {*"ZBCSIJFD"}:  # an array of numbers
        return True
    kind = known.get(name)
    if kind is None or not member or member in kind.members:
        return kind is not None
    return any(
        has(known, parent, member) for parent in [*kind.parents, *(["java/lang/Object"] if kind.parents else [])]
    )


@pytest.mark.parametrize("abi", ABIS)
def test_native_libraries(apks: dict[str, Path], abi: str) -> None:
    with zipfile.ZipFile(apks[abi]) as archive:
        libraries = [info for info in archive.infolist() if info.filename.startswith("lib/")]
        assert {info.filename for info in libraries} == {
            f"lib/{abi}/libonnxruntime.so",
            f"lib/{abi}/libonnxruntime4j_jni.so",
        }
        for info in libraries:
            assert info.compress_type == zipfile.ZIP_DEFLATED  # so they need no place of their own in the file
            content = archive.read(info)
            assert content[:4] == b"\x7fELF"
            assert struct.unpack_from("<H", content, 18) == (MACHINES[abi],)
            (start,) = struct.unpack_from("<Q", content, 32)
            size, count = struct.unpack_from("<HH", content, 54)
            headers = [struct.unpack_from("<IIQQQQQQ", content, start + i * size) for i in range(count)]
            assert all(header[7] % PAGE == 0 for header in headers if header[0] == 1)


def test_the_bundle_is_as_it_was(apk: Path, exported: Path) -> None:
    with zipfile.ZipFile(apk) as archive:
        inside = {name: archive.getinfo(name) for name in archive.namelist() if name.startswith("assets/")}
        assert set(inside) == {f"assets/bundle/{file.name}" for file in exported.iterdir()}
        for name, info in inside.items():
            assert archive.read(name) == (exported / Path(name).name).read_bytes()
            assert info.compress_type == (zipfile.ZIP_DEFLATED if name.endswith(".json") else zipfile.ZIP_STORED)


def test_german_says_all_that_english_says() -> None:
    def strings(folder: str) -> dict[str, str]:
        found = ElementTree.parse(APP / f"res/{folder}/strings.xml").getroot()
        return {entry.attrib["name"]: entry.text or "" for entry in found if "translatable" not in entry.attrib}

    english, german = strings("values"), strings("values-de")
    assert english.keys() == german.keys()
    for name, text in english.items():
        assert sorted(re.findall(r"%\S*[a-z]", text)) == sorted(re.findall(r"%\S*[a-z]", german[name])), name
