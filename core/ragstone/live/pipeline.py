"""One process's part of a monitor: it takes samples, has them judged and delivered, and ends."""

import atexit
import os
import secrets
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any

from pydantic import ValidationError

from ragstone.live.alarms import Alarm
from ragstone.live.alerts import Watch
from ragstone.live.counters import STATUSES, Counters, FlushResult, Stats
from ragstone.live.delivery import Delivery, Item, start_thread
from ragstone.live.health import Health
from ragstone.live.queue import MemoryQueue, Task, TaskQueue
from ragstone.live.redaction import RedactionFailed, snapshot
from ragstone.live.settings import Settings
from ragstone.live.sink import Sink
from ragstone.live.trace import own_id
from ragstone.live.worker import Workers
from ragstone.results.traffic import Feedback
from ragstone.sample import Sample, first_problem

LOOK = 0.01
_TICK = 0.25
_SECONDS_BETWEEN_REPORTS = 60.0
_JOIN_TIMEOUT = 1.0
_SECONDS_FOR_LAST_CALL = 1.0


def _made(fields: dict[str, Any]) -> Sample:
    try:
        return Sample(**fields)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None  # its own text quotes the app's


class _NotTaken(Exception):  # noqa: N818 - it carries the sample's status and the reason
    pass


class RedactedError(Exception):
    """Stands for an exception whose text may quote what is to be redacted."""


