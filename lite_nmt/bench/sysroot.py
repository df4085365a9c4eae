"""Set up the emulated Cortex-A72: ``python -m lite_nmt.bench.sysroot [--out DIR] [--mirror URL]``.

Everything comes from Debian and PyPI and lands in one folder; nothing is installed and root is not needed. Always
Debian 12's packages, whatever Debian runs here, because counts are then comparable, and because Debian 13's qemu-user
is linked statically and takes no plugins.

    qemu/       qemu-user 7.2 with the libraries it needs
    sysroot/    arm64: C library, Python 3.11, a compiler of 200 KB, the identity of a Raspberry Pi 4
    site/       aarch64 wheels
    icount.so   the counting plugin (icount.c), for the machine at hand
    hwcap.so    hides what a Raspberry Pi 4 lacks (hwcap.c), for the guest

A second run keeps what is there and made from the same list; an interrupted one goes on at the step it was in.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from lite_nmt.bench.emulated import CHECK, DEFAULT, Emulator, run
from lite_nmt.errors import LiteNmtError

RUNTIME = ("numpy>=1.26,<3", "onnxruntime>=1.22,<2", "sentencepiece>=0.2,<0.3")  # as in pyproject.toml
PEERS = ("ctranslate2>=4.6,<5",)

SUITE = "bookworm"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Named in full, since there is no dpkg that could tell what is already there.
QEMU = (
    *("qemu-user", "libc6", "libcapstone4", "libffi8", "libgcc-s1", "libglib2.0-0", "libgmp10", "libgnutls30"),
    *("libhogweed6", "libidn2-0", "libnettle8", "libnuma1", "libp11-kit0", "libpcre2-8-0", "libtasn1-6"),
    *("libunistring2", "liburing2", "zlib1g"),
)
GUEST = (
    *("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libbz2-1.0", "libc6", "libcrypt1"),
    *("libexpat1", "libffi8", "libgcc-s1", "liblzma5", "libsqlite3-0", "libssl3", "libstdc++6", "libuuid1", "tcc"),
    "zlib1g",
)

SOURCES = Path(__file__).parent
PROCESSOR = """\
processor\t: {}
BogoMIPS\t: 108.00
Features\t: fp asimd evtstrm crc32 cpuid
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x0
CPU part\t: 0xd08
CPU revision\t: 3

