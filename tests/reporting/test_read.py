"""Opening a database: for reading alone, and with errors that say what to do."""

import sqlite3
from contextlib import closing

import pytest

from ragstone.reporting.live import DatabaseError, report
from ragstone.reporting.live.gather import gather
from ragstone.reporting.live.read import open_database
from ragstone.sinks import SQLiteSink, SQLSink

from .data import database, health, records


@pytest.fixture
def path(tmp_path):
    return database(tmp_path / "a?b#c%20d.db", records(5), health())


def test_the_file_is_never_changed(path):
    before = path.read_bytes(), path.stat().st_mtime_ns
    report(path)
    report(str(path))
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    with open_database(path) as opened, pytest.raises(sqlite3.OperationalError, match="readonly"):
        list(opened._connection.execute("DELETE FROM outcomes"))


def test_a_file_that_is_not_there_is_not_made(tmp_path):
    for name in (tmp_path / "no.db", f"sqlite:///{tmp_path / 'no.db'}"):
        with pytest.raises(DatabaseError, match=r"no.db: no such file; give the path"):
            report(name)
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_no_database_of_ours(tmp_path):
    path = tmp_path / "a.db"
    for content in (b"", b"hello " * 1_000, b"SQLite format 3\x00" + b"\xff" * 4_096):
        path.write_bytes(content)
        with pytest.raises(DatabaseError, match=r"a.db: (is no ragstone database: |cannot be read: )"):
            report(path)
        assert path.read_bytes() == content
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE outcomes (a)")
    with pytest.raises(DatabaseError, match="is no ragstone database"):
        report(path)


def versions(path, version, oldest_writer):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE ragstone_schema SET version = ?, oldest_writer = ?", (version, oldest_writer))
        connection.commit()


def test_a_newer_schema_that_this_version_cannot_read(path):
    versions(path, 7, 5)
    with pytest.raises(DatabaseError, match=r"newer ragstone \(its schema is version 7, this one knows 2\); upgrade"):
        report(path)


def test_a_writer_at_work_is_neither_waited_for_nor_stopped(path):
    writing = sqlite3.connect(path, isolation_level=None)
    writing.execute("BEGIN IMMEDIATE")
    writing.execute("DELETE FROM outcomes")
    assert gather(path).outcomes == 20
    writing.execute("ROLLBACK")
    writing.close()


def count(opened):
    return next(iter(opened.rows("SELECT count(*) FROM outcomes", {})))[0]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_all_that_is_read_is_of_one_moment(tmp_path, request, kind):
    if kind == "sqlite":
        where = tmp_path / "a.db"
        sink = SQLiteSink(where)
    else:
        server = request.getfixturevalue("postgres")
        where = server.url(server.new_database())
        sink = SQLSink(where)
    given = list(records(20))
    sink.write(given[:40])
    with open_database(where) as opened:
        assert count(opened) == 40
        sink.write(given[40:])  # is not waited for
        assert count(opened) == 40
    with open_database(where) as opened:
        assert count(opened) == 80
    sink.close()


def test_a_url_of_sqlite(path, tmp_path):
    plain = path.rename(tmp_path / "a b.db")
    for url in (f"sqlite:///{plain}", f"sqlite+pysqlite:///{tmp_path}/a%20b.db?timeout=5"):
        assert gather(url).outcomes == 20


def test_postgresql_says_the_same(postgres, tmp_path):
    given = list(records(40))
    url = postgres.url(postgres.new_database())
    sink = SQLSink(url)
    sink.write(given)
    sink.health(health())
    sink.close()
    here, there = gather(database(tmp_path / "a.db", given, health())), gather(url)
    assert [g.lowest for g in there.groups] == [g.lowest for g in here.groups]
    for name in ("first", "last", "width", "groups", "costs", "queues", "outcomes"):
        if name == "groups":  # sums of rows in another order differ in their last digit
            pairs = zip(here.groups, there.groups, strict=True)
            assert all(a.estimate.mean == pytest.approx(b.estimate.mean) for a, b in pairs)
            continue
        assert getattr(there, name) == getattr(here, name)
    page = report(url, since="1970-01-02")
    assert "160 outcomes" in page
    assert "p@ss" not in page
    assert "p%40ss" not in page
    assert "ragstone@127.0.0.1" in page


def test_a_server_that_does_not_answer():
    pytest.importorskip("psycopg")
    with pytest.raises(DatabaseError, match=r"postgresql\+psycopg://me@127.0.0.1:1/rag: cannot be read: ") as raised:
        report("postgresql+psycopg://me:secret@127.0.0.1:1/rag")
    assert "secret" not in str(raised.value)
