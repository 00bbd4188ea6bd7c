"""The journal: what goes in comes out, exactly, in whatever way the process or the disk ends."""

import gc
import os
import pickle
import signal
import sqlite3
import threading
from contextlib import closing

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ragstone import Evidence, LLMReply, Score, Unscored, Usage, Verdict
from ragstone.batch.journal.file import JournalError
from ragstone.batch.journal.forms import outcome_columns, read_outcome, read_reply, reply_columns
from ragstone.batch.journal.journal import Journal
from ragstone.batch.journal.writer import Batch

from .journals import finish, run_alone, run_together, score, start, unscored, wait_until

HOSTILE = "NUL \x00, half \ud83d, \U0001f44d, '; DROP TABLE outcomes; --, \u2028 \ufeff \\u0000"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.db"


@pytest.fixture
def journal(path):
    with Journal(path) as journal:
        yield journal


def again(path):
    """Open it as the next process would."""
    return closing(Journal(path))


# --- what goes in comes out -----------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec=None) | st.sampled_from('\x00\ud83d\udc4d"\\{},'), max_size=12)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
COUNTS = st.integers(min_value=0, max_value=10**30)
USAGES = st.builds(
    Usage,
    llm_calls=COUNTS,
    embed_calls=COUNTS,
    input_tokens=st.none() | COUNTS,
    output_tokens=st.none() | COUNTS,
    seconds=st.floats(allow_nan=False),
)
EVIDENCE = st.builds(
    Evidence,
    field=st.sampled_from(["user_input", "retrieved_contexts", "response"]),
    chunk=st.none() | st.integers(0, 9),
    start=st.integers(0, 99),
    end=st.integers(0, 99),
    text=TEXTS,
)
VERDICTS = st.builds(
    Verdict,
    id=TEXTS,
    kind=TEXTS,
    text=TEXTS,
    verdict=TEXTS,
    probability=st.none() | st.floats(0, 1),
    evidence=st.lists(EVIDENCE, max_size=2).map(tuple),
)
SCORES = st.builds(
    Score,
    metric=TEXTS,
    value=FINITE,
    passed=st.none() | st.booleans(),
    reason=TEXTS,
    breakdown=st.dictionaries(TEXTS, FINITE, max_size=3),
    verdicts=st.lists(VERDICTS, max_size=2).map(tuple),
    usage=USAGES,
    version=TEXTS,
)
UNSCORED = st.builds(
    Unscored,
    metric=TEXTS,
    reason=st.sampled_from(["missing_input", "empty_input", "undefined", "judge_unparseable", "timeout"]),
    detail=TEXTS,
    usage=USAGES,
    version=TEXTS,
)
REPLIES = st.builds(
    LLMReply,
    text=TEXTS,
    input_tokens=st.none() | COUNTS,
    output_tokens=st.none() | COUNTS,
    probabilities=st.none() | st.dictionaries(TEXTS, FINITE, max_size=3),
)


def through_sqlite(columns):
    with closing(sqlite3.connect(":memory:")) as connection:
        (found,) = connection.execute(f"SELECT {', '.join('?' * len(columns))}", columns)
    return found


@given(SCORES | UNSCORED)
@example(Score(metric="demo", value=-0.0, reason="", breakdown={"a\ud83d": 1.0}, version="1"))
@example(Score(metric="demo", value=1e-320, reason="", usage=Usage(seconds=float("inf")), version="1"))
def test_outcomes_come_back_exactly(outcome):
    _, *stored = through_sqlite(outcome_columns("key", outcome))
    found = read_outcome(*stored)
    assert found == outcome
    assert repr(found) == repr(outcome)  # 0.0 == -0.0 and 1 == 1.0 would pass


@given(REPLIES)
def test_replies_come_back_exactly(reply):
    _, stored = through_sqlite(reply_columns("key", reply))
    assert repr(read_reply(stored)) == repr(reply)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(SCORES, min_size=1, max_size=5), st.lists(REPLIES, min_size=1, max_size=5))
