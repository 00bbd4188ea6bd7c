"""`ragstone worker`: what a monitor left is scored and delivered; what cannot be is left and said."""

import re
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from ragstone import ContextRelevancy, Monitor, ResponseRelevancy, Sample, Unscored
from ragstone.monitor import Entry
from ragstone.monitor.job import Job
from ragstone.monitor.outbox import Outbox
from ragstone.monitor.sampling import Choice
from ragstone.sinks import Record, SQLiteSink
from ragstone.testing import FakeLLM

from ..support.openai_server import HANG, error  # noqa: TID252 - under importlib mode tests are no package
from .conftest import judge as answers
from .conftest import row

APP = """
import sys
from ragstone import ContextRelevancy, Monitor
from ragstone.sinks import SQLiteSink
from ragstone.testing import FakeLLM

class Mine(ContextRelevancy):
    name = "mine"

def judge(request):
    return {"ids": [1]}

metrics = [ContextRelevancy(llm=FakeLLM(judge)), Mine(llm=FakeLLM(judge))]
monitor = Monitor(metrics, sinks=SQLiteSink("mine.db"), outbox="outbox.db")
no_outbox = Monitor(metrics)
other_outbox = Monitor(metrics, outbox="other.db")
number = 7

def make():
    return monitor

def broken():
    raise RuntimeError("no key")

class Holder:
    monitor = monitor
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "their_app.py").write_text(APP)
    yield
    sys.modules.pop("their_app", None)


def left(n, *metrics, first=0, attempts=0, wait=0.0):
    """An outbox in which an app left samples."""
    outbox = Outbox(Path("outbox.db").absolute())
    todo = [
        Choice(name, version, 1.0, "rate")
        for name, version in metrics or [("context_relevancy", ContextRelevancy.version)]
    ]
    with outbox.transaction():
        for i in range(first, first + n):
            job = Job(Sample(id=f"s{i}", **row(i)), f"s{i}", 1.0, list(todo))
            outbox.put_off(job, wait, attempts=attempts)
    outbox.close()


def keep(sink):
    """An outbox in which an outcome waits for a sink."""
    outbox = Outbox(Path("outbox.db").absolute())
    outcome = Unscored(metric="context_relevancy", reason="undefined", detail="", version="1")
    with outbox.transaction():
        outbox.keep(Record(sample_id="s0", outcome=outcome, judge="j", submitted_at=0.0, scored_at=1.0), [sink])
    outbox.close()


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


def files():
    return sorted(path.name for path in Path().iterdir())


def until(true):
    end = time.monotonic() + 60
    while not (found := true()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


@pytest.fixture
def worker(run, server):
    """Runs `ragstone worker` on the outbox, with the loopback judge."""
    return lambda *args, llm=server.url: run("worker", "--outbox", "outbox.db", "--llm", llm, *args)


@pytest.fixture
def with_app(run):
    return lambda *args, name="monitor": run("worker", "--outbox", "outbox.db", "--monitor", f"their_app:{name}", *args)


def test_scores_what_is_left(worker):
    left(20)
    done = worker()
    assert (done.exit_code, done.stdout, done.stderr) == (0, "scored 20, unscored 0, left 0\n", "")
    assert rows("ragstone.db") == sorted((f"s{i}", "context_relevancy", "scored") for i in range(20))
    assert waiting() == []
    again = worker()
    assert (again.exit_code, again.stdout) == (0, "outbox.db: nothing in it\n")


def test_all_metrics_that_the_samples_wait_for(worker):
    left(2, ("context_relevancy", "1"), ("response_relevancy", ResponseRelevancy.version))
    left(2, ("summarization_score", "1"), first=2)
    done = worker("--set", "response_relevancy.strictness=1")
    assert (done.exit_code, done.stdout) == (0, "scored 6, unscored 0, left 0\n")
    assert [metric for _, metric, _ in rows("ragstone.db")] == [
        *["context_relevancy", "response_relevancy"] * 2,
        *["summarization_score"] * 2,
    ]


def test_only_some(worker):
    left(3, ("context_relevancy", ContextRelevancy.version), ("summarization_score", "1"))
    done = worker("--metric", "context_relevancy")
    assert (done.exit_code, done.stdout) == (1, "scored 3, unscored 0, left 3\n")
    assert done.stderr == "3 wait to be scored by summarization_score (version 1)\n"
    done = worker()
    assert (done.exit_code, done.stdout) == (0, "scored 3, unscored 0, left 0\n")


def test_another_database_and_the_texts(worker):
    left(1)
    assert worker("--db", "other.db", "--store-text").exit_code == 0
    ((text,),) = rows("other.db", "SELECT sample FROM outcomes")
    assert "Who wrote book 0?" in text
    left(1)
    assert worker("--db", "without.db").exit_code == 0
    assert rows("without.db", "SELECT sample FROM outcomes") == [(None,)]


def test_a_url(worker):
    pytest.importorskip("sqlalchemy")
    left(2)
    assert worker("--db", "sqlite:///by_url.db").exit_code == 0
    assert len(rows("by_url.db")) == 2


def test_outcomes_that_were_not_delivered_need_no_judge(worker):
    class Down(SQLiteSink):
        def write(self, records):
            raise OSError("down")

    metric = ContextRelevancy(llm=FakeLLM(lambda _: {"ids": [1]}))
    monitor = Monitor(metric, sinks=Down("ragstone.db"), outbox="outbox.db")
    for i in range(5):
        monitor.submit(Sample(id=f"s{i}", **row(i)))
    until(lambda: rows("outbox.db", "SELECT count(*) FROM records") == [(5,)])
    monitor.close(0.1)
    done = worker("--db", "elsewhere.db", llm="http://127.0.0.1:9")
    assert (done.exit_code, done.stdout) == (1, "scored 0, unscored 0, left 5\n")
    wanted = Path("ragstone.db").absolute()
    assert done.stderr.splitlines() == [
        f"5 outcomes wait for sqlite:{wanted}",
        f"sqlite:{wanted}: to deliver what waits for it: ragstone worker --outbox outbox.db --db {wanted}",
    ]
    done = worker(llm="http://127.0.0.1:9")
    assert (done.exit_code, done.stdout) == (0, "scored 0, unscored 0, left 0\n")
    assert len(rows("ragstone.db")) == 5


@pytest.mark.parametrize(
    ("sink", "way"),
    [
        (
            "sql:postgresql+psycopg://me@db.test/rag",
            "--db postgresql+psycopg://me@db.test/rag (add the password, if it",
        ),
        (
            "call:print",
            "to deliver what waits for it, start the app, or name the app's monitor (--monitor MODULE:NAME)",
        ),
        ("sqlite:/a b.db", "ragstone worker --outbox outbox.db --db '/a b.db'"),
        ("unreadable: sqlite:/a.db", "what waits for it cannot be read"),
    ],
)
def test_what_delivers_to_another_sink_is_said(worker, sink, way):
    keep(sink)
    done = worker()
    assert (done.exit_code, done.stdout) == (1, "scored 0, unscored 0, left 1\n")
    first, second = done.stderr.splitlines()
    assert first == f"1 outcomes wait for {sink}"
    assert second.startswith(f"{sink}: ")
    assert way in second


def test_what_a_sample_lacks_is_an_outcome_like_any_other(worker):
    outbox = Outbox(Path("outbox.db").absolute())
    with outbox.transaction():
        job = Job(Sample(response="x"), "s1", 1.0, [Choice("context_relevancy", "1", 1.0, "rate")])
        outbox.put_off(job, 0.0, attempts=0)
    outbox.close()
    done = worker()
    assert (done.exit_code, done.stdout) == (0, "scored 0, unscored 1 (missing_input 1), left 0\n")


def test_a_judge_that_is_down_leaves_it_for_later(run, openai_server):
    left(3)
    down = openai_server(lambda body: error(400, "down"))
    done = run("worker", "--outbox", "outbox.db", "--llm", f"m@{down.url}")
    assert (done.exit_code, done.stdout) == (1, "scored 0, unscored 0, left 3\n")
    assert "3 wait to be scored by context_relevancy" in done.stderr
    assert rows("outbox.db", "SELECT DISTINCT attempts FROM samples") == [(1,)]


def test_what_was_put_off_is_tried_now(worker):
    left(3, attempts=4, wait=3_000.0)
    done = worker()
    assert (done.exit_code, done.stdout) == (0, "scored 3, unscored 0, left 0\n")


def test_the_last_try_ends_in_an_outcome(run, openai_server):
    left(2, attempts=10)
    down = openai_server(lambda body: error(400, "down"))
    done = run("worker", "--outbox", "outbox.db", "--llm", f"m@{down.url}")
    assert (done.exit_code, done.stdout) == (1, "scored 0, unscored 2 (judge_error 2), left 0\n")
    assert [status for *_, status in rows("ragstone.db")] == ["unscored"] * 2


def test_a_judge_that_keeps_failing_is_given_up(run, openai_server):
    left(400)
    down = openai_server(lambda body: error(400, "down"))
    done = run("worker", "--outbox", "outbox.db", "--llm", f"m@{down.url}")
    assert done.exit_code == 1
    assert "Gave up: the judge failed 100 times in a row." in done.stderr
    assert len(down.seen) < 400
    assert len(waiting()) == 400


def test_a_database_that_refuses_is_given_up(worker, monkeypatch):
    monkeypatch.setattr("ragstone.cli.work._SINK_PATIENCE", 0.5)
    left(3)
    SQLiteSink("results.db").ledger().spend([Entry("none", 0, 1, 0)])
    change("results.db", "CREATE TRIGGER no BEFORE INSERT ON outcomes BEGIN SELECT raise(ABORT, 'no more'); END")
    done = worker("--db", "results.db")
    wanted = Path("results.db").absolute()
    assert (done.exit_code, done.stdout) == (1, "scored 3, unscored 0, left 3\n")
    assert "no more" in done.stderr
    assert f"sqlite:{wanted}: to deliver what waits for it, run this again when it takes outcomes" in done.stderr
    done = worker("--db", "good.db")
    assert f"3 outcomes wait for sqlite:{wanted}" in done.stderr
    change("results.db", "DROP TRIGGER no")
    (command,) = re.findall(r"to deliver what waits for it: ragstone worker --outbox outbox.db (.*)", done.stderr)
    done = worker(*command.split())
    assert (done.exit_code, done.stdout) == (0, "scored 0, unscored 0, left 0\n")
    assert len(rows("results.db")) == 3


def test_outcomes_that_wait_for_what_is_no_database_are_delivered_when_it_is_moved_away(worker):
    keep(f"sqlite:{Path('s.jsonl').absolute()}")
    Path("s.jsonl").write_text("no database" * 100)
    done = worker("--db", "s.jsonl")
    assert done.exit_code == 2
    assert "1 outcomes wait for it and go to no other: mend it or move it away, and run this again" in done.stderr
    Path("s.jsonl").rename("away")
    done = worker("--db", "s.jsonl")
    assert (done.exit_code, done.stdout) == (0, "scored 0, unscored 0, left 0\n")
    assert len(rows("s.jsonl")) == 1


@pytest.mark.parametrize("url", [False, True], ids=["file", "url"])
def test_a_file_that_is_no_database_costs_nothing(worker, server, url):
    if url:
        pytest.importorskip("sqlalchemy")
    left(3)
    Path("s.jsonl").write_text("no database" * 100)
    done = worker("--db", "sqlite:///s.jsonl" if url else "s.jsonl")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Error: --db " in done.stderr
    assert "s.jsonl: " in done.stderr
    assert "not a database" in done.stderr
    assert not [seen for seen in server.seen if seen.path.endswith("/chat/completions")]
    assert waiting() == ["s0", "s1", "s2"]
    done = worker("--db", "new.db")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "scored 3, unscored 0, left 0\n", "")
    assert rows("new.db", "SELECT count(*) FROM spending") == [(0,)], "what was tried before was not entered"


def test_another_version_is_said(worker):
    left(1, ("context_relevancy", "99"))
    done = worker()
    assert done.exit_code == 0
    assert done.stderr.startswith(
        f"Note: context_relevancy is scored as version {ContextRelevancy.version}; the app's is 99. To score as the app"
    )


# --- the app's own monitor ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["monitor", "make", "Holder.monitor"])
def test_the_apps_own_monitor(with_app, name):
    left(3, ("context_relevancy", "1"), ("mine", "1"))
    done = with_app(name=name)
    assert (done.exit_code, done.stdout) == (0, "scored 6, unscored 0, left 0\n")
    assert [metric for _, metric, _ in rows("mine.db")] == ["context_relevancy", "mine"] * 3
    assert not Path("ragstone.db").exists()


def test_a_metric_that_ragstone_does_not_have(worker):
    left(1, ("mine", "1"))
    done = worker()
    assert done.exit_code == 2
    assert "samples wait for mine, which ragstone does not have; name the app's monitor" in done.stderr
    assert "--monitor MODULE:NAME" in done.stderr
    assert waiting() == ["s0"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no_outbox", "it has none; --outbox names "),
        ("other_outbox", "its outbox is "),
        ("number", "is int, no Monitor nor a function that returns one"),
        ("missing", "AttributeError: module 'their_app' has no attribute 'missing'"),
        ("broken", "RuntimeError: no key"),
        ("judge", "TypeError: judge() missing 1 required positional argument"),
    ],
)
def test_a_monitor_that_is_none(with_app, name, says):
    left(1)
    done = with_app(name=name)
    assert done.exit_code == 2
    assert says in done.stderr
    assert waiting() == ["s0"]


@pytest.mark.parametrize("spec", ["their_app", "their_app:", ":monitor", "no_such_app:monitor"])
def test_a_spec_that_is_none(run, spec):
    left(1)
    done = run("worker", "--outbox", "outbox.db", "--monitor", spec)
    assert done.exit_code == 2
    assert "write MODULE:NAME" in done.stderr or "No module named 'no_such_app'" in done.stderr


@pytest.mark.parametrize(
    "more", [("--db", "x.db"), ("--llm", "local"), ("--metric", "context_relevancy"), ("--store-text",)]
)
def test_the_apps_monitor_says_all_else(with_app, more):
    left(1)
    done = with_app(*more)
    assert done.exit_code == 2
    assert f"{more[0]}: --monitor says that already" in done.stderr


# --- outboxes that are none -----------------------------------------------------------------------------------


def test_no_such_file_is_not_made(worker):
    done = worker()
    assert done.exit_code == 2
    assert "outbox.db: there is no such file; name the file that the app's monitor has as outbox=" in done.stderr
    assert files() == ["their_app.py"]


def test_a_folder(run):
    assert "is a folder" in run("worker", "--outbox", ".").stderr


def test_no_outbox(worker):
    Path("outbox.db").write_text("garbage" * 1000)
    done = worker()
    assert done.exit_code == 2
    assert "outbox.db: is no SQLite file" in done.stderr
    assert files() == ["outbox.db", "their_app.py"]


def test_the_results_in_place_of_the_outbox(run, worker):
    left(1)
    worker()
    done = run("worker", "--outbox", "ragstone.db")
    assert done.exit_code == 2
    assert "ragstone.db: is another program's database" in done.stderr


def test_a_newer_version(worker):
    left(1)
    with closing(sqlite3.connect("outbox.db")) as connection:
        connection.execute("PRAGMA user_version = 9")
    done = worker()
    assert done.exit_code == 2
    assert "was made by a newer ragstone (outbox version 9, this one knows 1)" in done.stderr


def test_an_outbox_without_a_word(worker):
    Outbox(Path("outbox.db").absolute()).close()
    done = worker()
    assert (done.exit_code, done.stdout) == (0, "outbox.db: nothing in it\n")
    assert not Path("ragstone.db").exists()


def test_following_an_empty_outbox_needs_a_metric(worker):
    Outbox(Path("outbox.db").absolute()).close()
    done = worker("--follow")
    assert done.exit_code == 2
    assert "outbox.db is empty: say what to score by (--metric, or --monitor MODULE:NAME)" in done.stderr


@pytest.mark.parametrize("db", ["none/x.db", ".", "nonsense://x"])
def test_a_database_that_cannot_be(worker, db):
    left(1)
    done = worker("--db", db)
    assert done.exit_code == 2
    assert f"--db {db}" in done.stderr
    assert waiting() == ["s0"]


@pytest.mark.parametrize("db", ["outbox.db", "./outbox.db", "sqlite:///outbox.db"])
def test_the_outbox_in_place_of_the_database(worker, server, db):
    left(1)
    done = worker("--db", db)
    assert done.exit_code == 2
    assert f"--db {db.removeprefix('sqlite:///')}: is --outbox outbox.db itself; name another file" in done.stderr
    assert waiting() == ["s0"]
    assert "/v1/chat/completions" not in [seen.path for seen in server.seen]


def test_samples_in_another_processs_hands(worker):
    outbox = Outbox(Path("outbox.db").absolute())
    with outbox.transaction():
        job = Job(Sample(**row(1)), "theirs", 1.0, [Choice("context_relevancy", "1", 1.0, "rate")])
        outbox.add(job, mine=True)
    left(2)
    done = worker()
    assert (done.exit_code, done.stdout) == (0, "scored 2, unscored 0, left 0\n")
    assert done.stderr == "1 samples are in the hands of another process\n"
    assert waiting() == ["theirs"]
    outbox.close()
    assert worker().stdout == "scored 1, unscored 0, left 0\n"


def test_samples_that_cannot_be_read(worker):
    left(3)
    with closing(sqlite3.connect("outbox.db", isolation_level=None)) as connection:
        connection.execute("UPDATE samples SET body = 'spoiled' WHERE id = 's1'")
    done = worker()
    assert (done.exit_code, done.stdout) == (1, "scored 2, unscored 0, left 0\n")
    assert done.stderr == "1 samples cannot be read\n"


# --- as a process ---------------------------------------------------------------------------------------------


@pytest.fixture
def stuck(openai_server):
    """A judge that answers on books 0 to 2 and never on any other."""
    return openai_server(lambda body: answers(body) if re.search(r"book [0-2]\?", str(body)) else HANG)


@pytest.mark.parametrize(("how", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_following_until_told_to_stop(process, server, how, status):
    left(5)
    command = process("worker", "--outbox", "outbox.db", "--llm", server.url, "--follow")
    until(lambda: len(rows("ragstone.db")) == 5)
    left(5, first=5)
    until(lambda: len(rows("ragstone.db")) == 10)
    command.send_signal(how)
    out, errors = command.communicate(timeout=60)
    assert (command.returncode, out) == (status, b"scored 10, unscored 0, left 0\n")
    assert errors == b"Stopped: what was in hand was finished.\n"


@pytest.mark.parametrize(("how", "status"), [(signal.SIGTERM, 1), (signal.SIGINT, 130)])
def test_what_is_in_hand_is_finished_and_the_rest_is_left(process, tmp_path, how, status):
    left(50)
    (tmp_path / "slow_app.py").write_text(
        "import time\nfrom pathlib import Path\n"
        + APP.replace('    return {"ids": [1]}', "    Path('asked').touch()\n    while not Path('go').exists():\n"
                      "        time.sleep(0.01)\n    return {'ids': [1]}").replace("[ContextRelevancy(llm=FakeLLM(judge)), Mine(llm=FakeLLM(judge))]", "ContextRelevancy(llm=FakeLLM(judge))")
    )  # fmt: skip
    command = process("worker", "--outbox", "outbox.db", "--monitor", "slow_app:monitor")
    until(lambda: Path("asked").exists())
    command.send_signal(how)
    time.sleep(0.5)
    assert command.poll() is None, "it waits for the judge"
    Path("go").touch()
    out, errors = command.communicate(timeout=60)
    scored = len(rows("mine.db"))
    assert 1 <= scored <= 4, "one for each thread that had begun"
    assert (command.returncode, out.decode()) == (status, f"scored {scored}, unscored 0, left {50 - scored}\n")
    assert b"Stopped: what was in hand was finished.\n" in errors
    assert len(waiting()) == 50 - scored
    assert rows("outbox.db", "SELECT max(attempts) FROM samples") == [(0,)]


def test_a_second_ctrl_c_ends_it_at_once(process, stuck):
    left(8)
    command = process("worker", "--outbox", "outbox.db", "--llm", stuck.url)
    until(lambda: len(rows("ragstone.db")) == 3)
    until(lambda: len(stuck.seen) >= 7)
    command.send_signal(signal.SIGINT)
    time.sleep(0.3)
    command.send_signal(signal.SIGINT)
    command.communicate(timeout=60)
    assert command.returncode == 130
    assert len(waiting()) == 5


def test_killed_and_run_again(process, stuck, worker):
    left(8)
    command = process("worker", "--outbox", "outbox.db", "--llm", stuck.url)
    until(lambda: len(rows("ragstone.db")) == 3)
    command.kill()
    command.wait()
    assert worker().stdout == "scored 5, unscored 0, left 0\n"
    assert [name for name, *_ in rows("ragstone.db")] == [f"s{i}" for i in range(8)]


def test_two_workers_share_what_is_left(process, server):
    left(300)
    both = [process("worker", "--outbox", "outbox.db", "--llm", server.url) for _ in range(2)]
    outs = [command.communicate(timeout=60)[0].decode() for command in both]
    scored = [int(found[1]) if (found := re.match(r"scored (\d+)", out)) else 0 for out in outs]
    assert sum(scored) == 300
    assert len(rows("ragstone.db")) == 300
    asked = [seen for seen in server.seen if seen.path.endswith("/chat/completions")]
    assert len(asked) == 300, "none was judged twice"


def test_its_help_names_both_ways(run):
    text = run("worker", "--help").stdout
    for word in ("--monitor MODULE:NAME", "--follow", "--llm JUDGE", "--db PATH|URL", "130"):
        assert word in text
