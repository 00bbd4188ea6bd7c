"""Bringing outcomes to one sink: a thread of its own, in batches, again and again until the sink takes them."""

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from ragstone.errors import describe
from ragstone.monitor.counters import Counters, SinkStats
from ragstone.monitor.worker import start_thread
from ragstone.store.base import Health, Sink
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
    """What waits for one sink, and the thread that hands it over; only this thread calls the sink.

    Args:
        sink: The sink.
        counters: Where its failures are counted.
        delivered: Called with the outbox's rows of what the sink has taken.

    Attributes:
        behind: Whether more waits in the outbox than in memory.
    """

    def __init__(self, sink: Sink, counters: Counters, delivered: Callable[[list[int]], None]) -> None:
        self.sink = sink
        self.behind = False
        self._counters = counters
        self._delivered = delivered
        self._changed = threading.Condition(threading.RLock())
        self._items: deque[Item] = deque()
        self._in_hand = 0
        self._health: Health | None = None
        self._refusals: Counter[tuple[str, str, str]] = Counter()
        self._written = self._failures = self._lost = 0
        self._cut = 0  # those of the lost that only the end kept from the sink
        self._last_error = ""
        self._stopping = self._closed = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, unless it runs."""
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
            return SinkStats(self._written, self.waiting(), self._failures, self._lost, self._last_error)

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

    def _give_up(self) -> None:
        with self._changed:
            self._closed = True
            self._cut_off(self._items)
            self._items.clear()

    def _cut_off(self, items: Iterable[Item]) -> None:
        lost = sum(item.row is None for item in items)  # the outbox has the others
        self._lost += lost
        self._cut += lost

    # --- on its thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        wait = _FIRST_WAIT
        while not self._wait(lambda: bool(self._items or self._health is not None)):
            if self._round():
                wait = _FIRST_WAIT
            else:
                self._wait(lambda: False, wait)
                wait = min(wait * 2, _LONGEST_WAIT)
        while self._round() and self.waiting():
            pass
        self._give_up()
        self._try(self.sink.close)

    def _wait(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until a condition is true, or for so long, or until `stop`; return whether it is to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or condition(), seconds)
            return self._stopping

    def _try(self, call: Callable[[], object]) -> bool:
        """Return whether the sink did it. A function of the user's may raise anything; this thread lives on."""
        try:
            call()
        except BaseException as error:
            with self._changed:
                self._failures += 1
                self._last_error = describe(error)
            self._counters.failed(f"sink {self.sink.name}", error)
            return False
        return True

    def _round(self) -> bool:
        """Hand over the health and a batch; return False when the sink took nothing of the batch."""
        with self._changed:
            health, self._health = self._health, None
        if health is not None:
            self._try(lambda: self.sink.health(health))
        with self._changed:
            batch = [self._items.popleft() for _ in range(min(_BATCH, len(self._items)))]
            self._in_hand = len(batch)
        return not batch or self._hand_over(batch)

    def _hand_over(self, batch: list[Item]) -> bool:
        taken, refused, left = batch, list[Item](), list[Item]()
        if not self._try(lambda: self.sink.write([item.record for item in batch])):
            taken, refused, left = self._one_by_one(batch) if len(batch) > 1 else ([], batch, [])
        if taken:
            refused = [item for item in refused if not self._is_given_up(item)]
        for item in taken if self._refusals else ():
            self._refusals.pop(item.record.key, None)
        rows = [item.row for item in taken if item.row is not None]
        if rows:
            self._delivered(rows)  # before nothing waits any more, or the outbox would hand them over again
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
            written = self._try(partial(self.sink.write, [item.record]))
            (taken if written else refused).append(item)
        return taken, refused, []

    def _is_given_up(self, item: Item) -> bool:
        """Give up a record that the sink refused three times while it took others."""
        key = item.record.key
        self._refusals[key] += 1
        if self._refusals[key] < _STRIKES:
            return False
        del self._refusals[key]
        with self._changed:
            self._lost += 1
        if item.row is not None:
            self._delivered([item.row])
        return True


def deliver(deliveries: Iterable[Delivery], records: Sequence[Record]) -> None:
    """Hand outcomes that no outbox has to every sink."""
    items = [Item(None, record) for record in records]
    for delivery in deliveries:
        delivery.put(items)
