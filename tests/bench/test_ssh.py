"""Measuring on another machine, with this one in its part: a server of its own on loopback."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lite_nmt.bench.ssh import machine, measure
from lite_nmt.errors import LiteNmtError

# Stands in for lite-nmt: says what it was given and what it can see.
STAND_IN = (
    "-c",
    "import json, os, sys, lite_nmt; print(json.dumps({'arguments': sys.argv[1:], 'files': sorted(os.listdir('.')), "
    "'package': os.path.dirname(lite_nmt.__file__), 'bundle': open('bundle/graph').read(), 'here': os.getcwd()}))",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str]]]:
    """A target and the options that reach it."""
    sshd = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if sshd is None or shutil.which("ssh") is None:
        pytest.skip("needs sshd and ssh: openssh-server, openssh-client")
    folder = tmp_path_factory.mktemp("ssh")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
        f"PidFile none\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
    )
    (folder / "ssh_config").write_text(
        f"IdentityFile {folder}/user\nIdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile {folder}/known\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd, as root, wants to be confined; its service makes it
    process = subprocess.Popen([sshd, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=subprocess.PIPE)
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0 or process.poll() is not None:
                    break
            time.sleep(0.05)
        if process.poll() is not None:
            assert process.stderr is not None
            pytest.skip(f"sshd does not start here: {process.stderr.read().decode().strip()}")
        yield f"ssh:{getpass.getuser()}@127.0.0.1:{port}", ["-F", str(folder / "ssh_config")]
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "my $(touch bundle)"
    folder.mkdir()
    (folder / "graph").write_text("weights")
    return folder


def test_package_and_bundle_travel_and_json_returns(server: tuple[str, list[str]], bundle: Path) -> None:
    target, options = server
    arguments = ["--beam", "4", "--note", "it's; $(touch argument) `id` \\ \n end"]
    report = measure(
        target, bundle, arguments, options=options, python=sys.executable, requirements=(), program=STAND_IN
    )
    assert report["arguments"] == ["bundle", *arguments, "--json"]
    assert report["files"] == ["bundle", "lite_nmt"]
    assert report["package"] == f"{report['here']}/lite_nmt"
    assert report["bundle"] == "weights"
    assert not Path(report["here"]).exists()


def test_a_failure_there_is_told_and_tidied_up(server: tuple[str, list[str]], bundle: Path, tmp_path: Path) -> None:
    target, options = server
    seen = tmp_path / "seen"
    for code, message in (
        ("sys.exit('no such beam')", "failed: no such beam"),
        ("print('hello')", "printed no JSON but: hello"),
    ):
        program = ("-c", f"import os, sys; open({str(seen)!r}, 'w').write(os.getcwd()); {code}")
        with pytest.raises(LiteNmtError, match=message):
            measure(target, bundle, options=options, python=sys.executable, requirements=(), program=program)
        assert not Path(seen.read_text()).exists()


def test_python_there_must_exist(server: tuple[str, list[str]], bundle: Path) -> None:
    target, options = server
    with pytest.raises(LiteNmtError, match=r"missing or older than 3\.11"):
        measure(target, bundle, options=options, python="python-of-nowhere", requirements=())


def test_time_runs_out(server: tuple[str, list[str]]) -> None:
    target, options = server
    with pytest.raises(LiteNmtError, match="did not finish within 1 s"):
        machine(target, options).run("sleep 20", timeout=1)


def test_a_stranger_is_not_let_in(server: tuple[str, list[str]], tmp_path: Path) -> None:
    target, _ = server
    empty = tmp_path / "config"
    empty.write_text(f"UserKnownHostsFile {tmp_path}/none\nIdentityAgent none\nIdentityFile {tmp_path}/none\n")
    with pytest.raises(LiteNmtError, match="cannot be reached: "):
        machine(target, ["-F", str(empty)]).run("true")


@pytest.mark.parametrize(
    "target", ["ssh:", "ssh:-oProxyCommand=id", "ssh:a@-b", "ssh:a b", "ssh:host:port", "host", "ssh:a@b@c", "ssh:h\n"]
)
def test_what_is_no_target_is_refused(target: str) -> None:
    with pytest.raises(LiteNmtError, match="is not of the form ssh:user@host"):
        machine(target)


def test_targets_become_commands() -> None:
    command = shlex.join(machine("ssh:pi@raspberry.local:2222").command)
    assert command.endswith("-p 2222 -l pi -- raspberry.local")
    assert machine("ssh:[::1]").command[-2:] == ("--", "::1")
