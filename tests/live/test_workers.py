"""Judges that hang or are slow, full queues, pauses, an app that ends; `workers=0`, where another process judges."""

import asyncio
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ragstone import ContextRelevancy, Metric, Monitor, Sample, Unscored
from ragstone.live.settings import Waits
from ragstone.testing import FakeLLM
from ragstone.text import split_sentences

from ..support.judges import AsyncLLM  # noqa: TID252
from ..support.waiting import soon  # noqa: TID252
from .kit import PATIENCE, Held, Kept, Second, adds_up, live, metric, ours, sample, submit, yes
from .live_app import ran, rows


def judges(monitor: Monitor) -> int:
    return [thread.name for thread in ours(monitor)].count("ragstone-judge")


def test_a_judge_that_hangs_costs_one_evaluation() -> None:
    held = Held()
    llm = FakeLLM(lambda request: held(request) if "question 3?" in request.user else yes(request))
    monitor = live(
        [ContextRelevancy(llm=llm), Second(llm=metric().llm)], sinks=(sink := Kept()), workers=1, timeout=2.0
    )
    submit(monitor, range(10))
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


def test_threads_that_hang_are_bounded_and_come_back() -> None:
    """A judge that hangs for an hour, then answers again: nobody but its own threads can go on."""
    held = Held()
    monitor = live(metric(held), workers=2, timeout=0.5, waits=Waits(hanging=2))
    submit(monitor, range(20))
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


@pytest.mark.parametrize("end", ["timeout", "close"])
def test_a_call_that_is_given_up_is_cancelled_and_its_connection_closed(end: str) -> None:
    """Else the judge's server could go on sending, and a thread reading, for minutes."""
    pytest.importorskip("openai")
    from ragstone.clients import OpenAICompatible

    reading, gone = threading.Event(), threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1 << 20)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            reading.set()
            with suppress(ConnectionResetError):
                while connection.recv(1 << 20):
                    pass
            gone.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        judge = OpenAICompatible("m", base_url=f"http://127.0.0.1:{listening.getsockname()[1]}/v1", api_key="none")
        monitor = live(ContextRelevancy(llm=judge), workers=1, timeout=3.0 if end == "timeout" else 100.0)
        monitor.submit(sample(1))
        assert reading.wait(PATIENCE)
        assert monitor.close(PATIENCE if end == "timeout" else 0.0).remaining == (end == "close")
        assert gone.wait(PATIENCE)
    judge.close()
    soon(lambda: judges(monitor) == 0)


def test_pausing_and_resuming() -> None:
    llm = FakeLLM(yes)
    monitor = live(ContextRelevancy(llm=llm), size=10)
    monitor.pause()
    submit(monitor, range(30))
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


