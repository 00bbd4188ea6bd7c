"""Bringing outcomes to one sink: a thread of its own, in batches, again and again until the sink takes them."""

import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile

from ragstone.errors import describe
from ragstone.live.alarms import Alarm
from ragstone.live.counters import Counters, SinkStats
from ragstone.live.health import Health
from ragstone.live.sink import Sink
from ragstone.results.record import Record
from ragstone.results.traffic import Feedback

_BATCH = 200
_SECONDS_BETWEEN_BATCHES = 0.05  # a busy monitor hands over many outcomes at once, not one by one
_STRIKES = 3


@dataclass(slots=True, eq=False)
class Item:
    """An outcome for a sink, feedback, or an alarm.

    Attributes:
        row: Its row in the outbox; None without one.
        record: The outcome, what a person said of one, or the alarm.
        strikes: How often the sink refused it alone and had taken others since the last time.
        written: How many outcomes the sink had taken when it last refused this one alone.
    """

    row: int | None
    record: Record | Feedback | Alarm
    strikes: int = 0
    written: int = -1


class Delivery:
    """What waits for one sink, and the thread that hands it over; only this thread calls the sink.

    A batch that the sink refuses is handed over again in small parts, so that one record that it cannot take is soon
    alone. Such a record waits behind the others; after three refusals between which others were taken it is lost.

    Args:
        sink: The sink.
        waits: Seconds to wait after it failed, the first time and at most.
        most: Outcomes that may wait in memory.
        counters: Where its failures are counted.
        delivered: Called with the outbox's rows of what the sink has taken.
        stored: Called with the outcomes that the sink has stored.
    """

    def __init__(
        self,
        sink: Sink,
        waits: tuple[float, float],
        most: int,
        counters: Counters,
        delivered: Callable[[list[int]], None],
        stored: Callable[[Sequence[Record]], object] | None = None,
    ) -> None:
        self.sink = sink
        self._waits, self._most = waits, most
        self._stored = stored
        self.behind = False  # whether more waits in the outbox than in memory
        self.in_outbox = 0  # how much then waits there, with what waits in memory
        self._counters = counters
        self._delivered = delivered
        self._changed = threading.Condition(threading.RLock())
        self._items: deque[Item] = deque()
        self._in_hand = 0
        self._health: Health | None = None
        self._written = self._failures = self._lost = self._forgotten = 0
        self._cut = 0  # those of the lost that only the end kept from the sink
        self._last_error = ""
        self._stopping = self._closed = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, unless it runs."""
        if self._thread is None:
            self._thread = start_thread(self._run, f"ragstone-sink-{self.sink.name}")

    def put(self, items: Iterable[Item]) -> None:
        """Hand over outcomes. Of too many, those with a row wait in the outbox, the oldest of the others are lost."""
        with self._changed:
            for item in items:
                if self._closed:
                    self._cut_off([item])
                elif item.row is not None and (self.behind or len(self._items) >= self._most):
                    self.behind = True
                elif len(self._items) < self._most:
                    self._items.append(item)
                else:
                    self._items.popleft()
                    self._items.append(item)
                    self._lost += 1
            self._changed.notify()

    def left_out(self) -> None:
        """Count an outcome that is not handed over, as its sample was forgotten."""
        with self._changed:
            self._forgotten += 1

    def report(self, health: Health) -> None:
        """Hand over the process's counters; a later report takes an earlier one's place."""
        with self._changed:
            self._health = health
            self._changed.notify()

    def waiting(self) -> int:
        """Return how many outcomes in memory the sink has not taken."""
        with self._changed:
            return len(self._items) + self._in_hand

    def undelivered(self) -> int:
        """Return how many outcomes wait in memory or in the outbox, and how many were lost when the sink was closed."""
        with self._changed:
            return max(self.waiting(), self.in_outbox) + self._cut

    def stats(self) -> SinkStats:
        """Return how the sink stands."""
        with self._changed:
            return SinkStats(
                written=self._written,
                waiting=max(self.waiting(), self.in_outbox),
                failures=self._failures,
                lost=self._lost,
                last_error=self._last_error,
                forgotten=self._forgotten,
            )

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
            self.in_outbox = max(self.in_outbox, sum(item.row is not None for item in self._items))
            self._cut_off(self._items)
            self._items.clear()

    def _cut_off(self, items: Iterable[Item]) -> None:
        lost = sum(item.row is None for item in items)  # the outbox has the others
        self._lost += lost
        self._cut += lost

    # --- on its thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        first, longest = self._waits
        size, wait, failures, wrote_at = _BATCH, first, 0, 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._stopping or self._items or self._health))
            if not self._stopping:
                time.sleep(max(0.0, wrote_at + _SECONDS_BETWEEN_BATCHES - time.monotonic()))
            with self._changed:
                stopping, health, self._health = self._stopping, self._health, None
                alike = takewhile(lambda item: type(item.record) is type(self._items[0].record), self._items)
                batch = list(islice(alike, size))
                for _ in batch:
                    self._items.popleft()
                self._in_hand = len(batch)
            if health is not None:
                self._try(partial(self.sink.health, health))
            wrote_at, forgotten = time.monotonic(), self.sink.forgotten
            if batch and self._try(partial(self._hand_over, batch)):
                self._took(batch, self.sink.forgotten - forgotten)
                size, wait, failures = min(2 * size, _BATCH), first, 0
            elif batch:
                self._put_back(batch)
                size, failures = 1, failures + stopping
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping, wait)
                wait = min(wait * 2, longest)
            if stopping and (not batch or failures > _STRIKES):
                break
        self._give_up()
        self._try(self.sink.close)

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

    def _hand_over(self, batch: Sequence[Item]) -> None:
        if records := [item.record for item in batch if isinstance(item.record, Record)]:
            self.sink.write(records)
            if self._stored is not None:
                self._stored(records)
        if feedback := [item.record for item in batch if isinstance(item.record, Feedback)]:
            self.sink.feedback(feedback)
        for item in batch:
            if isinstance(item.record, Alarm):
                self.sink.alarm(item.record)

    def _took(self, batch: Sequence[Item], forgotten: int) -> None:
        rows = [item.row for item in batch if item.row is not None]
        if rows:
            self._delivered(rows)  # before nothing waits any more, or the outbox would hand them over again
        with self._changed:
            self._written += len(batch) - forgotten
            self._forgotten += forgotten
            self._in_hand = 0

    def _put_back(self, batch: Sequence[Item]) -> None:
        with self._changed:
            self._in_hand = 0
            if len(batch) > 1:
                self._items.extendleft(reversed(batch))
                return
            (item,) = batch
            if self._written > item.written:
                item.strikes, item.written = item.strikes + 1, self._written
            if item.strikes < _STRIKES:
                self._items.append(item)
                return
            self._lost += 1
            if item.row is not None:
                self._delivered([item.row])


def start_thread(work: Callable[[], None], name: str) -> threading.Thread:
    """Start a daemon thread with nothing of the app's context: no trace, no callbacks."""
    thread = threading.Thread(target=contextvars.Context().run, args=(work,), name=name, daemon=True)
    thread.start()
    return thread
