import signal
import sqlite3
import traceback
from contextlib import closing

import pytest

from ragstone.limits.budget import Entry
from ragstone.sinks import SQLSink
from ragstone.store.base import SinkError
from ragstone.store.schema import SCHEMA

from .cases import Case, score
from .postgres import PASSWORD, QUOTED, PostgresServer


def execute_in(store: Case, statement: str) -> None:
    if store.kind == "postgres":
        import psycopg

        with psycopg.connect(
            store.sink._url.render_as_string(hide_password=False).replace("+psycopg", "")
        ) as connection:
            connection.execute(statement)
    else:
        database = store.sink.path if store.kind == "sqlite" else store.sink._url.database
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute(statement)


def test_a_row(store: Case) -> None:
    store.sink.write([score(origin={"trace_id": "t", "span_id": "s"}, rate=0.25, chosen_by="rule")])
    names = [column.name for column in SCHEMA.table("outcomes").columns if column.name != "verdicts"]
    assert store.query(f"SELECT {', '.join(names)} FROM outcomes") == [
        (
            "run-1", "demo", "1", "scored", 0.5, 1, "1 of 2.", "", '{"a": 1.0}', "judge-1", 1000.0, 1001.5, 0.25, "rule",
            2, 0, 90, None, 1.5, "t", "s", None, None,
        )
    ]  # fmt: skip


def test_all_or_none(store: Case) -> None:
    store.sink.write([score("before")])
    if store.kind == "postgres":
        execute_in(store, "ALTER TABLE outcomes ADD CONSTRAINT refuse CHECK (sample_id <> 'bad')")
    else:
        execute_in(
            store,
            "CREATE TRIGGER refuse BEFORE INSERT ON outcomes WHEN NEW.sample_id = 'bad' "
            "BEGIN SELECT RAISE(FAIL, 'refuse'); END",
        )
    batch = [score("a"), score("bad"), score("c"), score("before", text="the app's text")]
    with pytest.raises(SinkError, match="refuse") as caught:
        store.sink.write(batch)
    assert [(kept.sample_id, kept.text) for kept in store.read()] == [("before", "1 of 2.")]
    assert "the app's text" not in "".join(traceback.format_exception(caught.value))
    execute_in(
        store, "DROP TRIGGER refuse" if store.kind != "postgres" else "ALTER TABLE outcomes DROP CONSTRAINT refuse"
    )
    store.sink.write(batch)
    assert len(store.read()) == 4


def test_a_database_without_on_conflict(make, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = make("sql_sqlite")
    monkeypatch.setattr(type(sql.sink._database), "insert", lambda self, table: None)
    sql.sink.write([score("a"), score("b", text="first")])
    sql.sink.write([score("b", text="last"), score("c")])
    assert [(kept.sample_id, kept.text) for kept in sql.read()] == [("a", "1 of 2."), ("b", "last"), ("c", "1 of 2.")]
    ledger = sql.sink.ledger()
    assert [ledger.spend([Entry("calls", 0, 2, 5), Entry("money", 0, 1, None)]) for _ in range(3)] == [
        None,
        None,
        "calls",
    ]
    assert sql.query("SELECT name, amount FROM spending ORDER BY name") == [("calls", 4.0), ("money", 2.0)]


def test_a_server_that_crashes_and_comes_back(postgres: PostgresServer, postgres_url: str) -> None:
    sink = SQLSink(postgres_url)
    ledger = sink.ledger()
    sink.write([score("before")])
    postgres.stop(signal.SIGQUIT)
    try:
        for attempt in (lambda: sink.write([score("lost")]), lambda: ledger.spend([Entry("calls", 0, 1, 9)])):
            for _ in range(2):
                with pytest.raises(SinkError) as caught:
                    attempt()
                assert_no_password(caught.value)
    finally:
        postgres.start()
    sink.write([score("after")])
    assert ledger.spend([Entry("calls", 0, 1, 9)]) is None
    postgres.stop(signal.SIGQUIT)  # between two writes, so that the connection is dead and nobody knows
    postgres.start()
    sink.write([score("again")])
    sink.close()
    import psycopg

    with psycopg.connect(postgres_url.replace("+psycopg", "")) as connection:
        found = connection.execute("SELECT sample_id FROM outcomes ORDER BY 1").fetchall()
    assert found == [("after",), ("again",), ("before",)]


def assert_no_password(error: BaseException) -> None:
    shown = "".join(traceback.format_exception(error))
    assert PASSWORD not in shown
    assert QUOTED not in shown


@pytest.mark.parametrize("wrong", ["password", "port", "value", "in the query"])
def test_the_password_is_never_shown(postgres: PostgresServer, postgres_url: str, wrong: str) -> None:
    url = {
        "password": postgres_url.replace("/word", "/wrong").replace("%2Fword", "%2Fwrong"),
        "port": postgres_url.replace(f":{postgres.port}/", ":1/"),
        "value": f"{postgres_url}?sslmode={QUOTED}",  # a driver that quotes what it was given
        "in the query": f"{postgres_url.replace(QUOTED, 'other')}?password={QUOTED}&sslmode={QUOTED}",
    }[wrong]
    sink = SQLSink(url)
    assert "word" not in repr(sink) + sink.name
    with pytest.raises(SinkError, match="postgresql") as caught:
        sink.write([score()])
    assert_no_password(caught.value)
    assert "p@ss" not in str(caught.value)
    sink.close()


def test_urls_that_are_refused() -> None:
    for url, message in (
        ("p@ssword", "is no database URL; write it as"),
        ("", "is no database URL"),
        ("postgresql://me:p@ssword@host:port/x", "is no database URL"),
        ("nosuch://me:p@ssword@host/x", "knows no database 'nosuch'"),
        ("sqlite:///:memory:", "names a database in memory"),
        ("postgresql+psycopg_async://me:p@ssword@host/x", "is for async code"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            SQLSink(url)
        assert "p@ss" not in "".join(traceback.format_exception(caught.value))