class Pipeline:
    """The way of samples through one process: sampling, snapshot, queue, workers, delivery. A forked child has its own.

    Attributes:
        closed: Whether no more samples are taken.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pid = os.getpid()
        self._name = f"{self._pid}-{secrets.token_hex(4)}"
        self._started_at: float | None = None
        self._starting = threading.Lock()
        self._closing = threading.RLock()  # re-entrant: a signal handler may close while we close
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._recent: dict[int, None] = {}  # hashes of the last ids: ids of a megabyte must not pile up
        self._noting = threading.RLock()  # re-entrant: a signal handler may submit while we note an id
        self._with_origin = [sink for sink in settings.sinks if type(sink).origin is not Sink.origin]
        self.counters = Counters()
        self.deliveries: dict[str, Delivery] = {}
        self.queue = self._make_queue()
        counted = next((sink for sink in settings.sinks if sink.database is not None), None)
        self._database = None if counted is None else counted.database
        self.workers = Workers(settings, self.counters, self.queue, self._database)
        self._watch: Watch | None = None
        if settings.alerts and self._database is not None:
            self._watch = Watch(self._database, self._announce, settings.on_alarm, self.failed)
        for sink in settings.sinks:
            self.deliveries[sink.name] = Delivery(
                sink,
                settings.waits.sink,
                settings.waits.outcomes,
                self.counters,
                self.queue.delivered,
                self._watch.note if self._watch and sink is counted else None,
            )
        self.closed = False

    def _make_queue(self) -> TaskQueue:
        settings = self._settings
        if settings.outbox is None:
            return MemoryQueue(settings.queue, self.counters, self.deliveries)
        # Loads sqlite3. Imported late, in a thread of ours, a fork meanwhile would leave it half-imported.
        from ragstone.live.file_queue import FileQueue

        return FileQueue(settings, self.counters, self.deliveries, settings.outbox, self.wake)

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
            status, reason = why.args
            self.counters.settle(status, reason, open_)
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
        self.queue.say(feedback)

    def failed(self, place: str, error: BaseException) -> None:
        """Count an exception in code that saw what is not redacted yet; its text is not kept then."""
        if self._settings.redact is not None:
            error = RedactedError(f"{type(error).__name__}, whose text may quote unredacted data")
        self.counters.failed(place, error)

    def _id(self, sample: object) -> str:
        name: object = sample.id if isinstance(sample, Sample) else sample
        if not isinstance(sample, Sample) or not isinstance(name, str | None):
            raise _NotTaken("dropped", "no_sample")
        if self.closed:
            raise _NotTaken("dropped", "closed")
        own = sample.id or own_id(sample.metadata)
        if own and self._is_recent(hash(own)):
            raise _NotTaken("duplicate", "same_id")
        return own or secrets.token_hex(16)

    def _is_recent(self, key: int) -> bool:
        with self._noting:
            known = key in self._recent
            self._recent[key] = None
            if len(self._recent) > max(10_000, 2 * self._settings.queue.size):
                del self._recent[next(iter(self._recent))]
            return known

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
            raise _NotTaken("dropped", "too_large")
        if not self._make_room(task):
            self.counters.cut_off(len(task.todo))  # it waited for room when the monitor was closed
            return
        self.queue.put(task)
        self.counters.waiting(self.queue.count()[0])

    def _make_room(self, task: Task) -> bool:
        """Make room for a task by the monitor's rule; False when the monitor was closed meanwhile."""
        while not self.queue.has_room(task):
            if self._settings.queue.when_full == "drop_oldest":
                if not self.queue.drop():
                    raise _NotTaken("dropped", "queue_full")
            elif self.closed:
                return False
            elif _runs_a_loop():
                raise _NotTaken("dropped", "would_block_loop")
            else:
                time.sleep(LOOK)
        return True

    def _announce(self, alarm: Alarm) -> None:
        """Hand an alarm to the sinks that take alarms."""
        for delivery in self.deliveries.values():
            if type(delivery.sink).alarm is not Sink.alarm:
                delivery.put([Item(None, alarm)])

    # --- start ------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Go on with what an earlier process left in the outbox, although no sample came yet."""
        if self.queue.keeps and not self.closed:
            self.start()

    def start(self) -> None:
        """Start the threads, unless they run. Where no more can be had it raises, and the next call tries again."""
        if self._started_at is not None or not self._starting.acquire(blocking=False):
            return  # they run, or another thread is at it
        try:
            judges = self._settings.queue.workers > 0  # else another process judges and delivers
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
        while not self.queue.ended.is_set():
            try:
                self.queue.maintain()
                self.workers.check_timeouts()
                if time.monotonic() - reported >= _SECONDS_BETWEEN_REPORTS:
                    reported = time.monotonic()
                    self._report()
            except Exception as error:
                self.counters.failed("monitor", error)
            with suppress(Empty):
                self._bell.get(timeout=_TICK)

    # --- end --------------------------------------------------------------------------------------------------

    def flush(self, timeout: float | None, *, put_off: bool = False) -> FlushResult:
        """Wait until nothing is left to do, as `Monitor.flush` says."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self.closed:
            self.begin()
        asked = False  # since something was left to do here
        while not self.queue.ended.is_set():
            if self._busy():
                asked = False
            elif not asked:
                self.queue.ask(put_off=put_off)
                asked = True
            if asked and not self.queue.has_more():
                break
            if not self.workers.allowed.is_set() or (deadline is not None and time.monotonic() >= deadline):
                break
            time.sleep(LOOK)
        return self._left()

    def _busy(self) -> bool:
        """Return whether anything is left to do, but for what others may have left in the queue."""
        watches = self._watch is not None and self._watch.busy()
        delivers = any(delivery.waiting() for delivery in self.deliveries.values())
        return bool(self.counters.pending() or delivers or watches or self.queue.busy())

    def _left(self) -> FlushResult:
        undelivered = sum(delivery.undelivered() for delivery in self.deliveries.values())
        return FlushResult(remaining=self.counters.remaining() + self.queue.in_file, undelivered=undelivered)

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
                        self._warn_of_rest("closed")
                else:
                    self.queue.close()
        return self._left()

    def at_exit(self) -> None:
        """Put down what is left: no judge can be asked any more, and no thread started."""
        if self.closed or self._pid != os.getpid():  # a forked child runs its parent's exit hooks, too
            return
        self.closed = True
        self._end(1.0)
        stats = self.stats()
        judged = stats.scored or stats.unscored
        self._warn_of_rest("the process ended without close()" + ("" if judged else ", and nothing was judged"))

    def _warn_of_rest(self, why: str) -> None:
        """Log how much was left when the monitor ended, and where it is."""
        stats, path = self.stats(), self._settings.outbox
        waiting = sum(sink.waiting for sink in stats.sinks.values())
        cut, undelivered = stats.reasons.get("dropped", {}).get("closed", 0), self._left().undelivered - waiting
        rest: list[str] = []
        if self._settings.queue.workers and (self.queue.in_file or waiting):  # else another process goes on with them
            go_on = f"the next start goes on with them, or: ragstone live worker --outbox {path}"
            rest.append(f"{self.queue.in_file:,} evaluations and {waiting:,} outcomes wait in {path}; {go_on}")
        if cut or undelivered:
            lost = f"{cut:,} evaluations and {undelivered:,} outcomes were lost"
            rest.append(f"{lost}: call close() and give it time, or use outbox=")
        if rest:
            self.counters.warn(f"{why}: {'; '.join(rest)}")

    def _end(self, timeout: float) -> None:
        self.queue.end(self.workers.stop())
        self.wake()
        until = time.monotonic() + _JOIN_TIMEOUT
        while self.counters.pending() and time.monotonic() < until:
            time.sleep(LOOK)  # what a thread had just taken in hand comes back
            self.queue.maintain()
        self._report()
        for delivery in self.deliveries.values():
            delivery.stop()
        until = time.monotonic() + timeout + _SECONDS_FOR_LAST_CALL
        for delivery in self.deliveries.values():
            delivery.join(max(0.0, until - time.monotonic()))
        if self._watch is not None:
            self._watch.end(max(0.0, until - time.monotonic()))
        self.queue.close()
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
        _, queued = self.queue.count()
        return replace(stats, in_hand=len(self.workers.evaluations), queued_bytes=queued)


def _runs_a_loop() -> bool:
    """Whether this thread runs an event loop, which waiting here would stop for everybody."""
    asyncio: Any = sys.modules.get("asyncio")  # not loaded: none runs
    with suppress(RuntimeError):
        return asyncio is not None and asyncio.get_running_loop() is not None
    return False


def _at_exit(reference: "weakref.ref[Pipeline]") -> None:
    if (pipeline := reference()) is not None:
        pipeline.at_exit()
