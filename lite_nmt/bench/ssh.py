"""Measure on a machine behind ssh: the package and the bundle go there, ``lite-nmt bench`` runs, its JSON comes back.

Any Linux with Python 3.11 or newer, a POSIX shell and tar will do; it was made for a Raspberry Pi. What the runtime
needs from PyPI is installed there once, in ``~/.cache/lite-nmt/venv``, unless its Python has it; everything else lies
in a temporary folder, which is removed. Settings such as keys and jump hosts are those of ``~/.ssh/config``.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import lite_nmt
from lite_nmt.bench.sysroot import RUNTIME
from lite_nmt.errors import LiteNmtError

TARGET = re.compile(r"ssh:(?:(?P<user>\w[\w.-]*)@)?(?P<host>\w[\w.-]*|\[[0-9a-fA-F:]+\])(?::(?P<port>\d{1,5}))?", re.A)
SHORT, SETUP, LONG = 60, 900, 3600  # seconds: a small command, an installation, a benchmark
LOST = 255  # ssh's own exit code

# Prints the Python to use. $1 is the one to start from, $2... the requirements.
PREPARE = """
set -eu
python=$1; shift
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >&2; then
  echo "$python there is missing or older than 3.11; install a newer one" >&2; exit 1
fi
missing() { ! "$1" -c "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))" $names; }
names=""
for requirement; do names="$names ${requirement%%[<>=]*}"; done
if missing "$python"; then
  venv="$HOME/.cache/lite-nmt/venv"
  [ -x "$venv/bin/python" ] || "$python" -m venv "$venv" >&2
  python="$venv/bin/python"
  if missing "$python"; then "$python" -m pip install --quiet --disable-pip-version-check "$@" >&2; fi
fi
echo "$python"
"""

RUN = 'cd "$1"; shift; exec env PYTHONPATH=. PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 ORT_DISABLE_TELEMETRY=1 "$@"'


@dataclass(frozen=True)
class Machine:
    """Where to, and how."""

    name: str
    command: tuple[str, ...]  # ssh with its options and the destination

    def run(
        self, script: str, arguments: Sequence[str] = (), *, timeout: float = SHORT, stdin: IO[bytes] | None = None
    ) -> str:
        """Run a shell script there, and give back what it printed.

        Raises:
            LiteNmtError: the machine cannot be reached, the script failed, or it took too long.
        """
        # ssh hands all it is given to the remote shell as one line, so every word is quoted for that shell.
        line = shlex.join(["sh", "-c", script, "lite-nmt", *arguments])
        try:
            result = subprocess.run(
                [*self.command, line], stdin=stdin or subprocess.DEVNULL, capture_output=True, timeout=timeout
            )
        except subprocess.TimeoutExpired as error:
            raise LiteNmtError(f"{self.name} did not finish within {timeout:.0f} s.") from error
        except FileNotFoundError as error:
            raise LiteNmtError("ssh is missing; install openssh-client.") from error
        if result.returncode:
            lines = result.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {result.returncode}"]
            what = "cannot be reached" if result.returncode == LOST else "failed"
            raise LiteNmtError(f"{self.name} {what}: {lines[-1]}")
        return result.stdout.decode(errors="replace")


def machine(target: str, options: Sequence[str] = ()) -> Machine:
    """The machine that ``ssh:[user@]host[:port]`` means.

    Args:
        options: of ssh, such as ``-F FILE``.

    Raises:
        LiteNmtError: that is no such target.
    """
    found = TARGET.fullmatch(target)
    if found is None:
        raise LiteNmtError(f"--target {target} is not of the form ssh:user@host or ssh:user@host:port.")
    user, host, port = found["user"], found["host"].strip("[]"), found["port"]
    command = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15", *options]
    command += ["-p", port] if port else []
    command += ["-l", user] if user else []
    return Machine(target.removeprefix("ssh:"), (*command, "--", host))


def measure(
    target: str,
    bundle: Path,
    arguments: Sequence[str] = (),
    *,
    data: Path | None = None,
    options: Sequence[str] = (),
    python: str = "python3",
    requirements: Sequence[str] = RUNTIME,
    program: Sequence[str] = ("-m", "lite_nmt", "bench"),
) -> dict[str, Any]:
    """Run ``lite-nmt bench BUNDLE ARGUMENT... --json`` on another machine.

    Args:
        target: ``ssh:[user@]host[:port]``.
        bundle: a folder or a file here.
        arguments: further ones, such as ``--threads 4``.
        data: a folder that goes there too, and is the command's ``--data``.
        options: of ssh.
        python: the one to use there.
        requirements: what it must have from PyPI.
        program: what Python runs; given the bundle's path and the arguments.

    Returns:
        The JSON that was printed there.

    Raises:
        LiteNmtError: in one sentence, whatever went wrong, here or there.
    """
    there = machine(target, options)
    if not bundle.exists():
        raise LiteNmtError(f"{bundle} does not exist; name a bundle.")
    chosen = there.run(PREPARE, [python, *requirements], timeout=SETUP).strip().splitlines()[-1]
    with _folder(there) as folder:
        name = f"bundle{''.join(bundle.suffixes[-1:])}" if bundle.is_file() else "bundle"
        sent = {"lite_nmt": Path(lite_nmt.__file__).parent, name: bundle.resolve()}
        if data is not None:
            sent["data"], arguments = data, [*arguments, "--data", "data"]
        _send(there, folder, sent)
        output = there.run(
            RUN,
            [folder, chosen, *program, name, *arguments, "--json"],
            timeout=LONG,
        )
    try:
        report: dict[str, Any] = json.loads(output)
    except ValueError as error:
        raise LiteNmtError(f"{there.name} printed no JSON but: {output.strip()[:200] or 'nothing'}") from error
    return report


@contextmanager
def _folder(there: Machine) -> Iterator[str]:
    """A temporary folder there, removed at the end."""
    folder = there.run("umask 077; mktemp -d").strip()
    try:
        yield folder
    except BaseException:
        with suppress(LiteNmtError):  # what went wrong first is what is told
            there.run('rm -rf "$1"', [folder])
        raise
    there.run('rm -rf "$1"', [folder])


def _send(there: Machine, folder: str, paths: dict[str, Path]) -> None:
    """Copy files and folders, under the names given; links are followed."""

    def keep(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return None if "__pycache__" in member.name else member

    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w", dereference=True) as archive:
            for name, path in paths.items():
                archive.add(path, arcname=name, filter=keep)
        file.seek(0)
        there.run('exec tar -C "$1" -xf -', [folder], timeout=LONG, stdin=file)
