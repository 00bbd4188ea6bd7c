"""Two processes on one journal: what one has claimed the other waits for, until it is there or its owner is gone."""

import asyncio
import os
import signal
import sqlite3
import time

import pytest

from ragstone import BaseLLM, ContextRelevancy, LLMReply, aevaluate, evaluate
from ragstone.batch.journal import Journal
from ragstone.errors import JournalError
from ragstone.testing import FakeLLM

from ..support.openai_server import chat  # noqa: TID252 - under importlib mode tests are no package
from ..support.waiting import soon  # noqa: TID252
from .journals import finish, score, start, unscored

RUN = """
    from ragstone import ContextRelevancy, evaluate
    from ragstone.clients import OpenAICompatible

    url, rows = os.environ["JUDGE_URL"], int(os.environ["ROWS"])
    samples = [{"user_input": f"Question {i}?", "retrieved_contexts": [f"Context {i}."]} for i in range(rows)]
    judge = OpenAICompatible("m", base_url=url, max_retries=0)
    ready()
    report = evaluate(samples, [ContextRelevancy(llm=judge)], journal=path, max_concurrency=4)
    print(sum(result.outcome.value == 1.0 for result in report.results()))
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.db"


@pytest.fixture
def judge(openai_server, monkeypatch):
    """A judge at a server, for processes: it takes its time, as a judge does, and says what it was asked."""

    def reply(body):
        time.sleep(0.01)
        return chat('{"ids": [1]}')

    server = openai_server(reply)
    monkeypatch.setenv("JUDGE_URL", server.url)
    return server


def together(path, monkeypatch, rows):
    monkeypatch.setenv("ROWS", str(rows))
    processes = [start(RUN, path, number) for number in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    return processes


def test_two_processes_share_the_work(path, judge, monkeypatch):
    """Each has all results, and both together pay for each once."""
    printed = [finish(process) for process in together(path, monkeypatch, 300)]
    assert printed == ["300\n"] * 2
    assert 300 <= len(judge.bodies) <= 306
    assert [each.name for each in path.parent.iterdir()] == ["journal.db"], "no file of an owner is left"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_one_that_ends_early_leaves_its_rows_to_the_other(path, judge, monkeypatch, how):
    first, second = together(path, monkeypatch, 200)
    soon(lambda: len(judge.bodies) > 120)
    first.send_signal(how)
    first.communicate()
    assert finish(second) == "200\n"
    assert 200 <= len(judge.bodies) <= 240, "what the first had in flight, or had not written yet, was asked again"


def test_one_that_hangs_loses_its_claims_after_ten_minutes(path):
    """Its lease is as old as its file says; what it claims or puts renews it."""
    with Journal(path) as hanging, Journal(path) as other:
        assert all(map(hanging.claim, "abc"))
        (lease,) = path.parent.glob("journal.db.owner-*")
        for seconds, ended in ((500, False), (601, True)):
            os.utime(lease, times=(time.time() - seconds,) * 2)
            assert other.claim("a") == ended
        time.sleep(1)  # renewed at most once a second
        hanging.put_outcome("b", score())
        assert not any(map(other.claim, "abc"))
        os.utime(lease, times=(0, 0))
        assert [other.claim(key) for key in "abc"] == [False, False, True]


def test_what_is_put_or_given_up_is_nobodys_any_more(path):
    keys = ["scored", "failed", "released", "held"]
    with Journal(path) as one, Journal(path) as other:
        assert all(map(one.claim, keys))
        one.put_outcome("scored", score())
        one.put_outcome("failed", unscored("judge_error"))
        one.release(["released"])
        assert [other.claim(key) for key in keys] == [False, True, True, False]


class Waits(BaseLLM):
    """Says when it is asked, and answers when it may."""

    model = "j"

    def __init__(self):
        self.asked, self.free = asyncio.Event(), asyncio.Event()

    async def agenerate(self, request, /):
        self.asked.set()
        await self.free.wait()
        return LLMReply('{"ids": [1]}')


SIX = [{"user_input": f"Why {i}?", "retrieved_contexts": ["So."]} for i in range(6)]


def run_of(journal, llm):
    return asyncio.ensure_future(aevaluate(SIX, [ContextRelevancy(llm=llm)], journal=journal, progress=False))


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_run_that_is_cancelled_however_often_leaves_no_claim_and_no_task(path, times):
    async def main():
        judge = Waits()
        run = run_of(path, judge)
        await judge.asked.wait()
        for _ in range(times):
            run.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([run])
        with sqlite3.connect(path) as file:
            left = file.execute("SELECT count(*) FROM claims").fetchone()
        judge.free.set()
        return run.cancelled(), left, len(asyncio.all_tasks()), len(await run_of(path, judge))

    assert asyncio.run(main()) == (True, (0,), 1, 6)


def test_two_runs_on_one_journal_share_the_work_and_say_so(path, caplog):
    async def main():
        one, other = Waits(), Waits()
        first = run_of(path, one)
        await one.asked.wait()
        second = run_of(path, other)
        await asyncio.to_thread(soon, lambda: "Waiting for" in caplog.text)
        one.free.set()
        return len(await first), len(await second), other.asked.is_set()

    assert asyncio.run(main()) == (6, 6, False)
    assert "that another run on this journal claimed" in caplog.text


def test_rows_with_the_same_texts_are_all_tried_while_the_judge_fails(path):
    llm = FakeLLM(lambda request: ConnectionError("down"))
    rows = [{"user_input": "Why?", "retrieved_contexts": ["So."]}] * 3
    report = evaluate(rows, [ContextRelevancy(llm=llm)], journal=path)
    assert [result.outcome.reason for result in report.results()] == ["judge_error"] * 3


def test_where_no_lock_can_be_had_the_run_ends_before_the_judge_is_asked(path):
    llm, path = FakeLLM(lambda request: {"ids": [1]}), path.with_name("j" * 240)  # the name of its lock is too long
    with pytest.raises(JournalError, match="File name too long"):
        evaluate(SIX, [ContextRelevancy(llm=llm)], journal=path)
    assert llm.requests == []
