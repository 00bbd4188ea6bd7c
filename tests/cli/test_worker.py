"""`ragstone live worker`: what a monitor left is scored and delivered; what cannot be is left and said."""

import json
import re
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ragstone import ContextRelevancy, ResponseRelevancy, Sample, SummarizationScore, Unscored
from ragstone.live import Record
from ragstone.live.outbox import Outbox
from ragstone.live.pending import Choice, Pending

from ..support.waiting import soon  # noqa: TID252
from .conftest import row

APP = """
import time
from pathlib import Path
from ragstone import ContextRelevancy, Monitor
from ragstone.live import Queue, SQLiteSink
from ragstone.testing import FakeLLM

class Mine(ContextRelevancy):
    name = "mine"

class Pausing(Monitor):
    def pause(self):
        super().pause()
        Path("paused").touch()

def slowly(request):
    Path("asked").touch()
    while not Path("go").exists():
        time.sleep(0.01)
    return {"ids": [1]}

metrics = [ContextRelevancy(llm=FakeLLM({"ids": [1]})), Mine(llm=FakeLLM({"ids": [1]}))]
monitor = Monitor(metrics, sinks=SQLiteSink("mine.db"), outbox="outbox.db")
slow = Pausing(ContextRelevancy(llm=FakeLLM(slowly)), sinks=SQLiteSink("mine.db"), outbox="outbox.db")
taking = Monitor(metrics[0], sinks=SQLiteSink("mine.db"), outbox="outbox.db", queue=Queue(workers=0))
no_outbox = Monitor(metrics)
other_outbox = Monitor(metrics, outbox="other.db")
def make():
    return monitor

"""
ALL_SCORED = (0, "scored 3, unscored 0, left 0\n", "")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "their_app.py").write_text(APP)
    yield
    sys.modules.pop("their_app", None)


def opened():
    return closing(Outbox(Path("outbox.db").absolute()))


def left(n, *metrics, first=0, attempts=0, wait=0.0):
    """An outbox in which an app left samples."""
    todo = [
        Choice(name, version, 1.0, "rate")
        for name, version in metrics or [("context_relevancy", ContextRelevancy.version)]
    ]
    with opened() as outbox, outbox.transaction():
        for i in range(first, first + n):
            job = Pending(Sample(id=f"s{i}", **row(i)), f"s{i}", 1.0, list(todo), attempts=attempts)
            outbox.put_off(job, wait)


def keep(*sinks):
    """An outbox in which an outcome waits for each of the sinks."""
    outcome = Unscored(metric="context_relevancy", reason="undefined", detail="", version="1")
    with opened() as outbox, outbox.transaction():
        for sink in sinks:
            outbox.keep(Record(sample_id="s0", outcome=outcome, judge="j", submitted_at=0.0, scored_at=1.0), [sink])


def rows(path, query="SELECT sample_id, metric, status FROM outcomes ORDER BY 1, 2"):
    if not Path(path).exists():
        return []
    with closing(sqlite3.connect(path, timeout=60)) as connection:
        try:
            return connection.execute(query).fetchall()
        except sqlite3.OperationalError:  # no such table yet
            return []


def waiting():
    return [name for (name,) in rows("outbox.db", "SELECT id FROM samples ORDER BY seq")]


def change(path, statement):
    with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as connection:
        connection.execute(statement)


def end(done):
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def worker(run, server):
    """Runs `ragstone live worker` on the outbox, with the loopback judge."""
    return lambda *args, llm=server.url: run("live", "worker", "--outbox", "outbox.db", "--llm", llm, *args)


@pytest.fixture
def start(process, server):
    """Starts it as a process."""
    return lambda *args: process("live", "worker", "--outbox", "outbox.db", *(args or ("--llm", server.url)))


