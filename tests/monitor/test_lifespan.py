"""Closing with the app: context manager, ASGI lifespan."""

import asyncio
import threading
from typing import Any

import pytest

from ragstone import Monitor

from .kit import Held, Kept, live, metric, sample


def test_leaving_the_block_closes() -> None:
    with live(sinks=(sink := Kept())) as monitor:
        assert isinstance(monitor, Monitor)
        monitor.submit(sample(1))
    assert sink.ids == {"s1"}
    assert sink.closed == 1
    monitor.submit(sample(2))
    assert monitor.stats().dropped == 1


def test_a_lifespan_closes_off_the_loop() -> None:
    """The loop goes on while what is left is judged: a judge may need it."""
    held = Held()
    judged_on: list[int] = []

    def reply(request: Any) -> Any:
        judged_on.append(threading.get_ident())
        return held(request)

    async def serve() -> None:
        async with monitor.lifespan():
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


async def _served(app: Any, inside: Any) -> list[str]:
    """Do what a server does: the ASGI lifespan protocol."""
    sent: list[str] = []
    started = asyncio.Event()
    phases: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message["type"])
        started.set()

    await phases.put({"type": "lifespan.startup"})
    task = asyncio.ensure_future(app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, phases.get, send))
    await started.wait()
    inside()
    await phases.put({"type": "lifespan.shutdown"})
    await task
    return sent


def test_a_starlette_app() -> None:
    applications = pytest.importorskip("starlette.applications", reason="Starlette is not installed")
    monitor = live(sinks=(sink := Kept()))
    app = applications.Starlette(lifespan=monitor.lifespan)
    sent = asyncio.run(_served(app, lambda: monitor.submit(sample(1))))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert sink.ids == {"s1"}
