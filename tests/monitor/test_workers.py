"""Judges that hang or are slow, pauses, and an app that does not notice."""

import asyncio
import re
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from ragstone import ContextRelevancy, Score, Unscored
from ragstone.monitor import workers
from ragstone.testing import FakeLLM

from .kit import PATIENCE, Held, Kept, Rounds, Second, adds_up, live, metric, ours, sample, soon, yes


def hanging_on(word: str) -> Held:
    """Hangs when asked about a word, and answers everything else."""

    class Sometimes(Held):
        def __call__(self, request: Any) -> Any:
            return super().__call__(request) if word in request.user else yes(request)

    return Sometimes()


def test_a_judge_that_hangs_costs_one_evaluation() -> None:
    held = hanging_on("question 3?")
    monitor = live([metric(held), Second(llm=metric().llm)], sinks=(sink := Kept()), workers=1, timeout=0.3)
    for i in range(10):
        monitor.submit(sample(i))
    assert monitor.flush(PATIENCE)
    stats = monitor.stats()
    assert stats.reasons == {"unscored": {"timeout": 1}}
    assert stats.scored == 19
    outcome = sink.records["s3", "context_relevancy", ContextRelevancy.version].outcome
    assert isinstance(outcome, Unscored)
    assert (outcome.reason, outcome.detail) == (
        "timeout",
        "the judge did not answer within 0.3 s (the monitor's timeout)",
    )
    held.let_go()  # what it says now is too late
    soon(lambda: len([thread for thread in ours(monitor) if thread.name == "ragstone-judge"]) == 1)
    assert monitor.close().done
    assert monitor.stats().reasons == stats.reasons
    assert sink.records["s3", "context_relevancy", ContextRelevancy.version].outcome == outcome


def test_calls_of_one_round_that_hang_are_given_up_together() -> None:
    held = Held()
    with live(Rounds(llm=FakeLLM(held), sizes=(5, 2)), sinks=(sink := Kept()), timeout=0.3) as monitor:
        monitor.submit(sample(1))
        soon(lambda: held.asked == 5)
        assert monitor.flush(PATIENCE)
    assert sink.only().outcome.reason == "timeout"  # type: ignore[union-attr]
    held.let_go()
    assert monitor.stats().reasons == {"unscored": {"timeout": 1}}


def test_all_workers_hang_and_others_take_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    held = hanging_on("bad")
    with live(metric(held), sinks=(sink := Kept()), workers=2, timeout=0.3) as monitor:
        for i in range(4):
            monitor.submit(sample(f"bad{i}", user_input="a bad question?"))
        for i in range(20):
            monitor.submit(sample(i))
        assert monitor.flush(PATIENCE)
        soon(lambda: len(ours(monitor)) == 2 + 4 + 2)
    assert sum(isinstance(record.outcome, Score) for record in sink.records.values()) == 20
    held.let_go()


