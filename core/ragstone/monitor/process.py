"""One process's part of a monitor: its queue, threads and counters. A forked child gets one of its own."""

import atexit
import contextvars
import os
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Literal, cast

from ragstone.limits.purse import Purse
from ragstone.metrics.base import Metric
from ragstone.monitor.delivery import Delivery, Item
from ragstone.monitor.job import Job
from ragstone.monitor.judging import Judged, gave_up, judge, judged, record
from ragstone.monitor.keeper import MOST_ATTEMPTS, Keeper, Room
from ragstone.monitor.queue import JobQueue
from ragstone.monitor.recent import Recent
from ragstone.monitor.sampling import Choice, Sampling
from ragstone.monitor.snapshot import Redact, RedactionFailed, snapshot
from ragstone.monitor.tally import FATES, Fate, FlushResult, Stats, Tally
from ragstone.monitor.workers import Evaluated, Running, Workers
from ragstone.sample import Sample
from ragstone.store.base import Sink
from ragstone.store.health import Health

WhenFull = Literal["drop_newest", "drop_oldest", "spool", "block"]

_TICK = 0.25
_SECONDS_BETWEEN_REPORTS = 60.0
_LOOK = 0.01
_SECONDS_FOR_HANDS = 1.0
_SECONDS_FOR_LAST_CALL = 1.0
_UNWRITTEN = 10_000  # samples that may wait to be spooled: a burst comes faster than a disk writes


class _NotTaken(Exception):  # noqa: N818 - it is what becomes of the sample
    def __init__(self, fate: Fate, reason: str) -> None:
        super().__init__(fate, reason)
        self.fate: Fate = fate
        self.reason = reason


class Unsaid(Exception):  # noqa: N818 - it stands for one
    """Stands for an exception that may quote what is to be redacted."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a monitor was made with; the same in every process. Meanings as in `Monitor`."""

    metrics: Mapping[tuple[str, str], Metric]
    sinks: Sequence[Sink]
    sampling: Sampling
    max_queue: int
    max_queue_bytes: int
    when_full: WhenFull
    workers: int
    purse: Callable[[], Purse | None]
    redact: Redact | None
    outbox: Path | None
    store_text: bool
    timeout: float
    clock: Callable[[], float]


