"""One process's part of a monitor: it takes samples, has them judged and delivered, and ends."""

import atexit
import os
import secrets
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ragstone.live.alarms import Alarm
from ragstone.live.alerts import Watch
from ragstone.live.counters import STATUSES, Counters, FlushResult, Stats
from ragstone.live.delivery import Delivery, Item, start_thread
from ragstone.live.health import Health
from ragstone.live.pending import Pending
from ragstone.live.redaction import RedactionFailed, snapshot
from ragstone.live.settings import Settings
from ragstone.live.sink import Sink
from ragstone.live.trace import own_id
from ragstone.live.worker import Load, Task, TaskQueue, Workers
from ragstone.live.writes import Write, Writes
from ragstone.results.record import Record
from ragstone.results.traffic import Feedback
from ragstone.sample import Sample, first_problem

if TYPE_CHECKING:
    from ragstone.live.outbox import Outbox

LOOK = 0.01
_TICK = 0.25
_SECONDS_BETWEEN_REPORTS = 60.0
_JOIN_TIMEOUT = 1.0
_SECONDS_FOR_LAST_CALL = 1.0
_SECONDS_BETWEEN_REMOVALS = 86_400.0
_MOST_CLAIMED = 500
_UNWRITTEN = 10_000  # samples that may wait to be spooled: a burst comes faster than a disk writes


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

    With an outbox, a new sample waits to be written first; then it waits for the workers, in memory if there is room.
    Its outcomes wait to be written, and then for their sinks. While the file cannot be used, all is done from memory.

    Attributes:
        closed: Whether no more samples are taken.
        ended: Set when nothing more is judged or written.
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
        self.queue = TaskQueue()
        counted = next((sink for sink in settings.sinks if sink.database is not None), None)
        self._database = None if counted is None else counted.database
        self.workers = Workers(settings, self.counters, self.queue, self.done, self._database)
        self._watch: Watch | None = None
        if settings.alerts and self._database is not None:
            self._watch = Watch(self._database, self._announce, settings.on_alarm, self.failed)
        self.deliveries = {
            sink.name: Delivery(
                sink,
                settings.waits.sink,
                settings.waits.outcomes,
                self.counters,
                self.delivered,
                self._watch.note if self._watch and sink is counted else None,
            )
            for sink in settings.sinks
        }
        self.closed = False
        self.ended = threading.Event()
        failed = partial(self.counters.failed, "outbox")
        self._writes = Writes(settings.outbox, settings.waits, self.wake, self._outbox_opened, failed)
        self._spooling = Load()  # tasks that wait to be written, and not to be judged here
        self._versions = dict(iter(settings.metrics))  # by name
        self._delivered_rows: set[int] = set()  # that wait to be removed from the file
        self._look_at = self._adopt_at = -1.0

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
        if self.closed or len(self._writes) >= 2 * _UNWRITTEN:
            raise RuntimeError("the monitor is closed, or too many samples wait to be written")
        self.start()
        self._writes.add(Write(partial(_say, feedback), lambda: self.deliver([feedback])))

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
        load = self._makes_room(task)
        if load is None:
            self.counters.cut_off(len(task.todo))  # it waited for room when the monitor was closed
            return
        load.add(task)
        self._writes.add(Write(partial(self._new_to_file, task, load), partial(self._new_from_memory, task, load)))
        self.counters.waiting(load.tasks)
        if self.ended.is_set():
            for write in self._writes.drain():
                write.from_memory()
            for late in self.queue.drain():
                self.done(late)

    def _makes_room(self, task: Task) -> Load | None:
        """Return where there is room for a task, made by the monitor's rule; None when it was closed meanwhile."""
        queue = self._settings.queue
        load, most = self.queue.load if queue.workers else self._spooling, queue.size
        if queue.when_full == "spool" and load.is_full(task, most, queue.bytes):
            load, most = self._spooling, max(_UNWRITTEN, most)
        while load.is_full(task, most, queue.bytes):
            if queue.when_full == "drop_oldest" and (oldest := self.queue.drain(1)):
                self.counters.settle("dropped", "queue_full", len(oldest[0].todo))
                oldest[0].todo.clear()
                self.done(oldest[0])
            elif self.closed:
                return None
            elif queue.when_full != "block":
                raise _NotTaken("dropped", "queue_full")
            elif _runs_a_loop():
                raise _NotTaken("dropped", "would_block_loop")
            else:
                time.sleep(LOOK)
        return load

    # --- what comes of them -----------------------------------------------------------------------------------

    def done(self, task: Task) -> None:
        """Hand on a task that is judged, or that a worker had at the end; then it is no longer waited for."""
        if self.ended.is_set():
            self._judged_from_memory(task)
        else:
            self._writes.add(Write(partial(self._judged_to_file, task), partial(self._judged_from_memory, task)))
        self.settle(task)

    def settle(self, task: Task) -> None:
        """Count what came of a task that was handed on."""
        while task.settled:
            self.counters.settle(*task.settled.pop())

    def deliver(self, records: Sequence[Record | Feedback]) -> None:
        """Hand outcomes and feedback that no outbox has to every sink."""
        for delivery in self.deliveries.values():
            delivery.put([Item(None, record) for record in records])

    def delivered(self, rows: list[int]) -> None:
        """Have outcomes that a sink has taken removed from the file."""

        def write(outbox: "Outbox") -> Callable[[], object]:
            outbox.delivered(rows)
            return partial(self._delivered_rows.difference_update, rows)

        self._delivered_rows.update(rows)
        self._writes.add(Write(write, lambda: True))

    def forget(self, before: float) -> None:
        """Remove what is from before a time, wherever it is kept."""
        for sink in self._settings.sinks:
            try:
                sink.forget(before=before)
            except Exception as error:  # noqa: PERF203 - one sink's trouble is not the next one's
                self.counters.failed(f"retain in {sink.name}", error)
        with self._writes.held() as mine:
            if mine:
                self._writes.forget(before)

    def _announce(self, alarm: Alarm) -> None:
        """Hand an alarm to the sinks that take alarms."""
        for delivery in self.deliveries.values():
            if type(delivery.sink).alarm is not Sink.alarm:
                delivery.put([Item(None, alarm)])

    # --- the outbox -------------------------------------------------------------------------------------------

    def _new_to_file(self, task: Task, load: Load, outbox: "Outbox") -> Callable[[], object]:
        mine = load is self.queue.load and not self.ended.is_set()
        new = outbox.add(task, mine=mine)

        def written() -> None:
            if not new:
                self.counters.settle("duplicate", "in_outbox", len(task.todo))
            elif mine:
                task.saved = True
                self.queue.put(task)
            else:
                self.counters.settle("spooled", "outbox", len(task.todo))
            load.add(task, -1)  # for a moment it is counted twice, rather than not at all

        return written

    def _new_from_memory(self, task: Task, load: Load) -> None:
        if self.ended.is_set():
            self._judged_from_memory(task)
        elif load is self.queue.load:
            self.queue.put(task)
        else:
            self.counters.settle("dropped", "outbox_failed", len(task.todo))
        load.add(task, -1)

    def _judged_to_file(self, task: Task, outbox: "Outbox") -> Callable[[], object]:
        """Write down the outcomes of a task, and what of it is still to be done."""
        if rest := [*task.retries, *task.todo, *task.foreign]:
            first, longest = self._settings.waits.judge
            wait = min(longest, first * 2**task.attempts) if task.retries else 0.0
            attempts = task.attempts + bool(task.retries)
            outbox.put_off(Pending(task.sample, task.sample_id, task.submitted_at, rest, task.origin, attempts), wait)
        else:
            outbox.remove(task.sample_id)
        kept = [(record, outbox.keep(record, list(self.deliveries))) for record in task.records]

        def written() -> None:
            for record, rows in kept:
                for sink, row in rows:
                    self.deliveries[sink].put([Item(row, record)])
            self.counters.settle("spooled", "outbox", len(task.todo))

        return written

    def _judged_from_memory(self, task: Task) -> bool:
        self.deliver(task.records)
        task.records = []
        if not task.todo:
            # Its row goes when the file can be written again.
            return task.saved and len(self._writes) < self._settings.waits.outcomes
        if task.saved:  # the file has what is still to be done; else the end cuts it off
            self.counters.settle("spooled", "outbox", len(task.todo))
        else:
            self.counters.cut_off(len(task.todo))
        return False

    def _outbox_opened(self) -> None:
        self._look_at = self._adopt_at = -1.0
        self._fall_behind()  # what an earlier process could not deliver

    def _fall_behind(self) -> None:
        for delivery in self.deliveries.values():
            delivery.behind = True

    def _write(self) -> None:
        """Write what waits, and once a second claim what is left if there is room."""
        with self._writes.held() as mine:
            if self._writes.path is None or self.ended.is_set() or not mine:
                return
            now, judges = time.monotonic(), self._settings.queue.workers > 0
            if judges and now >= self._look_at:
                self._look_at = now + self._settings.waits.looks
                self._writes.add(self._look([]))
            if not self._writes.write() and judges:  # where others judge it waits until it can be written
                self._writes.from_memory()

    def _look(self, more: list[bool], *, put_off: bool = False) -> Write:
        """Claim samples without an owner, and outcomes that a sink has not taken yet, in turn with what is written.

        Args:
            more: Gets whether there may be more.
            put_off: Whether to claim samples, too, that other processes put off.
        """
        return Write(partial(self._look_into_file, more, put_off), lambda: more.append(False), alone=True)

    def _look_into_file(self, more: list[bool], put_off: bool, outbox: "Outbox") -> Callable[[], object]:
        now, queue, waits = time.monotonic(), self._settings.queue, self._settings.waits
        most, most_bytes = queue.size - self.queue.load.tasks, queue.bytes - self.queue.load.bytes
        if self.ended.is_set() or most_bytes <= 0:
            most = 0
        if now >= self._adopt_at:
            self._adopt_at = now + waits.adoptions
            if outbox.adopt():
                self._fall_behind()
        if outbox.share_feedback(list(self.deliveries)):
            self._fall_behind()
        claimed = outbox.claim(
            max(0, min(most, _MOST_CLAIMED)),
            sorted(self._versions),
            most_bytes=most_bytes,
            first_too=not len(self.queue),
            put_off_too=put_off,
        )
        behind = {name: delivery for name, delivery in self.deliveries.items() if delivery.behind}
        undelivered = {
            name: [Item(row, record) for row, record in outbox.undelivered(name, waits.outcomes)]
            for name, delivery in behind.items()
            if not delivery.waiting() and not self._delivered_rows
        }
        in_outbox = outbox.records() if behind else {}

        def written() -> None:
            for pending, left_by_us in claimed:
                self._claimed(pending, left_by_us=left_by_us)
            for name, items in undelivered.items():
                self.deliveries[name].behind = len(items) == waits.outcomes
                self.deliveries[name].put(items)
            for name, delivery in self.deliveries.items():
                delivery.in_outbox = in_outbox.get(name, 0) if delivery.behind else 0
            if claimed or undelivered:
                self._look_at = -1.0  # there may be more
            more.append(bool(claimed) or any(delivery.behind for delivery in behind.values()))

        return written

    def _claimed(self, pending: Pending, *, left_by_us: bool) -> None:
        """Queue what this monitor has a metric for, of another version if need be; leave the rest to others."""
        todo = [
            choice if choice[:2] in self._settings.metrics else choice._replace(version=self._versions[choice.metric])
            for choice in pending.todo
            if choice.metric in self._versions
        ]
        foreign = [choice for choice in pending.todo if choice.metric not in self._versions]
        if left_by_us:
            self.counters.settle("spooled", "outbox", -len(todo))
        else:
            self.counters.accept(len(todo))
        sample_id, at, attempts = pending.sample_id, pending.submitted_at, pending.attempts
        self.queue.put(Task(pending.sample, sample_id, at, todo, pending.origin, attempts, foreign=foreign, saved=True))

    # --- start ------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Go on with what an earlier process left in the outbox, although no sample came yet."""
        if self._writes.path is not None and not self.closed:
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
        retain, remove_at = self._settings.retain, -1.0
        while not self.ended.is_set():
            try:
                self._write()
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
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self.closed:
            self.begin()
        more: list[bool] = []  # what was found in the file since nothing else was left to do
        while not self.ended.is_set():
            if self._busy():
                more.clear()
            elif self._writes.path is None or not self._settings.queue.workers or more == [False]:
                break
            else:
                more.clear()
                self._writes.add(self._look(more, put_off=put_off))
            if not self.workers.allowed.is_set() or (deadline is not None and time.monotonic() >= deadline):
                break
            time.sleep(LOOK)
        return self._left()

    def _busy(self) -> bool:
        """Return whether anything is left to do, but for what others may have left in the file."""
        watches = self._watch is not None and self._watch.busy()
        delivers = any(delivery.waiting() for delivery in self.deliveries.values())
        return bool(self.counters.pending() or delivers or watches or self._writes.busy())

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
                        self._warn_of_rest("closed")
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
        if self._settings.queue.workers and (stats.spooled or waiting):  # else another process goes on with them
            go_on = f"the next start goes on with them, or: ragstone live worker --outbox {path}"
            rest.append(f"{stats.spooled:,} evaluations and {waiting:,} outcomes wait in {path}; {go_on}")
        if cut or undelivered:
            lost = f"{cut:,} evaluations and {undelivered:,} outcomes were lost"
            rest.append(f"{lost}: call close() and give it time, or use outbox=")
        if rest:
            self.counters.warn(f"{why}: {'; '.join(rest)}")

    def _end(self, timeout: float) -> None:
        left = self.workers.stop()
        self.ended.set()  # before the queue is emptied: who puts something in later looks whether it is set
        self.wake()
        self._write_last(left)
        self.queue.end(self._settings.queue.workers)
        until = time.monotonic() + _JOIN_TIMEOUT
        while self.counters.pending() and time.monotonic() < until:
            time.sleep(LOOK)  # what a thread had just taken in hand comes back
        self._report()
        for delivery in self.deliveries.values():
            delivery.stop()
        until = time.monotonic() + timeout + _SECONDS_FOR_LAST_CALL
        for delivery in self.deliveries.values():
            delivery.join(max(0.0, until - time.monotonic()))
        if self._watch is not None:
            self._watch.end(max(0.0, until - time.monotonic()))
        self._finish()
        self.counters.log()

    def _finish(self) -> None:
        """Remove from the file what the sinks took last, count what stays, and close it."""
        with self._writes.held() as mine:
            if not mine or not self._writes.path:
                return
            while self._writes.busy() and self._writes.write():
                pass
            waiting = self._writes.transact(lambda outbox: outbox.records())
            self._writes.close()
        if waiting is not None and self._settings.queue.workers:
            for name, delivery in self.deliveries.items():
                delivery.in_outbox = waiting.get(name, 0)

    def _write_last(self, left: Iterable[Task]) -> None:
        """Write what waits, and what is left for whoever comes next."""
        with self._writes.held() as mine:  # after a batch that is being written, which may queue further tasks
            for task in [*left, *self.queue.drain()]:
                self._writes.add(Write(partial(self._judged_to_file, task), partial(self._judged_from_memory, task)))
                self.settle(task)
            self._writes.use_at = -1.0
            while mine and len(self._writes) and self._writes.write():
                pass
            if mine:
                self._writes.from_memory()
        if not mine:
            for write in self._writes.drain():
                write.from_memory()

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
        queued = self.queue.load.bytes + self._spooling.bytes
        return replace(stats, in_hand=len(self.workers.evaluations), queued_bytes=queued)


def _say(feedback: Feedback, outbox: "Outbox") -> None:
    outbox.say(feedback)


def _runs_a_loop() -> bool:
    """Whether this thread runs an event loop, which waiting here would stop for everybody."""
    asyncio: Any = sys.modules.get("asyncio")  # not loaded: none runs
    with suppress(RuntimeError):
        return asyncio is not None and asyncio.get_running_loop() is not None
    return False


def _at_exit(reference: "weakref.ref[Pipeline]") -> None:
    if (pipeline := reference()) is not None:
        pipeline.at_exit()