def test_threads_that_hang_are_bounded_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that hangs for an hour, then answers again: nobody but its own threads can go on."""
    monkeypatch.setattr(workers, "_LOST_PER_WORKER", 2)
    held = Held()
    monitor = live(metric(held), workers=2, timeout=0.1)
    for i in range(20):
        monitor.submit(sample(i))
    soon(lambda: monitor.stats().unscored >= 5)
    soon(lambda: held.asked >= 6)
    time.sleep(0.5)
    judges = [thread for thread in ours(monitor) if thread.name == "ragstone-judge"]
    assert len(judges) <= 2 * 2 + 2 + 1
    assert monitor.stats().pending > 0
    held.let_go()
    assert monitor.flush(PATIENCE), monitor.stats()
    stats = monitor.stats()
    assert stats.scored + stats.unscored == 20
    assert stats.scored >= 10
    soon(lambda: len([thread for thread in ours(monitor) if thread.name == "ragstone-judge"]) == 2)
    for i in range(20, 40):
        monitor.submit(sample(i))
    assert monitor.close(PATIENCE).done
    assert monitor.stats().scored == stats.scored + 20


def test_pausing_and_resuming() -> None:
    calls: list[Any] = []
    monitor = live(metric(lambda request: calls.append(request) or yes(request)), max_queue=10)
    monitor.pause()
    for i in range(30):
        monitor.submit(sample(i))
    assert not monitor.flush()  # at once, although there is no time limit
    time.sleep(0.1)
    stats = monitor.stats()
    assert not calls
    assert (stats.pending + stats.dropped, stats.scored) == (30, 0)
    monitor.resume()
    monitor.resume()
    assert monitor.flush(PATIENCE)
    assert monitor.stats().scored == stats.pending
    monitor.pause()
    monitor.submit(sample(99))
    monitor.close()
    assert monitor.stats().pending == 0
    assert monitor.stats().reasons["dropped"]["closed"] == 1


def test_what_is_being_judged_goes_on_in_a_pause() -> None:
    held = Held()
    monitor = live(metric(held), sinks=(sink := Kept()), workers=1)
    monitor.submit(sample(1))
    monitor.submit(sample(2))
    soon(lambda: held.asked)
    monitor.pause()
    held.let_go()
    soon(lambda: sink.ids == {"s1"})
    time.sleep(0.1)
    assert sink.ids == {"s1"}
    monitor.resume()
    assert monitor.close().done
    assert sink.ids == {"s1", "s2"}


def test_judges_of_many_workers_run_at_once() -> None:
    together = threading.Barrier(6)

    def reply(request: Any) -> Any:
        together.wait(PATIENCE)
        return yes(request)

    with live(metric(reply), workers=6) as monitor:
        for i in range(12):
            monitor.submit(sample(i))
    assert monitor.stats().scored == 12


def test_an_asyncio_app_with_200_requests_and_a_slow_judge() -> None:
    judged_on: set[int] = set()

    def reply(request: Any) -> Any:
        judged_on.add(threading.get_ident())
        time.sleep(0.005)
        return yes(request)

    async def request(i: int) -> int:
        await asyncio.sleep(0)
        monitor.submit(sample(i))
        await asyncio.sleep(0)
        return i

    async def app() -> list[int]:
        loops.add(threading.get_ident())
        return await asyncio.gather(*(request(i) for i in range(200)))

    loops: set[int] = set()
    monitor = live(metric(reply), sinks=(sink := Kept()))
    assert asyncio.run(app()) == list(range(200))
    assert asyncio.run(app()) == list(range(200))  # on another loop
    assert monitor.close(PATIENCE).done
    assert not judged_on & loops
    assert not sink.threads & loops
    stats = monitor.stats()
    assert (stats.scored, stats.duplicate, len(sink.ids)) == (200, 200, 200)
    assert adds_up(stats)


EXITS = """
import sys, threading, time
from ragstone import ContextRelevancy, Monitor, Sample
from ragstone.sinks import CallableSink
from ragstone.testing import FakeLLM
asked = threading.Event()
def hang(request):
    asked.set()
    time.sleep(1000)
monitor = Monitor(ContextRelevancy(llm=FakeLLM(hang), asking="one_by_one"), sinks=CallableSink(print, name="p"))
for i in range(20):
    monitor.submit(Sample(id=str(i), user_input="Why?", retrieved_contexts=["It is. It was. It will be."]))
assert asked.wait(60)
"""


@pytest.mark.parametrize("end", ["", "monitor.close(0.1)", "sys.exit(3)", "1 / 0"])
def test_a_process_ends_although_its_judge_hangs(end: str) -> None:
    done = subprocess.run([sys.executable, "-c", EXITS + end], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == {"": 0, "sys.exit(3)": 3, "1 / 0": 1}.get(end, 0), done.stderr
    assert "Fatal" not in done.stderr
    assert sum(map(int, re.findall(r"dropped: closed \((\d+)\)", done.stderr))) == 20
    assert ("20 evaluations were not made: call close()" in done.stderr) == ("close" not in end)
    assert ("ZeroDivisionError" in done.stderr) == (end == "1 / 0")


def test_close_returns_in_time_although_the_judge_hangs() -> None:
    held = Held()
    monitor = live(metric(held))
    monitor.submit(sample(1))
    soon(lambda: held.asked)
    closed = threading.Event()
    threading.Thread(target=lambda: (monitor.close(0.1), closed.set())).start()
    assert closed.wait(20)
    assert monitor.stats().reasons == {"dropped": {"closed": 1}}
    held.let_go()
    soon(lambda: not ours(monitor))
