"""The journal: what goes in comes out, exactly, in whatever way the process or the disk ends."""

import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone import Criterion, LLMReply, Sample, evaluate
from ragstone.batch.journal import Journal
from ragstone.errors import JournalError
from ragstone.results.record import decode_reply, encode_reply
from ragstone.testing import FakeLLM

from .journals import run_alone, score, start, unscored


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.db"


@pytest.fixture
def journal(path):
    with Journal(path) as journal:
        yield journal


def held(path):
    """A connection for one who holds the file's lock."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    return closing(connection)


# --- what goes in comes out -----------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec=None) | st.sampled_from('\x00\ud83d\udc4d"\\{},'), max_size=12)
COUNTS = st.integers(min_value=0, max_value=10**30)
KNOWN = st.none() | COUNTS
PARTS = st.dictionaries(TEXTS, st.floats(allow_nan=False, allow_infinity=False), max_size=3)
REPLIES = st.builds(LLMReply, TEXTS, KNOWN, KNOWN, st.none() | PARTS, TEXTS)


@given(REPLIES)
def test_replies_come_back_exactly(reply):
    assert repr(decode_reply(encode_reply(reply))) == repr(reply)


@pytest.mark.parametrize(
    "given",
    [[0.5, 0.5], 0.5, {"yes": 10**5000}, {(1, 2): object()}, {"yes": float("nan")}, MappingProxyType({"yes": 1})],
)
def test_a_reply_of_an_adapter_with_a_fault_ends_no_run(path, given):
    llm = FakeLLM(lambda request: LLMReply("yes", probabilities=given), asking="one_by_one")
    samples = [Sample(id=str(i), user_input="Why?", response="So.") for i in range(2)]
    for _ in range(2):
        report = evaluate(samples, [Criterion("polite", "Is it polite?", llm=llm)], journal=path, progress=False)
        assert [record.outcome.reason for record in report.results()] == ["judge_unparseable"] * 2
    assert len(llm.requests) == 2


def test_of_two_under_one_key_the_first_stays(path, journal):
    assert journal.outcome("key") is journal.reply("key") is None
    journal.put_outcome("key", score("first"))
    assert journal.reply("key") is None, "outcomes and replies are two things"
    journal.put_reply("key", LLMReply("first"))
    journal.put_outcome("key", score("second"))
    journal.put_reply("key", LLMReply("second"))
    journal.close()
    with Journal(path) as other:
        assert (other.outcome("key").reason, other.reply("key").text) == ("first", "first")


def test_what_may_go_better_next_time_is_asked_again_and_the_rest_is_kept(path, journal):
    passing = ["judge_error", "timeout", "cancelled", "over_budget"]
    final = ["missing_input", "empty_input", "undefined", "judge_unparseable"]
    for reason in passing + final:
        journal.put_outcome(reason, unscored(reason))
    assert [journal.outcome(reason) for reason in passing] == [None] * 4
    assert [journal.outcome(reason) for reason in final] == [unscored(reason) for reason in final]
    journal.put_outcome("timeout", score("better"))
    assert journal.outcome("timeout").reason == "better"


def test_replies_that_come_fast_wait_for_the_end_at_most(path):
    with Journal(path) as journal:
        for i in range(9):
            journal.put_reply(f"key {i}", LLMReply("x"))
            assert journal.reply(f"key {i}")
    with Journal(path) as other:
        assert all(other.reply(f"key {i}") for i in range(9))


# --- threads, a killed process --------------------------------------------------------------------------------------


def test_many_threads_on_one_journal(path, journal):
    def work(n):
        for i in range(200):
            key = f"{n} {i}"
            journal.put_outcome(key, score(key))
            journal.put_reply(key, LLMReply(key))
            for known in (key, f"{n} {i // 2}"):
                assert (journal.outcome(known).reason, journal.reply(known).text) == (known, known)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    journal.close()
    with Journal(path) as other:
        assert all(other.outcome(f"{n} {i}") for n in range(8) for i in range(200))


def test_what_was_put_is_there_after_kill_9(path):
    script = """
    journal = Journal(path)
    for i in range(100):
        journal.put_reply(f"key {i}", LLMReply("x"))
        journal.put_outcome(f"key {i}", score("x"))
    os.kill(os.getpid(), 9)
    """
    process = start(script, path)
    process.communicate()
    assert process.returncode == -9
    with Journal(path) as journal:
        assert all(journal.outcome(f"key {i}") and journal.reply(f"key {i}") for i in range(100))


# --- what goes wrong ------------------------------------------------------------------------------------------------


def test_closed(journal):
    journal.close()
    for use in (lambda: journal.reply("key"), lambda: journal.put_outcome("key", score())):
        with pytest.raises(JournalError, match=r"journal\.db: this journal is closed; make a new one"):
            use()


@pytest.mark.skipif(os.name == "nt", reason="needs RLIMIT_FSIZE")
def test_a_full_disk_is_said_what_was_safe_stays_safe_and_room_helps(path):
    script = """
    import resource
    def limit(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    journal = Journal(path)
    for i in range(100):
        journal.put_outcome(f"key {i}", score("x" * 100))
    limit(2_000_000)
    put = 100
    try:
        while True:
            journal.put_outcome(f"key {put}", score("x" * 1000))
            put += 1
    except JournalError as error:
        print(error)
    print(sum(journal.outcome(f"key {i}") is not None for i in range(put + 1)))
    limit(resource.RLIM_INFINITY)
    journal.put_outcome(f"key {put}", score("x"))
    journal.close()
    print(put)
    """
    message, kept, put = run_alone(script, path).splitlines()
    assert "that the disk has room" in message
    assert f"Safe in the journal: {int(kept):,} outcomes." in message
    assert 100 < int(kept) == int(put)
    with Journal(path) as journal:
        assert all(journal.outcome(f"key {i}") for i in range(int(put) + 1))


def test_a_file_that_another_program_holds_is_waited_for_and_reading_goes_on(path):
    with Journal(path, patience=0.05) as journal, held(path):
        with pytest.raises(
            JournalError, match=r"another process has held it for 0\.05 seconds\. Safe in the journal: 0 outcomes"
        ):
            journal.put_outcome("late", score())
        assert journal.outcome("late") is None, "and who only reads does not wait"
    with Journal(path) as patient, ThreadPoolExecutor(1) as pool, held(path) as other:
        waiting = pool.submit(patient.put_outcome, "waits", score())
        time.sleep(1.2)  # longer than one query waits
        other.execute("ROLLBACK")
        waiting.result()
        assert patient.outcome("waits") == score()


def newer(path):
    Journal(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 4")


def database(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE outcomes (a)")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda path: path.write_text("garbage" * 1000),
            "is damaged, or not a ragstone journal .*move it away, or name another",
        ),
        (newer, "made by a newer ragstone .*; upgrade"),
        (database, "is no journal; name another file as the journal"),
        (lambda path: path.mkdir(), "is a folder; name a file in it, such as .*journal.db"),
    ],
    ids=["garbage", "newer", "other-database", "folder"],
)
def test_what_is_no_journal_is_refused_and_left_alone(path, make, message):
    make(path)
    before = None if path.is_dir() else path.read_bytes()
    with pytest.raises(JournalError, match=message):
        Journal(path)
    assert before is None or path.read_bytes() == before


def test_a_file_that_is_removed_while_in_use_is_said(path):
    journal = Journal(path)
    journal.put_outcome("key", score())
    path.unlink()
    with pytest.raises(JournalError, match="was removed or replaced while in use"):
        journal.put_outcome("other", score())
    journal.close()


def test_a_damaged_row_is_said(path, journal):
    journal.put_outcome("key", score())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE entries SET body = '{}'")
    with pytest.raises(JournalError, match=r"the outcome of key is damaged .*move the file away"):
        journal.outcome("key")
