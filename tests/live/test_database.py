"""What a database keeps, beyond what every sink does: rows, all or none, versions."""

import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace

import pytest

from ragstone import Evidence, Score, Verdict
from ragstone.live import Record, SQLSink
from ragstone.live.alarms import alerts_in, raise_alarms
from ragstone.live.database import RESULTS, DatabaseSink
from ragstone.live.sink import SinkError
from ragstone.report import ResultsError
from ragstone.results.read import open_results
from ragstone.results.record import COLUMNS, Watched

from ..support.postgres import PASSWORD, QUOTED, PostgresServer  # noqa: TID252
from ..support.waiting import soon  # noqa: TID252
from .cases import COMMON, Case, score, unscored
from .kit import live, sample
from .scripts import run_together


def ids(store: Case) -> list[str]:
    return [kept.sample_id for kept in store.read()]


def test_a_row(store: Case) -> None:
    about = {"run_id": "5", "run_name": "rag", "tags": ("a",), "user_id": "u", "thread_id": "c", "group": "doc=d"}
    origin = {"trace_id": "t", "span_id": "s"}
    store.sink.write([score(origin=origin, rate=0.25, chosen_by="rule", setup="k=2", **about), unscored("run-2")])
    names = [name for name in COLUMNS if name != "verdicts"]
    assert store.query(f"SELECT {', '.join(names)} FROM outcomes ORDER BY sample_id") == [
        (
            "run-1", "demo", "1", "scored", 0.5, 1, "1 of 2.", None, '{"a":1.0}', "judge-1", 1000.0, 1001.5, 0.25,
            "rule", 2, 0, 90, None, 1.5, "t", "s", None, "5", "rag", '["a"]', "u", "c", None, "doc=d", "k=2",
        ),
        (
            "run-2", "demo", "1", "unscored", None, None, "timeout", "after 30 s", None, "judge-1", 1000.0, 1001.5, 1.0,
            "rate", 0, 0, 0, 0, 0.0, None, None, None, None, None, None, None, None, None, None, "",
        ),
    ]  # fmt: skip


def test_all_or_none(store: Case) -> None:
    store.sink.write([score("before")])
    if store.kind == "postgres":
        store.query("ALTER TABLE outcomes ADD CONSTRAINT refuse CHECK (sample_id <> 'bad')")
    else:
        store.query(
            "CREATE TRIGGER refuse BEFORE INSERT ON outcomes WHEN NEW.sample_id = 'bad' "
            "BEGIN SELECT RAISE(FAIL, 'refuse'); END",
        )
    batch = [score("a"), score("bad"), score("c"), score("before", text="the app's text")]
    with pytest.raises(SinkError, match="refuse") as caught:
        store.sink.write(batch)
    assert [(kept.sample_id, kept.text) for kept in store.read()] == [("before", "1 of 2.")]
    assert "the app's text" not in "".join(traceback.format_exception(caught.value))
    store.query("DROP TRIGGER refuse" if store.kind != "postgres" else "ALTER TABLE outcomes DROP CONSTRAINT refuse")
    store.sink.write(batch)
    assert len(store.read()) == 4


