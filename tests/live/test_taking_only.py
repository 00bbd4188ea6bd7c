"""`workers=0`: the app's process takes samples and writes them down, and another one judges and delivers."""

import asyncio
import threading
from functools import partial
from pathlib import Path

import pytest

from ragstone import BaseLLM, ContextRelevancy, LLMReply, LLMRequest
from ragstone.testing import FakeLLM

from ..support.waiting import soon  # noqa: TID252
from .kit import PATIENCE, Held, Kept, adds_up, live, metric, ours, sample, submit, yes


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
    class Async(BaseLLM):
        model = "async"

        async def agenerate(self, request: LLMRequest, /) -> LLMReply:
            return LLMReply('{"ids": [1]}')

    class Both(Async):
        def generate(self, request: LLMRequest, /) -> LLMReply:
            return LLMReply('{"ids": [1]}')

    with pytest.warns(UserWarning, match="Async has async methods only: a monitor calls them on its own event loop"):
        live(ContextRelevancy(llm=Async()))
    live(ContextRelevancy(llm=Both()))
