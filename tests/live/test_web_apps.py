"""The FastAPI example on a real server: killed among requests, and with PostgreSQL and a worker as compose.yaml has it."""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

import pytest

from ragstone.live.commands.worker import worker

from ..support.waiting import soon  # noqa: TID252
from .live_app import rows

EXAMPLES = Path(__file__).parents[2] / "examples"
REQUESTS, AT_ONCE = 200, 8
SLOW = """
import itertools
import time
from pathlib import Path
from words import SharedWords, WordEmbedder

CALLS = itertools.count()

class Slow(SharedWords, WordEmbedder):
    model = "slow"

    def generate(self, request):
        while next(CALLS) >= 20 and not Path("restarted").exists():
            time.sleep(0.01)
        return super().generate(request)
"""

pytestmark = [
    pytest.mark.skipif(not EXAMPLES.is_dir(), reason="needs the checkout: examples/"),
    pytest.mark.skipif(sys.platform == "win32", reason="a server gets the test's socket"),
]


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A socket that outlives the servers: requests wait in it while none runs."""
    pytest.importorskip("fastapi")
    with socket.create_server(("127.0.0.1", 0), backlog=REQUESTS) as listening:
        listening.set_inheritable(True)
        yield listening


@contextmanager
def process(
    folder: Path, *command: str, fd: int | None = None, **variables: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a module's command with the examples on its path; kill it at the end."""
    path = os.pathsep.join([str(EXAMPLES), str(folder), *sys.path])
    environ = {**os.environ, "PYTHONPATH": path, **variables}
    passed = [] if fd is None else [fd]
    running = subprocess.Popen([sys.executable, "-m", *command], cwd=folder, env=environ, pass_fds=passed)
    try:
        yield running
    finally:
        running.kill()
        running.wait()


@contextmanager
def ending(over: threading.Event) -> Iterator[None]:
    """Say at the end, however it comes, that it is over: threads that ask would wait for a server for ever."""
    try:
        yield
    finally:
        over.set()


def ask(url: str, question: str, over: threading.Event) -> str:
    """Ask the app, and the next one where it is killed meanwhile; the sample's id."""
    while not over.is_set():
        try:
            with urlopen(f"{url}/ask?q={quote(question)}", timeout=60) as response:
                return json.loads(response.read())["id"]
        except (OSError, HTTPException):
            continue
    raise AssertionError("the test was over before the app answered")


def names(path: Path, query: str) -> list[str]:
    return [name for (name,) in rows(path, query)]


