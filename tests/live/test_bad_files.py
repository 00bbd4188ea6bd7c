"""Files that a monitor cannot use: a sentence with the file and the way out, the app goes on, the file stays."""

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ragstone.live import SQLiteSink
from ragstone.live.outbox import Outbox
from ragstone.results.read import open_results

from ..support.waiting import soon  # noqa: TID252
from .cases import score
from .kit import PATIENCE, Kept, live, submit
from .live_app import OUTBOX, RESULTS, change, rows

pytestmark = pytest.mark.usefixtures("own_folder")


def make(name: str) -> None:
    """Make a file as a monitor leaves it."""
    if name == OUTBOX:
        Outbox(Path(name).absolute()).close()
        return
    with closing(SQLiteSink(name)) as sink:
        sink.write([score(f"s{i}", text="long " * 1_000) for i in range(20)])


def newer(name: str) -> None:
    make(name)
    change(name, "PRAGMA user_version = 99")


def truncated(name: str) -> None:
    make(name)
    Path(name).write_bytes(Path(name).read_bytes()[:5_000])


def foreign(name: str) -> None:
    change(name, "CREATE TABLE outcomes (id TEXT)")


SPOILED = [
    (newer, "upgrade ragstone, or name another"),
    (truncated, "move it away, or name another"),
    (foreign, "name another"),
]


@pytest.mark.parametrize("name", [RESULTS, OUTBOX])
@pytest.mark.parametrize(("spoil", "way"), SPOILED, ids=[spoil.__name__ for spoil, _ in SPOILED])
def test_the_app_goes_on_and_the_file_stays(
    name: str, spoil: Callable[[str], None], way: str, caplog: pytest.LogCaptureFixture
) -> None:
    spoil(name)
    before = Path(name).read_bytes()
    kept = Kept()
    monitor = live(sinks=[SQLiteSink(RESULTS), kept], outbox=OUTBOX)
    submit(monitor, range(10))
    soon(lambda: len(kept.ids) == 10)
    monitor.close(0.1)
    assert sorted(kept.ids) == sorted(f"s{i}" for i in range(10))
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
    make(RESULTS)
    change(
        RESULTS,
        "UPDATE outcomes SET reason = CAST(x'ff41' AS TEXT), sample = CAST(x'ff' AS TEXT) WHERE sample_id = 's2'",
    )
    change(RESULTS, "UPDATE outcomes SET verdicts = CAST(x'ff' AS TEXT) WHERE sample_id = 's3'")
    found = open_results(RESULTS)
    by_id = {record.sample_id: record for record in found.records()}
    assert (len(by_id), by_id["s2"].outcome.reason) == (19, "\\xffA")  # type: ignore[union-attr]
    assert found.sample(by_id["s2"]) is None
    assert found.notes == ("1 row(s) hold no outcome that can be read and were left out: s3 by demo",)
    with closing(sqlite3.connect(RESULTS, isolation_level=None, timeout=0.0)) as other:
        other.execute("PRAGMA journal_mode = DELETE")  # refused while anybody has it open
        other.execute("BEGIN EXCLUSIVE")
    with closing(SQLiteSink(RESULTS)) as sink:
        assert sink.forget(ids=["s2", "s3"]) == {"outcomes": 2, "feedback": 0}
