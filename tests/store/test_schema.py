"""Programs of several versions on one database. The newer ones here are made up."""

import hashlib
import pickle

import pytest

from ragstone.limits.budget import Entry
from ragstone.sinks import SQLiteSink
from ragstone.store.base import SinkError
from ragstone.store.schema import MIGRATIONS, AddColumn, Column, Index, Migration, Schema, Table

from .cases import Case, score
from .scripts import run_together
from .test_sql import execute_in

NOTES = Table("notes", (Column("id", "key"), Column("note", "text")), key=("id",))
STEPS = (
    AddColumn("outcomes", Column("extra", "text", null=True)),
    AddColumn("outcomes", Column("weight", "real", null=True)),
    NOTES,
    Index("notes_by_note", "outcomes", ("extra",)),
)
COMPATIBLE = Schema([*MIGRATIONS, Migration(STEPS, oldest_writer=1)])
BREAKING = Schema([*MIGRATIONS, Migration(STEPS, oldest_writer=2)])
FAILING = Schema([*MIGRATIONS, Migration((*STEPS, MIGRATIONS[0].steps[1]), oldest_writer=2)])


def of_version(case: Case, schema: Schema):
    """A sink on the same store, of a program that knows `schema`."""
    sink = pickle.loads(pickle.dumps(case.sink))
    if isinstance(sink, SQLiteSink):
        sink._database = type(sink._database)(sink.path, schema)
    else:
        sink._database = type(sink._database)(sink._url, sink._shown, schema)
    return sink


def state(case: Case) -> list[tuple]:
    return case.query("SELECT version, oldest_writer FROM ragstone_schema")


def test_an_older_program_at_work_stops_in_time(store: Case) -> None:
    store.sink.write([score("older")])  # it has the database open and has looked at its version
    newer = of_version(store, BREAKING)
    newer.write([score("newer")])
    for attempt in (
        lambda: store.sink.write([score("late")]),
        lambda: store.sink.ledger().spend([Entry("calls_per_day", 0, 1, 10)]),
    ):
        with pytest.raises(SinkError, match="version 2 or later; this one knows version 1"):
            attempt()
    assert state(store) == [(2, 2)]
    assert [kept.sample_id for kept in store.read()] == ["newer", "older"]
    newer.close()


def test_a_database_that_is_too_new_is_left_alone(store: Case) -> None:
    newer = of_version(store, BREAKING)
    newer.write([score("newer")])
    newer.close()
    with pytest.raises(SinkError, match="Upgrade ragstone here"):
        store.sink.write([score("older")])
    assert [kept.sample_id for kept in store.read()] == ["newer"]


def test_a_migration_that_fails_leaves_nothing(store: Case) -> None:
    store.sink.write([score("older")])
    failing = of_version(store, FAILING)
    for _ in range(2):
        with pytest.raises(SinkError, match="already exists"):
            failing.write([score("newer")])
    assert state(store) == [(1, 1)]
    newer = of_version(store, COMPATIBLE)
    newer.write([score("newer")])  # none of its steps has been done before
    assert [kept.sample_id for kept in store.read()] == ["newer", "older"]
    failing.close()
    newer.close()


RACE = """
from ragstone.sinks import SQLiteSink
from ragstone.store.schema import MIGRATIONS, AddColumn, Column, Migration, Schema

schema = Schema([*MIGRATIONS, Migration((AddColumn("outcomes", Column("extra", "text", null=True)),), oldest_writer=1)])
if number < 2:
    arguments = (sink.path,) if isinstance(sink, SQLiteSink) else (sink._url, sink._shown)
    sink._database = type(sink._database)(*arguments, schema)
ready()
for i in range(5):
    sink.write([record(f"{number}-{i}")])
sink.close()
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_newer_and_two_older_processes_at_once(make, kind: str) -> None:
    store = make(kind)
    run_together(RACE, [store.sink] * 4)
    assert state(store) == [(2, 1)]
    assert len(store.read()) == 20


def test_another_programs_tables_are_left_alone(store: Case) -> None:
    execute_in(store, "CREATE TABLE health (pulse INTEGER)")
    with pytest.raises(SinkError, match="another program's"):
        store.sink.write([score()])
    assert store.query("SELECT pulse FROM health") == []
    with pytest.raises(Exception, match="ragstone_schema"):
        state(store)


def test_the_schema_of_version_1() -> None:
    """Fixed for ever: what comes later is a migration."""
    assert hashlib.sha256(repr(MIGRATIONS[0]).encode()).hexdigest()[:16] == "51b1974b4e5bcce4"
