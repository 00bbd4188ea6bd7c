"""The ways in which a runnable is called, and forms paired with ways."""

import asyncio
import itertools
from collections.abc import Iterable, Sequence
from typing import Any


def sampled(rows: Iterable[Any], columns: Sequence[Any], times: int) -> list[tuple[Any, Any]]:
    """Return each row with some of the columns, so that every column comes up as often as any other."""
    pairs = zip((row for row in rows for _ in range(times)), itertools.cycle(columns), strict=False)
    return list(pairs)


def named(value: Any) -> str:
    return value if isinstance(value, str) else value.__name__


def invoke(runnable, asked, config):
    return runnable.invoke(asked, config)


def ainvoke(runnable, asked, config):
    return asyncio.run(runnable.ainvoke(asked, config))


def stream(runnable, asked, config, **options):
    return list(runnable.stream(asked, config, **options))


def astream(runnable, asked, config, **options):
    async def read():
        return [piece async for piece in runnable.astream(asked, config, **options)]

    return asyncio.run(read())


def astream_events(runnable, asked, config):
    async def read():
        return [event async for event in runnable.astream_events(asked, config, version="v2")]

    return asyncio.run(read())


def batch(runnable, asked, config):
    return runnable.batch([asked], config)


def abatch(runnable, asked, config):
    return asyncio.run(runnable.abatch([asked], config))
