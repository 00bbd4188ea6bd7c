"""Rows as an event loop can take them, wherever they come from, and never more of them than there is room for."""

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from typing import Final, Protocol

from ragstone.sample import BadLine, Row

Item = Row | BadLine


class Feed(Protocol):
    """Rows one after another, within the room that there is."""

    async def next(self) -> Item | None:
        """Return the next row, when there is room for one; None at the end. Raises what reading raises."""
        ...

    def more(self, rooms: int) -> None:
        """Say that so many rows are done with."""
        ...

    def stop(self) -> None:
        """Read no further."""
        ...


class FromMemory:
    """Reads on the event loop: an iterator that never waits for anything, or an asynchronous one.

    Args:
        rows: The rows.
        window: For how many there is room.
    """

    def __init__(self, rows: Iterator[Item] | AsyncIterator[Item], window: int) -> None:
        self._rows = rows
        self._room = window
        self._waiter: asyncio.Future[None] | None = None

    async def next(self) -> Item | None:
        """Return the next row; None at the end."""
        while self._room <= 0:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        self._room -= 1
        if isinstance(self._rows, AsyncIterator):
            return await anext(self._rows, None)
        return next(self._rows, None)

    def more(self, rooms: int) -> None:
        """Make room for so many rows."""
        self._room += rooms
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def stop(self) -> None:
        """Nothing to do: nobody asks for the next row any more."""


_END: Final = "end"


class FromThread:
    """Reads in a daemon thread: what has been read is scored while a pipe waits for its next line.

    Not a pool's thread: the interpreter waits for those at exit, and a read of a pipe may never return.

    Args:
        rows: The rows.
        window: For how many there is room.
    """

    def __init__(self, rows: Iterable[Item], window: int) -> None:
        self._rows = rows
        self._room = threading.Semaphore(window)
        self._loop = asyncio.get_running_loop()
        self._read: deque[Item | Exception | str] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._stopped = False
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._work,), name="ragstone-rows", daemon=True).start()

    async def next(self) -> Item | None:
        """Return the next row; None at the end."""
        while True:
            if self._read:
                item = self._read.popleft()
                if isinstance(item, Exception):
                    raise item
                return None if isinstance(item, str) else item
            self._waiter = self._loop.create_future()
            if not self._read:  # looked at again: the thread looks for the waiter only after it has put something there
                await self._waiter
            self._waiter = None

    def more(self, rooms: int) -> None:
        """Make room for so many rows."""
        self._room.release(rooms)

    def stop(self) -> None:
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
            self._send(_END)
        except Exception as error:
            self._send(error)

    def _send(self, item: Item | Exception | str) -> None:
        self._read.append(item)
        if self._waiter is not None:
            with suppress(RuntimeError):  # the loop is closed, nobody waits
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
