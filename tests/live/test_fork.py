"""Other processes: forked ones start anew and touch nothing of their parent's; copies and pickles."""

import copy
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from ragstone import ContextRelevancy, Monitor
from ragstone.judge import LLMRequest
from ragstone.live import Budget, Queue, Sampling, SQLiteSink
from ragstone.testing import FakeLLM

from ..support.waiting import soon  # noqa: TID252
from .kit import PATIENCE, Held, Kept, live, metric, ours, sample, submit, yes
from .live_app import RESULTS, app

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def in_child(work: Callable[[], object]) -> None:
    """Fork, do the work in the child, and fail if it failed there or took too long."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a process with threads: that is what is tested
        child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException as error:
            print(f"in the child: {type(error).__name__}: {error}", file=sys.__stderr__, flush=True)
        finally:
            os._exit(status)
    ended: list[tuple[int, int]] = []
    try:
        soon(lambda: ended.append(os.waitpid(child, os.WNOHANG)) or ended[-1][0], PATIENCE)
    finally:
        if not ended[-1][0]:
            os.kill(child, 9)
            os.waitpid(child, 0)
    assert ended[-1][1] == 0


HOLD = """
hear()
holds = sqlite3.connect(RESULTS, isolation_level=None)
holds.execute("BEGIN IMMEDIATE")
say("held")
hear()
"""


def stored(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as reader:
        assert reader.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return sorted(name for (name,) in reader.execute("SELECT sample_id FROM outcomes"))


@forks
def test_a_child_starts_anew_and_leaves_what_is_its_parents(tmp_path: Path) -> None:
    held = Held()
    path = tmp_path / "ragstone.db"
    monitor = live(metric(held), sinks=SQLiteSink(path), workers=2)
    submit(monitor, range(10))
    soon(lambda: held.asked == 2)

    def child() -> None:
        stats = monitor.stats()
        assert (stats.accepted, stats.pending) == (0, 0)
        assert monitor.flush(0.0)
        assert not ours(monitor)
        held.let_go()
        monitor.submit(sample("child"))
        monitor.submit(sample(3))  # what its parent has submitted is not its own
        assert monitor.close(PATIENCE).done
        assert monitor.stats().scored == 2

    in_child(child)
    assert stored(path) == ["s3", "schild"]
    assert monitor.stats().pending == 10
    held.let_go()
    assert monitor.close(PATIENCE).done
    assert monitor.stats().scored == 10
    assert stored(path) == sorted(["schild", *(f"s{i}" for i in range(10))])


IMPORTS = """
import sys
import threading
from ragstone import ContextRelevancy, Monitor, Sample
from ragstone.testing import FakeLLM

late = []

def note(event, args):
    if event == "import" and args[0].startswith("ragstone") and threading.current_thread() is not threading.main_thread():
        late.append(args[0])

sys.addaudithook(note)
with Monitor(ContextRelevancy(llm=FakeLLM(lambda _: {"ids": [1]})), outbox="outbox.db") as monitor:
    monitor.submit(Sample(user_input="Where?", retrieved_contexts=["Here."]))
    monitor.flush()
    assert monitor.stats().scored == 1
print(late)
"""


def test_no_thread_imports_what_a_fork_meanwhile_would_leave_half_imported(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


PRELOADED = """
import os
from ragstone import ContextRelevancy, Monitor, Sample
from ragstone.live import SQLiteSink
from ragstone.testing import FakeLLM

judge = FakeLLM(lambda _: {"ids": [1]})
monitor = Monitor(ContextRelevancy(llm=judge), sinks=SQLiteSink("results.db"), outbox="outbox.db")

def answer(path):
    monitor.submit(Sample(id=path.strip("/"), user_input="Where?", retrieved_contexts=["Here."]))
    return str(os.getpid())

answer("preloaded")
monitor.flush()  # so that the workers are forked with a database open and threads running
"""
APPS = {
    "sync": """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [answer(environ["PATH_INFO"]).encode()]
""",
    "uvicorn.workers.UvicornWorker": """
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

async def ask(request):
    return PlainTextResponse(answer(request.url.path))

app = Starlette(routes=[Route("/{name}", ask)], lifespan=monitor.lifespan)
""",
}
GUNICORN = """
preload_app, workers, bind, loglevel = True, 2, "127.0.0.1:0", "error"

