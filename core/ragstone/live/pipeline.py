"""One process's part of a monitor: it takes samples, has them judged and delivered, and ends."""

import atexit
import os
import secrets
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from queue import Empty, SimpleQueue
from typing import Any

from pydantic import ValidationError

from ragstone.live.alarms import Alarm
from ragstone.live.alerts import Watch
from ragstone.live.budget import Account
from ragstone.live.counters import STATUSES, Counters, FlushResult, Stats, Status
from ragstone.live.delivery import Delivery, Item, start_thread
from ragstone.live.health import Health
from ragstone.live.ledger import Ledger
from ragstone.live.redaction import RedactionFailed, snapshot
from ragstone.live.settings import Settings
from ragstone.live.sink import Sink
from ragstone.live.trace import own_id
from ragstone.live.worker import Task, TaskQueue, Workers
from ragstone.results.record import Record
from ragstone.results.traffic import Feedback
from ragstone.sample import Sample, first_problem

LOOK = 0.01
_TICK = 0.25
_SECONDS_BETWEEN_REPORTS = 60.0
_JOIN_TIMEOUT = 1.0
_SECONDS_FOR_LAST_CALL = 1.0
_SECONDS_BETWEEN_REMOVALS = 86_400.0
_LONG_ID = 64


def _made(fields: dict[str, Any]) -> Sample:
    try:
        return Sample(**fields)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None  # its own text quotes the app's


class _NotTaken(Exception):  # noqa: N818 - it carries the sample's status
    def __init__(self, reason: str, status: Status = "dropped") -> None:
        super().__init__(reason)
        self.reason = reason
        self.status: Status = status


class RedactedError(Exception):
    """Stands for an exception whose text may quote what is to be redacted."""


