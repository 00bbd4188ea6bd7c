"""Rows of an iterator that may wait, as an event loop can take them."""

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Literal

from ragstone.sample import BadLine, Row

Item = Row | BadLine


class ThreadedRows:
    """An asynchronous iterator over rows that a daemon thread reads: some are scored while a pipe waits for the next.

    Not a pool's thread: the interpreter waits for those at exit, and a read of a pipe may never return.

    Args:
        rows: The rows.
        ahead: How many are read before they are asked for, at most.
    """

    def __init__(self, rows: Iterable[Item], ahead: int) -> None:
        self._rows = rows
        self._ahead = ahead
        self._room = threading.Semaphore(ahead)
        self._taken = 0
        self._loop = asyncio.get_running_loop()
        self._read: deque[Item | Exception | Literal["end"]] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._stopped = False
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._work,), name="ragstone-rows", daemon=True).start()

    def __aiter__(self) -> "ThreadedRows":
        return self

    async def __anext__(self) -> Item:
        while not self._read:
            self._waiter = self._loop.create_future()
            if not self._read:  # looked at again: the thread looks for the waiter only after it has put something there
                await self._waiter
            self._waiter = None
        item = self._read.popleft()
        self._taken += 1
        if 2 * self._taken >= self._ahead:  # the thread is not woken for each
            self._room.release(self._taken)
            self._taken = 0
        if item == "end":
            raise StopAsyncIteration
        if isinstance(item, Exception):
            raise item
        return item

    async def aclose(self) -> None:
        """Read no further than the row that is being read."""
        self._stopped = True
        self._room.release()

    def _work(self) -> None:
        try:
            rows = iter(self._rows)
            while self._room.acquire() and not self._stopped:
                row = next(rows, None)
                if row is None:
                    break
                self._send(row)
                del row
            self._send("end")
        except Exception as error:
            self._send(error)

    def _send(self, item: Item | Exception | Literal["end"]) -> None:
        self._read.append(item)
        if self._waiter is not None:
            with suppress(RuntimeError):  # the loop is closed, nobody waits
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