def when_ready(server):
    print(server.LISTENERS[0].sock.getsockname()[1], flush=True)
"""
WITHOUT_LIFESPAN = """
def worker_exit(server, worker):
    import preloaded
    preloaded.monitor.close()
"""


@forks
@pytest.mark.parametrize("worker", APPS)
def test_gunicorn_with_a_preloaded_app(tmp_path: Path, worker: str) -> None:
    pytest.importorskip("gunicorn")
    if worker != "sync" and find_spec(worker.rpartition(".")[0]) is None:
        pytest.skip("uvicorn has no worker for gunicorn here")
    (tmp_path / "preloaded.py").write_text(PRELOADED + APPS[worker])
    (tmp_path / "conf.py").write_text(
        f"{GUNICORN}\nworker_class = {worker!r}\n" + (WITHOUT_LIFESPAN if worker == "sync" else "")
    )
    command = [sys.executable, "-m", "gunicorn", "-c", "conf.py", "preloaded:app"]
    path = os.pathsep.join(["", *sys.path])
    server = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert server.stdout is not None
    names, workers = ["preloaded"], set[bytes]()
    try:
        port = int(server.stdout.readline())
        while len(workers) < 2 or len(names) < 50:
            assert len(names) < 5_000
            names.append(f"s{len(names)}")
            with urlopen(f"http://127.0.0.1:{port}/{names[-1]}", timeout=PATIENCE) as response:
                workers.add(response.read())
    finally:
        server.terminate()
        server.wait(PATIENCE)
        server.stdout.close()
    assert server.returncode == 0
    assert stored(tmp_path / "results.db") == sorted(names)
    with closing(sqlite3.connect(tmp_path / "outbox.db")) as reader:
        assert reader.execute("SELECT count(*) FROM samples").fetchone() == (0,)


@forks
def test_a_fork_does_not_wait_for_a_file_that_another_process_holds(tmp_path: Path, own_folder: None) -> None:
    """Were it waited for, the sink would have given up once meanwhile. What the child writes stays."""
    sink = SQLiteSink(RESULTS)
    with live(sinks=sink) as monitor, app(HOLD) as other:
        submit(monitor, range(5))
        assert monitor.flush(PATIENCE)
        other.say()
        other.hear()
        submit(monitor, range(5, 10))
        soon(lambda: monitor.stats().scored == 10)
        time.sleep(0.2)  # now the sink waits, most likely

        def work() -> None:
            os.kill(other.pid, signal.SIGKILL)
            submit(monitor, range(10, 15))
            assert monitor.close(PATIENCE)

        in_child(work)
        assert monitor.flush(PATIENCE)
        assert monitor.stats().sinks[sink.name].failures == 0
    assert len(stored(tmp_path / RESULTS)) == 15


def pickled_yes(request: LLMRequest) -> Any:
    return yes(request)


def test_a_pickled_monitor_has_the_same_options_and_a_queue_of_its_own(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "sinks": SQLiteSink(tmp_path / "ragstone.db"),
        "sampling": Sampling(rate={"context_relevancy": 0.5}, always=["error"]),
        "queue": Queue(size=7, when_full="drop_oldest", workers=2, timeout=5.0),
        "budget": Budget(calls_per_day=5),
        "redact": str.upper,
    }
    monitor = Monitor(ContextRelevancy(llm=FakeLLM(pickled_yes)), **options)
    monitor.submit(sample("parent", metadata={"error": "e"}))
    other: Monitor = pickle.loads(pickle.dumps(monitor))
    assert other is not monitor
    for i in range(4):
        other.submit(sample(i, metadata={"error": "e"}))
    for one, scored in ((monitor, 1), (other, 4)):
        assert one.close().done
        assert (one.stats().scored, one.stats().samples) == (scored, scored)
    assert len(stored(tmp_path / "ragstone.db")) == 5


def test_a_copy_is_the_monitor_itself() -> None:
    with live(sinks=(sink := Kept())) as monitor:
        monitor.submit(sample(1))
        assert copy.deepcopy({"handlers": [monitor]})["handlers"][0] is monitor
        assert copy.copy(monitor) is monitor
    assert sink.ids == {"s1"}