class DedupCache:
    """The ids of the last samples, at most `most`. Any thread may use it.

    Example:
        >>> cache = DedupCache(10)
        >>> cache.has("a"), cache.has("a")
        (False, True)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.RLock()  # re-entrant: a signal handler may ask while we look
        self._seen: dict[str | bytes, None] = {}

    def has(self, name: str) -> bool:
        """Return whether an id was here lately, and remember it."""
        key: str | bytes = name
        if len(name) > _LONG_ID:  # ids of a megabyte must not pile up
            key = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            if key in self._seen:
                return True
            self._seen[key] = None
            if len(self._seen) > self._most:
                del self._seen[next(iter(self._seen))]
            return False


class Pipeline:
    """The way of samples through one process: sampling, snapshot, queue, workers, delivery. A forked child has its own.

    Attributes:
        closed: Whether no more samples are taken.
        ended: Set when all that was left was put away.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pid = os.getpid()
        self._name = f"{self._pid}-{secrets.token_hex(4)}"
        self._started_at: float | None = None
        self._starting = threading.Lock()
        self._closing = threading.RLock()  # re-entrant: a signal handler may close while we close
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._recent = DedupCache(max(10_000, 2 * settings.queue.size))
        self._with_origin = [sink for sink in settings.sinks if type(sink).origin is not Sink.origin]
        self.counters = Counters()
        self.queue = TaskQueue()
        self.workers = Workers(settings, self.counters, self.queue, done=self.done, late=self.leave)
        counted = next((sink for sink in settings.sinks if sink.database is not None), None)
        self._database = None if counted is None else counted.database
        self._watch = Watch(self._database, self._announce, settings.on_alarm, self.failed) if settings.alerts else None
        noted = counted or next(iter(settings.sinks), None)
        self.deliveries = {
            sink.name: Delivery(
                sink, self.counters, self.delivered, self._watch.note if self._watch and sink is noted else None
            )
            for sink in settings.sinks
        }
        self.closed = False
        self.ended = threading.Event()

    # --- what an outbox does otherwise ------------------------------------------------------------------------

    def take_up(self) -> None:
        """Begin with what an earlier process left."""

    def put(self, task: Task) -> None:
        """Let a new task wait."""
        self.queue.put(task)

    def forget(self, before: float) -> None:
        """Remove what is from before a time, wherever it is kept."""
        for sink in self._settings.sinks:
            try:
                sink.forget(before=before)
            except Exception as error:  # noqa: PERF203 - one sink's trouble is not the next one's
                self.counters.failed(f"retain in {sink.name}", error)

    def waiting(self) -> int:
        """Return how many samples wait."""
        return len(self.queue)

    def waiting_bytes(self) -> int:
        """Return the size of the samples that wait."""
        return self.queue.bytes

    def drain(self) -> list[Task]:
        """Take out the tasks that wait."""
        return self.queue.drain()

    def done(self, task: Task) -> None:
        """Hand on a task that has nothing left to do, then count what came of it: that is no longer waited for."""
        self.deliver(task.records)
        self.settle(task)

    def delivered(self, rows: list[int]) -> None:
        """Forget what a sink has taken."""

    def turn(self) -> None:
        """Do what is to be done from time to time."""

    def idle(self) -> bool:
        """Return whether nothing is left to do."""
        if self.counters.pending() or self.workers.unsettled:
            return False
        if any(delivery.waiting() for delivery in self.deliveries.values()):
            return False
        return self._watch is None or not self._watch.busy()

    def put_away(self, left: list[Task]) -> None:
        """At the end, settle the tasks that no worker has."""
        for task in left:
            self.leave(task)

    def let_go(self) -> None:
        """Let go of what is open, once the sinks are closed."""

    def leave(self, task: Task) -> None:
        """Hand on what came of a task and count the rest as cut off by the end."""
        self.deliver(task.records)
        self.counters.cut_off(len(task.todo))
        self.settle(task)

    # --- taking samples, on the app's threads -----------------------------------------------------------------

    def submit(self, sample: Sample | dict[str, Any]) -> None:
        """Take a sample, or count why not. O(1); raises nothing that a sample or a user's function may raise."""
        settings, open_ = self._settings, len(self._settings.metrics)
        self.counters.accept(open_)
        place, reason = "submit", "no_sample"
        try:
            sample = _made(sample) if isinstance(sample, dict) else sample
            sample_id = self._id(sample)
            place, reason = "where", "where_failed"
            chosen = settings.sampling.choose(settings.choices, sample, sample_id)
            self.counters.settle("not_sampled", "not_chosen", open_ - len(chosen))
            open_ = len(chosen)
            if not chosen:
                return
            place, reason = "snapshot", "no_snapshot"
            if "id" not in settings.keep:
                sample_id = secrets.token_hex(16)
            kept = snapshot(sample, sample_id, settings.redact)
            place, reason = "submit", "not_started"
            self.start()
            self._enqueue(Task(kept, sample_id, time.time(), chosen, self._origin()))
        except _NotTaken as why:
            self.counters.settle(why.status, why.reason, open_)
        except RedactionFailed as error:
            self.counters.failed("redact", error)
            self.counters.settle("dropped", "redaction_failed", open_)
        except Exception as error:
            self.failed(place, error)
            self.counters.settle("dropped", reason, open_)
        except BaseException:  # Ctrl-C while we wait for room
            self.counters.settle("dropped", "interrupted", open_)
            raise

    def feedback(self, feedback: Feedback) -> None:
        """Let what a person said wait for the sinks; RuntimeError when the monitor is closed."""
        if self.closed:
            raise RuntimeError("the monitor is closed")
        self.start()
        self.deliver([feedback])

    def failed(self, place: str, error: BaseException) -> None:
        """Count an exception in code that saw what is not redacted yet; its text is not kept then."""
        if self._settings.redact is not None:
            error = RedactedError(f"{type(error).__name__}, whose text may quote unredacted data")
        self.counters.failed(place, error)

    def _id(self, sample: object) -> str:
        name: object = sample.id if isinstance(sample, Sample) else sample
        if not isinstance(sample, Sample) or not isinstance(name, str | None):
            raise _NotTaken("no_sample")
        if self.closed:
            raise _NotTaken("closed")
        own = sample.id or own_id(sample.metadata)
        if own and self._recent.has(own):
            raise _NotTaken("same_id", "duplicate")
        return own or secrets.token_hex(16)

    def _origin(self) -> Mapping[str, str]:
        origin: dict[str, str] = {}
        for sink in self._with_origin:
            try:
                origin.update(sink.origin() or {})
            except Exception as error:  # noqa: PERF203 - one sink's trouble is not the next one's
                self.counters.failed(f"sink {sink.name}", error)
        return origin

    def _enqueue(self, task: Task) -> None:
        if task.size > self._settings.queue.bytes:
            raise _NotTaken("too_large")
        if self.is_full(task) and not self.makes_room(task):
            if not self.closed:
                raise _NotTaken("queue_full")
            self.counters.cut_off(len(task.todo))  # it waited for room when the monitor was closed
            return
        self.put(task)
        self.counters.waiting(self.waiting())
        if self.ended.is_set():
            for late in self.drain():
                self.leave(late)

    def is_full(self, task: Task) -> bool:
        """Return whether a task has to wait for room."""
        most, most_bytes = self._settings.queue.size, self._settings.queue.bytes
        return self.waiting() >= most or self.waiting_bytes() + task.size > most_bytes

    def makes_room(self, task: Task) -> bool:
        """Make room for a task, by the monitor's rule; return whether there is some."""
        if self._settings.queue.when_full == "drop_oldest":
            while self.is_full(task):
                if not (oldest := self.queue.drain(1)):
                    return False  # those that wait are on their way to the outbox
                self.counters.settle("dropped", "queue_full", len(oldest[0].todo))
                oldest[0].todo.clear()
                self.done(oldest[0])
            return True
        while self._settings.queue.when_full == "block" and not self.closed:
            if not self.is_full(task):
                return True
            if _runs_a_loop():
                raise _NotTaken("would_block_loop")
            time.sleep(LOOK)
        return False

    # --- what comes of them -----------------------------------------------------------------------------------

    def settle(self, task: Task) -> None:
        """Count what came of a task that was handed on."""
        while task.settled:
            self.counters.settle(*task.settled.pop())

    def deliver(self, records: Sequence[Record | Feedback]) -> None:
        """Hand outcomes and feedback that no outbox has to every sink."""
        for delivery in self.deliveries.values():
            delivery.put([Item(None, record) for record in records])

    def _announce(self, alarm: Alarm) -> None:
        """Hand an alarm to the sinks that take alarms."""
        for delivery in self.deliveries.values():
            if type(delivery.sink).alarm is not Sink.alarm:
                delivery.put([Item(None, alarm)])

    # --- start ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the threads, unless they run. Where no more can be had it raises, and the next call tries again."""
        if self._started_at is not None or not self._starting.acquire(blocking=False):
            return  # they run, or another thread is at it
        try:
            judges = self._settings.queue.workers > 0  # else another process judges and delivers
            if judges and self._settings.budget is not None and self.workers.account is None:
                from ragstone.live.database import memory_database  # loads sqlite3

                ledger = Ledger(self._database or memory_database())
                self.workers.account = Account(self._settings.budget, ledger)
            if self.workers.account is not None:
                self.workers.account.failed = partial(self.counters.failed, "budget")
            for delivery in self.deliveries.values() if judges else ():
                delivery.start()
            if judges and self._watch is not None:
                self._watch.start()
            self.workers.start()
            start_thread(self._maintain, "ragstone-monitor")
            atexit.register(_at_exit, weakref.ref(self))
            self._started_at = time.time()
        finally:
            self._starting.release()

    def wake(self) -> None:
        """Let the thread that maintains the rest take a turn now."""
        if self._bell.empty():
            self._bell.put(None)

    def _maintain(self) -> None:
        """Take turns, look for judges that hang, and report; on a thread of its own."""
        reported = time.monotonic()
        retain, remove_at = self._settings.retain, -1.0
        while not self.ended.is_set():
            try:
                self.turn()
                self.workers.check_timeouts()
                if time.monotonic() - reported >= _SECONDS_BETWEEN_REPORTS:
                    reported = time.monotonic()
                    self._report()
                if retain is not None and self._settings.queue.workers and time.monotonic() >= remove_at:
                    remove_at = time.monotonic() + _SECONDS_BETWEEN_REMOVALS
                    self.forget(time.time() - retain)
            except Exception as error:
                self.counters.failed("monitor", error)
            with suppress(Empty):
                self._bell.get(timeout=_TICK)

    # --- end --------------------------------------------------------------------------------------------------

    def flush(self, timeout: float | None, *, put_off: bool = False) -> FlushResult:
        """Wait until nothing is left to do, as `Monitor.flush` says."""
        del put_off  # there is none without an outbox
        deadline = None if timeout is None else time.monotonic() + timeout
        for delivery in self.deliveries.values():
            delivery.hurry()
        while not self.ended.is_set() and not self.idle():
            if not self.workers.allowed.is_set() or (deadline is not None and time.monotonic() >= deadline):
                break
            time.sleep(LOOK)
        return self._left()

    def _left(self) -> FlushResult:
        undelivered = sum(delivery.undelivered() for delivery in self.deliveries.values())
        return FlushResult(
            remaining=self.counters.remaining(judges=self._settings.queue.workers > 0), undelivered=undelivered
        )

    def close(self, timeout: float | None) -> FlushResult:
        """Take nothing more, do what is left while there is time, and put away the rest."""
        with self._closing:
            if not self.closed:
                until = None if timeout is None else time.monotonic() + timeout
                self.closed = True
                if self._started_at is not None:
                    try:
                        self.flush(timeout)
                    finally:  # also on Ctrl-C
                        self._end(5.0 if until is None else min(5.0, max(0.0, until - time.monotonic())))
        return self._left()

    def at_exit(self) -> None:
        """Put down what is left: no judge can be asked any more, and no thread started."""
        if self.closed or self._pid != os.getpid():  # a forked child runs its parent's exit hooks, too
            return
        self.closed = True
        self._end(1.0)
        if lost := self.stats().reasons.get("dropped", {}).get("closed", 0):
            error = RuntimeError(f"{lost} evaluations were lost: call close(), or use outbox=")
            self.counters.failed("exit", error)
            self.counters.log()

    def _end(self, timeout: float) -> None:
        left = self.workers.stop()
        self.ended.set()  # before the queue is emptied: who puts something in later looks whether it is set
        self.wake()
        self.put_away([*left, *self.queue.drain()])
        self.queue.end(self._settings.queue.workers)
        until = time.monotonic() + _JOIN_TIMEOUT
        while (self.counters.pending() or self.workers.unsettled) and time.monotonic() < until:
            time.sleep(LOOK)  # what a thread had just taken in hand comes back
        self._report()
        for delivery in self.deliveries.values():
            delivery.stop()
        until = time.monotonic() + timeout + _SECONDS_FOR_LAST_CALL
        for delivery in self.deliveries.values():
            delivery.join(max(0.0, until - time.monotonic()))
        if self._watch is not None:
            self._watch.end(max(0.0, until - time.monotonic()))
        self.let_go()
        self.counters.log()

    # --- counters ---------------------------------------------------------------------------------------------

    def _report(self) -> None:
        stats = self.stats()
        health = Health(
            process=self._name,
            at=time.time(),
            started_at=self._started_at or time.time(),
            counts={name: getattr(stats, name) for name in ("samples", "accepted", *STATUSES, "pending")},
            reasons=stats.reasons,
            longest_queue=stats.longest_queue,
        )
        for delivery in self.deliveries.values():
            delivery.report(health)

    def stats(self) -> Stats:
        """Return the counters."""
        stats = self.counters.stats({name: delivery.stats() for name, delivery in self.deliveries.items()})
        account = self.workers.account
        ledger = 0 if account is None else min(stats.pending, len(account.waiting))
        reasons = {**stats.reasons, "pending": {"ledger": ledger}} if ledger else stats.reasons
        return replace(stats, in_hand=len(self.workers.evaluations), queued_bytes=self.waiting_bytes(), reasons=reasons)


def _runs_a_loop() -> bool:
    """Whether this thread runs an event loop, which waiting here would stop for everybody."""
    asyncio: Any = sys.modules.get("asyncio")  # not loaded: none runs
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _at_exit(reference: "weakref.ref[Pipeline]") -> None:
    if (pipeline := reference()) is not None:
        pipeline.at_exit()
