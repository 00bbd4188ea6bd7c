"""Handing samples over: nothing that an app hands in harms the app or shows later changes."""

import asyncio
import contextvars
import enum
import itertools
import json
import logging
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from ragstone import ContextRelevancy, Monitor, Sample
from ragstone.live import CallableSink, Queue, Sampling

from ..support.waiting import soon  # noqa: TID252
from .kit import PATIENCE, Held, Kept, Second, adds_up, in_threads, live, metric, ours, sample, submit, yes


class NoWords(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Nonsense:
    """Raises whatever is asked of it."""

    def _raise(self, *_: Any) -> Any:
        raise RuntimeError("do not touch")

    __str__ = __repr__ = __bool__ = __iter__ = __len__ = __eq__ = __hash__ = __getattr__ = _raise


class WithoutEnd(Mapping[Any, Any]):
    def __getitem__(self, key: Any) -> Any:
        return key

    def __iter__(self) -> Iterator[Any]:
        return itertools.count()

    def __len__(self) -> int:
        return 1


def nested(inner: Any, depth: int, wrapped: Callable[[Any], Any]) -> Any:
    for _ in range(depth):
        inner = wrapped(inner)
    return inner


def test_threads_are_bounded_and_end_and_an_id_is_scored_once() -> None:
    first, second = Kept("a"), Kept("b")
    with live([metric(), Second(llm=metric().llm)], [first, second], workers=3) as monitor:
        in_threads(16, lambda _: [monitor.submit(sample(i)) for i in range(50)])
        assert monitor.flush()
        assert len(ours(monitor)) == 3 + 1 + 2
    soon(lambda: not ours(monitor))
    assert (monitor.stats().scored, monitor.stats().duplicate) == (100, 1_500)
    assert len(first.ids) == len(second.ids) == 50


def test_the_judge_sees_nothing_of_the_apps_context_and_no_event_loop() -> None:
    variable = contextvars.ContextVar("variable", default="not set")
    seen: list[Any] = []

    def reply(request: Any) -> Any:
        seen.append((variable.get(), asyncio._get_running_loop(), threading.current_thread().name))
        return yes(request)

    async def app() -> None:
        variable.set("the app's")
        monitor.submit(sample(1))

    with live(metric(reply), CallableSink(lambda _: seen.append((variable.get(), None, "")))) as monitor:
        asyncio.run(app())
        variable.set("the app's, too")
        monitor.submit(sample(2))
    assert seen
    assert {(value, loop) for value, loop, _ in seen} == {("not set", None)}
    assert {name for _, _, name in seen} <= {"ragstone-judge", ""}


NO_SAMPLES: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "nonsense": lambda: Nonsense(),
    "unmade": lambda: Sample.__new__(Sample),
    "id_number": lambda: Sample.model_construct(id=5, user_input="a"),
    "contexts_without_end": lambda: Sample.model_construct(retrieved_contexts=itertools.repeat("without end")),
    "metadata_nonsense": lambda: Sample.model_construct(metadata=Nonsense()),
}


@pytest.mark.parametrize(("wrong", "redact"), list(zip(NO_SAMPLES, itertools.cycle([None, str.upper]))))
def test_what_is_no_sample_is_counted_and_harms_nobody(wrong: str, redact: Any) -> None:
    sink = Kept()
    monitor = live(sinks=sink, redact=redact, sampling=Sampling(always=["error", "thumbs_down", "empty_retrieval"]))
    monitor.submit(NO_SAMPLES[wrong]())
    stats = monitor.stats()
    assert (stats.accepted, stats.dropped) == (1, 1), stats
    assert adds_up(stats)
    monitor.submit(sample(1))
    assert monitor.close().done
    assert sink.ids == {"s1"}


def test_a_row_is_a_sample(caplog: pytest.LogCaptureFixture) -> None:
    sink = Kept()
    with live(sinks=sink) as monitor:
        monitor.submit({"id": "d1", "question": "Which?", "contexts": "This.", "answer": "This."})
        monitor.submit({"response": ["a secret of the app"]})
    assert sink.ids == {"d1"}
    assert monitor.stats().dropped == 1
    assert "response: is list, not text" in caplog.text
    assert "secret" not in caplog.text


