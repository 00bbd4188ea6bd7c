"""Every evaluation is accounted for, at every moment, and what is counted as done has been handed on."""

import itertools
import random
import threading
import time
from typing import Any

import pytest

from ragstone import ContextRelevancy, Sample, Unscored
from ragstone.live import Budget, Sampling, Stats
from ragstone.testing import FakeLLM

from ..support.waiting import soon  # noqa: TID252
from .kit import Held, Kept, Second, adds_up, in_threads, live, metric, sample, submit, yes


def moody(request: Any) -> Any:
    mood = random.random()
    if mood < 0.1:
        return ConnectionError("refused")
    if mood < 0.2:
        return "no JSON"
    if mood < 0.3:
        return TimeoutError("slow")
    if mood < 0.4:
        raise SystemExit
    return yes(request)


def end_thread() -> Any:
    raise BaseException


def where(given: Sample) -> bool:
    if given.metadata["i"] % 10 == 3:
        raise ValueError("three")
    return bool(given.metadata["i"] % 10 != 4)


def redact(text: str) -> str:
    if "question 5?" in text:
        raise ValueError("five")
    return text


def trouble(times: int) -> Any:
    """Every second batch is refused, so many times."""
    refused = itertools.cycle([True, False])
    left = iter(range(times))

    def refuse(_: Any) -> None:
        if next(refused) and next(left, None) is not None:
            raise OSError("locked")

    return refuse


@pytest.mark.parametrize("when_full", ["drop_oldest", "block"])
def test_all_is_accounted_for_at_every_moment(when_full: Any) -> None:
    seen: list[Stats] = []
    end = threading.Event()

    def look() -> None:
        while not end.wait(0.001):
            seen.append(monitor.stats())

    llm = FakeLLM(moody)
    monitor = live(
        [ContextRelevancy(llm=llm), Second(llm=llm)],
        sinks=[Kept("good"), Kept("bad", trouble(5))],
        sampling=Sampling(rate={"second": 0.5}, where=where),
        size=50,
        when_full=when_full,
        redact=redact,
        budget=Budget(calls_per_day=3_000),
    )
    looking = threading.Thread(target=look)
    looking.start()

    def submit(thread: int) -> None:
        for i in range(60):
            monitor.submit(sample(f"{thread % 24}.{i}", user_input=f"question {i % 10}?", metadata={"i": i}))
            if i % 10 == 7:
                monitor.submit(None)  # type: ignore[arg-type]
            if i == 50:
                monitor.pause()
                monitor.resume()

    in_threads(32, submit)
    assert monitor.close(60).done
    end.set()
    looking.join()
    seen.append(monitor.stats())
    assert all(map(adds_up, seen))
    assert all(earlier.accepted <= later.accepted for earlier, later in itertools.pairwise(seen))
    last = seen[-1]
    assert last.pending == 0
    assert last.samples == 32 * 66
    assert last.accepted == 2 * last.samples
    dropped, duplicate, unscored = (last.reasons[name] for name in ("dropped", "duplicate", "unscored"))
    assert duplicate == {"same_id": 8 * 60 * 2}
    assert dropped["no_sample"] == 32 * 6 * 2
    assert dropped["where_failed"] == 24 * 6 * 2
    assert dropped["redaction_failed"] > 0
    assert ("queue_full" in dropped) == (when_full != "block")
    assert set() < set(unscored) <= {"judge_error", "judge_unparseable", "timeout", "cancelled"}
    outcomes = last.scored + last.unscored
    good, bad = last.sinks["good"], last.sinks["bad"]
    assert (good.written, good.waiting, good.lost) == (outcomes, 0, 0)
    assert (bad.written + bad.lost, bad.waiting) == (outcomes, 0)


def test_what_is_counted_as_done_is_in_the_sink() -> None:
    with live([metric(), Second(llm=metric().llm)], sinks=(sink := Kept())) as monitor:
        for i in range(20):
            monitor.submit(sample(i))
            assert monitor.flush()
            assert len(sink.records) == 2 * (i + 1)


@pytest.mark.parametrize(
    ("gives", "reason", "detail"),
    [
        (lambda own: end_thread(), "cancelled", "BaseException was raised in the judge"),
        (lambda own: own.no_such_thing, "judge_error", "AttributeError: 'Odd' object has no attribute 'no_such_thing'"),
    ],
    ids=["ends_threads", "raises"],
)
def test_a_metric_that_raises(gives: Any, reason: str, detail: str) -> None:
    class Odd(Second):
        def flow(self, sample: Sample) -> Any:
            return gives(self)

    with live([Odd(llm=metric().llm), metric()], sinks=(sink := Kept())) as monitor:
        monitor.submit(sample(1))
    stats = monitor.stats()
    assert stats.reasons == {"unscored": {reason: 1}}
    assert (stats.scored, stats.pending, stats.errors) == (1, 0, {})
    outcomes = [record.outcome for record in sink.records.values()]
    assert [outcome.detail for outcome in outcomes if isinstance(outcome, Unscored)] == [detail]


def test_closing_with_too_little_time_counts_the_rest() -> None:
    held = Held()
    monitor = live([metric(held), Second(llm=metric().llm)], sinks=(sink := Kept()), workers=2)
    submit(monitor, range(50))
    soon(lambda: held.asked == 2)
    left = monitor.flush(0.01)
    assert (left.remaining, left.done, bool(left)) == (100, False, False)
    result = monitor.close(0.01)
    assert (result.remaining, result.undelivered, result.done) == (100, 0, False)
    stats = monitor.stats()
    assert stats.reasons == {"dropped": {"closed": 100}}
    assert (stats.pending, adds_up(stats)) == (0, True)
    held.let_go()  # what comes now is too late, and changes nothing
    time.sleep(0.1)
    assert monitor.stats() == stats
    assert not sink.records
    assert monitor.close() == result
