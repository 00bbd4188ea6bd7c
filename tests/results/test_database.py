"""Reading a monitor's database: for reading alone, whatever a hand has changed, with errors that say what to do."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from ragstone.live import SQLiteSink, SQLSink
from ragstone.report import Report, ResultsError
from ragstone.results.read import open_results

from ..report.data import NOON, database, records  # noqa: TID252
from ..report.reports import rows_of  # noqa: TID252
from ..support.proxy import Proxy  # noqa: TID252


@pytest.fixture
def path(tmp_path):
    return database(tmp_path / "a?b#c%20d.db", records(5))


def test_the_file_is_never_changed(path):
    before = path.read_bytes(), path.stat().st_mtime_ns
    Report.load(path).html()
    Report.load(str(path)).html()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_a_writer_at_work_is_neither_waited_for_nor_stopped(path):
    writing = sqlite3.connect(path, isolation_level=None)
    writing.execute("BEGIN IMMEDIATE")
    writing.execute("DELETE FROM outcomes")
    assert len(list(open_results(path).records())) == 20
    writing.execute("ROLLBACK")
    writing.close()


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
    reading = open_results(where).records()
    first = next(reading)
    sink.write(given[40:])  # is not waited for
    assert len([first, *reading]) == 40
    assert len(list(open_results(where).records())) == 80
    sink.close()


def test_postgresql_says_the_same(postgres, tmp_path):
    given = list(records(40))
    url = postgres.url(postgres.new_database())
    sink = SQLSink(url)
    sink.write(given)
    sink.close()
    here, there = Report.load(database(tmp_path / "a.db", given)), Report.load(url)
    assert list(there.results()) == list(here.results())
    assert str(there).partition("\n")[2] == str(here).partition("\n")[2]
    page = Report.load(url, since="1970-01-02").html()
    assert "40 samples, 160 outcomes" in page
    assert "p@ss" not in page
    assert "p%40ss" not in page
    assert "ragstone@127.0.0.1" in page


@pytest.mark.parametrize("texts", [True, False])
def test_a_page_takes_one_connection_and_has_the_texts(postgres, tmp_path, texts):
    given = [each if texts else replace(each, sample=None) for each in records(30)]
    with Proxy(postgres.port) as proxy:
        url = postgres.url(postgres.new_database()).replace(f":{postgres.port}/", f":{proxy.port}/")
        with closing(SQLSink(url)) as sink:
            sink.write(given)
        report = Report.load(url)
        for write in (report.save, report.to_csv, report.to_json):
            before = proxy.connections
            write(tmp_path / "page.html")
            assert proxy.connections == before + 1
        report.save(tmp_path / "page.html")
    here = Report.load(database(tmp_path / "a.db", given))
    packed = rows_of((tmp_path / "page.html").read_text())
    assert packed == rows_of(here.html())
    answers = [sample and packed["texts"][own[sample["response"]]] for own, _, sample, _ in packed["rows"]]
    assert answers == [f"Jane Austen wrote it in {1800 + i}." if texts else None for i in range(30)]


def test_a_server_that_does_not_answer():
    pytest.importorskip("psycopg")
    with pytest.raises(ResultsError, match=r"postgresql\+psycopg://me@127.0.0.1:1/rag: .* failed") as raised:
        Report.load("postgresql+psycopg://me:secret@127.0.0.1:1/rag").html()
    assert "secret" not in str(raised.value)


def test_what_was_written_is_read(tmp_path):
    given = sorted(records(30), key=lambda record: record.sample_id)
    found = open_results(database(tmp_path / "a.db", given))
    for row, (one, back) in enumerate(zip(given, found.records(), strict=True)):
        assert (back.sample_id, back.row) == (one.sample_id, row // 4)
        assert found.sample(back) == one.sample
    kept = {back.key: back for back in found.records()}
    for one in given:
        back = kept[one.key]
        assert back.outcome == one.outcome
        assert (back.judge, back.submitted_at, back.scored_at) == (one.judge, one.submitted_at, one.scored_at)
        assert (back.rate, back.chosen_by) == (one.rate, one.chosen_by)


def test_since_leaves_out_what_was_submitted_before(tmp_path):
    path = database(tmp_path / "a.db", records(10))
    times = sorted({record.submitted_at for record in open_results(path).records()})
    found = Report(open_results(path), since=times[5] + 1)
    assert found.aggregates().period() == (times[6], times[-1])
    assert found.aggregates().rows == 4
    assert "Nothing was submitted since 9000-01-01" in Report.load(path, since="9000-01-01").html()


def change(path, sql, *values):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(sql, values)
        connection.commit()


LOST = [
    ("value", "high"), ("value", float("inf")), ("value", None), ("status", "odd"), ("submitted_at", 1e18),
    ("scored_at", "noon"), ("rate", "half"), ("input_tokens", "many"), ("passed", 7), ("verdicts", "{"),
    ("verdicts", '[{"id": 1}]'), ("judge", b"\xff"), ("verdicts", "[" * 100_000), ("breakdown", "[1]"),
    ("breakdown", '{"a": "b", "c": NaN}'), ("sample_id", b"\x00\xff"),
]  # fmt: skip
KEPT = [
    ("detail", b"\xff\xfe"), ("rate", 0), ("rate", 1e-320), ("llm_calls", -3), ("sample", "[]"), ("sample", '{"response": 5}'),
    ("sample", '{"response": "\\ud83d \\u0000"}'),
]  # fmt: skip


def test_what_a_hand_has_changed_stops_nothing(tmp_path):
    given = [record for record in records(40) if record.outcome.metric == "context_relevancy"]
    scored = [record for record in given if record.outcome.value is not None][: len(LOST) + len(KEPT)]
    path = database(tmp_path / "a.db", scored)
    for record, (column, value) in zip(scored, [*LOST, *KEPT], strict=True):
        change(path, f"UPDATE outcomes SET {column} = ? WHERE sample_id = ?", value, record.sample_id)
    whole = Report.load(path)
    (summary,) = whole.aggregates()
    assert (summary.scored, summary.total) == (len(KEPT), len(KEPT))
    (note,) = whole.notes
    assert note.startswith(f"left out {len(LOST)} rows without an outcome that can be read: {scored[0].sample_id}")
    assert note.endswith(", ...")
    assert 0 <= summary.mean <= 1
    assert len(rows_of(whole.html())["rows"]) == summary.scored
    assert NOON - 4 * 86_400 < summary.first < summary.last <= NOON