def test_the_file_gives_back_what_the_memory_does(tmp_path, outcomes, replies):
    path = tmp_path / f"{os.urandom(8).hex()}.db"
    with Journal(path) as journal:
        for i, outcome in enumerate(outcomes):
            journal.put_outcome(f"key {i}", outcome)
            assert journal.outcome(f"key {i}") == outcome
        for i, reply in enumerate(replies):
            journal.put_reply(f"key {i}", reply)
            assert journal.reply(f"key {i}") == reply
    with again(path) as journal:
        assert [journal.outcome(f"key {i}") for i in range(len(outcomes))] == outcomes
        assert [journal.reply(f"key {i}") for i in range(len(replies))] == replies


def test_what_is_not_there_is_none(journal):
    assert journal.outcome("key") is None
    assert journal.reply("key") is None
    journal.put_outcome("key", score())
    assert journal.reply("key") is None, "outcomes and replies are two things"


@pytest.mark.parametrize("written", [False, True])
def test_of_two_under_one_key_the_first_stays(path, journal, written):
    journal.put_outcome("key", score("first"))
    journal.put_reply("key", LLMReply("first"))
    if written:
        journal.flush()
    journal.put_outcome("key", score("second"))
    journal.put_reply("key", LLMReply("second"))
    journal.flush()
    with again(path) as other:
        assert (other.outcome("key").reason, other.reply("key").text) == ("first", "first")


@pytest.mark.parametrize("reason", ["judge_error", "timeout", "cancelled", "over_budget"])
def test_what_may_go_better_next_time_is_asked_again(journal, reason):
    journal.put_outcome("key", unscored(reason))
    journal.flush()
    assert journal.outcome("key") is None
    journal.put_outcome("key", score("better"))
    assert journal.outcome("key").reason == "better"


@pytest.mark.parametrize("reason", ["missing_input", "empty_input", "undefined", "judge_unparseable"])
def test_what_would_fail_again_is_kept(path, journal, reason):
    journal.put_outcome("key", unscored(reason))
    journal.flush()
    with again(path) as other:
        assert other.outcome("key") == unscored(reason)


def test_numbers_of_an_adapter_that_counts_with_numpy_are_kept(path, journal):
    journal.put_reply("key", LLMReply("yes", np.int64(3), None, {"yes": np.float32(0.5)}))
    journal.flush()
    with again(path) as other:
        assert other.reply("key") == LLMReply("yes", 3, None, {"yes": 0.5})


def test_one_that_cannot_be_written_does_not_keep_the_others_back(path, journal):
    journal.put_outcome("before", score())
    journal.put_reply("bad", LLMReply("yes", probabilities={"yes": object()}))
    journal.put_outcome("after", score())
    with pytest.raises(JournalError, match=r"1 of what was put cannot be written as JSON: TypeError"):
        journal.flush()
    journal.put_outcome("later", score())
    journal.flush()
    with again(path) as other:
        assert [other.outcome(key) for key in ("before", "after", "later")] == [score()] * 3
        assert other.reply("bad") is None


# --- threads, forks, processes --------------------------------------------------------------------------------------


def test_what_is_put_is_soon_written_by_itself(path, journal):
    journal.put_outcome("key", score())
    with again(path) as other:
        wait_until(lambda: other.outcome("key"))


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "ragstone-journal"]


def test_the_thread_goes_when_there_is_nothing_to_do_and_comes_again(path, journal):
    wait_until(lambda: not threads())
    for text in "ab":
        journal.put_outcome(text, score(text))
        assert len(threads()) == 1
        wait_until(lambda: not threads())
    with again(path) as other:
        assert other.outcome("b") == score("b")


def test_a_journal_that_nobody_closes_ends_by_itself(path):
    journal = Journal(path)
    journal.put_outcome("key", score())
    del journal
    wait_until(lambda: not threads())
    gc.collect()
    with again(path) as other:
        assert other.outcome("key") == score()


