"""Delivery: brings outcomes to the sinks, each with a thread of its own, and has alerts count what was stored."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile

from ragstone.background import start_thread
from ragstone.errors import describe
from ragstone.live.alarms import Alarm
from ragstone.live.alerts import Watch
from ragstone.live.counters import Counters, SinkStats
from ragstone.live.health import Health
from ragstone.live.settings import Settings
from ragstone.live.sink import Sink
from ragstone.results.record import Record
from ragstone.results.traffic import Feedback

_BATCH = 200
# A busy monitor hands over many outcomes at once, not one by one.
_SECONDS_BETWEEN_BATCHES = 0.05
_STRIKES = 3


class Delivery:
    """The part of a monitor that brings outcomes to the sinks and watches their means.

    Args:
        settings: The monitor's.
        counters: Where failures are counted.
        taken: Called with the outbox's rows of what a sink has taken.

    Attributes:
        sinks: What waits for each sink, by its name.
        database: Where outcomes are counted, if a sink has one.
    """

    def __init__(self, settings: Settings, counters: Counters, taken: Callable[[list[int]], object]) -> None:
        counted = next((sink for sink in settings.sinks if sink.database is not None), None)
        self.database = None if counted is None else counted.database
        self.sinks: dict[str, SinkQueue] = {}
        self._watch: Watch | None = None
        if settings.alerts and self.database is not None:
            self._watch = Watch(self.database, self._announce, settings.on_alarm, counters.failed)
        for sink in settings.sinks:
            stored = self._watch.count if self._watch and sink is counted else None
            self.sinks[sink.name] = SinkQueue(sink, settings, counters, taken, stored)

    def start(self) -> None:
        """Start the threads, unless they run."""
        for sink in self.sinks.values():
            sink.start()

    def put(self, records: Sequence[Record | Feedback | Alarm]) -> None:
        """Hand over, to each sink, what no outbox has."""
        for sink in self.sinks.values():
            sink.put([Outgoing(None, record) for record in records])

    def report(self, health: Health) -> None:
        """Hand over the process's counters."""
        for sink in self.sinks.values():
            sink.report(health)

    def busy(self) -> bool:
        """Whether a sink has not taken all that is in memory for it."""
        return any(sink.waiting() for sink in self.sinks.values())

    def undelivered(self) -> int:
        """How many outcomes wait in memory or in the outbox, and how many were lost at the end, of all sinks."""
        return sum(sink.undelivered() for sink in self.sinks.values())

    def stats(self) -> dict[str, SinkStats]:
        """How the sinks stand."""
        return {name: sink.stats() for name, sink in self.sinks.items()}

    def close(self, seconds: float) -> None:
        """Give all sinks a last chance, for so many seconds together."""
        for sink in self.sinks.values():
            sink.stop()
        until = time.monotonic() + seconds
        for sink in self.sinks.values():
            sink.join(max(0.0, until - time.monotonic()))
        if self._watch is not None:
            self._watch.end(max(0.0, until - time.monotonic()))

    def _announce(self, alarm: Alarm) -> None:
        for each in self.sinks.values():
            if type(each.sink).alarm is not Sink.alarm:
                each.put([Outgoing(None, alarm)])


@dataclass(slots=True, eq=False)
class Outgoing:
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


