"""Bringing outcomes to one sink: a thread of its own, in batches, again and again until the sink takes them."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ragstone.errors import describe
from ragstone.monitor.counters import Counters, SinkStats
from ragstone.monitor.worker import start_thread
from ragstone.store.base import Sink
from ragstone.store.health import Health
from ragstone.store.record import Record

MOST_WAITING = 10_000
_BATCH = 200
_STRIKES = 3
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 30.0


class Item(NamedTuple):
    """An outcome for the sink, and its row in the outbox; None without one."""

    row: int | None
    record: Record


class Delivery:
    """What waits for one sink, and the thread that hands it over.

    Args:
        sink: The sink. Only this thread calls it.
        counters: Where its failures are counted.
        taken: Called with the outbox's rows of what the sink has taken.

    Attributes:
        behind: Whether more waits in the outbox than in memory.
    """

    def __init__(self, sink: Sink, counters: Counters, taken: Callable[[list[int]], None]) -> None:
        self.sink = sink
        self.behind = False
        self._counters = counters
        self._taken = taken
        self._changed = threading.Condition(threading.RLock())
        self._items: deque[Item] = deque()
        self._in_hand = 0
        self._health: Health | None = None
        self._strikes: dict[tuple[str, str, str], int] = {}
        self._written = self._failures = self._lost = 0
        self._cut = 0  # those of the lost that only the end kept from the sink
        self._last_error = ""
        self._stopping = self._closed = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, unless it runs.

        Raises:
            RuntimeError: The system gives no more threads.
        """
        if self._thread is None:
            self._thread = start_thread(self._run, f"ragstone-sink-{self.sink.name}")

    def put(self, items: Sequence[Item]) -> None:
        """Hand over outcomes. Beyond 10,000, those with a row wait in the outbox, the oldest of the others are lost."""
        with self._changed:
            for item in items:
                if self._closed:
                    self._cut_off([item])
                elif len(self._items) < MOST_WAITING:
                    self._items.append(item)
                elif item.row is not None:
                    self.behind = True
                else:
                    self._items.popleft()
                    self._items.append(item)
                    self._lost += 1
            self._changed.notify()

    def report(self, health: Health) -> None:
        """Hand over the process's counters; a later report takes an earlier one's place."""
        with self._changed:
            self._health = health
            self._changed.notify()

    def waiting(self) -> int:
        """Return how many outcomes the sink has not taken."""
        with self._changed:
            return len(self._items) + self._in_hand

    def undelivered(self) -> int:
        """Return how many outcomes the sink has not taken, with those that were lost when it was closed."""
        with self._changed:
            return self.waiting() + self._cut

    def stats(self) -> SinkStats:
        """Return how the sink stands."""
        with self._changed:
            waiting = len(self._items) + self._in_hand
            return SinkStats(self._written, waiting, self._failures, self._lost, self._last_error)

    def stop(self) -> None:
        """Give the sink its last chance; what it does not take then is lost, but for what the outbox has."""
        with self._changed:
            self._stopping = True
            self._changed.notify()

    def join(self, timeout: float) -> None:
        """Wait after `stop` until the sink is closed, or hangs for longer than `timeout` seconds."""
        if self._thread is not None:
            self._thread.join(timeout)
        self._give_up()

    def _run(self) -> None:
        wait = _FIRST_WAIT
        while self._something():
            taken = self._round()
            if not taken:
                self._pause(wait)
            wait = _FIRST_WAIT if taken else min(wait * 2, _LONGEST_WAIT)
        while self._round() and self.waiting():
            pass
        self._give_up()
        try:
            self.sink.close()
        except BaseException as error:
            self._failed(error)

    def _give_up(self) -> None:
        with self._changed:
            self._closed = True
            self._cut_off(self._items)
            self._items.clear()

    def _cut_off(self, items: Iterable[Item]) -> None:
        lost = sum(item.row is None for item in items)  # the outbox has the others
        self._lost += lost
        self._cut += lost

    def _something(self) -> bool:
        """Wait until there is something to hand over; False when there is no more to come."""
        with self._changed:
            while not self._items and self._health is None and not self._stopping:
                self._changed.wait()
            return not self._stopping

    def _round(self) -> bool:
        """Hand over a batch; False when the sink took nothing of it."""
        self._say_health()
        with self._changed:
            batch = [self._items.popleft() for _ in range(min(_BATCH, len(self._items)))]
            self._in_hand = len(batch)
        return not batch or self._hand_over(batch)

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        with self._changed:
            while not self._stopping and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)

    def _hand_over(self, batch: list[Item]) -> bool:
        """Return whether the sink took anything."""
        try:
            self.sink.write([item.record for item in batch])
        except BaseException as error:  # a function of the user's may raise anything; this thread lives on
            self._failed(error)
            taken, refused, left = self._one_by_one(batch) if len(batch) > 1 else ([], batch, [])
        else:
            taken, refused, left = batch, [], []
        if taken:
            refused = [item for item in refused if not self._struck_out(item)]
        if self._strikes:
            for item in taken:
                self._strikes.pop(item.record.key, None)
        rows = [item.row for item in taken if item.row is not None]
        if rows:
            self._taken(rows)  # before nothing waits any more, or the outbox would hand them over again
        with self._changed:
            self._written += len(taken)
            self._items.extendleft(reversed(left))
            self._items.extend(refused)  # behind the others, which these would keep from the sink
            self._in_hand = 0
        return bool(taken)

    def _one_by_one(self, batch: list[Item]) -> tuple[list[Item], list[Item], list[Item]]:
        """Find the records that the sink refuses; return those that it took, these, and those that were not tried."""
        taken: list[Item] = []
        refused: list[Item] = []
        for place, item in enumerate(batch):
            if len(refused) >= _STRIKES and not taken:  # it is the sink, not a record
                return taken, refused, batch[place:]
            try:
                self.sink.write([item.record])
                taken.append(item)
            except BaseException as error:
                self._failed(error)
                refused.append(item)
        return taken, refused, []

    def _struck_out(self, item: Item) -> bool:
        """Give up a record that the sink refused three times while it took others."""
        key = item.record.key
        self._strikes[key] = self._strikes.get(key, 0) + 1
        if self._strikes[key] < _STRIKES:
            return False
        del self._strikes[key]
        with self._changed:
            self._lost += 1
        if item.row is not None:
            self._taken([item.row])
        return True

    def _say_health(self) -> None:
        with self._changed:
            health, self._health = self._health, None
        if health is not None:
            try:
                self.sink.health(health)
            except BaseException as error:
                self._failed(error)

    def _failed(self, error: BaseException) -> None:
        message = describe(error)
        with self._changed:
            self._failures += 1
            self._last_error = message
        self._counters.failed(f"sink {self.sink.name}", error)
