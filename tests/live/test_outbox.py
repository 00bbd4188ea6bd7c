"""What goes into the outbox comes out, whatever it is; a bad file stays as it is, is named, and the app goes on."""

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ragstone import Sample, Unscored
from ragstone.live import Record, SQLiteSink
from ragstone.live.outbox import Outbox
from ragstone.live.pending import Choice, Pending
from ragstone.live.redaction import snapshot
from ragstone.results.read import open_results

from ..support.waiting import soon  # noqa: TID252
from .cases import score
from .kit import PATIENCE, Kept, live, submit
from .live_app import OUTBOX, RESULTS, change, rows

pytestmark = pytest.mark.usefixtures("own_folder")
HOSTILE = [
    "a\x00b",
    "\ud83d",
    "é\N{COMBINING ACUTE ACCENT}👍\u202e\u2028\ufeff",
    "'); DROP TABLE samples; --",
    "",
    "x" * 1_000_000,
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "outbox.db"


@pytest.fixture
def outbox(path):
    outbox = Outbox(path)
    yield outbox
    outbox.close()


def job(name="s1", *metrics, **fields):
    sample = snapshot(Sample(id=name, user_input="Where?", retrieved_contexts=["Here."], **fields), name)
    return Pending(
        sample, name, 12.5, [Choice(metric, "1", 0.5, "rate") for metric in metrics or ("m",)], {"trace_id": "t"}
    )


def record(name="s1", **fields):
    outcome = Unscored(metric="m", reason="timeout", detail="", version="1")
    return Record(
        **{"sample_id": name, "outcome": outcome, "judge": "j", "submitted_at": 0.0, "scored_at": 1.5, **fields}
    )


def added(outbox, *jobs, mine=False):
    with outbox.transaction():
        return [outbox.add(each, mine=mine) for each in jobs]


def claimed(outbox, *metrics, most=100, **options):
    with outbox.transaction():
        return [each for each, _ in outbox.claim(most, metrics or ("m",), **options)]


def names(jobs):
    return [each.sample_id for each in jobs]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
def test_texts(outbox, text):
    metadata = {"text": text, text: [text, {"deep": text}], "number": 2**70, "nan": float("nan"), "none": None}
    given = Sample(id="s1", user_input=text, retrieved_contexts=[text, ""], response=text, metadata=metadata)
    name = text if text.isascii() else "s1"
    before = Pending(snapshot(given, "s1"), name, 12.5, [Choice("m", "1", 0.5, "rate")], {"trace_id": text})
    assert added(outbox, before, before) == [True, False], "one of an id"
    (after,) = claimed(outbox)
    assert (after.sample_id, after.sample) == (name, before.sample)
    assert after.sample.model_fields_set == before.sample.model_fields_set
    assert (after.todo, after.origin, after.submitted_at) == (before.todo, before.origin, 12.5)
    assert after.attempts == 0


@pytest.mark.parametrize("name", ["m", 'a"b', "a\\b", "a\x00b", "%", "\ud83d"])
def test_only_samples_of_ones_own_metrics(outbox, name):
    added(outbox, job("a", name), job("b", name + "x"), job("c", "x" + name, name), job("d", "x" + name))
    assert names(claimed(outbox, name, "nobody's")) == ["a", "c"]
    with outbox.transaction():
        assert set(outbox.contents().metrics) == {(name, "1"), (name + "x", "1"), ("x" + name, "1")}


SPOILED = ["", '{"sample": {}, "submitted_at": "x", "origin": {}, "todo": []}', "[" * 100_000, b"\xff\xfe"]


@pytest.mark.parametrize("body", SPOILED, ids=lambda body: ascii(body[:60]))
def test_a_spoiled_sample_is_left_and_the_others_go_on(outbox, path, body):
    added(outbox, job("a"), job("b"), job("c"))
    change(path, "UPDATE samples SET body = ? WHERE id = 'b'", body)
    assert names(claimed(outbox)) == ["a", "c"]
    assert claimed(outbox) == []
    with outbox.transaction():
        assert outbox.contents().unreadable == 1
    assert rows(path, "SELECT body FROM samples WHERE id = 'b'") == [(body,)]


def test_a_spoiled_record_is_left_and_the_others_go_on(outbox, path):
    with outbox.transaction():
        for name in "abc":
            outbox.keep(record(name), ["x"])
    change(path, "UPDATE records SET body = ? WHERE seq = 2", '{"sample_id": 1}')
    with outbox.transaction():
        assert [found.sample_id for _, found in outbox.undelivered("x", 10)] == ["a", "c"]
        assert outbox.contents().records == {"x": 2, "unreadable: x": 1}


def made(name: str) -> None:
    """Make a file as a monitor leaves it."""
    if name == OUTBOX:
        Outbox(Path(name).absolute()).close()
        return
    with closing(SQLiteSink(name)) as sink:
        sink.write([score(f"s{i}", text="long " * 1_000) for i in range(20)])


def newer(name: str) -> None:
    made(name)
    change(name, "PRAGMA user_version = 99")


def truncated(name: str) -> None:
    made(name)
    Path(name).write_bytes(Path(name).read_bytes()[:5_000])


def foreign(name: str) -> None:
    change(name, "CREATE TABLE outcomes (id TEXT)")


BAD = [
    (newer, "upgrade ragstone, or rename the file"),
    (truncated, "move it away, or name another"),
    (foreign, "name another"),
]


@pytest.mark.parametrize("name", [RESULTS, OUTBOX])
@pytest.mark.parametrize(("spoil", "way"), BAD, ids=[spoil.__name__ for spoil, _ in BAD])
def test_the_app_goes_on_and_the_file_stays(
    name: str, spoil: Callable[[str], None], way: str, caplog: pytest.LogCaptureFixture
) -> None:
    spoil(name)
    before = Path(name).read_bytes()
    kept = Kept()
    monitor = live(sinks=[SQLiteSink(RESULTS), kept], outbox=OUTBOX)
    submit(monitor, range(10))
    soon(lambda: len(kept.ids) == 10 or monitor.stats().errors.get("outbox"))
    monitor.close(0.1)
    lost = monitor.stats().reasons.get("dropped", {}).get("closed", 0)
    assert (len(kept.ids), lost) == ((10, 0) if name == RESULTS else (0, 10))
    assert Path(name).read_bytes() == before
    said = caplog.text + str(monitor.stats().sinks)
    assert name in said
    assert way in said
    assert name == OUTBOX or rows(OUTBOX, "SELECT count(*) FROM records") == [(10,)], "they wait"


def test_a_file_that_cannot_be_made() -> None:
    with pytest.raises(Exception, match=r"/proc/no/ragstone.db: no folder /proc/no; create it"):
        SQLiteSink("/proc/no/ragstone.db").write([score()])
    with pytest.raises(Exception, match=r"/proc/o.db: unable to open .*check that this process may write"):
        Outbox(Path("/proc/o.db"))


def test_results_that_are_deleted_while_they_are_written_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with live(sinks=SQLiteSink(RESULTS), outbox=None) as monitor:
        submit(monitor, range(5))
        assert monitor.flush(PATIENCE)
        for path in Path.cwd().glob(f"{RESULTS}*"):
            path.unlink()
        for i in range(3):
            submit(monitor, range(5 + i, 6 + i))
            assert monitor.flush(PATIENCE)
    said = [record for record in caplog.records if record.name == "ragstone.results"]
    assert [record.levelno for record in said] == [logging.WARNING]
    assert f"{RESULTS}: was deleted or replaced while in use" in said[0].getMessage()
    assert rows(RESULTS, "SELECT count(*) FROM outcomes") == [(3,)]


def test_a_text_that_is_not_utf8_is_read_and_leaves_nothing_open() -> None:
    made(RESULTS)
    change(
        RESULTS,
        "UPDATE outcomes SET reason = CAST(x'ff41' AS TEXT), sample = CAST(x'ff' AS TEXT) WHERE sample_id = 's2'",
    )
    change(RESULTS, "UPDATE outcomes SET verdicts = CAST(x'ff' AS TEXT) WHERE sample_id = 's3'")
    found = open_results(RESULTS)
    by_id = {record.sample_id: record for record in found.records()}
    assert (len(by_id), by_id["s2"].outcome.reason) == (19, "\\xffA")  # type: ignore[union-attr]
    assert found.sample(by_id["s2"]) is None
    assert found.notes == ("left out 1 row without an outcome that can be read: s3 by demo",)
    with closing(sqlite3.connect(RESULTS, isolation_level=None, timeout=0.0)) as other:
        other.execute("PRAGMA journal_mode = DELETE")  # refused while anybody has it open
        other.execute("BEGIN EXCLUSIVE")
    with closing(SQLiteSink(RESULTS)) as sink:
        assert sink.forget(ids=["s2", "s3"]) == {"outcomes": 2, "feedback": 0}