@pytest.mark.parametrize("version", [RESULTS.version - 1, RESULTS.version + 1], ids=["older", "newer"])
def test_a_database_of_another_version_is_left_alone_and_said_before_anything_is_lost(
    store: Case, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    store.sink.write([score("before")])
    store.sink.close()
    if store.kind == "postgres":
        store.query(f"UPDATE ragstone_schema SET version = {version}")
    else:
        store.query(f"PRAGMA user_version = {version}")
    comes = r"what a monitor would write waits, in memory only until its process ends; "
    newer = "upgrade ragstone, or " if version > RESULTS.version else ""
    another = "name another database or schema" if store.kind == "postgres" else "rename the file, or name another one"
    what = rf"results database version {version}, this one reads {RESULTS.version}\); what is in it stays, for the ragstone that made it; "
    for _ in range(2):
        with pytest.raises(SinkError, match=f"{what}{comes}{newer}{another}"):
            store.sink.write([score("late")])
    with pytest.raises(ResultsError, match=f"{what}{newer}{another}"):
        open_results(store.source)
    monitor = live(sinks=store.sink)
    monitor.submit(sample(1))
    soon(lambda: comes in caplog.text)
    assert monitor.stats().sinks[store.sink.name].lost == 0
    monitor.close(0.1)
    assert ids(store) == ["before"]


def test_an_outcome_of_32_sentence_verdicts_takes_little(store: Case) -> None:
    verdicts = [
        Verdict(
            id=f"{i + 1}", kind="sentence", text="", verdict="relevant" if i % 2 else "irrelevant", lowers_score=not i % 2,
            evidence=(Evidence(field="retrieved_contexts", chunk=i // 8, start=100 * i, end=100 * i + 90, text=""),),
        )
        for i in range(32)
    ]  # fmt: skip
    outcome = Score(metric="context_relevancy", value=0.5, reason="", verdicts=tuple(verdicts), version="7")
    run = "01234567-89ab-cdef-0123-456789abcdef"
    store.sink.write([score(), Record(run, outcome, **COMMON, run_id=run, run_name="rag", tags=("a", "b"))])
    cells = store.query("SELECT * FROM outcomes ORDER BY sample_id")[0]
    assert sum(len(str(cell)) for cell in cells if cell is not None) < 2_500
    first, _ = open_results(store.source).records()
    assert first.outcome == outcome


def test_another_programs_tables_are_left_alone(store: Case) -> None:
    store.query("CREATE TABLE health (pulse INTEGER)")
    with pytest.raises(SinkError, match="is no results database|another program"):
        store.sink.write([score()])
    with pytest.raises(ResultsError, match=r"is no results database|another program|is not a ragstone database"):
        open_results(store.source)
    assert store.query("SELECT pulse FROM health") == []
    with pytest.raises(Exception, match="outcomes"):
        store.query("SELECT * FROM outcomes")


COUNTER = """
from dataclasses import replace
from ragstone.live.alarms import raise_alarms
from ragstone.results.record import Watched

watched = Watched(0.9, 0.0, 1.0)
ready()
announced = []
for i in range(20):
    sink.write([replace(record(f"{number}-{i}-{j}"), watched=watched, scored_at=float(i)) for j in range(5)])
    announced += raise_alarms(sink.database)
print(*(alarm.metric for alarm in announced), sep=",")
"""


def test_four_processes_count_each_outcome_once_and_one_announces_each_alarm(store: Case) -> None:
    lines = run_together(COUNTER, [store.sink] * 4)
    assert sorted(line.strip() for line in lines) == ["", "", "", "demo"]
    assert store.query("SELECT count(*) FROM outcomes WHERE counted = 1") == [(400,)]
    assert isinstance(store.sink, DatabaseSink)
    ((*_, samples, total, alarm),) = alerts_in(store.sink.database, reset=True)
    assert alarm is not None
    assert (alarm.samples, alarm.mean) == (samples, total / samples) == (samples, 0.5)
    assert len(alarm.lowest) == min(10, samples)
    assert alerts_in(store.sink.database) == [("demo", "", 0.9, 0, 0.0, None)]
    store.sink.write([replace(score("unscored yet"), watched=Watched(0.9, 0.0, 1.0))] * 2)
    assert raise_alarms(store.sink.database) == []
    assert alerts_in(store.sink.database) == [("demo", "", 0.9, 1, 0.5, None)]


def refuses(attempt: Callable[[], object]) -> None:
    """Check that an attempt fails, and shows no password."""
    with pytest.raises(SinkError, match="postgresql") as caught:
        attempt()
    shown = "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in shown
    assert QUOTED not in shown
    assert "p@ss" not in str(caught.value)


def test_a_server_that_crashes_and_comes_back(postgres: PostgresServer, make: Callable[[str], Case]) -> None:
    store = make("postgres")
    sink = store.sink
    sink.write([score("before")])
    postgres.stop(signal.SIGQUIT)
    try:
        for _ in range(2):
            refuses(lambda: sink.write([score("lost")]))
    finally:
        postgres.start()
    sink.write([score("after")])
    postgres.stop(signal.SIGQUIT)  # between two writes, so that the connection is dead and nobody knows
    postgres.start()
    sink.write([score("again")])
    assert ids(store) == ["after", "again", "before"]


@pytest.mark.parametrize("wrong", ["password", "port", "value", "in the query"])
def test_the_password_is_never_shown(postgres: PostgresServer, postgres_url: str, wrong: str) -> None:
    url = {
        "password": postgres_url.replace("/word", "/wrong").replace("%2Fword", "%2Fwrong"),
        "port": postgres_url.replace(f":{postgres.port}/", ":1/"),
        "value": f"{postgres_url}&sslmode={QUOTED}",  # a driver that quotes what it was given
        "in the query": f"{postgres_url.replace(QUOTED, 'other')}&password={QUOTED}&sslmode={QUOTED}",
    }[wrong]
    sink = SQLSink(url)
    assert "word" not in repr(sink) + sink.name
    refuses(lambda: sink.write([score()]))
    with pytest.raises(ResultsError) as caught:
        open_results(url)
    assert "p@ss" not in str(caught.value)
    sink.close()


@pytest.mark.parametrize(
    "url",
    [
        "p@ssword",
        "",
        "postgresql://me:p@ssword@host:port/x",
        "mysql://me:p@ssword@host/x",
        "postgresql+asyncpg://me:p@ssword@host/x",
        "sqlite:///p@ss.db",
    ],
)
def test_urls_that_are_refused(url: str) -> None:
    for attempt in (SQLSink, open_results) if "://" in url else (SQLSink,):
        with pytest.raises(
            ValueError, match=r"is not a PostgreSQL URL; write .*, or the path of a SQLite file"
        ) as caught:
            attempt(url)
        assert "p@ss" not in "".join(traceback.format_exception(caught.value))


def test_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ragstone.results.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match=r'pip install "ragstone\[sql\]"'):
        SQLSink("postgresql://me@db.test/rag")
