"""A journal in use is refused, with who uses it, until its process ends, however it does."""

import asyncio
import os
import re
import signal
import socket

import pytest

from ragstone import ContextRelevancy, aevaluate, evaluate
from ragstone.batch.journal import Journal
from ragstone.errors import JournalError
from ragstone.testing import FakeLLM

from ..support.judges import Slow  # noqa: TID252
from .journals import finish, score, start

HOLD = """
    journal = Journal(path)
    journal.put_outcome("key", score("x"))
    ready()
"""
SIX = [{"user_input": f"Why {i}?", "retrieved_contexts": ["So."]} for i in range(6)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.db"


def refused(pid):
    """What a run says of a journal that the process has."""
    who = rf"process {pid} on {re.escape(socket.gethostname())}, since 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    return pytest.raises(
        JournalError, match=rf"journal\.db: is in use by {who}; wait until it has ended, or name another"
    )


def test_a_second_process_is_refused_before_the_judge_is_asked(path):
    llm = FakeLLM({"ids": [1]})
    with start(HOLD, path) as process:
        assert process.stdout.readline() == "ready\n"
        with refused(process.pid):
            evaluate(SIX, [ContextRelevancy(llm=llm)], journal=path)
        path.with_name("link.db").symlink_to(path)
        with pytest.raises(JournalError, match=f"link.db: is in use by process {process.pid} "):
            Journal(path.with_name("link.db"))
        assert llm.requests == []
        finish(process)
    assert len(evaluate(SIX, [ContextRelevancy(llm=llm)], journal=path)) == 6
    assert {each.name for each in path.parent.iterdir()} == {"journal.db", "link.db"}, "no lock is left"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_one_that_was_killed_locks_nobody_out(path, how):
    with start(HOLD, path) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(how)
        process.communicate()
    with Journal(path) as journal:
        assert journal.outcome("key") == score("x")
        with refused(os.getpid()):
            Journal(path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_neither_writes_nor_holds_it_nor_ends_the_lock(path):
    forks = """
    journal = Journal(path)
    if not os.fork():
        for use in (lambda: journal.outcome("key"), lambda: Journal(path)):
            try:
                print(use(), flush=True)
            except JournalError as error:
                print(error, flush=True)
        journal.close()
        ready()
        os._exit(0)
    sys.stdin.read()
    """
    with start(forks, path) as process:
        said = [process.stdout.readline() for _ in range(3)]
        assert "this journal is the parent process's; make a new one after it has ended" in said[0]
        assert f"is in use by process {process.pid} " in said[1]
        with refused(process.pid):
            Journal(path)
        process.kill()
        process.wait()
        with Journal(path) as journal:  # while the child lives
            journal.put_outcome("key", score())
        process.communicate("\n")


def waits():
    """A judge that answers when it may, when it was asked first, and when it may answer."""
    asked, free = asyncio.Event(), asyncio.Event()

    async def wait(request):
        asked.set()
        await free.wait()

    return FakeLLM(Slow(wait, {"ids": [1]})), asked, free


def run_of(journal, llm):
    return asyncio.ensure_future(aevaluate(SIX, [ContextRelevancy(llm=llm)], journal=journal, progress=False))


def test_two_runs_of_one_process_whether_on_one_loop_or_in_two_threads(path):
    async def main():
        (judge, asked, free), other = waits(), FakeLLM({"ids": [1]})
        first = run_of(path, judge)
        await asked.wait()
        with refused(os.getpid()):
            await run_of(path, other)
        with refused(os.getpid()):
            await asyncio.to_thread(evaluate, SIX, [ContextRelevancy(llm=other)], journal=path)
        free.set()
        return len(await first), len(await run_of(path, judge)), other.requests

    assert asyncio.run(main()) == (6, 6, [])


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_run_that_is_cancelled_however_often_leaves_no_lock_and_no_task(path, times):
    async def main():
        judge, asked, free = waits()
        run = run_of(path, judge)
        await asked.wait()
        for _ in range(times):
            run.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([run])
        free.set()
        return run.cancelled(), len(asyncio.all_tasks()), len(await run_of(path, judge))

    assert asyncio.run(main()) == (True, 1, 6)


def test_where_no_lock_can_be_had_the_run_ends_before_the_judge_is_asked(path):
    llm = FakeLLM({"ids": [1]})
    path.with_name("journal.db.lock").mkdir()
    with pytest.raises(JournalError, match=r"Is a directory: .*journal\.db\.lock"):
        evaluate(SIX, [ContextRelevancy(llm=llm)], journal=path)
    assert llm.requests == []
