"""The scheduler: which row is evaluated when, at any length in constant memory."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from ragstone.batch.evaluations import Evaluations, RowUnderWay
from ragstone.batch.rows import RunRows
from ragstone.limits.limiter import GateClosed
from ragstone.sample import BadLine, Row


class Scheduler:
    """Has rows evaluated, many at once, and hands each on as it is done with.

    Args:
        rows: What is to be scored.
        evaluations: What makes an outcome. Its gate is closed when the run is stopped.
        take: Gets each row when it is done with, and each bad line when it is read. What it raises ends the run.
        calls: How many calls there are at once. Twice as many evaluations are under way, so that the judge is busy
            while others compute; one where calls go in turn, so that what shares a text is asked together. Sixteen
            times as many rows are held, from being read to being done with.
    """

    def __init__(
        self, rows: RunRows, evaluations: Evaluations, take: Callable[[RowUnderWay | BadLine], object], calls: int
    ) -> None:
        self._rows = rows
        self._evaluations = evaluations
        self._take = take
        self._most = 1 if calls == 1 else 2 * calls
        self._held = 16 * calls
        self._free = asyncio.Semaphore(self._held)
        # In the order in which they were read.
        self._under_way: dict[RowUnderWay, None] = {}
        self._jobs: deque[tuple[RowUnderWay, int]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._reading: asyncio.Task[None] | None = None
        self._all_read = False
        self._changed = asyncio.Event()
        self._failure: BaseException | None = None
        self._unreadable: Exception | None = None

    def stop(self) -> None:
        """Begin nothing more: calls in flight end, what is scored by then still comes out, then the run ends."""
        self._jobs.clear()
        self._evaluations.gate.close()
        if self._reading is not None:
            self._reading.cancel()
        # Said here, too: a task that is cancelled before its first step does nothing at all.
        self._all_read = True
        self._changed.set()

    async def run(self) -> None:
        """Score the rows. However it ends, all that was made has come out, also of rows that were under way.

        Raises:
            JournalError: The journal cannot be read or written.
            Exception: What reading the rows raises, when the rows before it are done with; what `take` raises.
        """
        self._rows.begin(self._held)
        self._reading = asyncio.ensure_future(self._read())
        try:
            while not (self._ends() or (self._all_read and not self._jobs and not self._tasks)):
                self._changed.clear()
                await self._changed.wait()
            if error := self._failure or self._unreadable:
                raise error
        finally:
            self._evaluations.ending = True
            self._rows.close()
            tasks = [self._reading, *self._tasks]
            for task in tasks:
                task.cancel()
            try:
                await asyncio.gather(*tasks, return_exceptions=True)
            finally:
                for row in self._under_way:
                    if row.made():
                        self._note_and_take(row)

    def _ends(self) -> bool:
        return self._failure is not None or self._evaluations.ending

    async def _read(self) -> None:
        try:
            while await self._read_one():
                pass
        except Exception as error:
            self._unreadable = error
        finally:
            self._all_read = True
            self._changed.set()

    async def _read_one(self) -> bool:
        """Read the next row; whether there was one. What has read it ends, and so holds nothing of it."""
        await self._free.acquire()
        row = await self._rows.next()
        if isinstance(row, Row):
            read = RowUnderWay(row, len(self._evaluations.metrics))
            self._under_way[read] = None
            self._jobs.extend([(read, number) for number in range(read.left)])
            self._begin()
        elif row is not None:
            self._hand_on(row)
        return row is not None

    def _begin(self) -> None:
        """Begin evaluations, as many as may be under way."""
        while self._jobs and len(self._tasks) < self._most and not self._ends():
            row, number = self._jobs.popleft()
            task = asyncio.ensure_future(self._evaluations.make(row, number))
            self._tasks.add(task)
            task.add_done_callback(partial(self._ended, row))

    def _ended(self, row: RowUnderWay, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        # What the gate was closed to was not asked: there is no outcome.
        if error is not None and not isinstance(error, GateClosed):
            self._failure = self._failure or error
        if not row.left and row in self._under_way:
            del self._under_way[row]
            self._hand_on(row)
        self._begin()
        if not self._tasks or self._failure is not None:
            self._changed.set()

    def _hand_on(self, row: RowUnderWay | BadLine) -> None:
        self._free.release()
        try:
            self._note_and_take(row)
        except BaseException as error:
            self._failure = self._failure or error
        self._changed.set()

    def _note_and_take(self, row: RowUnderWay | BadLine) -> None:
        if isinstance(row, RowUnderWay):
            self._evaluations.note(row.made())
        self._take(row)
