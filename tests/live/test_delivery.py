"""Sinks that fail, hang, or refuse one record: nobody else notices, and what is lost is counted."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from ragstone.live import CallableSink, Record
from ragstone.live.settings import Waits

from ..support.waiting import soon  # noqa: TID252
from . import kit
from .kit import PATIENCE, Kept, adds_up, ours, sample, submit

live = partial(kit.live, waits=Waits(sink=(0.01, 0.05)))


class Down:
    """Trouble until it is over."""

    over = False

    def __call__(self, records: Sequence[Record]) -> None:
        if not self.over:
            raise OSError("database is locked, key sk-abcdefghijkl")


def refuses(*names: str) -> Callable[[Sequence[Record]], None]:
    """All or none, and none of a batch with one of these."""

    def trouble(records: Sequence[Record]) -> None:
        if {record.sample_id for record in records} & set(names):
            raise ValueError("no such character")

    return trouble


def test_a_sink_that_fails_holds_up_no_other() -> None:
    down = Down()
    good, bad = Kept("good"), Kept("bad", down)
    monitor = live(sinks=[bad, good])
    submit(monitor, range(300))
    soon(lambda: len(good.ids) == 300)
    soon(lambda: monitor.stats().sinks["bad"].failures > 10)
    result = monitor.flush(0.1)
    assert (result.remaining, result.undelivered, result.done) == (0, 300, False)
    standing = monitor.stats().sinks["bad"]
    assert (standing.written, standing.waiting, standing.lost) == (0, 300, 0)
    assert standing.last_error == "OSError: database is locked, key [hidden]"
    assert monitor.stats().errors["sink bad"] > 10
    down.over = True
    assert monitor.close(PATIENCE).done
    assert bad.ids == good.ids
    assert monitor.stats().sinks["bad"].written == 300
    assert [len(sink.threads - {threading.get_ident()}) for sink in (good, bad)] == [1, 1]


def test_a_function_that_raises_what_ends_threads() -> None:
    batches: list[list[Record]] = []

    def function(records: list[Record]) -> None:
        batches.append(records)
        if len(batches) <= 3:
            raise SystemExit

    with live(sinks=CallableSink(function)) as monitor:
        submit(monitor, range(20))
    assert {record.sample_id for batch in batches[3:] for record in batch} == {f"s{i}" for i in range(20)}


def test_many_records_that_are_refused_keep_none_of_the_others() -> None:
    bad = [f"s{i}" for i in range(4)]
    sink = Kept("a", refuses(*bad))
    monitor = live(sinks=sink)
    for i in range(4):  # these come first, and would fill every batch
        monitor.submit(sample(i))
    soon(lambda: monitor.stats().sinks["a"].failures > 3)
    submit(monitor, range(4, 100))
    soon(lambda: len(sink.ids) == 96)
    monitor.close(0.1)
    standing = monitor.stats().sinks["a"]
    assert (standing.written, standing.waiting, standing.lost) == (96, 0, 4)


def test_what_a_sink_never_took_is_counted_as_lost_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    monitor = live(sinks=Kept("a", Down()))
    submit(monitor, range(30))
    soon(lambda: monitor.stats().scored == 30)
    result = monitor.close(0.1)
    assert (result.remaining, result.undelivered, result.done) == (0, 30, False)
    standing = monitor.stats().sinks["a"]
    assert (standing.written, standing.waiting, standing.lost) == (0, 0, 30)
    assert monitor.close() == monitor.flush() == result
    assert caplog.text.count("closed: 0 evaluations and 30 outcomes were lost") == 1


def test_beyond_what_may_wait_the_oldest_are_lost() -> None:
    down = Down()
    monitor = live(sinks=(sink := Kept("a", down)), workers=1, waits=Waits(sink=(0.01, 0.05), outcomes=50))
    submit(monitor, range(200))
    soon(lambda: monitor.stats().scored == 200)
    down.over = True
    assert monitor.close(PATIENCE).done
    standing = monitor.stats().sinks["a"]
    assert standing.written + standing.lost == 200
    assert standing.lost > 0
    assert "s199" in sink.ids


@pytest.mark.parametrize("when", ["write", "close"])
def test_a_sink_that_hangs_holds_up_neither_others_nor_the_end(when: str) -> None:
    free, hangs = threading.Event(), threading.Event()

    def hang(*_: Any) -> None:
        hangs.set()
        free.wait()

    bad, good = Kept("bad"), Kept("good")
    setattr(bad, when, hang)
    monitor = live(sinks=[bad, good])
    submit(monitor, range(10))
    soon(lambda: len(good.ids) == 10)
    closed = threading.Event()
    threading.Thread(target=lambda: (monitor.close(0.2), closed.set())).start()
    assert closed.wait(PATIENCE)
    assert hangs.is_set()
    soon(lambda: good.closed == 1)
    assert adds_up(monitor.stats())
    free.set()
    soon(lambda: not ours(monitor))


def test_an_origin_or_a_report_that_fails_loses_no_sample() -> None:
    class Failing(Kept):
        def origin(self) -> dict[str, str]:
            raise RuntimeError("no span")

        def health(self, health: Any) -> None:
            raise OSError("no room")

    class Noting(Kept):
        def origin(self) -> dict[str, str]:
            return {"trace_id": "abc"}

    bad, good = Failing("bad"), Noting("good")
    with live(sinks=[bad, good]) as monitor:
        monitor.submit(sample(1))
    assert (bad.ids, bad.closed) == ({"s1"}, 1)
    assert good.only().origin == {"trace_id": "abc"}
    assert monitor.stats().sinks["bad"].failures == 1
    assert monitor.stats().sinks["good"].failures == 0
