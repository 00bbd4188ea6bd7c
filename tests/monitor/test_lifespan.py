"""Closing with the app: context manager, ASGI lifespan."""

import asyncio
import threading
from typing import Any

import pytest

from .kit import Held, Kept, live, metric, sample


def test_leaving_the_block_closes_and_what_comes_later_is_counted() -> None:
    with live(sinks=(sink := Kept())) as monitor:
        monitor.submit(sample(1))
    assert monitor.close(0.0).done
    monitor.submit(sample(1))
    monitor.submit(sample(2))
    assert monitor.stats().reasons == {"dropped": {"closed": 2}}
    assert monitor.flush()
    assert (sink.ids, sink.closed) == ({"s1"}, 1)


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


def test_an_app_that_is_cancelled_is_closed_all_the_same() -> None:
    async def serve() -> None:
        async with monitor.lifespan():
            monitor.submit(sample(1))
            await asyncio.sleep(3_600)

    async def main() -> None:
        task = asyncio.ensure_future(serve())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    monitor = live(sinks=(sink := Kept()))
    asyncio.run(main())
    assert sink.ids == {"s1"}
