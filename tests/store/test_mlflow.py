"""Outcomes as MLflow's feedback: its real client against its real server, where MLflow is installed."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from ragstone.sinks import MLflowSink, OpenTelemetrySink, Record

from .cases import score, unscored
from .postgres import free_port

pytestmark = pytest.mark.filterwarnings("default")  # MLflow's own


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The client, set to a server of its own."""
    pytest.importorskip("mlflow.server", reason="MLflow is not installed: pip install mlflow")
    folder: Path = tmp_path_factory.mktemp("mlflow")
    url = f"http://127.0.0.1:{free_port()}"
    port = url.rpartition(":")[2]
    store = f"sqlite:///{folder}/mlflow.db"
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", store, "--port", port, "--workers", "1"]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env=environ | {"MLFLOW_DISABLE_TELEMETRY": "true"},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            _wait(url, server, folder / "log")
            import mlflow

            mlflow.set_tracking_uri(url)
            mlflow.set_experiment("rag")
            yield mlflow
        finally:
            os.killpg(server.pid, signal.SIGKILL)  # it has processes of its own
            server.wait(30)


def _wait(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + 120
    while True:
        try:
            urlopen(f"{url}/health", timeout=5).close()
        except (URLError, OSError):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.2)
        else:
            return


def traced(mlflow: Any) -> tuple[str, dict[str, str]]:
    """A trace that the server has, and what the sink noted in it."""
    with mlflow.start_span("answer") as span:
        origin = MLflowSink().origin()
    mlflow.flush_trace_async_logging()
    assert origin is not None
    return span.trace_id, dict(origin)


def feedback(mlflow: Any, trace_id: str) -> list[Any]:
    return list(mlflow.get_trace(trace_id).info.assessments)


def test_a_score_is_on_the_trace_of_its_submission(mlflow: Any) -> None:
    trace_id, origin = traced(mlflow)
    MLflowSink().write([score(origin=origin), score("elsewhere")])
    (found,) = feedback(mlflow, trace_id)
    assert (found.name, found.value, found.rationale) == ("demo", 0.5, "1 of 2.")
    assert (found.source.source_type, found.source.source_id) == ("LLM_JUDGE", "judge-1")
    assert found.metadata == {"ragstone.sample.id": "run-1", "ragstone.version": "1"}


def test_what_is_unscored_says_why(mlflow: Any) -> None:
    trace_id, origin = traced(mlflow)
    MLflowSink().write([unscored(origin=origin)])
    (found,) = feedback(mlflow, trace_id)
    assert (found.error.error_code, found.error.error_message) == ("timeout", "after 30 s")


def test_a_repeat_replaces(mlflow: Any) -> None:
    trace_id, origin = traced(mlflow)
    sink = MLflowSink()
    sink.write([score(origin=origin), score("another", origin=origin)])
    sink.write([score(value=0.75, origin=origin)])
    assert sorted(each.value for each in feedback(mlflow, trace_id)) == [0.5, 0.75]


def test_a_trace_that_is_not_there_raises(mlflow: Any) -> None:
    with pytest.raises(LookupError, match="MLflow has no trace tr-abab"):
        MLflowSink().write([score("tr-" + "ab" * 16)])


def test_a_thread_without_a_trace_notes_none(mlflow: Any) -> None:
    noted: list[Any] = []
    with mlflow.start_span("answer"):
        thread = threading.Thread(target=lambda: noted.append(MLflowSink().origin()))
        thread.start()
        thread.join()
        assert OpenTelemetrySink().origin() is None  # MLflow's spans are not the app's other ones
    assert noted == [None]


class _Fake(ModuleType):
    """As much of MLflow as tells whose trace was asked for; the tests above have the real one."""

    asked: list[str]

    def get_trace(self, trace_id: str) -> None:
        self.asked.append(trace_id)


@pytest.mark.parametrize(
    ("record", "asked"),
    [
        (score("tr-own", origin={"mlflow_trace_id": "tr-active", "trace_id": "ab"}), ["tr-active"]),
        (score("tr-own", origin={"trace_id": "ab"}), ["tr-own"]),
        (score(origin={"trace_id": "ab"}), ["tr-ab"]),
        (score(), []),
    ],
)
def test_which_trace_a_record_is_of(record: Record, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fake = _Fake("mlflow")
    fake.asked, fake.__spec__, fake.__path__ = [], pytest.__spec__, []
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    monkeypatch.setitem(sys.modules, "mlflow.entities", ModuleType("mlflow.entities"))
    try:
        MLflowSink().write([record])
    except LookupError:
        assert asked
    assert fake.asked == asked


def test_without_mlflow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.delitem(sys.modules, "mlflow")
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent)])
    monkeypatch.setattr(sys, "meta_path", [each for each in sys.meta_path if "ditable" not in repr(each)])
    sys.path_importer_cache.clear()
    with pytest.raises(ImportError, match="pip install mlflow-tracing"):
        MLflowSink()
