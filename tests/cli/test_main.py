"""The command line from outside: speed of --help, exit codes, plain sentences."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import types
import warnings
from pathlib import Path

import pytest

import lite_nmt
from lite_nmt.cli import main as cli
from lite_nmt.errors import LiteNmtError

ROOT = Path(lite_nmt.__file__).parent.parent


def command(*arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, cwd=ROOT, check=False, **options)  # type: ignore[call-overload]


def test_help_names_every_verb_without_importing_anything_slow() -> None:
    code = (
        "import sys\nfrom lite_nmt.cli.main import build_parser\nbuild_parser().print_help()\n"
        "sys.exit(', '.join({'torch', 'numpy', 'sacrebleu', 'sentencepiece', 'rich'} & sys.modules.keys()) or 0)"
    )
    result = command("-c", code)
    assert result.returncode == 0, result.stderr
    for verb in cli.VERBS:
        assert verb in result.stdout.decode()


def test_help_is_fast() -> None:
    def seconds() -> float:
        before = os.times()
        assert command("-m", "lite_nmt", "--help").returncode == 0
        after = os.times()  # of the processor, so that a busy machine does not fail the test
        return (after.children_user - before.children_user) + (after.children_system - before.children_system)

    assert min(seconds() for _ in range(3)) < 0.3


@pytest.mark.parametrize("arguments", [[], ["translat"], ["translate"], ["translate", "x", "--beam", "two"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments)
    assert exit_.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"lite-nmt {lite_nmt.__version__}\n"


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (LiteNmtError("no."), 1, "lite-nmt: error: no.\n"),
        (KeyboardInterrupt(), 130, "lite-nmt: interrupted.\n"),
        (OSError(errno.ENOSPC, "No space left on device", "f"), 1, "lite-nmt: error: f: the disk is full.\n"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "lite-nmt: error: the disk is full.\n"),
        (PermissionError(errno.EACCES, "Permission denied", "f"), 1, "lite-nmt: error: f: Permission denied.\n"),
        (MemoryError(), 1, "lite-nmt: error: out of memory; try smaller batches or a smaller model.\n"),
        (
            RuntimeError("can't allocate memory: 1"),
            1,
            "lite-nmt: error: out of memory; try smaller batches or a smaller model.\n",
        ),
    ],
)
def test_failures_are_one_sentence(
    error: BaseException,
    code: int,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(args: object) -> int:
        raise error

    monkeypatch.setattr("lite_nmt.cli.translate.run", run)
    assert cli.main(["translate", "x"]) == code
    assert capsys.readouterr().err == sentence


def test_mistakes_of_ours_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(args: object) -> int:
        raise RuntimeError("shapes")

    monkeypatch.setattr("lite_nmt.cli.translate.run", run)
    with pytest.raises(RuntimeError, match="shapes"):
        cli.main(["translate", "x"])


def test_warnings_are_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def run(args: object) -> int:
        warnings.simplefilter("always")
        for _ in range(2):
            warnings.warn("careful.", stacklevel=1)
        return 0

    monkeypatch.setattr("lite_nmt.cli.translate.run", run)
    assert cli.main(["translate", "x"]) == 0
    assert capsys.readouterr().err == "lite-nmt: warning: careful.\n"


def test_a_reader_that_goes_away() -> None:
    code = (
        "import sys, types\nfrom lite_nmt.cli import main, presets\n"
        "presets.run = lambda args: [print('x' * 1000) for _ in range(10000)] and 0\n"
        "sys.exit(main.main(['presets']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_verbs_have_one_shape() -> None:
    for verb in cli.VERBS:
        module = __import__(f"lite_nmt.cli.{verb}", fromlist=["run"])
        assert isinstance(module, types.ModuleType)
        assert callable(module.add_parser)
        assert callable(module.run)