class SinkQueue:
    """What waits for one sink, and the thread that hands it over; only this thread calls the sink.

    A batch that the sink refuses is handed over again in small parts, so that one record that it cannot take is soon
    alone. Such a record waits behind the others. It is lost after three refusals, if others were accepted in between.

    Args:
        sink: The sink.
        settings: The monitor's, for the seconds to wait after the sink failed and how many outcomes may wait.
        counters: Where its failures are counted.
        taken: Called with the outbox's rows of what the sink has taken.
        stored: Called when the sink has stored outcomes that an alert watches; earlier processes may have, too.

    Attributes:
        behind: Whether more waits in the outbox than in memory.
        in_outbox: How much then waits there, with what waits in memory.
    """

    def __init__(
        self,
        sink: Sink,
        settings: Settings,
        counters: Counters,
        taken: Callable[[list[int]], object],
        stored: Callable[[], object] | None,
    ) -> None:
        self.sink = sink
        self.behind = False
        self.in_outbox = 0
        self._waits, self._most = settings.waits.sink, settings.waits.outcomes
        self._counters = counters
        self._taken = taken
        self._stored = stored
        self._changed = threading.Condition(threading.RLock())
        self._items: deque[Outgoing] = deque()
        self._in_hand = 0
        self._health: Health | None = None
        self._written = self._failures = self._lost = self._forgotten = 0
        # Those that only the end kept from the sink, and no outbox has.
        self._cut = 0
        self._last_error = ""
        self._stopping = self._closed = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, unless it runs."""
        if self._thread is None:
            self._thread = start_thread(self._run, f"ragstone-sink-{self.sink.name}")

    def put(self, items: Iterable[Outgoing]) -> None:
        """Hand over outcomes. Of too many, those with a row wait in the outbox, the oldest of the others are lost."""
        with self._changed:
            for item in items:
                full = len(self._items) >= self._most
                if self._closed:
                    self._cut += item.row is None
                elif item.row is not None and (self.behind or full):
                    self.behind = True
                else:
                    if full:
                        self._items.popleft()
                        self._lost += 1
                    self._items.append(item)
            self._changed.notify()

    def catch_up(self, items: Sequence[Outgoing]) -> None:
        """Hand over the first of what waits in the outbox."""
        self.behind = False
        self.put(items)
        self.behind = len(items) >= self._most

    def left_out(self) -> None:
        """Count an outcome that is not handed over, as its sample was forgotten."""
        with self._changed:
            self._forgotten += 1

    def report(self, health: Health) -> None:
        """Hand over the process's counters; a later report replaces an earlier one."""
        with self._changed:
            self._health = health
            self._changed.notify()

    def waiting(self) -> int:
        """How many outcomes in memory the sink has not taken."""
        with self._changed:
            return len(self._items) + self._in_hand

    def undelivered(self) -> int:
        """How many outcomes wait in memory or in the outbox, and how many were lost when the sink was closed."""
        with self._changed:
            return max(len(self._items) + self._in_hand, self.in_outbox) + self._cut

    def stats(self) -> SinkStats:
        """How the sink stands."""
        with self._changed:
            return SinkStats(
                written=self._written,
                waiting=max(len(self._items) + self._in_hand, self.in_outbox),
                failures=self._failures,
                lost=self._lost + self._cut,
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
            in_outbox = sum(item.row is not None for item in self._items)
            self.in_outbox = max(self.in_outbox, in_outbox)
            self._cut += len(self._items) - in_outbox
            self._items.clear()

    # --- on its thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        if self._stored is not None:
            self._stored()
        first, longest = self._waits
        size, wait, failures, wrote_at = _BATCH, first, 0, 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._stopping or self._items or self._health))
            if not self._stopping:
                time.sleep(max(0.0, wrote_at + _SECONDS_BETWEEN_BATCHES - time.monotonic()))
            stopping = self._stopping
            health, batch = self._next(size)
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

    def _next(self, size: int) -> tuple[Health | None, list[Outgoing]]:
        """Take out the process's counters, if they are new, and the first things that are of one kind."""
        with self._changed:
            health, self._health = self._health, None
            alike = takewhile(lambda item: type(item.record) is type(self._items[0].record), self._items)
            batch = list(islice(alike, size))
            for _ in batch:
                self._items.popleft()
            self._in_hand = len(batch)
            return health, batch

    def _try(self, call: Callable[[], object]) -> bool:
        """Whether the sink did it. A function of the user's may raise anything; this thread lives on."""
        try:
            call()
        except BaseException as error:
            with self._changed:
                self._failures += 1
                self._last_error = describe(error)
            self._counters.failed(f"sink {self.sink.name}", error)
            return False
        return True

    def _hand_over(self, batch: Sequence[Outgoing]) -> None:
        if records := [item.record for item in batch if isinstance(item.record, Record)]:
            self.sink.write(records)
            if self._stored is not None and any(record.watched for record in records):
                self._stored()
        if feedback := [item.record for item in batch if isinstance(item.record, Feedback)]:
            self.sink.feedback(feedback)
        for item in batch:
            if isinstance(item.record, Alarm):
                self.sink.alarm(item.record)

    def _took(self, batch: Sequence[Outgoing], forgotten: int) -> None:
        if rows := [item.row for item in batch if item.row is not None]:
            # Before nothing waits any more, or the outbox would hand them over again.
            self._taken(rows)
        with self._changed:
            self._written += len(batch) - forgotten
            self._forgotten += forgotten
            self._in_hand = 0

    def _put_back(self, batch: Sequence[Outgoing]) -> None:
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
                self._taken([item.row])