def test_killed_among_requests_and_started_again(tmp_path: Path, listening: socket.socket) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    answered: list[str] = []
    results, outbox = tmp_path / "ragstone.db", tmp_path / "ragstone.db.outbox"
    scored = "SELECT sample_id FROM outcomes WHERE metric = 'context_relevancy'"
    feedback = "SELECT sample_id FROM feedback"
    fd = listening.fileno()
    command = ["uvicorn", "live.fastapi_app:app", "--log-level", "warning", "--fd", str(fd)]
    variables = {"JUDGE": "slow:Slow", "DATABASE": str(results)}

    over = threading.Event()

    def note(number: int) -> None:
        answered.append(ask(url, f"What does ticket {number} cost for adults?", over))

    with ThreadPoolExecutor(AT_ONCE) as pool, ending(over):
        with process(tmp_path, *command, fd=fd, **variables) as server:
            asked = [pool.submit(note, number) for number in range(REQUESTS)]
            soon(lambda: len(answered) >= REQUESTS // 2)
            first = set(answered)
            on_disk = set[str]()

            def all_on_disk() -> bool:
                on_disk.update(names(outbox, "SELECT id FROM samples"), names(results, scored))
                return first <= on_disk

            soon(all_on_disk)
            server.kill()
            server.wait()
        assert {*names(results, scored)} < on_disk, "some were still to be judged"
        before_restart = len(answered)
        (tmp_path / "restarted").touch()
        with process(tmp_path, *command, fd=fd, **variables) as server:
            for each in asked:
                each.result(60)
            urlopen(Request(f"{url}/feedback/{answered[0]}?thumb=down", method="POST"), timeout=60).close()
            soon(lambda: names(results, feedback) and not names(outbox, "SELECT id FROM samples"))
            server.send_signal(signal.SIGTERM)
            server.wait(60)

    assert len(answered) == REQUESTS
    stored = names(results, scored)
    assert len(stored) == len(set(stored))
    last_moments = set(answered[len(first) : before_restart])  # these may not have been on the disk yet
    assert {*answered} - last_moments <= {*stored}
    assert len({*stored} - {*answered}) <= AT_ONCE, "asked and not answered when the server was killed"
    assert names(results, feedback) == answered[:1]


def options_of_worker(words: list[str]) -> Mapping[str, Any]:
    """The options of `ragstone live worker ...`, refused where the command does not know them."""
    assert [Path(words[0]).name, *words[1:3]] == ["ragstone", "live", "worker"]
    return worker.make_context("worker", words[3:]).params


@pytest.mark.slow
def test_the_containers_of_the_compose_file(tmp_path: Path, listening: socket.socket, postgres_url: str) -> None:
    """Its commands run as processes, with this machine's folders and server for the containers'."""
    yaml = pytest.importorskip("yaml")
    text = (EXAMPLES / "live" / "compose.yaml").read_text(encoding="utf-8")
    compose = yaml.safe_load(text.replace("${POSTGRES_PASSWORD:?}", "secret"))
    services = compose["services"]
    assert compose.keys() == {"services", "volumes"}
    assert services.keys() == {"database", "app", "worker"}
    mounted = {volume.partition(":")[0] for service in services.values() for volume in service["volumes"]}
    assert mounted == compose["volumes"].keys()
    app, judging = services["app"], services["worker"]
    assert app["environment"] == judging["environment"]
    assert app["volumes"] == judging["volumes"] == ["outbox:/data"]
    assert judging["depends_on"] == {"database": {"condition": "service_healthy"}}
    address, image = urlsplit(app["environment"]["DATABASE"]), services["database"]["environment"]
    assert (address.hostname, address.username) == ("database", image["POSTGRES_USER"])
    assert address.password == image["POSTGRES_PASSWORD"]

    here = [word.replace("/data", str(tmp_path)) for word in judging["command"]]
    assert options_of_worker(here)["follow"]
    variables = {name: text.replace("/data", str(tmp_path)) for name, text in app["environment"].items()}
    variables["DATABASE"] = postgres_url
    fd, command = listening.fileno(), app["command"]
    command = [*command[: command.index("--host")], "--fd", str(fd)]
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    psycopg = pytest.importorskip("psycopg")
    with (
        process(tmp_path, *command, fd=fd, **variables) as served,
        process(tmp_path, *here, **variables) as worked,
        psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as reader,
    ):
        names = {ask(url, "What does a ticket cost for adults?", threading.Event()) for _ in range(20)}
        scored = "SELECT sample_id FROM outcomes WHERE metric = 'context_relevancy'"
        exists = "SELECT to_regclass('outcomes') IS NOT NULL"
        soon(lambda: reader.execute(exists).fetchone()[0])
        soon(lambda: len(reader.execute(scored).fetchall()) == len(names) or worked.poll() is not None)
        served.terminate()
        worked.terminate()
        served.wait(60)
        assert worked.wait(60) == 0
        assert {name for (name,) in reader.execute(scored)} == names


def test_the_service_of_systemd(tmp_path: Path) -> None:
    unit = (EXAMPLES / "live" / "ragstone-worker.service").read_text(encoding="utf-8")
    settings = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and not line.startswith("#"))
    command = shlex.split(settings["ExecStart"])
    variables = dict(word.split("=", 1) for word in settings["Environment"].split())
    assert options_of_worker(command)["outbox"] == variables["OUTBOX"]
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not installed")
    here = tmp_path / "ragstone-worker.service"
    here.write_text(unit.replace(command[0], sys.executable))
    done = subprocess.run([analyze, "verify", "--man=no", here], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
