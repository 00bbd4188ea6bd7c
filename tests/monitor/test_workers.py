"""Judges that hang or are slow, pauses, and an app that does not notice."""

import re
import subprocess
import sys
import time
from typing import Any

import pytest

from ragstone import ContextRelevancy, Unscored
from ragstone.monitor import workers

from ..support.waiting import soon  # noqa: TID252
from .kit import PATIENCE, Held, Kept, Second, live, metric, ours, sample, yes


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


@pytest.mark.parametrize("end", ["monitor.close(0.1)", "1 / 0"])
def test_a_process_ends_although_its_judge_hangs(end: str) -> None:
    done = subprocess.run([sys.executable, "-c", EXITS + end], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == {"": 0, "sys.exit(3)": 3, "1 / 0": 1}.get(end, 0), done.stderr
    assert "Fatal" not in done.stderr
    assert sum(map(int, re.findall(r"dropped: closed \((\d+)\)", done.stderr))) == 20
    assert ("20 evaluations were not made: call close()" in done.stderr) == ("close" not in end)
    assert ("ZeroDivisionError" in done.stderr) == (end == "1 / 0")