def test_many_threads_on_one_journal(path, journal):
    problems = []

    def work(n):
        for i in range(300):
            journal.put_outcome(f"{n} {i}", score(f"{n} {i}"))
            journal.put_reply(f"{n} {i}", LLMReply(f"{n} {i}"))
            for key in (f"{n} {i}", f"{n} {i // 2}"):
                found, reply = journal.outcome(key), journal.reply(key)
                if found is None or found.reason != key or reply is None or reply.text != key:
                    problems.append(key)
            if i % 50 == n:
                journal.flush()

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert problems == []
    journal.flush()
    with again(path) as other:
        assert all(other.outcome(f"{n} {i}") for n in range(8) for i in range(300))


def test_four_processes_on_one_file(path):
    """Each writes every key and reads what the others wrote; whoever is first, all agree in the end."""
    script = """
    ready()
    with Journal(path) as journal:
        for i in range(1500):
            journal.put_outcome(f"both {i}", score(f"by {number}"))
            journal.put_reply(f"both {i}", LLMReply(f"by {number}"))
            journal.put_outcome(f"own {number} {i}", score("own"))
            if i % 100 == 0:
                journal.flush()
            assert journal.outcome(f"both {i // 2}")
    print("done")
    """
    assert run_together(script, path, 4) == ["done\n"] * 4
    with again(path) as journal:
        assert all(journal.outcome(f"own {n} {i}") for n in range(4) for i in range(1_500))
        found = [(journal.outcome(f"both {i}").reason, journal.reply(f"both {i}").text) for i in range(1_500)]
        assert {name for pair in found for name in pair} <= {f"by {n}" for n in range(4)}
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_many_processes_that_make_the_file_at_once(tmp_path):
    """Each finds either nothing or a whole journal, never something between that looks like another program's."""
    script = """
    ready()
    for i in range(40):
        Journal(f"{path}-{i}").close()
    """
    assert run_together(script, tmp_path / "journal.db", 6) == [""] * 6


def test_killed_in_the_middle(path):
    """What a process said was flushed, or what another saw, is there when it is killed; and the file is whole."""
    script = """
    journal = Journal(path)
    for i in range(10**9):
        journal.put_outcome(f"key {i}", score(f"{i}"))
        if i % 250 == 0:
            journal.flush()
            print(i, flush=True)
    """
    process = start(script, path)
    try:
        lines = iter(process.stdout.readline, "")
        flushed = next(int(line) for line in lines if int(line) >= 2_000)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    with again(path) as journal:
        assert [journal.outcome(f"key {i}") for i in range(flushed + 1)] == [score(f"{i}") for i in range(flushed + 1)]
        journal.put_outcome("next", score())
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_an_end_without_close_writes_what_waits(path):
    script = """
    journal = Journal(path)
    for i in range(100):
        journal.put_outcome(f"key {i}", score("x"))
    """
    assert run_alone(script, path) == ""
    with again(path) as journal:
        assert all(journal.outcome(f"key {i}") for i in range(100))


def test_an_exception_in_the_block_keeps_what_was_put(path):
    def fail():
        with Journal(path) as journal:
            journal.put_outcome("key", score())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with again(path) as other:
        assert other.outcome("key") == score()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forked_while_it_is_in_use(path):
    """The parent writes what waited; each child goes on with the same object, and nobody's outcomes are lost."""
    script = """
    journal = Journal(path)
    journal.put_outcome("before", score("before"))
    children = []
    for child in range(4):
        for i in range(200):
            journal.put_outcome(f"parent {child} {i}", score("parent"))
        pid = os.fork()
        if not pid:
            try:
                for i in range(200):
                    journal.put_outcome(f"child {child} {i}", score("child"))
                    assert journal.outcome(f"child {child} {i}")
                journal.close()
                os._exit(0)
            finally:
                os._exit(1)
        children.append(pid)
    for i in range(200):
        journal.put_outcome(f"parent after {i}", score("parent"))
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4
    journal.close()
    """
    assert run_alone(script, path) == ""
    with again(path) as journal:
        keys = ["before", *(f"parent after {i}" for i in range(200))]
        keys += [f"{who} {child} {i}" for who in ("parent", "child") for child in range(4) for i in range(200)]
        assert [key for key in keys if journal.outcome(key) is None] == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_does_not_write_what_is_its_parents(path):
    script = """
    import atexit
    holder = __import__("sqlite3").connect(path, isolation_level=None)
    journal = Journal(path)
    holder.execute("BEGIN IMMEDIATE")  # so that it waits for certain
    journal.put_outcome("key", score("x"))
    pid = os.fork()
    if not pid:
        assert journal.outcome("key") is None
        atexit._run_exitfuncs()
        journal.close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    holder.execute("ROLLBACK")
    assert journal.outcome("key")
    journal.close()
    """
    assert run_alone(script, path) == ""
    with again(path) as journal:
        assert journal.outcome("key") == score("x")