def test_scores_what_is_left_also_what_was_put_off(worker):
    left(2)
    left(1, first=2, attempts=4, wait=3_000.0)
    assert end(worker("--store-text")) == ALL_SCORED
    assert rows("ragstone.db") == [(f"s{i}", "context_relevancy", "scored") for i in range(3)]
    assert "Who wrote book 0?" in rows("ragstone.db", "SELECT sample FROM outcomes ORDER BY sample_id")[0][0]
    assert waiting() == []
    assert end(worker("--db", "other.db")) == (0, "outbox.db: nothing in it\n", "")
    assert not Path("other.db").exists()
    left(1)
    assert worker("--db", "other.db").exit_code == 0
    assert rows("other.db", "SELECT sample FROM outcomes") == [(None,)]


def test_all_metrics_that_the_samples_wait_for_or_only_some(worker):
    left(2, ("context_relevancy", ContextRelevancy.version), ("response_relevancy", ResponseRelevancy.version))
    left(1, ("summarization_score", SummarizationScore.version), first=2)
    some = worker("--metric", "context_relevancy")
    assert (some.exit_code, some.stdout) == (1, "scored 2, unscored 0, left 3\n")
    assert "waiting to be scored by response_relevancy (version " in some.stderr
    assert end(worker("--set", "response_relevancy.strictness=1")) == ALL_SCORED
    assert [metric for _, metric, _ in rows("ragstone.db")] == [
        *["context_relevancy", "response_relevancy"] * 2,
        "summarization_score",
    ]


def test_outcomes_that_wait_for_other_sinks_need_no_judge_and_what_delivers_them_is_said(worker):
    here = Path("ragstone.db").absolute()
    ways = {
        f"sqlite:{here}": f"ragstone live worker --outbox outbox.db --db {here}",
        "sql:postgresql+psycopg://me@db.test/rag": "ragstone live worker --outbox outbox.db --db postgresql+psycopg://me@db.test/rag (with the password if it has one)",
        "call:print": "start the app, or --monitor MODULE:NAME",
    }
    keep(*ways)
    done = worker("--db", "elsewhere.db", llm="http://127.0.0.1:9")
    assert (done.exit_code, done.stdout) == (1, "scored 0, unscored 0, left 3\n")
    said = done.stderr.splitlines()
    for sink, way in ways.items():
        assert f"waiting for {sink}: 1 outcome; to deliver them: {way}" in said
    assert worker(llm="http://127.0.0.1:9").stdout == "scored 0, unscored 0, left 2\n"
    assert len(rows("ragstone.db")) == 1


def test_a_file_that_is_no_database_costs_nothing(worker, server):
    left(3)
    keep(f"sqlite:{Path('s.jsonl').absolute()}")
    Path("s.jsonl").write_text("no database" * 100)
    done = worker("--db", "s.jsonl")
    assert (done.exit_code, done.stdout) == (2, "")
    assert re.search(r"^Error: --db .*s\.jsonl: .*not a database", done.stderr)
    assert not [seen for seen in server.seen if seen.path.endswith("/chat/completions")]
    assert waiting() == ["s0", "s1", "s2"]
    Path("s.jsonl").rename("away")
    assert end(worker("--db", "s.jsonl")) == ALL_SCORED
    assert len(rows("s.jsonl")) == 4


# --- the app's own monitor, and options that do not go together


def test_the_apps_own_monitor(run):
    left(1, ("context_relevancy", "1"), ("mine", "1"))
    done = run("live", "worker", "--outbox", "outbox.db", "--monitor", "their_app:make")
    assert end(done) == (0, "scored 2, unscored 0, left 0\n", "")
    assert [metric for _, metric, _ in rows("mine.db")] == ["context_relevancy", "mine"]
    assert not Path("ragstone.db").exists()