VALUES: dict[str, Callable[[], Any]] = {
    "many": lambda: nested("ha", 30, lambda inner: [inner] * 50),
    "deep": lambda: nested("leaf", 5_000, lambda inner: {"deeper": inner}),
    "nonsense": lambda: Nonsense(),
    "without_end": lambda: WithoutEnd(),
    "nul_and_surrogate": lambda: "\0 and \ud800",
}


@pytest.mark.parametrize("kind", VALUES)
def test_any_metadata_is_kept_as_plain_values(kind: str) -> None:
    value = VALUES[kind]()
    with live(sinks=(sink := Kept()), store_text=True) as monitor:
        monitor.submit(sample(1, metadata={"value": value, "error": "e", "feedback": value}))
    record = sink.only()
    assert record.sample is not None
    assert len(json.dumps(record.sample.metadata, allow_nan=False)) < 100_000
    assert record.sample.metadata["error"] == "e"


def test_metadata_by_kind() -> None:
    kinds: list[tuple[Any, Any]] = [
        (enum.Enum("Colour", {"RED": "red"}, type=str).RED, "red"),
        (np.float64(0.5), 0.5),
        (float("nan"), "NaN"),
        (True, True),
        (2**70, 2**70),
        ((1, [2, {"three": 4}]), [1, [2, {"three": 4}]]),
        (b"x", "<bytes>"),
        (None, None),
    ]
    with live(sinks=(sink := Kept()), store_text=True) as monitor:
        monitor.submit(sample(1, metadata={str(i): value for i, (value, _) in enumerate(kinds)}))
    kept = sink.only().sample
    assert kept is not None
    assert list(kept.metadata.values()) == [value for _, value in kinds]
    assert {type(value) for value in kept.metadata.values()} == {str, float, bool, int, list, type(None)}


def test_later_changes_do_not_show() -> None:
    contexts, tags, metadata = ["Here."], ["a"], {"user": {"name": "Ada"}}
    given = Sample.model_construct(user_input="Why?", retrieved_contexts=contexts, metadata={"t": tags, "m": metadata})
    monitor = live(sinks=(sink := Kept()), store_text=True)
    monitor.pause()
    monitor.submit(given)
    contexts.append("There.")
    tags.append("b")
    metadata["user"]["name"] = "Bob"
    given.metadata["new"] = 1
    monitor.resume()
    assert monitor.close().done
    kept = sink.only().sample
    assert kept is not None
    assert kept.retrieved_contexts == ("Here.",)
    assert kept.metadata == {"t": ["a"], "m": {"user": {"name": "Ada"}}}
    assert given.id is None


def test_metadata_that_another_thread_changes_meanwhile() -> None:
    busy: dict[str, Any] = {"inner": {str(i): i for i in range(200)}}
    end = threading.Event()

    def change() -> None:
        for i in itertools.count():
            if end.is_set():
                return
            for each, changing in ((busy, "key "), (busy["inner"], "")):
                each[f"{changing}{(i * 7) % 400}"] = i
                each.pop(f"{changing}{i % 200}", None)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        with live() as monitor:
            for i in range(300):
                monitor.submit(Sample.model_construct(id=str(i), user_input="Why?", metadata=busy))
    finally:
        end.set()
        thread.join()
    assert (monitor.stats().dropped, monitor.stats().pending) == (0, 0)


@pytest.mark.usefixtures("untraced")
def test_a_signal_handler_may_submit_look_and_close() -> None:
    seen: list[Any] = []
    monitor = live(sinks=(sink := Kept()))
    numbers = itertools.count()

    def handler(*_: Any) -> None:
        monitor.submit(sample(f"signal {next(numbers)}"))
        seen.append(monitor.stats())
        if len(seen) < 100:  # one by one: a busy machine would do nothing else
            signal.setitimer(signal.ITIMER_REAL, 0.0005)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    try:
        submit(monitor, range(500))
        soon(lambda: len(seen) == 100)
        assert monitor.flush()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert monitor.close().done
    assert all(map(adds_up, seen))
    assert len(sink.ids) == monitor.stats().scored == 500 + len(seen)