def test_pickled_it_is_the_same_file(path, journal):
    journal.put_outcome("key", score())
    journal.flush()
    with closing(pickle.loads(pickle.dumps(journal))) as other:
        assert other.outcome("key") == score()
        other.put_outcome("other", score())
        other.flush()
    assert journal.outcome("other") == score()


# --- what goes wrong ------------------------------------------------------------------------------------------------


def test_closed(path, journal):
    journal.put_outcome("key", score())
    journal.close()
    journal.close()
    journal.flush()
    for use in (
        lambda: journal.outcome("key"),
        lambda: journal.reply("key"),
        lambda: journal.put_outcome("key", score()),
        lambda: journal.put_reply("key", LLMReply("")),
    ):
        with pytest.raises(JournalError, match=r"journal\.db: this journal is closed; make another one"):
            use()


FULL = """
import resource
def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
"""


def test_a_full_disk_is_said_and_what_was_safe_stays_safe(path):
    script = (
        FULL
        + """
journal = Journal(path)
for i in range(100):
    journal.put_outcome(f"key {i}", score("x" * 100))
journal.flush()
limit(200_000)
put = 100
try:
    while True:
        journal.put_outcome(f"key {put}", score("x" * 1000))
        put += 1
        if put % 50 == 0:
            journal.flush()
except JournalError as error:
    print(error)
for use in (lambda: journal.put_outcome("late", score("x")), journal.flush, journal.close):
    try:
        use()
    except JournalError as error:
        print(error)
print(put)
"""
    )
    *said, put = run_alone(script, path).splitlines()
    assert len(said) == 4
    assert all("is there room on the disk?" in line for line in said)
    assert "outcomes that were put are safe in the journal" in said[0]
    assert "run again with the same journal: what is safe is not judged again" in said[0]
    safe = int(said[0].partition("room on the disk?. ")[2].partition(" outcomes")[0].replace(",", ""))
    assert 100 <= safe < int(put)
    with again(path) as journal:
        kept = [i for i in range(int(put)) if journal.outcome(f"key {i}")]
    assert kept == list(range(safe))


def test_a_disk_that_has_room_again_takes_what_waited(path):
    script = (
        FULL
        + """
journal = Journal(path)
limit(1000)
try:
    for i in range(5000):
        journal.put_outcome(f"key {i}", score("x" * 1000))
        journal.flush()
except JournalError:
    limit(resource.RLIM_INFINITY)
journal.flush()
journal.put_outcome("later", score("x"))
journal.close()
print(i)
"""
    )
    last = int(run_alone(script, path))
    with again(path) as journal:
        assert all(journal.outcome(f"key {i}") for i in range(last + 1))
        assert journal.outcome("later")


