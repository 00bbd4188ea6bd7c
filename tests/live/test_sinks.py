"""What every sink does, whatever it writes to, and what one kind does beyond that."""

import functools
import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from ragstone.live import Alarm, CallableSink, Health, OpenTelemetrySink, Record, Sink, SQLiteSink
from ragstone.live.sink import SinkError
from ragstone.results.clean import clean_text

from ..support.programs import finish  # noqa: TID252 - under importlib mode tests are no package
from .cases import Case, logs_in_memory, restore_text, score, unscored
from .scripts import DISK, start

HOSTILE = [
    "a\x00b",
    "a\ud83db",
    "\ud83d\ude00",
    "\\u0000 and \\ud83d and \\u005c",
    "\x1b[31m\x07\x7f\x85\u2028\ufeff\r\n",
    "\u202eevil\u2066",
    "'; DROP TABLE outcomes; -- \\' :reason %s %(reason)s ? $1",
    "",
    "\u00e9" * 1_000_000,
    *["x" * 100_000 + end for end in ("a", "b", "\ud800", "\ud801")],  # which stay apart where they are shortened
]


def test_batches_of_any_size_stay_in_order(case: Case) -> None:
    case.sink.write([])
    case.sink.write([score(f"run-{i:04}") for i in range(2_000)])
    assert [kept.sample_id for kept in case.read()] == [f"run-{i:04}" for i in range(2_000)]


def test_the_same_again(case: Case) -> None:
    case.sink.write([score(text="first"), score(text="later"), unscored("run-2", detail="after 30 s")])
    case.sink.write([score(text="last")])
    lack = "after 30 s" if case.kind == "otel" else "timeout"
    expected = ["last", lack] if case.keyed else ["first", "later", lack, "last"]
    assert [kept.text for kept in case.read()] == expected


def test_hostile_texts(case: Case) -> None:
    for text in HOSTILE:
        origin = {"trace_id": text, "span_id": text}
        case.sink.write([score(text, text=text or "-", judge=text, chosen_by=text, origin=origin)])
    expected = [(case.id_of(text), text or "-") for text in HOSTILE]
    assert sorted((kept.sample_id, kept.text) for kept in case.read()) == sorted(expected)


INF, NAN = float("inf"), float("nan")


def test_hostile_numbers(case: Case) -> None:
    record = score()
    usage = record.outcome.usage.model_copy(update={"input_tokens": 2**70, "llm_calls": -(2**70), "seconds": NAN})
    outcome = record.outcome.model_copy(update={"usage": usage})
    case.sink.write([replace(record, outcome=outcome, submitted_at=INF, scored_at=NAN)])
    assert [kept.sample_id for kept in case.read()] == ["run-1"]


def test_health_and_origin(case: Case) -> None:
    health = Health(
        process="host-1\x00", at=10.0, started_at=1.0, counts={"scored": 2**70}, reasons={"dropped": {"x": 1}}
    )
    case.sink.health(health)
    case.sink.health(health.model_copy(update={"at": 11.0, "longest_queue": 7}))
    if case.keyed:
        assert case.query("SELECT process, at, longest_queue, reasons FROM health") == [
            ("host-1\\u0000", 11.0, 7, '{"dropped": {"x": 1}}')
        ]
    assert case.sink.origin() is None


def picklable(case: Case) -> Sink:
    if case.kind == "call":
        return CallableSink(len)
    return OpenTelemetrySink() if case.kind == "otel" else case.sink


def test_pickle_and_close(case: Case) -> None:
    case.sink.write([score("run-1")])  # open, which no pickle may hold
    sink = picklable(case)
    again = pickle.loads(pickle.dumps(sink))
    assert "p@ss" not in sink.name + repr(sink)
    assert (type(again), again.name) == (type(sink), sink.name)
    for name in ("run-2", "run-3"):  # a closed one opens again
        again.write([score(name)])
        again.close()
    if case.kind not in ("call", "otel"):
        assert [kept.sample_id for kept in case.read()] == ["run-1", "run-2", "run-3"]