@pytest.mark.usefixtures("untraced")
def test_ctrl_c_while_closing_puts_all_away_and_one_in_submit_passes() -> None:
    held = Held()
    interrupts = [True]

    def where(_: Sample) -> bool:
        if interrupts:
            raise KeyboardInterrupt
        return True

    monitor = live(metric(held), sinks=(sink := Kept()), sampling=Sampling(where=where))
    with pytest.raises(KeyboardInterrupt):
        monitor.submit(sample(0))
    assert monitor.stats().reasons == {"dropped": {"interrupted": 1}}
    interrupts.clear()
    submit(monitor, range(1, 11))

    def handler(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with pytest.raises(KeyboardInterrupt):
            monitor.close()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert monitor.stats().reasons == {"dropped": {"interrupted": 1, "closed": 10}}
    assert sink.closed == 1
    held.let_go()


def test_exceptions_of_handlers_are_counted_and_said_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    monitor = live()
    for i in range(100):
        monitor.failed("extract", ValueError(f"number {i}, key sk-abcdefghijkl"))
        monitor.failed("wild", NoWords())
        monitor.submit(None)  # type: ignore[arg-type]
    assert monitor.stats().errors == {"extract": 100, "wild": 100, "submit": 100}
    assert monitor.stats().dropped == 100
    (only,) = caplog.records
    assert "the app is not affected" in only.getMessage()
    assert "sk-abc" not in caplog.text


def test_a_log_that_raises_does_not_reach_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    class Raises(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("the log is full")

    log = logging.getLogger("ragstone.live")
    monkeypatch.setattr(log, "level", logging.DEBUG)
    monkeypatch.setattr(log, "handlers", [Raises(logging.DEBUG)])
    monitor = live()
    monitor.failed("extract", ValueError("x"))
    monitor.submit(None)  # type: ignore[arg-type]
    assert monitor.stats().errors == {"extract": 1, "submit": 1}


def test_a_sample_that_was_on_its_way_when_the_monitor_closed_is_counted() -> None:
    on_its_way, go = threading.Event(), threading.Event()

    def redact(text: str) -> str:
        if text == "question 2?":
            on_its_way.set()
            assert go.wait(PATIENCE)
        return text

    monitor = live(redact=redact)
    monitor.submit(sample(1))
    assert monitor.flush()
    thread = threading.Thread(target=monitor.submit, args=(sample(2),))
    thread.start()
    assert on_its_way.wait(PATIENCE)
    assert monitor.close(0.0).remaining == 1
    go.set()
    thread.join()
    soon(lambda: not monitor.stats().pending)
    assert monitor.stats().reasons == {"dropped": {"closed": 1}}
    assert adds_up(monitor.stats())
    assert monitor.close().remaining == 1
    soon(lambda: not ours(monitor))


def test_options_that_cannot_be() -> None:
    async def function(_: Any) -> bool:
        return True

    for options, message in (
        ({"metrics": []}, "metrics: is empty"),
        ({"metrics": [metric(), metric()]}, "two are called .'context_relevancy'"),
        ({"metrics": ContextRelevancy()}, "llm: is missing; pass a judge for 'context_relevancy'"),
        ({"sinks": [5]}, r"sinks\[0\]: 5 should be an instance of Sink"),
        ({"sinks": [Kept(), Kept()]}, "two are called 'kept'"),
        ({"sampling": 0.1}, "sampling: 0.1 should be an instance of Sampling"),
        ({"sampling": Sampling(rate={"contextrelevancy": 1.0})}, "rate: 'contextrelevancy' is not a metric"),
        ({"queue": Queue(workers=0)}, "queue: workers=0 needs a file through which another process judges"),
        ({"keep": ["name"]}, "keep.*: .name."),
        ({"redact": "x"}, "redact: is str"),
        ({"redact": function}, "redact: is async"),
        ({"outbox": 5}, "outbox: 5 is not a valid path"),
        ({"store_text": None}, "store_text"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            Monitor(**{"metrics": metric(), "sinks": Kept(), **options})  # type: ignore[arg-type]
    for kind, option, value, message in (
        (Queue, "size", 0, "size: 0"),
        (Queue, "when_full", "drop", "when_full: 'drop'"),
        (Sampling, "rate", float("nan"), "rate: nan"),
        (Sampling, "where", function, "where: is async"),
        (Sampling, "always", ["eror"], "always: 'eror'"),
        (Sampling, "seed", None, "seed: is NoneType"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            kind(**{option: value})