def test_the_monitor_of_an_app_that_only_takes(start):
    """The worker may be there first; it makes the file, and judges by as many threads as it is told."""
    command = start("--monitor", "their_app:taking", "--workers", "2", "--follow")
    soon(lambda: Path("outbox.db").exists())
    left(9)
    soon(lambda: len(rows("mine.db")) == 9)
    command.send_signal(signal.SIGTERM)
    assert command.communicate(timeout=60)[0] == b"scored 9, unscored 0, left 0\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--monitor their_app:monitor --workers 2", "--workers: --monitor says that already"),
        ("--monitor their_app:no_outbox", "it has none; --outbox names "),
        ("--monitor their_app:other_outbox", "its outbox is "),
        ("--monitor their_app:monitor --db x.db", "--db: --monitor says that already"),
        ("--llm local:mine", "samples wait for mine, which ragstone does not have; name the app's monitor"),
        ("--db none/x.db --metric context_relevancy", "none/x.db: no folder"),
        ("--db outbox.db --metric context_relevancy", "--db outbox.db: is --outbox outbox.db itself"),
    ],
)
def test_options_that_cannot_be(run, arguments, says):
    left(1, ("mine", "1"))
    done = run("live", "worker", "--outbox", "outbox.db", *arguments.split())
    assert done.exit_code == 2
    assert says in done.stderr
    assert waiting() == ["s0"]


# --- outboxes that are none, or not as they should be


def test_what_is_no_outbox_is_said_and_left_alone(run):
    Path("garbage.db").write_text("garbage" * 1000)
    left(1)
    change("outbox.db", "PRAGMA user_version = 9")
    for path, said in {
        "none.db": "there is no such file; name the file that the app's monitor has as outbox=",
        "garbage.db": "is damaged, or not a ragstone outbox",
        "outbox.db": "was made by a newer ragstone (outbox version 9, this one reads 3)",
    }.items():
        done = run("live", "worker", "--outbox", path)
        assert (done.exit_code, f"{path}: {said}" in done.stderr) == (2, True), done.stderr
    assert not Path("none.db").exists()


def test_samples_in_another_processs_hands_and_some_that_cannot_be_read(worker):
    with opened() as outbox:
        with outbox.transaction():
            job = Pending(Sample(**row(1)), "theirs", 1.0, [Choice("context_relevancy", "1", 1.0, "rate")])
            outbox.add(job, mine=True)
        left(3)
        change("outbox.db", "UPDATE samples SET body = 'spoiled' WHERE id = 's1'")
        done = worker()
        assert (done.exit_code, done.stdout) == (1, "scored 2, unscored 0, left 0\n")
        assert done.stderr == "in the hands of another process: 1 sample\nnot readable: 1 sample\n"
        assert "theirs" in waiting()
    said = json.loads(worker("--json").stdout)
    assert said == {"scored": 1, "unscored": {}, "over_budget": 0, "left": 0}


# --- as a process


def test_what_is_in_hand_is_finished_and_the_rest_is_left(start):
    left(50)
    command = start("--monitor", "their_app:slow")
    soon(lambda: Path("asked").exists())
    command.send_signal(signal.SIGTERM)
    soon(lambda: Path("paused").exists())
    Path("go").touch()
    out, errors = command.communicate(timeout=60)
    scored = len(rows("mine.db"))
    assert 1 <= scored <= 4, "one for each thread that had begun"
    assert (command.returncode, out.decode()) == (1, f"scored {scored}, unscored 0, left {50 - scored}\n")
    assert b"Stopped, after the samples in progress.\n" in errors
    assert len(waiting()) == 50 - scored
    assert rows("outbox.db", "SELECT max(attempts) FROM samples") == [(0,)]


def test_a_second_ctrl_c_ends_it_at_once(start):
    left(8)
    command = start("--monitor", "their_app:slow")
    soon(lambda: Path("asked").exists())
    command.send_signal(signal.SIGINT)
    soon(lambda: Path("paused").exists())
    command.send_signal(signal.SIGINT)
    command.communicate(timeout=60)
    assert command.returncode == 130
    assert len(waiting()) == 8