FORK = """
sink.write([record("parent-1")])
there, back = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    sink.write([record("child-1")])
    os.write(back[1], b"x")
    os.read(there[0], 1)  # now the parent has closed its own
    sink.write([record("child-2")])
    if number == 0:
        os._exit(0)  # as if killed: nothing is closed, nothing is flushed
    sink.close()
    sys.exit(0)  # the ordinary end, with everything that Python tears down
os.read(back[0], 1)
sink.write([record("parent-2")])
sink.close()
os.write(there[1], b"x")
_, status = os.waitpid(child, 0)
sink.write([record("parent-3")])
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
@pytest.mark.parametrize(("kind", "ends"), [("sqlite", 0), ("sqlite", 1), ("postgres", 0), ("otel", 1)])
def test_fork_after_first_use(make, kind: str, ends: int) -> None:
    case = make(kind)
    finish(start(FORK, picklable(case), ends))
    if case.kind not in ("call", "otel"):
        names = sorted(kept.sample_id for kept in case.read())
        assert names == ["child-1", "child-2", "parent-1", "parent-2", "parent-3"]


# Made of what the escapes are made of, so that texts that look escaped are common.
TRICKY = st.text(st.sampled_from(["\\", "u", "0", "5", "c", "d", "8", "\x00", "\ud800", "\udfff", "é"]), max_size=12)


@given(TRICKY)
def test_nothing_is_lost(text: str) -> None:
    cleaned = clean_text(text)
    assert restore_text(cleaned) == text
    assert "\x00" not in cleaned
    cleaned.encode()  # no half pairs


def test_the_path_does_not_change_with_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sink = SQLiteSink()
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    sink.write([score()])
    sink.close()
    assert sink.path == tmp_path / "ragstone.db"
    assert list(other.iterdir()) == []


def test_paths_that_are_refused(tmp_path: Path) -> None:
    for name in (":memory:", ""):
        with pytest.raises(ValueError, match="name a file"):
            SQLiteSink(name)
    (tmp_path / "text").write_text("sample_id,metric\n" * 100)
    for path, message in (
        (tmp_path / "nowhere" / "ragstone.db", r"no folder .*nowhere; create it"),
        (tmp_path, r"is a folder; name a file in it, such as .*ragstone\.db"),
        (tmp_path / "text", "is damaged, or not a ragstone results database .*; move it away"),
    ):
        with pytest.raises(SinkError, match=message):
            SQLiteSink(path).write([score()])
    assert (tmp_path / "text").read_text() == "sample_id,metric\n" * 100
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_disk_full(make: Callable[[str], Case]) -> None:
    store = make("impatient")
    assert finish(start(DISK, store.sink)).split("\n")[:-1] == ["SinkError True"] * 3
    assert store.query("SELECT sample_id FROM outcomes ORDER BY sample_id") == [("after",), ("before",)]
    assert store.query("PRAGMA integrity_check") == [("ok",)]


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted there")
def test_the_log_does_not_fill_a_small_disk(tmp_path: Path) -> None:
    """A log that did could not be moved into the file any more, and no later write would find room."""
    sink = SQLiteSink(tmp_path / "ragstone.db")
    for _ in range(800):
        sink.write([score()])
    assert (tmp_path / "ragstone.db-wal").stat().st_size < 1.5e6
    sink.close()


async def keep_later(records: list[Record]) -> None:
    pass


class LaterKeeper:
    async def __call__(self, records: list[Record]) -> None:
        pass


class Later:
    def __await__(self) -> Iterator[None]:
        yield


def test_a_function_gets_a_list_of_its_own() -> None:
    records = (score("a"), score("b"))
    CallableSink(lambda own: own.clear()).write(records)
    calls: list[list[Record]] = []
    sink = CallableSink(calls.append)
    sink.write([])
    sink.write(records)
    assert calls == [list(records)]


def test_what_is_no_plain_function_is_refused() -> None:
    for function in ("print", keep_later, LaterKeeper(), functools.partial(keep_later)):
        with pytest.raises(TypeError, match=r"is async; pass a plain function|is str; pass a function"):
            CallableSink(function)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="returned an awaitable"):
        CallableSink(lambda records: Later()).write([score()])


class Telemetry:
    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.logs, self._exporter = logs_in_memory()
        self.metrics = MeterProvider([self._reader], shutdown_on_exit=False)
        self.tracer = TracerProvider(shutdown_on_exit=False).get_tracer("app")
        self.sink = OpenTelemetrySink(self.logs, self.metrics)

    def events(self) -> list[Any]:
        return [finished.log_record for finished in self._exporter.get_finished_logs()]

    def histogram(self) -> Any:
        (resource,) = self._reader.get_metrics_data().resource_metrics
        ((metric,),) = [scope.metrics for scope in resource.scope_metrics]
        return metric


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    telemetry = Telemetry()
    yield telemetry
    telemetry.logs.shutdown()
    telemetry.metrics.shutdown()


def test_the_event_of_a_score(telemetry: Telemetry) -> None:
    about = {
        "run_id": "r",
        "run_name": "rag",
        "tags": ("a", "\ud800"),
        "user_id": "u",
        "thread_id": "t",
        "setup": "k=2",
    }
    telemetry.sink.write([score(rate=0.25, chosen_by="rule", **about)])
    (event,) = telemetry.events()
    assert event.event_name == "gen_ai.evaluation.result"
    assert event.timestamp == 1_001_500_000_000
    assert (event.severity_number.name, event.body) == ("INFO", None)
    assert dict(event.attributes) == {
        "gen_ai.evaluation.name": "demo",
        "gen_ai.evaluation.score.value": 0.5,
        "gen_ai.evaluation.score.label": "passed",
        "gen_ai.evaluation.explanation": "1 of 2.",
        "gen_ai.evaluation.evaluator.version": "1",
        "ragstone.sample.id": "run-1",
        "ragstone.judge.model": "judge-1",
        "ragstone.sampling.rate": 0.25,
        "ragstone.sampling.chosen_by": "rule",
        "ragstone.run.id": "r",
        "ragstone.run.name": "rag",
        "ragstone.run.tags": ("a", "\\ud800"),
        "user.id": "u",
        "gen_ai.conversation.id": "t",
        "ragstone.metric.setup": "k=2",
    }


def test_the_event_of_a_lack(telemetry: Telemetry) -> None:
    telemetry.sink.write([unscored(detail="after 30 s"), unscored(detail="")])
    event, without_detail = telemetry.events()
    assert event.severity_number.name == "WARN"
    attributes = dict(event.attributes)
    assert attributes["error.type"] == "timeout"
    assert attributes["gen_ai.evaluation.explanation"] == "after 30 s"
    assert "gen_ai.evaluation.score.value" not in attributes
    assert "gen_ai.evaluation.score.label" not in attributes
    assert "gen_ai.evaluation.explanation" not in without_detail.attributes


def test_it_is_linked_to_the_span_of_the_submission(telemetry: Telemetry) -> None:
    with telemetry.tracer.start_as_current_span("chain") as span:
        origin = telemetry.sink.origin()
    with telemetry.tracer.start_as_current_span("another, when it is written"):
        telemetry.sink.write([score(origin=origin), score("elsewhere")])
    linked, unlinked = telemetry.events()
    expected = span.get_span_context()
    assert (linked.trace_id, linked.span_id, linked.trace_flags) == (
        expected.trace_id,
        expected.span_id,
        expected.trace_flags,
    )
    assert (unlinked.trace_id, unlinked.span_id) == (0, 0)
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_the_histogram(telemetry: Telemetry) -> None:
    telemetry.sink.write([score("a", 0.05), score("b", 1.0), unscored("c")])
    metric = telemetry.histogram()
    assert (metric.name, metric.unit) == ("gen_ai.evaluation.score", "1")
    (point,) = metric.data.data_points
    assert dict(point.attributes) == {
        "gen_ai.evaluation.name": "demo",
        "gen_ai.evaluation.score.label": "passed",
        "gen_ai.evaluation.evaluator.version": "1",
        "ragstone.judge.model": "judge-1",
        "ragstone.metric.setup": "",
    }
    assert (point.count, point.sum) == (2, 1.05)
    assert point.explicit_bounds[0] == 0.0
    assert point.explicit_bounds[-1] == 1.0
    assert list(point.bucket_counts)[1] == 1  # 0 to 0.1: the default bounds would put all scores into one bucket


def test_pickle(telemetry: Telemetry) -> None:
    with pytest.raises(TypeError, match="its own providers cannot be pickled"):
        pickle.dumps(telemetry.sink)
    without_sdk = pickle.loads(pickle.dumps(OpenTelemetrySink()))
    without_sdk.write([score(), unscored()])
    assert (without_sdk.name, without_sdk.origin()) == ("opentelemetry", None)


def test_the_event_of_an_alarm(telemetry: Telemetry) -> None:
    alarm = Alarm(
        metric="a\ud800", below=0.7, at=1.5, samples=9, mean=0.8, recent_samples=3, recent_mean=0.4, lowest=()
    )
    telemetry.sink.alarm(alarm)
    (event,) = telemetry.events()
    assert (event.event_name, event.severity_number.name, event.body) == ("ragstone.alarm", "ERROR", str(alarm))
    assert dict(event.attributes) == {
        "gen_ai.evaluation.name": "a\\ud800",
        "ragstone.alert.below": 0.7,
        "gen_ai.evaluation.score.value": 0.4,
    }
