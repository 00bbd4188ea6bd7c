"""Taking samples on the app's threads: the sampling decision, the snapshot, and room in the queue."""

import secrets
import time
from collections.abc import Callable, Mapping
from queue import Empty
from typing import cast

from ragstone.monitor.counters import Status
from ragstone.monitor.outbox_worker import OutboxWorker
from ragstone.monitor.redaction import RedactionFailed, snapshot
from ragstone.monitor.task import DedupCache, Shared, Task
from ragstone.sample import Sample
from ragstone.store.base import Sink
from ragstone.store.pending import Choice

LOOK = 0.01
_UNWRITTEN = 10_000  # samples that may wait to be spooled: a burst comes faster than a disk writes


class _NotTaken(Exception):  # noqa: N818 - it is what becomes of the sample
    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(status, reason)
        self.status: Status = status
        self.reason = reason


class RedactedError(Exception):
    """Stands for an exception whose text may quote what is to be redacted."""


class Intake:
    """Takes samples, or counts why not.

    Args:
        shared: What the pipeline shares.
        outbox: The outbox's worker, which gets the tasks first; None without one.
        start: Starts the threads, unless they run.
        queued: Called when a task was queued.
        done: Called with a task that gave way to a newer one.
    """

    def __init__(
        self,
        shared: Shared,
        outbox: OutboxWorker | None,
        *,
        start: Callable[[], None],
        queued: Callable[[], None],
        done: Callable[[Task], None],
    ) -> None:
        self._shared = shared
        self._settings = shared.settings
        self._counters = shared.counters
        self._queue = shared.queue
        self._outbox = outbox
        self._start = start
        self._queued = queued
        self._done = done
        self._recent = DedupCache(max(10_000, 2 * self._settings.max_queue))
        self._with_origin = [sink for sink in self._settings.sinks if type(sink).origin is not Sink.origin]

    def take(self, sample: Sample) -> None:
        """Take a sample, or count why not. O(1); raises nothing that a sample or a user's function may raise."""
        open_ = len(self._settings.metrics)
        self._counters.accept(open_)
        try:
            sample_id = self._id(sample)
            chosen = self._chosen(sample, sample_id)
            self._counters.settle("not_sampled", "not_chosen", open_ - len(chosen))
            open_ = len(chosen)
            if chosen:
                kept = self._snapshot(sample, sample_id)
                self._started()
                self._enqueue(Task(kept, sample_id, self._settings.clock(), chosen, self._origin()))
        except _NotTaken as why:
            self._counters.settle(why.status, why.reason, open_)
        except BaseException as error:  # Ctrl-C while we wait for room, or something that only looks like a sample
            self._counters.settle("dropped", "no_sample" if isinstance(error, Exception) else "interrupted", open_)
            if not isinstance(error, Exception):
                raise
            self.failed("submit", error)

    def failed(self, place: str, error: BaseException) -> None:
        """Count an exception in code that saw what is not redacted yet; its text is not kept then."""
        if self._settings.redact is not None:
            error = RedactedError(f"{type(error).__name__}, which may quote what is to be redacted")
        self._counters.failed(place, error)

    def _id(self, sample: Sample) -> str:
        if not isinstance(cast("object", sample), Sample) or not isinstance(cast("object", sample.id), str | None):
            raise _NotTaken("dropped", "no_sample")
        if self._shared.closed:
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
            self._counters.failed("redact", error)
            raise _NotTaken("dropped", "redaction_failed") from None
        except Exception as error:
            self.failed("snapshot", error)
            raise _NotTaken("dropped", "no_snapshot") from None

    def _origin(self) -> Mapping[str, str]:
        origin: dict[str, str] = {}
        for sink in self._with_origin:
            try:
                origin.update(sink.origin() or {})
            except Exception as error:  # noqa: PERF203 - one sink's trouble is not the next one's
                self._counters.failed(f"sink {sink.name}", error)
        return origin

    def _started(self) -> None:
        try:
            self._start()
        except Exception as error:  # no thread can be started
            self._counters.failed("submit", error)
            raise _NotTaken("dropped", "not_started") from None

    # --- room -------------------------------------------------------------------------------------------------

    def waiting(self) -> int:
        """Return how many samples wait."""
        return len(self._queue) + (0 if self._outbox is None else len(self._outbox.arrivals))

    def waiting_bytes(self) -> int:
        """Return the size of the samples that wait."""
        return self._queue.bytes + (0 if self._outbox is None else self._outbox.waiting_bytes())

    def _enqueue(self, task: Task) -> None:
        if task.size > self._settings.max_queue_bytes:
            raise _NotTaken("dropped", "too_large")
        if self._is_full(task) and not self._makes_room(task):
            if not self._shared.closed:
                raise _NotTaken("dropped", "queue_full")
            self._counters.cut_off(task.open)  # it waited for room when the monitor was closed
            return
        (self._queue if self._outbox is None else self._outbox.arrivals).put(task)
        self._counters.waiting(self.waiting())
        self._queued()

    def _is_full(self, task: Task) -> bool:
        settings = self._settings
        return self.waiting() >= settings.max_queue or self.waiting_bytes() + task.size > settings.max_queue_bytes

    def _makes_room(self, task: Task) -> bool:
        when_full, outbox = self._settings.when_full, self._outbox
        if when_full == "drop_oldest":
            while (full := self._is_full(task)) and self._drop_oldest():
                pass
            return not full
        if when_full == "block":
            while self._is_full(task) and not self._shared.closed:
                time.sleep(LOOK)
            return not self._shared.closed
        if when_full == "spool" and outbox is not None:  # its worker finds no room in memory and leaves it in the file
            most, size = max(_UNWRITTEN, self._settings.max_queue), outbox.waiting_bytes() + task.size
            return len(outbox.arrivals) < most and size <= self._settings.max_queue_bytes
        return False

    def _drop_oldest(self) -> bool:
        try:
            oldest = self._queue.get(block=False)
        except Empty:  # those that wait are on their way to the outbox
            return False
        if oldest is None:
            self._queue.put(None)
            return False
        self._counters.settle("dropped", "queue_full", len(oldest.todo))
        oldest.todo.clear()
        self._done(oldest)
        return True
