"""Steps that handlers leave to the monitor: none is lost, none counts twice, and the app waits for none."""

import contextvars
import textwrap
import threading
from collections.abc import Callable

import pytest

from ragstone import Monitor

from ..support.waiting import soon  # noqa: TID252
from .kit import PATIENCE, Kept, adds_up, in_threads, live, ours, sample
from .live_app import ran
from .test_fork import forks, in_child


class Gate:
    """A step that waits to be let through, and then submits a sample."""

    def __init__(self, monitor: Monitor, name: str) -> None:
        self.monitor, self.name = monitor, name
        self.begun, self.free = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.begun.set()
        assert self.free.wait(PATIENCE)
        self.monitor.submit(sample(self.name))


def held(monitor: Monitor, name: str = "gate") -> Gate:
    gate = Gate(monitor, name)
    assert monitor.later(gate)
    assert gate.begun.wait(PATIENCE)
    return gate


def submitting(monitor: Monitor, i: object) -> Callable[[], object]:
    return lambda: monitor.submit(sample(i))


def test_steps_of_many_threads_run_each_once_on_one_thread_before_flush_comes_back() -> None:
    kept, threads = Kept(), set[str]()
    with live(sinks=kept) as monitor:
        assert not any(thread.name == "ragstone-reading" for thread in ours(monitor))

        def work(i: int) -> None:
            def step(j: int) -> None:
                threads.add(threading.current_thread().name)
                monitor.submit(sample(f"{i} {j}"))

            for j in range(50):
                assert monitor.later(lambda j=j: step(j))

        in_threads(8, work)
        assert monitor.flush(PATIENCE)
        assert (threads, len(kept.ids), monitor.stats().samples) == ({"ragstone-reading"}, 400, 400)
    soon(lambda: not ours(monitor))


def test_an_error_of_a_step_is_counted_whatever_it_is_and_the_next_one_runs() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    def end() -> None:
        raise SystemExit

    with live(sinks=(kept := Kept())) as monitor:
        for step in (fail, end, submitting(monitor, 1)):
            assert monitor.later(step)
    assert kept.ids == {"s1"}
    assert monitor.stats().errors == {"reading": 2}


def test_a_step_has_the_context_that_it_was_given_in() -> None:
    asked = contextvars.ContextVar("asked", default="nobody")
    seen: list[str] = []
    with live() as monitor:
        asked.set("Jane")
        monitor.later(lambda: seen.append(asked.get()))
        asked.set("Emma")
    assert seen == ["Jane"]


@pytest.mark.parametrize(("number", "size", "taken"), [(2_000, 10, 999), (10, 6_000_000, 3)])
def test_no_more_waits_than_is_bounded_in_number_and_size(number: int, size: int, taken: int) -> None:
    with live(sinks=(kept := Kept()), size=5_000) as monitor:
        for round_ in range(2):
            gate = held(monitor, f"gate {round_}")
            ids = [f"{round_} {i}" for i in range(number)]
            assert [monitor.later(submitting(monitor, i), size=size) for i in ids].count(True) == taken
            gate.free.set()
            assert monitor.flush(PATIENCE)
        # One by itself runs, however much it holds.
        assert monitor.later(submitting(monitor, "large"), size=100_000_000)
    assert len(kept.ids) == 2 * taken + 3


def test_what_waits_when_the_time_to_close_is_over_is_run_and_counted_and_nothing_after_it() -> None:
    monitor = live(sinks=(kept := Kept()))
    gate = held(monitor)
    for i in range(20):
        assert monitor.later(submitting(monitor, i))
    assert monitor.flush(0.05).remaining == 21
    assert not monitor.close(0.2)
    assert not monitor.later(submitting(monitor, "after"))
    assert monitor.stats().samples == 20
    gate.free.set()
    soon(lambda: monitor.stats().samples == 21)
    stats = monitor.stats()
    assert adds_up(stats)
    assert stats.pending == 0
    assert len(kept.ids) == stats.scored


def test_close_takes_no_more_steps_and_waits_for_those_that_are_there() -> None:
    monitor = live(sinks=(kept := Kept()))
    gate = held(monitor)
    monitor.later(submitting(monitor, 1))
    closing = threading.Thread(target=lambda: monitor.close(PATIENCE))
    closing.start()
    taken: list[bool] = []
    soon(lambda: taken.append(monitor.later(lambda: None)) or not taken[-1])
    assert len(taken) < 900
    gate.free.set()
    closing.join(PATIENCE)
    assert kept.ids == {"sgate", "s1"}


@forks
def test_a_forked_child_has_none_of_its_parents_and_a_thread_of_its_own() -> None:
    monitor = live(sinks=(kept := Kept()))
    gate = held(monitor)
    monitor.later(submitting(monitor, "parent"))

    def child() -> None:
        assert monitor.later(submitting(monitor, "child"))
        assert monitor.close(PATIENCE)
        assert kept.ids == {"schild"}
        assert monitor.stats().samples == 1

    in_child(child)
    gate.free.set()
    assert monitor.close(PATIENCE)
    assert kept.ids == {"sgate", "sparent"}


@pytest.mark.usefixtures("own_folder")
def test_what_waits_when_the_process_ends_is_counted() -> None:
    """Also behind a step that never ends."""
    code = """
        import threading
        monitor = live(reply=hangs, outbox=None)
        monitor.later(threading.Event().wait)
        for i in range(20):
            monitor.later(lambda i=i: submit(monitor, [i]))
    """
    status, errors = ran(textwrap.dedent(code))
    assert (status, "20 evaluations and 0 outcomes were lost" in errors) == (0, True), errors