def test_a_file_that_another_holds_for_too_long_is_said(path):
    journal = Journal(path, patience=0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        journal.put_outcome("key", score())
        with pytest.raises(JournalError, match=r"another process has held the file for 0\.05 seconds .*1 are not"):
            journal.flush()
        with pytest.raises(JournalError, match="another process has held"):
            journal.put_outcome("late", score())
        assert journal.outcome("key") == score(), "it still waits"
        other.execute("ROLLBACK")
    journal.flush()
    journal.put_outcome("late", score())
    journal.close()
    with again(path) as found:
        assert found.outcome("key") == found.outcome("late") == score()


def test_reading_does_not_wait_for_who_writes(path, journal):
    journal.put_outcome("key", score())
    journal.flush()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert journal.outcome("key") == score()
        with again(path) as late:
            assert late.outcome("key") == score()
        other.execute("ROLLBACK")


def test_a_file_that_is_held_for_a_while_is_waited_for(path, journal):
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    journal.put_outcome("key", score())
    release = threading.Timer(1.5, lambda: other.execute("ROLLBACK"))
    release.start()
    journal.flush()
    release.join()
    other.close()
    with again(path) as found:
        assert found.outcome("key") == score()


def test_too_much_to_keep_in_memory_is_written_by_who_puts_it(path):
    """The writer cannot get at the file: what waits must not grow without end."""
    journal = Journal(path, patience=0.05)
    put = []

    def put_many():
        for i in range(100_000):
            journal.put_outcome(f"key {i}", score())
            put.append(f"key {i}")

    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match="another process has held"):
            put_many()
        other.execute("ROLLBACK")
    assert len(put) < 100_000
    journal.close()
    with again(path) as found:
        assert all(map(found.outcome, put))


def test_who_puts_waits_when_too_much_waits(path):
    """Another holds the file for as long as it likes: nothing fails, and the memory does not fill."""
    journal = Journal(path)
    done = threading.Event()

    def put_many():
        for i in range(10_000):
            journal.put_outcome(f"key {i}", score())
        done.set()

    worker = threading.Thread(target=put_many)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        worker.start()
        assert not done.wait(1.0)
        other.execute("ROLLBACK")
    worker.join()
    journal.close()
    with again(path) as found:
        assert all(found.outcome(f"key {i}") for i in range(10_000))


def test_what_was_put_first_stays_when_it_has_to_wait():
    waiting = Batch({"key": score("first")}, {"key": LLMReply("first")})
    waiting.add(Batch({"key": score("second"), "other": score()}, {"key": LLMReply("second")}))
    assert (waiting.outcomes["key"].reason, waiting.replies["key"].text) == ("first", "first")
    assert (len(waiting.outcomes), len(waiting)) == (2, 3)


OLD_FILE = """
PRAGMA application_id = 0x7261674A;
PRAGMA user_version = 1;
CREATE TABLE outcomes (key TEXT PRIMARY KEY, scored INTEGER NOT NULL, body TEXT NOT NULL);
CREATE TABLE replies (key TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE runs (run INTEGER PRIMARY KEY AUTOINCREMENT, spec TEXT NOT NULL);
CREATE TABLE rows (
    run INTEGER NOT NULL, position INTEGER NOT NULL, row INTEGER NOT NULL, sample_id TEXT NOT NULL,
    draw INTEGER NOT NULL, judge TEXT NOT NULL, key TEXT, scored INTEGER, body TEXT,
    PRIMARY KEY (run, position)) WITHOUT ROWID;
INSERT INTO replies VALUES ('key', '["yes",9,null,null]');
INSERT INTO runs (spec) VALUES ('{}');
INSERT INTO rows VALUES (1, 0, 0, 'a', 0, 'j', 'key', NULL, NULL);
"""