"""


def set_up(folder: Path, mirror: str | None = None) -> Emulator:
    """Make the folder, or what is missing of it, and try it out.

    Args:
        mirror: of Debian; the one this Debian was set up with, if None.

    Raises:
        LiteNmtError: the machine lacks something, or a download failed.
    """
    _check_machine()
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    apt = Apt(folder / "apt", mirror)
    _make(folder / "qemu", QEMU, lambda part: _unpack_qemu(apt, part))
    _make(folder / "sysroot", GUEST, lambda part: _unpack_guest(apt, part))
    _make(folder / "site", [*RUNTIME, *PEERS], _install_wheels)
    emulator = Emulator(folder)
    guest = [*emulator.command(), f"{folder}/sysroot/usr/bin/tcc", "-nostdlib"]
    _make_library(emulator.plugin, ["cc", "-O2", "-fPIC"])
    _make_library(emulator.preload, guest)
    shutil.rmtree(folder / "apt", ignore_errors=True)
    _say("trying it")
    try:
        found = run(emulator, ["-c", CHECK], bytecode=True).output
    except LiteNmtError as error:
        raise LiteNmtError(f"the emulated Cortex-A72 in {folder} does not work: {error}") from error
    (folder / "versions.json").write_text(found)
    return emulator


def _check_machine() -> None:
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise LiteNmtError(
            f"the emulated Cortex-A72 is set up on x86-64 Linux; this is {platform.system()} {platform.machine()}."
        )
    for tool, source in (("apt-get", "apt"), ("dpkg-deb", "dpkg"), ("cc", "gcc and libc6-dev")):
        if shutil.which(tool) is None:
            raise LiteNmtError(f"{tool} is missing; install {source}.")
    if not KEYRING.exists():
        raise LiteNmtError(f"{KEYRING} is missing; install debian-archive-keyring.")
    if importlib.util.find_spec("pip") is None:
        raise LiteNmtError(f"{sys.executable} has no pip, which fetches the wheels; use a Python that has.")


def _make(target: Path, recipe: object, build: Callable[[Path], None]) -> None:
    """Build ``target`` in a folder beside it, unless it was built by the same recipe before."""
    stamp = target.with_name(f"{target.name}.made")
    text = json.dumps(recipe)
    if target.exists() and stamp.exists() and stamp.read_text() == text:
        return
    _say(f"making {target}")
    part = target.with_name(f"{target.name}.part")
    for old in (target, part):
        if old.is_dir():
            shutil.rmtree(old)
    build(part)
    part.rename(target)
    stamp.write_text(text)


def _make_library(target: Path, compiler: Sequence[str]) -> None:
    source = (SOURCES / target.name).with_suffix(".c")

    def build(part: Path) -> None:
        _call([*compiler, "-shared", "-o", str(part), str(source)], f"compile {source.name}")

    _make(target, source.read_text(), build)


class Apt:
    """Debian's packages, with an index and a state of their own; apt checks every signature and checksum."""

    def __init__(self, folder: Path, mirror: str | None) -> None:
        self.folder, self.mirror = folder, mirror
        self.options: list[str] = []

    def download(self, packages: Sequence[str], architecture: str, folder: Path) -> list[Path]:
        """Fetch the packages, and none that they depend on, into ``folder``."""
        if not self.options:
            self._update()
        folder.mkdir(parents=True)
        self._get("download", *(f"{name}:{architecture}" for name in packages), folder=folder)
        return sorted(folder.glob("*.deb"))

    def _update(self) -> None:
        for name in ("lists/partial", "cache/archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        sources = self.folder / "sources.list"
        sources.write_text(f"deb [signed-by={KEYRING}] {self.mirror or _mirror()} {SUITE} main\n")
        settings = {
            "APT::Architecture": "amd64",
            "APT::Architectures::": "arm64",
            "APT::Sandbox::User": "root",  # the folder need not be open to others
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "Dir::Etc::sourcelist": sources,
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": self.folder / "lists",
            "Dir::State::status": "/dev/null",
            "Dir::Cache": self.folder / "cache",
        }
        self.options = [f"-o{key}={value}" for key, value in settings.items()]
        self._get("update")

    def _get(self, *arguments: str, folder: Path | None = None) -> None:
        _call(["apt-get", "-qq", *self.options, *arguments], "fetch Debian packages", folder)


def _mirror() -> str:
    """Where this Debian gets its packages from."""
    release = platform.freedesktop_os_release()
    if release.get("ID") == "debian":
        lines = _call(
            ["apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"],
            "ask apt for its sources",
        )
        for line in lines.splitlines():
            suite, component, address = line.split(" ", 2)
            if suite in (release.get("VERSION_CODENAME"), "stable") and component == "main":
                return address
    raise LiteNmtError("apt here names no mirror of Debian; name one with --mirror URL.")


def _unpack(packages: Sequence[Path], folder: Path) -> None:
    for package in packages:
        _call(["dpkg-deb", "--extract", str(package), str(folder)], f"unpack {package.name}")
        package.unlink()


def _unpack_qemu(apt: Apt, part: Path) -> None:
    _unpack(apt.download(QEMU, "amd64", part / "debs"), part)
    for program in (part / "usr/bin").glob("qemu-*"):
        if program.name != "qemu-aarch64":  # the other targets are 100 MB
            program.unlink()


def _unpack_guest(apt: Apt, part: Path) -> None:
    _unpack(apt.download(GUEST, "arm64", part / "debs"), part)
    # What a program opens by its full path is looked for here first; some wheels fail on another machine's cpuinfo.
    (part / "proc").mkdir(exist_ok=True)
    (part / "proc/cpuinfo").write_text("".join(PROCESSOR.format(number) for number in range(4)))
    cores = part / "sys/devices/system/cpu"
    for number in range(4):
        for name, text in (
            ("topology/core_id", f"{number}"),
            ("topology/physical_package_id", "0"),
            ("cpufreq/cpuinfo_max_freq", "1500000"),
            ("regs/identification/midr_el1", "0x00000000410fd083"),
        ):
            file = cores / f"cpu{number}" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n")
    for name in ("possible", "present", "online"):
        (cores / name).write_text("0-3\n")


def _install_wheels(part: Path) -> None:
    target = ["--python-version=3.11", "--implementation=cp", "--abi=cp311", "--only-binary=:all:", "--no-deps"]
    target += [f"--platform=manylinux_2_{minor}_aarch64" for minor in (28, 27, 17)]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    _call([*pip, *target, f"--target={part}", *RUNTIME, *PEERS], "fetch aarch64 wheels")


def _call(command: Sequence[str], purpose: str, folder: Path | None = None) -> str:
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    if result.returncode:
        lines = (result.stderr or result.stdout).strip().splitlines() or [f"exit code {result.returncode}"]
        raise LiteNmtError(f"could not {purpose}: {lines[-1]}")
    return result.stdout


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m lite_nmt.bench.sysroot",
        description="Set up the emulated Cortex-A72 from Debian and PyPI packages; root is not needed.",
    )
    default = Path(os.environ.get("LITE_NMT_CORTEX_A72") or DEFAULT)
    parser.add_argument("--out", type=Path, default=default, metavar="DIR", help=f"default: {default}")
    parser.add_argument("--mirror", metavar="URL", help="of Debian; default: this Debian's own")
    args = parser.parse_args(argv)
    try:
        emulator = set_up(args.out, args.mirror)
    except LiteNmtError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{emulator.folder} is ready: {', '.join(f'{k} {v}' for k, v in emulator.versions().items())}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