def test_closing_says_how_much_waits_and_where(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    held, path = Held(), tmp_path / "outbox.db"

    def fails(records: Any) -> None:
        raise OSError("down")

    with live(metric(held), sinks=Kept(trouble=fails), outbox=path) as monitor:
        submit(monitor, range(8))
        soon(lambda: held.asked == 4)
        monitor.pause()
        held.let_go()
        soon(lambda: monitor.stats().scored == 4)
        result = monitor.close(0.0)
    assert (result.remaining, result.undelivered) == (4, 4)
    assert f"closed: 4 evaluations and 4 outcomes wait in {path}; the next start goes on with them, or: " in caplog.text


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("end", ["monitor.close(0.1)", "1 / 0"])
def test_a_process_ends_although_its_judge_hangs(end: str) -> None:
    code = "monitor = live(reply=hangs, outbox=None)\nsubmit(monitor, range(20))\nsoon(lambda: calls())\n"
    status, errors = ran(code + end)
    assert status == ("close" not in end), errors
    assert "Fatal" not in errors
    assert sum(map(int, re.findall(r"dropped: closed \((\d+)\)", errors))) == 20
    why = "closed" if "close" in end else "the process ended without close(), and nothing was judged"
    assert f"{why}: 20 evaluations and 0 outcomes were lost: call close() and give it time, or use outbox=" in errors
    assert ("ZeroDivisionError" in errors) == (end == "1 / 0")


@pytest.fixture(params=["memory", "outbox"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Both stores of the queue."""
    return {"outbox": tmp_path / "outbox.db"} if request.param == "outbox" else {}


def filled(**options: Any) -> tuple[Monitor, Kept, Held]:
    """A monitor whose one worker has sample 0 in hand and whose queue of five is full."""
    held = Held()
    monitor = live(metric(held), sinks=(sink := Kept()), workers=1, size=5, **options)
    monitor.submit(sample(0))
    soon(lambda: held.asked)
    submit(monitor, range(1, 6))
    assert monitor.stats().dropped == 0
    return monitor, sink, held


def test_the_oldest_gives_way(place: dict[str, Any]) -> None:
    monitor, sink, held = filled(**place)
    submit(monitor, range(6, 9))
    assert monitor.stats().reasons == {"dropped": {"queue_full": 3}}
    held.let_go()
    assert monitor.close().done
    assert sink.ids == {f"s{i}" for i in (0, 4, 5, 6, 7, 8)}
    assert monitor.stats().longest_queue == 5
    assert adds_up(monitor.stats())
    assert not place or rows(place["outbox"], "SELECT id FROM samples") == []


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


def test_a_queue_that_is_full_in_bytes(place: dict[str, Any]) -> None:
    held, sink = Held(), Kept()
    with live(metric(held), sinks=sink, workers=1, bytes=250_000, **place) as monitor:
        monitor.submit(sample(0, retrieved_contexts=[TEXT]))
        soon(lambda: held.asked)
        assert monitor.stats().queued_bytes == 0
        for i in (1, 2):
            monitor.submit(sample(i, metadata={"page": [TEXT]}))
        monitor.submit(sample("huge", retrieved_contexts=[TEXT] * 3))
        for i in (3, 4):
            monitor.submit(sample(i, response=TEXT))
        assert monitor.stats().reasons == {"dropped": {"too_large": 1, "queue_full": 2}}
        assert 200_000 < monitor.stats().queued_bytes < 250_000
        held.let_go()
        assert monitor.flush(PATIENCE)
    assert sink.ids == {"s0", "s3", "s4"}
    assert monitor.stats().queued_bytes == 0
    assert adds_up(monitor.stats())


def test_a_lifespan_closes_off_the_loop() -> None:
    """The loop goes on while what is left is judged: a judge may need it."""
    held = Held()
    judged_on: list[int] = []

    def reply(request: Any) -> Any:
        judged_on.append(threading.get_ident())
        return held(request)

    async def serve() -> None:
        async with monitor.lifespan(object()):  # as Starlette calls it, with the app
            monitor.submit(sample(1))
            asyncio.get_running_loop().call_later(0.2, held.let_go)

    monitor = live(metric(reply), sinks=(sink := Kept()))
    asyncio.run(serve())
    assert sink.ids == {"s1"}
    assert monitor.stats().scored == 1
    assert threading.get_ident() not in judged_on


@dataclass(frozen=True, kw_only=True)
class Computing(Metric):
    """Computes as `work` does, and asks nobody."""

    name = "computing"
    version = "1"
    required_fields = ("response",)
    needs_llm = False
    work: Callable[[Sample], object] = field(hash=False)

    def _flow(self, sample: Sample) -> Any:
        self.work(sample)
        return self._score(1.0, "Done.")


def test_one_thread_computes_at_a_time() -> None:
    alone = threading.Lock()

    def work(_: Sample) -> None:
        assert alone.acquire(blocking=False)
        split_sentences("It was so. " * 500)
        alone.release()

    with live(Computing(work=work), sinks=(sink := Kept()), workers=4) as monitor:
        submit(monitor, range(12))
        assert monitor.flush(PATIENCE)
    assert monitor.stats().scored == len(sink.records) == 12


def test_computing_without_end_keeps_the_others_back_until_its_timeout_at_most() -> None:
    free = threading.Event()

    def work(asked: Sample) -> None:
        assert asked.id != "s0" or free.wait(PATIENCE)

    monitor = live(Computing(work=work), sinks=(sink := Kept()), workers=2, timeout=0.5)
    submit(monitor, range(6))
    assert monitor.flush(PATIENCE)
    assert sink.ids == {f"s{i}" for i in range(6)}
    assert monitor.stats().scored >= 4  # two at most were in hand when the time was up
    free.set()
    assert monitor.close(PATIENCE)


@pytest.mark.parametrize("ends", ["timeout", "close"])
def test_what_computes_for_nobody_stops_at_its_next_round(ends) -> None:
    begun, stopped = threading.Event(), threading.Event()

    class Endless(Computing):
        def _flow(self, sample: Sample) -> Any:
            try:
                while True:
                    begun.set()
                    yield ()
            finally:
                stopped.set()

    monitor = live(Endless(work=print), sinks=(Kept(),), timeout=0.3 if ends == "timeout" else PATIENCE)
    submit(monitor, range(1))
    assert begun.wait(PATIENCE)
    if ends == "close":
        monitor.close(0.1)
    assert stopped.wait(PATIENCE)
    monitor.close()


def test_it_judges_nothing_and_opens_no_sink_and_another_does(tmp_path: Path) -> None:
    llm = FakeLLM(yes)
    taking = live(
        ContextRelevancy(llm=llm), sinks=(sink := Kept()), workers=0, outbox=tmp_path / "outbox.db", store_text=True
    )
    submit(taking, range(20))
    assert taking.flush(PATIENCE)
    stats = taking.stats()
    assert (stats.spooled, stats.pending, stats.reasons) == (20, 0, {"spooled": {"outbox": 20}})
    assert {thread.name for thread in ours(taking)} == {"ragstone-monitor"}
    assert taking.close(), "what it wrote down is what it was to do"
    assert (llm.requests, sink.records, sink.closed) == ([], {}, 0)

    assert taking.judging(2) is not taking
    with taking.judging(2) as judging:
        assert judging.judging(3) is judging
        assert judging.flush(PATIENCE)
    assert sink.ids == {f"s{i}" for i in range(20)}
    assert judging.stats().scored == 20


def test_what_cannot_be_written_waits_and_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "outbox.db"
    path.write_text("something else, so that SQLite refuses it. " * 100)
    taking = live(workers=0, outbox=path, size=50)
    submit(taking, range(100))
    soon(lambda: taking.stats().errors.get("outbox"))
    submit(taking, range(100, 2_000))
    stats = taking.stats()
    assert set(stats.reasons) == {"dropped"}
    assert set(stats.reasons["dropped"]) == {"queue_full"}
    assert 50 <= stats.pending <= 550, "a batch on its way into the file, and a full queue"
    path.unlink()
    assert taking.flush(PATIENCE)
    assert taking.stats().spooled == stats.pending
    assert taking.close()
    assert adds_up(taking.stats())


# --- an app with an event loop


def test_blocking_stops_no_event_loop() -> None:
    held = Held()
    monitor = live(metric(held), sinks=(sink := Kept()), workers=1, size=2, when_full="block")

    async def app() -> None:
        for i in range(10):  # this would never return
            monitor.submit(sample(i))

    asyncio.run(app())
    dropped = monitor.stats().reasons["dropped"]
    assert set(dropped) == {"would_block_loop"}
    assert dropped["would_block_loop"] in (7, 8)
    thread = threading.Thread(target=partial(submit, monitor, range(10, 13)))  # without a loop it waits
    thread.start()
    held.let_go()
    thread.join(PATIENCE)
    assert monitor.close(PATIENCE)
    assert {"s10", "s11", "s12"} <= sink.ids


def test_a_judge_with_an_async_half_alone_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="AsyncLLM has async methods only: a monitor calls them on its own event loop"):
        live(ContextRelevancy(llm=AsyncLLM({"ids": [1]})))
    live(ContextRelevancy(llm=FakeLLM({"ids": [1]})))
