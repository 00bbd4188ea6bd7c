"""What gives way when the queue is full. Spooling is tested with the outbox."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ragstone import ContextRelevancy, Monitor
from ragstone.testing import FakeLLM

from .kit import PATIENCE, Held, Kept, Second, adds_up, in_threads, live, metric, sample, soon


def filled(**options: Any) -> tuple[Monitor, Kept, Held]:
    """A monitor whose one worker has sample 0 in hand and whose queue of five is full."""
    held = Held()
    monitor = live(metric(held), sinks=(sink := Kept()), workers=1, max_queue=5, **options)
    monitor.submit(sample(0))
    soon(lambda: held.asked)
    for i in range(1, 6):
        monitor.submit(sample(i))
    assert monitor.stats().dropped == 0
    return monitor, sink, held


def test_the_newest_gives_way() -> None:
    monitor, sink, held = filled()
    for i in range(6, 9):
        monitor.submit(sample(i))
    assert monitor.stats().reasons == {"dropped": {"queue_full": 3}}
    held.let_go()
    assert monitor.close().done
    assert sink.ids == {f"s{i}" for i in range(6)}
    assert monitor.stats().longest_queue == 5


def test_the_oldest_gives_way() -> None:
    monitor, sink, held = filled(when_full="drop_oldest")
    for i in range(6, 9):
        monitor.submit(sample(i))
    assert monitor.stats().reasons == {"dropped": {"queue_full": 3}}
    held.let_go()
    assert monitor.close().done
    assert sink.ids == {"s0", *(f"s{i}" for i in range(4, 9))}


def test_an_old_one_that_gives_way_keeps_what_it_has() -> None:
    """A sample that came back into the queue with one metric done, after a timeout, is dropped for the other only."""
    held = Held()
    metrics = [metric(held), Second(llm=FakeLLM(held))]
    monitor = live(metrics, sinks=(sink := Kept()), workers=1, max_queue=1, when_full="drop_oldest", timeout=0.2)
    monitor.submit(sample(1))
    soon(lambda: held.asked == 2)  # the second metric, in another thread: the first has timed out
    monitor.pause()
    soon(lambda: monitor.stats().unscored == 2)
    monitor.close(0.0)
    assert {record.outcome.metric for record in sink.records.values()} == {"context_relevancy", "second"}
    assert adds_up(monitor.stats())
    held.let_go()


def test_waiting_for_room() -> None:
    monitor, sink, held = filled(when_full="block")
    done = threading.Event()

    def submit() -> None:
        monitor.submit(sample(6))
        done.set()

    thread = threading.Thread(target=submit)
    thread.start()
    assert not done.wait(0.2)
    assert monitor.stats().dropped == 0
    held.let_go()
    assert done.wait(60)
    thread.join()
    assert monitor.close().done
    assert sink.ids == {f"s{i}" for i in range(7)}


def test_waiting_for_room_ends_when_the_monitor_closes() -> None:
    monitor, _, held = filled(when_full="block")
    threads = [threading.Thread(target=monitor.submit, args=(sample(6 + i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    soon(lambda: monitor.stats().pending == 10)
    assert monitor.close(0.05).remaining == 10
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert monitor.close().remaining == 10
    stats = monitor.stats()
    assert stats.reasons == {"dropped": {"closed": 10}}
    assert adds_up(stats)
    held.let_go()


@pytest.mark.usefixtures("untraced")
def test_an_interrupt_ends_the_waiting() -> None:
    import signal

    monitor, _, held = filled(when_full="block")

    def handler(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            monitor.submit(sample(6))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert monitor.stats().reasons == {"dropped": {"interrupted": 1}}
    held.let_go()
    assert monitor.close().done
    assert monitor.stats().scored == 6


TEXT = "x" * 100_000


@pytest.mark.parametrize(
    ("when_full", "ids"),
    [("drop_newest", [0, 1, 2]), ("drop_oldest", [0, 3, 4]), ("block", [0, 1, 2, 3, 4]), ("spool", [0, 1, 2, 3, 4])],
)
def test_a_queue_that_is_full_in_bytes(when_full: Any, ids: list[int], tmp_path: Path) -> None:
    held = Held()
    options = {"outbox": tmp_path / "outbox.db"} if when_full == "spool" else {}
    with live(
        metric(held), sinks=(sink := Kept()), workers=1, when_full=when_full, max_queue_bytes=250_000, **options
    ) as monitor:
        monitor.submit(sample(0, retrieved_contexts=[TEXT]))
        soon(lambda: held.asked)
        assert monitor.stats().queued_bytes == 0
        for i in (1, 2):
            monitor.submit(sample(i, retrieved_contexts=["Here."], metadata={"page": [TEXT]}))
        soon(lambda: 200_000 < monitor.stats().queued_bytes < 202_000)
        monitor.submit(sample("huge", retrieved_contexts=[TEXT] * 3))
        assert monitor.stats().reasons == {"dropped": {"too_large": 1}}
        others = threading.Thread(target=lambda: [monitor.submit(sample(i, response=TEXT)) for i in (3, 4)])
        others.start()
        if when_full == "block":
            others.join(0.1)
            assert others.is_alive()
        elif when_full == "spool":
            soon(lambda: monitor.stats().spooled == 2)
        else:
            others.join(PATIENCE)
            assert monitor.stats().reasons == {"dropped": {"queue_full": 2, "too_large": 1}}
        assert monitor.stats().queued_bytes < 250_000
        held.let_go()
        others.join(PATIENCE)
        assert monitor.flush(PATIENCE)
    assert sink.ids == {f"s{i}" for i in ids}
    assert monitor.stats().queued_bytes == 0
    assert adds_up(monitor.stats())


@pytest.mark.parametrize("when_full", ["drop_newest", "drop_oldest", "block"])
def test_the_queue_stays_within_its_length(when_full: Any) -> None:
    llm = FakeLLM(lambda _: (time.sleep(0.001), {"ids": [1]})[1])
    with live(ContextRelevancy(llm=llm), max_queue=10, when_full=when_full) as monitor:
        in_threads(16, lambda i: [monitor.submit(sample(f"{i}.{k}")) for k in range(25)])
    stats = monitor.stats()
    assert stats.longest_queue <= 10 + 16  # of threads that look at once, each may put one more in
    assert stats.scored + stats.dropped == 400
    assert (stats.dropped > 0) == (when_full != "block")
    assert stats.queued_bytes == 0
    assert adds_up(stats)


def test_other_threads_go_on_while_one_waits_for_room() -> None:
    monitor, _, held = filled(when_full="block")
    thread = threading.Thread(target=monitor.submit, args=(sample(6),))
    thread.start()
    assert monitor.stats().pending >= 6
    monitor.skip("abandoned")
    assert not monitor.flush(0.01)
    held.let_go()
    thread.join()
    assert monitor.close().done
