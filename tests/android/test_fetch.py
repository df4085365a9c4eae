"""Downloads go on where they stopped, and nothing is taken that is not what the lock file says."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from android_demo.tools import fetch as tool
from lite_nmt.errors import LiteNmtError

CONTENT = bytes(range(256)) * 20
LIBRARY = "kotlin-stdlib"


class Central(BaseHTTPRequestHandler):
    """Has one file; says which parts of it were asked for, and may stop early."""

    asked: list[str] = []  # noqa: RUF012 - one server at a time
    stops_at = len(CONTENT)
    content = CONTENT

    def do_GET(self) -> None:
        self.asked.append(self.headers["Range"])
        start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        if not self.path.endswith(".jar"):
            self.send_error(404)
        elif start >= len(self.content):
            self.send_error(416)
        else:
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(self.content) - start))
            self.end_headers()
            self.wfile.write(self.content[start : self.stops_at])

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, a lock file for ``CONTENT`` and a server that has it."""
    server = HTTPServer(("127.0.0.1", 0), Central)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    lock = tmp_path / "artifacts.lock"
    lock.write_text(f"{hashlib.sha256(CONTENT).hexdigest()} {tool.catalogue()[LIBRARY]}\n")
    monkeypatch.setattr(tool, "CENTRAL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(tool, "CACHE", tmp_path)
    monkeypatch.setattr(tool, "LOCK", lock)
    monkeypatch.setattr(Central, "asked", [])
    yield tmp_path
    server.shutdown()
    thread.join()
    server.server_close()


def test_once(cache: Path) -> None:
    assert tool.fetch(LIBRARY).read_bytes() == CONTENT
    tool.fetch(LIBRARY)
    assert Central.asked == ["bytes=0-"]
    assert not list(cache.rglob("*.part"))


def test_it_goes_on(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Central, "stops_at", 1000)
        with pytest.raises(LiteNmtError, match=r"stopped .*run again to go on"):
            tool.fetch(LIBRARY)
    assert tool.fetch(LIBRARY).read_bytes() == CONTENT
    assert Central.asked == ["bytes=0-", "bytes=1000-"]


def test_a_file_put_there_is_taken(cache: Path) -> None:
    file = cache / "maven" / tool.catalogue()[LIBRARY].path
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT)
    assert tool.fetch(LIBRARY) == file
    assert Central.asked == []


def test_one_that_was_damaged_later_is_thrown_away(cache: Path) -> None:
    tool.fetch(LIBRARY).write_bytes(CONTENT[1:])
    with pytest.raises(LiteNmtError, match="thrown away"):
        tool.fetch(LIBRARY)
    assert tool.fetch(LIBRARY).read_bytes() == CONTENT


def test_another_file_is_thrown_away(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Central, "content", CONTENT[::-1])
    with pytest.raises(LiteNmtError, match=r"not .* as in artifacts\.lock"):
        tool.fetch(LIBRARY)
    assert not [path for path in (cache / "maven").rglob("*") if path.is_file()]


@pytest.mark.usefixtures("cache")
def test_what_is_not_there_or_not_pinned() -> None:
    aar = tool.catalogue()["onnxruntime-android"]
    with pytest.raises(LiteNmtError, match=r"is not in artifacts\.lock"):
        tool.fetch("onnxruntime-android")
    tool.LOCK.write_text(f"{'0' * 64} {aar}\n")
    with pytest.raises(LiteNmtError, match=r"answers 404 for .*put it at .*\.aar"):
        tool.fetch("onnxruntime-android")