class Process:
    """Takes samples on the app's threads and does everything else on threads of its own."""

    def __init__(self, settings: Settings) -> None:
        self.pid = os.getpid()
        self.tally = Tally()
        self._settings = settings
        self._name = f"{self.pid}-{secrets.token_hex(4)}"
        self._started_at: float | None = None
        self._starting = threading.Lock()
        self._closed = False
        self._ending = threading.Event()
        self._closing = threading.RLock()  # re-entrant: a signal handler may close while we close
        self._queue = JobQueue()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._hurry = False
        self._recent = Recent(max(10_000, 2 * settings.max_queue))
        self._noters = [sink for sink in settings.sinks if type(sink).origin is not Sink.origin]
        self._purse: Purse | None = None
        self._deliveries = {sink.name: Delivery(sink, self.tally, self._taken) for sink in settings.sinks}
        self._workers = Workers(
            settings.workers,
            self._queue,
            evaluate=self._evaluate,
            done=self._done,
            expired=self._expired,
            returned=self._returned,
            timeout=settings.timeout,
            broken=lambda error: self.tally.failed("worker", error),
        )
        self._keeper = (
            None
            if settings.outbox is None
            else Keeper(
                settings.outbox,
                names=sorted({name for name, _ in settings.metrics}),
                room=self._room,
                give=self._queue.put,
                known=self._known,
                tally=self.tally,
                deliveries=self._deliveries,
            )
        )

    # --- on the app's threads ---------------------------------------------------------------------------------

    def take(self, sample: Sample) -> None:
        """Take a sample, or count why not. O(1); raises nothing that a sample or a user's function may raise."""
        owed = len(self._settings.metrics)
        self.tally.accept(owed)
        try:
            sample_id = self._named(sample)
            chosen = self._chosen(sample, sample_id)
            self.tally.settle("not_sampled", "not_chosen", owed - len(chosen))
            owed = len(chosen)
            if chosen:
                taken = self._snapshot(sample, sample_id)
                self._started()
                self._enqueue(Job(taken, sample_id, self._settings.clock(), chosen, self._origin()))
        except _NotTaken as why:
            self.tally.settle(why.fate, why.reason, owed)
        except BaseException as error:  # Ctrl-C while we wait for room, or something that only looks like a sample
            self.tally.settle("dropped", "no_sample" if isinstance(error, Exception) else "interrupted", owed)
            if not isinstance(error, Exception):
                raise
            self.failed("submit", error)

    def failed(self, place: str, error: BaseException) -> None:
        """Count an exception in code that saw what is not redacted yet; what it says is not kept then."""
        if self._settings.redact is not None:
            error = Unsaid(f"{type(error).__name__}, which may quote what is to be redacted")
        self.tally.failed(place, error)

    def _named(self, sample: Sample) -> str:
        if not isinstance(cast("object", sample), Sample) or not isinstance(cast("object", sample.id), str | None):
            raise _NotTaken("dropped", "no_sample")
        if self._closed:
            raise _NotTaken("dropped", "closed")
        if sample.id and self._recent.has(sample.id):
            raise _NotTaken("duplicate", "same_id")
        return sample.id or secrets.token_hex(16)

    def _chosen(self, sample: Sample, sample_id: str) -> list[Choice]:
        try:
            return self._settings.sampling.choose(sample, sample_id)
        except Exception as error:
            self.failed("where", error)
            raise _NotTaken("dropped", "where_failed") from None

    def _snapshot(self, sample: Sample, sample_id: str) -> Sample:
        try:
            return snapshot(sample, sample_id, self._settings.redact)
        except RedactionFailed as error:
            self.tally.failed("redact", error)
            raise _NotTaken("dropped", "redaction_failed") from None
        except Exception as error:
            self.failed("snapshot", error)
            raise _NotTaken("dropped", "no_snapshot") from None

    def _origin(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for sink in self._noters:
            try:
                found.update(sink.origin() or {})
            except Exception as error:  # noqa: PERF203 - one sink's trouble is not the next one's
                self.tally.failed(f"sink {sink.name}", error)
        return found

    def _started(self) -> None:
        try:
            self.start()
        except Exception as error:  # no thread can be started
            self.tally.failed("submit", error)
            raise _NotTaken("dropped", "not_started") from None

    def _enqueue(self, job: Job) -> None:
        if job.size > self._settings.max_queue_bytes:
            raise _NotTaken("dropped", "too_large")
        if self._full(job) and not self._made_room(job):
            if not self._closed:
                raise _NotTaken("dropped", "queue_full")
            self.tally.cut(job.open)  # it waited for room when the monitor was closed
            return
        if self._keeper is None:
            self._queue.put(job)
        else:
            self._keeper.arrive(job)
            self._awake()
        if self._ending.is_set():
            self._put_away()
        else:
            self.tally.waiting(self._waiting())

    def _waiting(self) -> int:
        return self._queue.qsize() + (len(self._keeper.arrived) if self._keeper else 0)

    def _room(self) -> Room:
        settings, number = self._settings, self._queue.qsize()
        return Room(settings.max_queue - number, settings.max_queue_bytes - self._queue.bytes, empty=not number)

    def _waiting_bytes(self) -> int:
        return self._queue.bytes + (self._keeper.arrived_size.bytes if self._keeper else 0)

    def _full(self, job: Job) -> bool:
        settings = self._settings
        return self._waiting() >= settings.max_queue or self._waiting_bytes() + job.size > settings.max_queue_bytes

    def _made_room(self, job: Job) -> bool:
        match self._settings.when_full:
            case "drop_oldest":
                while self._full(job):
                    if not self._drop_oldest():
                        return False
                return True
            case "block":
                while self._full(job) and not self._closed:
                    time.sleep(_LOOK)
                return not self._closed
            case "spool":  # the keeper finds no room and leaves it in the outbox
                return self._keeper is not None and self._can_be_spooled(self._keeper, job)
            case _:
                return False

    def _can_be_spooled(self, keeper: Keeper, job: Job) -> bool:
        most = max(_UNWRITTEN, self._settings.max_queue)
        return len(keeper.arrived) < most and keeper.arrived_size.bytes + job.size <= self._settings.max_queue_bytes

    def _drop_oldest(self) -> bool:
        try:
            oldest = self._queue.get_nowait()
        except Empty:  # those that wait are on their way to the outbox
            return False
        if oldest is None:
            self._queue.put(None)
            return False
        self.tally.settle("dropped", "queue_full", len(oldest.todo))
        oldest.todo.clear()
        self._done(oldest)
        return True

    # --- starting and ending ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the threads, unless they run.

        Raises:
            RuntimeError: The system gives no more threads. The next call tries again.
        """
        if self._started_at is not None or not self._starting.acquire(blocking=False):
            return  # they run, or another thread is at it
        try:
            self._purse = self._purse or self._settings.purse()
            if self._purse is not None:
                self._purse.failed = partial(self.tally.failed, "budget")
            for delivery in self._deliveries.values():
                delivery.start()
            self._workers.start()
            run = contextvars.Context().run
            threading.Thread(target=run, args=(self._keep_house,), name="ragstone-monitor", daemon=True).start()
            atexit.register(_at_exit, weakref.ref(self))
            self._started_at = self._settings.clock()
        finally:
            self._starting.release()

    def take_up(self) -> None:
        """Start now, not with the first sample, if there may be something in an outbox."""
        if self._keeper is not None and not self._closed:
            self.start()

    def pause(self) -> None:
        """Judge nothing further for now."""
        self._workers.pause()

    def resume(self) -> None:
        """Judge again."""
        self._workers.resume()

    def flush(self, timeout: float | None, *, put_off: bool = False) -> FlushResult:
        """Wait until nothing is left to do, as `Monitor.flush` says."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._keeper is not None and not self._closed:
            self._keeper.put_off_too = put_off
            self.start()  # there may be something in the outbox
        looked = 0
        while not self._ending.is_set():
            if (
                self.tally.pending()
                or self._workers.settling()
                or any(delivery.waiting() for delivery in self._deliveries.values())
            ):
                looked = 0
            elif self._keeper is None:
                break
            else:
                looked = looked or self._keeper.looked_in_vain + 2  # the first may have begun before
                if self._nothing_in_outbox(self._keeper, looked):
                    break
            if self._workers.paused or (deadline is not None and time.monotonic() >= deadline):
                break
            time.sleep(_LOOK)
        if self._keeper is not None:
            self._keeper.put_off_too = False
        return self._left()

    def _nothing_in_outbox(self, keeper: Keeper, looked: int) -> bool:
        self._hurry = True
        self._awake()
        return keeper.looked_in_vain >= looked and not keeper.busy()

    def _left(self) -> FlushResult:
        undelivered = sum(delivery.undelivered() for delivery in self._deliveries.values())
        return FlushResult(remaining=self.tally.remaining(), undelivered=undelivered)

    def close(self, timeout: float | None) -> FlushResult:
        """Take nothing more, do what is left while there is time, and leave the rest to the outbox."""
        with self._closing:
            if not self._closed:
                until = None if timeout is None else time.monotonic() + timeout
                self._closed = True
                if self._started_at is not None:
                    try:
                        self.flush(timeout)
                    finally:  # also on Ctrl-C
                        self._end(5.0 if until is None else min(5.0, max(0.0, until - time.monotonic())))
        return self._left()

    def at_exit(self) -> None:
        """Put down what is left: no judge can be asked any more, and no thread started."""
        if self._closed:
            return
        self._closed = True
        self._end(1.0)
        if lost := self.stats().reasons.get("dropped", {}).get("closed", 0):
            self.tally.failed("exit", RuntimeError(f"{lost} evaluations were not made: call close(), or use outbox="))
            self.tally.say()

    def _end(self, timeout: float) -> None:
        left = self._workers.stop()
        if self._purse is not None:
            self._purse.close()
        self._ending.set()  # before the queue is emptied: who puts something in later looks whether it is set
        left += self._emptied()
        self._awake()
        if self._keeper is not None:
            self._keeper.close(left, self._emptied)
        else:
            for job in left:
                self._deliver(job)
            self.tally.cut(sum(job.open for job in left))
        self._workers.release()
        for job in left:
            self._settle(job)
        until = time.monotonic() + _SECONDS_FOR_HANDS
        while (self.tally.pending() or self._workers.settling()) and time.monotonic() < until:
            time.sleep(_LOOK)  # what a thread had just taken in hand comes back
        self._report()
        for delivery in self._deliveries.values():
            delivery.stop()
        until = time.monotonic() + timeout + _SECONDS_FOR_LAST_CALL
        for delivery in self._deliveries.values():
            delivery.join(max(0.0, until - time.monotonic()))
        self.tally.say()

    def _emptied(self) -> list[Job]:
        found: list[Job] = []
        with suppress(Empty):
            while True:
                found += filter(None, [self._queue.get_nowait()])
        return found

    def _put_away(self) -> None:
        """Count what came when all had been put away."""
        late = self._emptied()
        self._workers.release()  # the threads' own signs to end were among them
        if self._keeper is not None:
            with suppress(IndexError):
                while True:
                    late.append(self._keeper.take_back())
        for job in late:
            self.tally.cut(job.open)

    # --- on threads of its own --------------------------------------------------------------------------------

    def _awake(self) -> None:
        if self._bell.empty():
            self._bell.put(None)

    def _keep_house(self) -> None:
        reported = time.monotonic()
        while not self._ending.is_set():
            try:
                if self._keeper is not None:
                    hurry, self._hurry = self._hurry, False
                    self._keeper.turn(hurry=hurry)
                self._workers.look()
                if time.monotonic() - reported >= _SECONDS_BETWEEN_REPORTS:
                    reported = time.monotonic()
                    self._report()
            except Exception as error:
                self.tally.failed("monitor", error)
            with suppress(Empty):
                self._bell.get(timeout=_TICK)

    def _evaluate(self, job: Job, running: Running) -> Evaluated:
        choice = job.todo[0]
        metric = self._settings.metrics[choice.metric, choice.version]
        meter = None
        try:
            if self._purse is not None:
                meter = self._purse.meter(metric.name, metric.version, running.untimed)
            result = judge(metric, job, meter)
        except Exception as error:  # ours: what a judge or a metric raises is an outcome already
            self.tally.failed("evaluation", error)
            detail = f"{type(error).__name__} was raised inside the monitor; the log of ragstone.monitor says more"
            result = judged(gave_up(metric, "cancelled", detail))
        except BaseException as error:  # what ends threads, raised by a judge: this one lives on
            result = judged(gave_up(metric, "cancelled", f"{type(error).__name__} was raised in the judge"))
        return Evaluated(lambda: self._note(job, metric, result), _nothing if meter is None else meter.settle)

    def _expired(self, job: Job) -> Job:
        metric = self._settings.metrics[job.todo[0].metric, job.todo[0].version]
        other = job.copy()
        detail = f"the judge did not answer within {self._settings.timeout:g} s (the monitor's timeout)"
        self._note(other, metric, judged(gave_up(metric, "timeout", detail)))
        return other

    def _note(self, job: Job, metric: Metric, result: Judged) -> None:
        choice = job.todo.pop(0)
        if result.outcome is not None:
            stored, now = self._settings.store_text, self._settings.clock()
            try:
                outcome = record(metric, job, choice, result.outcome, store_text=stored, now=now)
            except Exception as error:  # a metric or judge of the user's whose name, version or model is no text
                self.tally.failed("record", error)
                job.fates.append(("dropped", "no_record"))
                return
            if result.can_try_again and self._keeper is not None and job.attempts + 1 < MOST_ATTEMPTS:
                job.again.append(choice)
                job.failures.append(outcome)
                return  # counted when the outbox has it
            job.records.append(outcome)
        job.fates.append((result.fate, result.reason))

    def _done(self, job: Job) -> None:
        if self._keeper is None:
            self._deliver(job)
        else:
            self._keeper.done(job)
            self._awake()
        self._settle(job)

    def _settle(self, job: Job) -> None:
        """Count what came of a job, now that it was handed on: what is counted is no longer waited for."""
        fates, job.fates = job.fates, []
        for fate, reason in fates:
            self.tally.settle(fate, reason)

    def _deliver(self, job: Job) -> None:
        for delivery in self._deliveries.values():
            delivery.put([Item(None, record) for record in job.records])

    def _taken(self, rows: list[int]) -> None:
        if self._keeper is not None:
            self._keeper.taken(rows)
            self._awake()

    def _returned(self, job: Job) -> None:
        """Count a job that came back from a worker after all was put away; the outbox still has it, if it ever did."""
        self._deliver(job)
        if job.saved:
            self.tally.settle("spooled", "outbox", job.open)
        else:
            self.tally.cut(job.open)
        self._settle(job)

    def _known(self, job: Job) -> None:
        """Put what this monitor has no metric for into `foreign`; a metric of another version takes its place."""
        by_name = {name: key for key in self._settings.metrics for name in key[:1]}
        todo, job.todo = job.todo, []
        for choice in todo:
            if (choice.metric, choice.version) in self._settings.metrics:
                job.todo.append(choice)
            elif choice.metric in by_name:
                job.todo.append(choice._replace(version=by_name[choice.metric][1]))
            else:
                job.foreign.append(choice)

    def _report(self) -> None:
        stats = self.stats()
        if self._started_at is None:
            return
        health = Health(
            process=self._name,
            at=self._settings.clock(),
            started_at=self._started_at,
            counts={name: getattr(stats, name) for name in ("samples", "accepted", *FATES, "pending")},
            reasons=stats.reasons,
            longest_queue=stats.longest_queue,
        )
        for delivery in self._deliveries.values():
            delivery.report(health)

    def stats(self) -> Stats:
        """Return the counters."""
        stats = self.tally.stats(lambda: {name: delivery.stats() for name, delivery in self._deliveries.items()})
        waiting = min(stats.pending, self._purse.waiting) if self._purse else 0
        reasons = {**stats.reasons, "pending": {"ledger": waiting}} if waiting else stats.reasons
        return replace(stats, in_hand=self._workers.in_hand(), queued_bytes=self._waiting_bytes(), reasons=reasons)


def _nothing() -> None:
    pass


def _at_exit(reference: "weakref.ref[Process]") -> None:
    process = reference()
    if process is not None and process.pid == os.getpid():  # a forked child runs its parent's exit hooks, too
        process.at_exit()
