"""Judges that hang or are slow, pauses, and an app that does not notice."""

import re
import time

import pytest

from ragstone import ContextRelevancy, Monitor, Unscored
from ragstone.monitor import worker
from ragstone.testing import FakeLLM

from ..support.waiting import soon  # noqa: TID252
from .kit import PATIENCE, Held, Kept, Second, live, metric, ours, sample, yes
from .live_app import ran


def judges(monitor: Monitor) -> int:
    return [thread.name for thread in ours(monitor)].count("ragstone-judge")


def test_a_judge_that_hangs_costs_one_evaluation() -> None:
    held = Held()
    llm = FakeLLM(lambda request: held(request) if "question 3?" in request.user else yes(request))
    monitor = live(
        [ContextRelevancy(llm=llm), Second(llm=metric().llm)], sinks=(sink := Kept()), workers=1, timeout=2.0
    )
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
        "the judge did not answer within 2 s (the monitor's timeout)",
    )
    held.let_go()  # what it says now is too late
    soon(lambda: judges(monitor) == 1)
    assert monitor.close().done
    assert monitor.stats().reasons == stats.reasons
    assert sink.records["s3", "context_relevancy", ContextRelevancy.version].outcome == outcome


def test_threads_that_hang_are_bounded_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that hangs for an hour, then answers again: nobody but its own threads can go on."""
    monkeypatch.setattr(worker, "_LOST_PER_WORKER", 2)
    held = Held()
    monitor = live(metric(held), workers=2, timeout=0.5)
    for i in range(20):
        monitor.submit(sample(i))
    soon(lambda: monitor.stats().unscored >= 5)
    soon(lambda: held.asked >= 6)
    assert judges(monitor) <= 2 * 2 + 2 + 1
    assert monitor.stats().pending > 0
    held.let_go()
    assert monitor.flush(PATIENCE), monitor.stats()
    soon(lambda: judges(monitor) == 2)
    monitor.submit(sample(20))
    assert monitor.close(PATIENCE).done
    assert monitor.stats().scored + monitor.stats().unscored == 21
    assert monitor.stats().scored > 0


def test_pausing_and_resuming() -> None:
    llm = FakeLLM(yes)
    monitor = live(ContextRelevancy(llm=llm), max_queue=10)
    monitor.pause()
    for i in range(30):
        monitor.submit(sample(i))
    assert not monitor.flush()  # at once, although there is no time limit
    time.sleep(0.1)
    stats = monitor.stats()
    assert not llm.requests
    assert (stats.pending + stats.dropped, stats.scored) == (30, 0)
    monitor.resume()
    assert monitor.flush(PATIENCE)
    assert monitor.stats().scored == stats.pending
    monitor.pause()
    monitor.submit(sample(99))
    monitor.close()
    assert monitor.stats().pending == 0
    assert monitor.stats().reasons["dropped"]["closed"] == 1


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("end", ["monitor.close(0.1)", "1 / 0"])
def test_a_process_ends_although_its_judge_hangs(end: str) -> None:
    code = "monitor = live(reply=hangs, outbox=None)\nsubmit(monitor, range(20))\nsoon(lambda: calls())\n"
    status, errors = ran(code + end)
    assert status == ("close" not in end), errors
    assert "Fatal" not in errors
    assert sum(map(int, re.findall(r"dropped: closed \((\d+)\)", errors))) == 20
    assert ("20 evaluations were not made: call close()" in errors) == ("close" not in end)
    assert ("ZeroDivisionError" in errors) == (end == "1 / 0")
