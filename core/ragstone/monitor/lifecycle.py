"""One process's part of a monitor, from its start to its end. A forked child gets one of its own."""

import atexit
import os
import secrets
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue

from ragstone.monitor.counters import STATUSES, FlushResult, Stats
from ragstone.monitor.delivery import Delivery, deliver
from ragstone.monitor.intake import LOOK, Intake
from ragstone.monitor.outbox_worker import OutboxWorker
from ragstone.monitor.settings import Settings
from ragstone.monitor.task import Shared, Task
from ragstone.monitor.worker import Workers, start_thread
from ragstone.store.base import Health

_TICK = 0.25
_SECONDS_BETWEEN_REPORTS = 60.0
_JOIN_TIMEOUT = 1.0
_SECONDS_FOR_LAST_CALL = 1.0


class Pipeline:
    """The way of samples through one process: intake, queue or outbox, workers, delivery.

    Attributes:
        shared: What its parts share.
        intake: Takes samples on the app's threads.
        workers: Judge them.
    """

    def __init__(self, settings: Settings) -> None:
        self._pid = os.getpid()
        self._settings = settings
        self._name = f"{self._pid}-{secrets.token_hex(4)}"
        self._started_at: float | None = None
        self._starting = threading.Lock()
        self._closing = threading.RLock()  # re-entrant: a signal handler may close while we close
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._hurry = False
        self.shared = shared = Shared(settings)
        self._queue = shared.queue
        self._deliveries = {sink.name: Delivery(sink, self.shared.counters, self._delivered) for sink in settings.sinks}
        outbox = settings.outbox
        self._outbox = None if outbox is None else OutboxWorker(outbox, shared, self._deliveries)
        self.workers = Workers(shared, done=self._done, late=self._late)
        self.intake = Intake(shared, self._outbox, start=self.start, queued=self._queued, done=self._done)

    # --- start ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the threads, unless they run. Where no more can be had it raises, and the next call tries again."""
        if self._started_at is not None or not self._starting.acquire(blocking=False):
            return  # they run, or another thread is at it
        try:
            account = self.shared.account = self.shared.account or self._settings.account()
            if account is not None:
                account.failed = partial(self.shared.counters.failed, "budget")
            for delivery in self._deliveries.values():
                delivery.start()
            self.workers.start()
            start_thread(self._maintain, "ragstone-monitor")
            atexit.register(_at_exit, weakref.ref(self))
            self._started_at = self._settings.clock()
        finally:
            self._starting.release()

    def take_up(self) -> None:
        """Start now, not with the first sample, if there may be something in an outbox."""
        if self._outbox is not None and not self.shared.closed:
            self.start()

    # --- the way of a task ------------------------------------------------------------------------------------

    def _queued(self) -> None:
        if self.shared.ended.is_set():
            self._put_away()
        elif self._outbox is not None:
            self._wake()

    def _done(self, task: Task) -> None:
        """Hand on a task that has nothing left to do."""
        if self._outbox is None:
            deliver(self._deliveries.values(), task.records)
        else:
            self._outbox.done(task)
            self._wake()
        self._settle(task)

    def _settle(self, task: Task) -> None:
        """Count what came of a task, now that it was handed on: what is counted is no longer waited for."""
        settled, task.settled = task.settled, []
        for status, reason in settled:
            self.shared.counters.settle(status, reason)

    def _delivered(self, rows: list[int]) -> None:
        if self._outbox is not None:
            self._outbox.delivered(rows)
            self._wake()

    def _late(self, task: Task) -> None:
        """Count a task that comes when all was put away. The outbox still has it, if it ever did."""
        deliver(self._deliveries.values(), task.records)
        if task.saved:
            self.shared.counters.settle("spooled", "outbox", task.open)
        else:
            self.shared.counters.cut_off(task.open)
        self._settle(task)

    def _put_away(self) -> None:
        late = self._queue.drain()
        self.workers.release()  # the threads' own signs to end were among them
        for task in late + ([] if self._outbox is None else self._outbox.arrivals.drain()):
            self._late(task)

    def _wake(self) -> None:
        if self._bell.empty():
            self._bell.put(None)

    def _maintain(self) -> None:
        """Write the outbox, look for judges that hang, and report; on a thread of its own."""
        reported = time.monotonic()
        while not self.shared.ended.is_set():
            try:
                if self._outbox is not None:
                    hurry, self._hurry = self._hurry, False
                    self._outbox.turn(hurry=hurry)
                self.workers.check_timeouts()
                if time.monotonic() - reported >= _SECONDS_BETWEEN_REPORTS:
                    reported = time.monotonic()
                    self._report()
            except Exception as error:
                self.shared.counters.failed("monitor", error)
            with suppress(Empty):
                self._bell.get(timeout=_TICK)

    # --- end --------------------------------------------------------------------------------------------------

    def flush(self, timeout: float | None, *, put_off: bool = False) -> FlushResult:
        """Wait until nothing is left to do, as `Monitor.flush` says."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._outbox is not None and not self.shared.closed:
            self._outbox.put_off_too = put_off
            self.start()  # there may be something in the outbox
        polls = 0
        while not self.shared.ended.is_set():
            if (
                self.shared.counters.pending()
                or self.workers.settling()
                or any(delivery.waiting() for delivery in self._deliveries.values())
            ):
                polls = 0
            elif self._outbox is None:
                break
            else:
                polls = polls or self._outbox.empty_polls + 2  # the first may have begun before
                self._hurry = True
                self._wake()
                if self._outbox.empty_polls >= polls and not self._outbox.busy():
                    break
            if self.workers.paused or (deadline is not None and time.monotonic() >= deadline):
                break
            time.sleep(LOOK)
        if self._outbox is not None:
            self._outbox.put_off_too = False
        return self._left()

    def _left(self) -> FlushResult:
        undelivered = sum(delivery.undelivered() for delivery in self._deliveries.values())
        return FlushResult(remaining=self.shared.counters.remaining(), undelivered=undelivered)

    def close(self, timeout: float | None) -> FlushResult:
        """Take nothing more, do what is left while there is time, and leave the rest to the outbox."""
        with self._closing:
            if not self.shared.closed:
                until = None if timeout is None else time.monotonic() + timeout
                self.shared.closed = True
                if self._started_at is not None:
                    try:
                        self.flush(timeout)
                    finally:  # also on Ctrl-C
                        self._end(5.0 if until is None else min(5.0, max(0.0, until - time.monotonic())))
        return self._left()

    def at_exit(self) -> None:
        """Put down what is left: no judge can be asked any more, and no thread started."""
        if self.shared.closed or self._pid != os.getpid():  # a forked child runs its parent's exit hooks, too
            return
        self.shared.closed = True
        self._end(1.0)
        if lost := self.stats().reasons.get("dropped", {}).get("closed", 0):
            error = RuntimeError(f"{lost} evaluations were not made: call close(), or use outbox=")
            self.shared.counters.failed("exit", error)
            self.shared.counters.log()

    def _end(self, timeout: float) -> None:
        left = self.workers.stop()
        if self.shared.account is not None:
            self.shared.account.closed.set()
        self.shared.ended.set()  # before the queue is emptied: who puts something in later looks whether it is set
        left += self._queue.drain()
        self._wake()
        if self._outbox is not None:
            self._outbox.close(left, self._queue.drain)
        else:
            for task in left:
                deliver(self._deliveries.values(), task.records)
            self.shared.counters.cut_off(sum(task.open for task in left))
        self.workers.release()
        for task in left:
            self._settle(task)
        until = time.monotonic() + _JOIN_TIMEOUT
        while (self.shared.counters.pending() or self.workers.settling()) and time.monotonic() < until:
            time.sleep(LOOK)  # what a thread had just taken in hand comes back
        self._report()
        for delivery in self._deliveries.values():
            delivery.stop()
        until = time.monotonic() + timeout + _SECONDS_FOR_LAST_CALL
        for delivery in self._deliveries.values():
            delivery.join(max(0.0, until - time.monotonic()))
        self.shared.counters.log()

    # --- counters ---------------------------------------------------------------------------------------------

    def _report(self) -> None:
        stats = self.stats()
        if self._started_at is None:
            return
        health = Health(
            process=self._name,
            at=self._settings.clock(),
            started_at=self._started_at,
            counts={name: getattr(stats, name) for name in ("samples", "accepted", *STATUSES, "pending")},
            reasons=stats.reasons,
            longest_queue=stats.longest_queue,
        )
        for delivery in self._deliveries.values():
            delivery.report(health)

    def stats(self) -> Stats:
        """Return the counters."""
        stats = self.shared.counters.stats({name: delivery.stats() for name, delivery in self._deliveries.items()})
        account = self.shared.account
        waiting = 0 if account is None else min(stats.pending, len(account.waiting))
        reasons = {**stats.reasons, "pending": {"ledger": waiting}} if waiting else stats.reasons
        return replace(stats, in_hand=self.workers.in_hand(), queued_bytes=self.intake.waiting_bytes(), reasons=reasons)


def _at_exit(reference: "weakref.ref[Pipeline]") -> None:
    if (pipeline := reference()) is not None:
        pipeline.at_exit()
