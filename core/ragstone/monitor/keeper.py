"""Keeping the outbox: one thread writes samples ahead, forgets them when they are done, and takes up what was left."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ragstone.monitor.delivery import MOST_WAITING, Delivery, Item
from ragstone.monitor.job import Job
from ragstone.monitor.queue import ByteCount
from ragstone.monitor.tally import Tally
from ragstone.store.record import Record

if TYPE_CHECKING:
    from ragstone.store.outbox import Outbox

T = TypeVar("T")

MOST_ATTEMPTS = 11
_BATCH = 500
_FIRST_WAIT, _LONGEST_WAIT = 30.0, 3_600.0  # after a judge's failure; eleven tries last about four hours
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_BETWEEN_ADOPTIONS = 15.0
_SECONDS_AFTER_FAILURE = 1.0


class Room(NamedTuple):
    """How much more memory has room for."""

    samples: int
    bytes: int
    empty: bool = False

    def fits(self, job: Job) -> bool:
        """Return whether there is room for a job."""
        return self.samples > 0 and self.bytes >= job.size

    def without(self, job: Job) -> "Room":
        """Return what is left when a job has come in."""
        return Room(self.samples - 1, self.bytes - job.size)


class Keeper:
    """One process's side of the outbox. Everything that touches the file happens in `turn`, in one thread at a time.

    Args:
        path: The outbox.
        names: The names of the monitor's metrics.
        room: Returns how much more memory has room for.
        give: Hands a job to the workers.
        known: Splits a job that was taken up into what this monitor's metrics can do and what they cannot: leaves the
            former in `todo`, puts the latter into `foreign`.
        tally: The process's counters.
        deliveries: By sink name.

    Attributes:
        arrived: New samples that are not written yet.
        arrived_size: Their size.
        looked_in_vain: How often nothing was left to be taken up, or the file could not be looked into.
        put_off_too: Whether what other processes put off after a judge's failure is taken up before its time.
    """

    def __init__(
        self,
        path: Path,
        *,
        names: Sequence[str],
        room: Callable[[], Room],
        give: Callable[[Job], None],
        known: Callable[[Job], None],
        tally: Tally,
        deliveries: Mapping[str, Delivery],
    ) -> None:
        from ragstone.store.outbox import Outbox  # loads sqlite3

        self._open = partial(Outbox, path)
        self._names = names
        self._room = room
        self._give = give
        self._known = known
        self._tally = tally
        self._deliveries = deliveries
        self._lock = threading.Lock()
        self._outbox: Outbox | None = None
        self._closed = False
        self._use_at = self._look_at = self._adopt_at = -1.0
        self.arrived: deque[Job] = deque()
        self.arrived_size = ByteCount()
        self._done: deque[Job] = deque()
        self._taken: deque[int] = deque()
        self._late: deque[Job] = deque(maxlen=MOST_WAITING)  # rows of samples that were done while the file failed
        self.looked_in_vain = 0
        self.put_off_too = False

    def arrive(self, job: Job) -> None:
        """Take a new sample. O(1), from any thread."""
        self.arrived_size.add(job.size)
        self.arrived.append(job)

    def take_back(self) -> Job:
        """Give back a new sample that is not written.

        Raises:
            IndexError: There is none.
        """
        job = self.arrived.popleft()
        self.arrived_size.add(-job.size)
        return job

    def done(self, job: Job) -> None:
        """Take back a job that has nothing left to do. O(1), from any thread."""
        self._done.append(job)

    def taken(self, rows: Sequence[int]) -> None:
        """Note that a sink has taken records. O(1), from any thread."""
        self._taken.extend(rows)

    def busy(self) -> bool:
        """Whether anything waits to be written that can be written."""
        return bool(self.arrived or self._done or (self._taken and time.monotonic() >= self._use_at))

    def turn(self, *, hurry: bool = False) -> None:
        """Write what waits, and take up what is left if there is room. Raises nothing.

        Args:
            hurry: Look for what is left now, not once a second.
        """
        with self._lock:
            if self._closed:
                return
            if not self._usable() or not self._write():
                self._go_on_without()
            elif hurry or time.monotonic() >= self._look_at:
                self._look()

    def close(self, left: Sequence[Job], late: Callable[[], Sequence[Job]], timeout: float = 5.0) -> None:
        """Write what waits, leave the jobs and what waits in memory to whoever comes next, let go of the file.

        Args:
            left: Jobs that are not done.
            late: Returns those that a turn under way has handed to the workers meanwhile.
            timeout: Seconds to wait for that turn to end; then nothing more is written.
        """
        self._closed = True
        kept = False
        if self._lock.acquire(timeout=timeout):
            try:
                left = [*left, *late()]
                self._use_at = -1.0
                kept = self._usable() and self._put_down(left)
            finally:
                if self._outbox is not None:
                    self._outbox.close()
                    self._outbox = None
                self._lock.release()
        if not kept:
            self._give_up(left)

    # --- inside a turn ----------------------------------------------------------------------------------------

    def _usable(self) -> bool:
        if time.monotonic() < self._use_at:
            return False
        if self._outbox is None:
            try:
                self._outbox = self._open()
            except Exception as error:
                self._failed(error)
                return False
            self._look_at = self._adopt_at = -1.0
            self._fall_behind()  # what an earlier process could not deliver
        return True

    def _fall_behind(self) -> None:
        for delivery in self._deliveries.values():
            delivery.behind = True

    def _failed(self, error: Exception) -> None:
        """Count it and try again soon: a file that is locked or full now need not be so for long."""
        self._tally.failed("outbox", error)
        self._use_at = self._look_at = time.monotonic() + _SECONDS_AFTER_FAILURE
        self.looked_in_vain += 1

    def _go_on_without(self) -> None:
        """Judge and deliver from memory what cannot be written down."""
        for job in _drained(self.arrived):
            self.arrived_size.add(-job.size)
            if self._room().fits(job):
                self._give(job)
            else:
                self._tally.settle("dropped", "outbox_failed", job.open)
        for job in _drained(self._done):
            self._finish_without(job)

    def _finish_without(self, job: Job) -> None:
        """Deliver from memory. Of what could not be judged, the file knows if it has the sample, the sinks if not."""
        if job.saved:
            self._tally.settle("spooled", "outbox", len(job.again))
            self._late.append(job)
        else:
            for failure in job.failures:
                self._tally.settle("unscored", failure.outcome.reason)
            job.records += job.failures
            job.again = []
        self._deliver([(name, Item(None, record)) for record in job.records for name in self._deliveries])
        job.records = []

    def _write(self, *, leave: bool = False) -> bool:
        """Write a batch of each; False when it could not be written."""
        outbox = self._outbox
        if outbox is None or not (self._done or self.arrived or self._taken or self._late):
            return outbox is not None
        arrived, done = _drained(self.arrived, _BATCH), _drained(self._done, _BATCH)
        taken, late = _drained(self._taken, _BATCH), _drained(self._late, _BATCH)
        room = Room(0, 0) if leave else self._room()
        fates: list[tuple[Job, str]] = []
        items: list[tuple[str, Item]] = []
        try:
            with outbox.transaction():
                for job in arrived:
                    mine = room.fits(job)
                    added = outbox.add(job, mine=mine)
                    fates.append((job, "duplicate" if not added else "mine" if mine else "spooled"))
                    if added and mine:
                        room = room.without(job)
                for job in (*late, *done):
                    items += self._finish(outbox, job)
                outbox.delivered(taken)
        except Exception as error:
            self._failed(error)
            for waiting, drained in ((self.arrived, arrived), (self._done, done), (self._late, late)):
                waiting.extendleft(reversed(drained))
            self._taken.extend(taken)
            return False
        for job, fate in fates:
            self.arrived_size.add(-job.size)
            if fate == "mine":
                job.saved = True
                self._give(job)
            elif fate == "duplicate":
                self._tally.settle("duplicate", "in_outbox", job.open)
            else:
                self._tally.settle("spooled", "outbox", job.open)
        for job in done:
            self._tally.settle("spooled", "outbox", len(job.again))
        self._deliver(items)
        return True

    def _finish(self, outbox: "Outbox", job: Job) -> list[tuple[str, Item]]:
        if job.again:
            wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2**job.attempts)
            outbox.put_off(job, wait, attempts=job.attempts + 1)
        elif job.foreign:
            outbox.put_off(job, 0.0, attempts=job.attempts)
        else:
            outbox.remove(job)
        return self._keep(outbox, job.records)

    def _keep(self, outbox: "Outbox", records: Sequence[Record]) -> list[tuple[str, Item]]:
        sinks = list(self._deliveries)
        return [(sink, Item(row, record)) for record in records for sink, row in outbox.keep(record, sinks)]

    def _deliver(self, items: Sequence[tuple[str, Item]]) -> None:
        by_sink: dict[str, list[Item]] = {}
        for sink, item in items:
            by_sink.setdefault(sink, []).append(item)
        for sink, several in by_sink.items():
            self._deliveries[sink].put(several)

    def _look(self) -> None:
        """Take up samples that nobody works on, and records that a sink is behind with."""
        outbox, now, room = self._outbox, time.monotonic(), self._room()
        if outbox is None:
            return
        self._look_at = now + _SECONDS_BETWEEN_LOOKS
        try:
            with outbox.transaction():
                if now >= self._adopt_at:
                    self._adopt_at = now + _SECONDS_BETWEEN_ADOPTIONS
                    if outbox.adopt():
                        self._fall_behind()
                most = min(room.samples, _BATCH) if room.bytes > 0 else 0
                found = self._claimed(outbox, most, room) if most > 0 else []
                again = {
                    name: outbox.undelivered(name, MOST_WAITING)
                    for name, delivery in self._deliveries.items()
                    if delivery.behind and not delivery.waiting() and not self._taken
                }
        except Exception as error:
            self._failed(error)
            return
        for job, left_by_us in found:
            self._take_up(job, left_by_us=left_by_us)
        for name, rows in again.items():
            self._deliveries[name].behind = len(rows) == MOST_WAITING
            self._deliveries[name].put([Item(row, record) for row, record in rows])
        if found or again:
            self._look_at = -1.0  # there may be more
        elif most > 0 and not any(delivery.behind for delivery in self._deliveries.values()):
            self.looked_in_vain += 1

    def _claimed(self, outbox: "Outbox", most: int, room: Room) -> list[tuple[Job, bool]]:
        return outbox.claim(
            most, self._names, most_bytes=room.bytes, first_too=room.empty, put_off_too=self.put_off_too
        )

    def _take_up(self, job: Job, *, left_by_us: bool) -> None:
        self._known(job)
        if left_by_us:
            self._tally.settle("spooled", "outbox", -job.open)
        else:
            self._tally.accept(job.open)
        self._give(job)

    # --- at the end -------------------------------------------------------------------------------------------

    def _put_down(self, left: Sequence[Job]) -> bool:
        """Write all that waits and is left; False when it could not be written."""
        while self.arrived or self._done or self._taken or self._late:
            if not self._write(leave=True):
                return False
        outbox = self._outbox
        if outbox is None:
            return False
        try:
            with outbox.transaction():
                for job in left:
                    outbox.put_off(job, 0.0, attempts=job.attempts)
                    self._keep(outbox, job.records)
        except Exception as error:
            self._tally.failed("outbox", error)
            return False
        for job in left:
            self._tally.settle("spooled", "outbox", job.open)
        return True

    def _give_up(self, left: Sequence[Job]) -> None:
        """Count what cannot be written down. The file may still have some: the next start does these again."""
        arrived = _drained(self.arrived)
        self.arrived_size.add(-sum(job.size for job in arrived))
        for job in (*left, *arrived):
            if job.saved:
                self._tally.settle("spooled", "outbox", job.open)
            else:
                self._tally.cut(job.open)
            self._deliver([(name, Item(None, record)) for record in job.records for name in self._deliveries])
        for job in _drained(self._done):
            self._finish_without(job)


def _drained(items: deque[T], most: int | None = None) -> list[T]:
    """Take out the first items, those that are there now."""
    found: list[T] = []
    with suppress(IndexError):  # a turn that hangs while the monitor is closed may take some, too
        found.extend(items.popleft() for _ in range(len(items) if most is None else min(most, len(items))))
    return found