def test_a_file_from_before_two_tables_were_dropped_is_used_as_it_is(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(OLD_FILE)
    with Journal(path) as journal:
        assert journal.reply("key") == LLMReply("yes", 9)
        journal.put_outcome("next", score("new"))
    with again(path) as journal:
        assert (journal.reply("key"), journal.outcome("next")) == (LLMReply("yes", 9), score("new"))


def raise_version(path):
    with closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {version + 1}")


def test_a_journal_of_a_newer_version_is_left_alone(path):
    Journal(path).close()
    raise_version(path)
    before = path.read_bytes()
    with pytest.raises(
        JournalError, match=r"made by a newer ragstone \(journal version 3, this one knows 2\); upgrade"
    ):
        Journal(path)
    assert path.read_bytes() == before


def test_a_newer_version_that_comes_while_it_is_in_use_is_noticed(path):
    journal = Journal(path)
    journal.put_outcome("before", score())
    journal.flush()
    raise_version(path)
    journal.put_outcome("key", score())
    with pytest.raises(JournalError, match="made by a newer ragstone"):
        journal.flush()
    with pytest.raises(JournalError, match="made by a newer ragstone"):
        journal.close()


def database(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE outcomes (a)")


def truncated(path):
    with Journal(path) as journal:
        for i in range(200):
            journal.put_outcome(f"{i}", score("x" * 1000))
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 5_000)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda path: path.write_bytes(b"garbage" * 1000),
            "is no journal, or is damaged .*move it away or name another",
        ),
        (lambda path: path.write_text('{"question": "Why?"}\n'), "is no journal"),
        (database, "is another program's database; name a file of its own as the journal"),
        (lambda path: path.mkdir(), "is a folder; name a file in it, such as .*journal.db"),
        (truncated, "is damaged"),
    ],
    ids=["garbage", "text", "other-database", "folder", "truncated"],
)
def test_what_is_no_journal_is_refused_and_left_alone(path, make, said):
    make(path)
    before = None if path.is_dir() else path.read_bytes()
    with pytest.raises(JournalError, match=said):
        Journal(path)
    assert before is None or path.read_bytes() == before


def test_a_missing_folder_is_said(tmp_path):
    with pytest.raises(JournalError, match=r"there is no folder .*none; make it, or name another file"):
        Journal(tmp_path / "none" / "journal.db")


def test_an_empty_file_is_a_journal_to_be(path):
    path.touch()
    with Journal(path) as journal:
        journal.put_outcome("key", score())


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="there are no such permissions here")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_cannot_be_written_is_said(tmp_path_factory, what):
    """As another user, where the tests run as one whom no permission stops."""
    folder = tmp_path_factory.mktemp("shared")
    path = folder / "journal.db"
    if what == "file":
        Journal(path).close()
    me, others = os.geteuid(), []
    for parent in (folder, *folder.parents):  # so that the other user gets that far
        if me == 0 and parent.stat().st_mode & 0o077 == 0:
            others.append(parent)
            parent.chmod(0o711)
    folder.chmod(0o555)
    if what == "file":
        path.chmod(0o444)
    try:
        if me == 0:
            os.seteuid(65_534)
        said = r"cannot be written .*must be writable for this process"
        with pytest.raises(JournalError, match=said), Journal(path) as journal:
            journal.put_outcome("key", score())
    finally:
        os.seteuid(me)
        for parent in others:
            parent.chmod(0o700)
        folder.chmod(0o755)


def test_a_file_that_is_removed_while_in_use_is_said(path):
    journal = Journal(path)
    journal.put_outcome("key", score())
    journal.flush()
    path.unlink()
    journal.put_outcome("other", score())
    with pytest.raises(JournalError, match="was removed or replaced while in use"):
        journal.flush()
    with pytest.raises(JournalError, match="was removed or replaced while in use"):
        journal.close()


def test_a_damaged_row_is_said(path, journal):
    journal.put_outcome("key", score())
    journal.put_reply("key", LLMReply("yes"))
    journal.flush()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE outcomes SET body = '{}'")
        connection.execute("UPDATE replies SET body = '[1'")
    for read, what in ((journal.outcome, "outcome"), (journal.reply, "reply")):
        with pytest.raises(JournalError, match=rf"{what} key is damaged .*move the file away"):
            read("key")


# --- size -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_outcomes(path):
    script = """
    import gc, tracemalloc
    journal = Journal(path)
    def put(start, stop):
        for i in range(start, stop):
            journal.put_outcome(f"key {i}", score("x" * 200))
        journal.flush()
        gc.collect()
    tracemalloc.start()
    put(0, 5_000)
    before, _ = tracemalloc.get_traced_memory()
    put(5_000, 100_000)
    after, peak = tracemalloc.get_traced_memory()
    journal.close()
    print(after - before, peak)
    """
    grown, peak = map(int, run_alone(script, path).split())
    assert grown < 2_000_000
    assert peak < 40_000_000
    assert finish(start("print(Journal(path).outcome('key 99999').reason)", path)) == "x" * 200 + "\n"
