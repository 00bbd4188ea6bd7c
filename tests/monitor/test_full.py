"""What gives way when the queue is full. Spooling is tested with the outbox."""

import threading
from pathlib import Path
from typing import Any

import pytest

from ragstone import Monitor

from ..support.waiting import soon  # noqa: TID252
from .kit import PATIENCE, Held, Kept, adds_up, live, metric, sample


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


@pytest.mark.parametrize(
    ("when_full", "left"), [("drop_newest", [0, 1, 2, 3, 4, 5]), ("drop_oldest", [0, 4, 5, 6, 7, 8])]
)
def test_what_gives_way(when_full: Any, left: list[int]) -> None:
    monitor, sink, held = filled(when_full=when_full)
    for i in range(6, 9):
        monitor.submit(sample(i))
    assert monitor.stats().reasons == {"dropped": {"queue_full": 3}}
    held.let_go()
    assert monitor.close().done
    assert sink.ids == {f"s{i}" for i in left}
    assert monitor.stats().longest_queue == 5


@pytest.mark.parametrize("closes", [True, False])
def test_waiting_for_room(closes: bool) -> None:
    monitor, sink, held = filled(when_full="block")
    threads = [threading.Thread(target=monitor.submit, args=(sample(6 + i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    soon(lambda: monitor.stats().pending == 10)
    threads[0].join(0.1)
    assert all(thread.is_alive() for thread in threads)
    if closes:
        assert monitor.close(0.05).remaining == 10
    else:
        held.let_go()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert monitor.close().remaining == (10 if closes else 0)
    stats = monitor.stats()
    assert stats.reasons == ({"dropped": {"closed": 10}} if closes else {})
    assert adds_up(stats)
    assert len(sink.ids) == stats.scored == (0 if closes else 10)
    held.let_go()


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
        if when_full == "spool":  # what is not written yet counts as much again
            soon(lambda: len(monitor._pipeline.queue) == 2)
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
