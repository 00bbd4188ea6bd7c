"""Intake: takes samples from the app, on its threads, without blocking them, and counts what it leaves out."""

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from ragstone.background import running_loop
from ragstone.live.counters import Counters
from ragstone.live.pending import Pending
from ragstone.live.queue import MemoryQueue
from ragstone.live.redaction import RedactionFailed, snapshot
from ragstone.live.settings import Settings
from ragstone.live.sink import Sink
from ragstone.live.trace import own_id
from ragstone.live.waiting import POLL
from ragstone.results.traffic import Feedback
from ragstone.sample import Sample

# Where an exception is counted as an error, by the reason that the sample is dropped for.
_PARTS = {"where_failed": "where", "no_snapshot": "snapshot"}


class _LeftOut(Exception):  # noqa: N818 - it carries the sample's fate and the reason
    pass


class RedactedError(Exception):
    """Stands for an exception whose text may quote what is to be redacted."""


class Intake:
    """The part of a monitor that takes samples: by sampling, as redacted snapshots, into the queue where they fit.

    Args:
        settings: The monitor's.
        counters: Where samples are counted.
        queue: Where they go.
        start: Starts the other parts, unless they run.

    Attributes:
        closed: Whether no more samples are taken.
    """

    def __init__(self, settings: Settings, counters: Counters, queue: MemoryQueue, start: Callable[[], object]) -> None:
        self.closed = False
        self._settings = settings
        self._counters = counters
        self._queue = queue
        self._start = start
        # Hashes of the last ids: ids of a megabyte must not pile up.
        self._recent: dict[int, None] = {}
        # Re-entrant: a signal handler may submit while we note an id.
        self._noting = threading.RLock()
        self._with_origin = [sink for sink in settings.sinks if type(sink).origin is not Sink.origin]

    def submit(self, sample: Sample | Mapping[str, Any]) -> None:
        """Take a sample, or count why not. O(1); raises nothing that a sample or a user's function may raise."""
        settings, open_ = self._settings, len(self._settings.metrics)
        self._counters.accept(open_)
        reason = "no_sample"
        try:
            if not isinstance(sample, Sample):
                # Loaded when first used: handlers submit samples.
                from ragstone.sources.rows import sample_of_row

                sample = sample_of_row(sample, {})
            sample_id = self._id_of(sample)
            there = sample.model_fields_set
            lacking = [name for name in self._counters.required if name not in there or getattr(sample, name) is None]
            if lacking:
                self._counters.lack(sample, lacking)
            reason = "where_failed"
            chosen = settings.sampling.choose(settings.choices, sample, sample_id)
            self._counters.settle("not_sampled", "not_chosen", open_ - len(chosen))
            open_ = len(chosen)
            if not chosen:
                return
            reason = "no_snapshot"
            if "id" not in settings.keep:
                sample_id = secrets.token_hex(16)
            kept = snapshot(sample, sample_id, settings.redact)
            reason = "not_started"
            self._start()
            self._enqueue(Pending(kept, sample_id, time.time(), chosen, self._origin()))
        except _LeftOut as why:
            fate, reason = why.args
            self._counters.settle(fate, reason, open_)
        except RedactionFailed as error:
            self._counters.failed("redact", error)
            self._counters.settle("dropped", "redaction_failed", open_)
        except Exception as error:
            self.failed(_PARTS.get(reason, "submit"), error)
            self._counters.settle("dropped", reason, open_)
        except BaseException:
            # Ctrl-C while a full queue is waited for.
            self._counters.settle("dropped", "interrupted", open_)
            raise

    def feedback(self, feedback: Feedback) -> None:
        """Take what a person said; RuntimeError when the monitor is closed."""
        if self.closed:
            raise RuntimeError("the monitor is closed")
        self._start()
        self._queue.add_feedback(feedback)

    def failed(self, part: str, error: BaseException) -> None:
        """Count an exception in code that saw what is not redacted yet; its text is not kept then."""
        if self._settings.redact is not None:
            error = RedactedError(f"{type(error).__name__}, whose text may quote unredacted data")
        self._counters.failed(part, error)

    def _id_of(self, sample: Sample) -> str:
        if not isinstance(cast("object", sample.id), str | None):
            raise _LeftOut("dropped", "no_sample")
        if self.closed:
            raise _LeftOut("dropped", "closed")
        own = sample.id or own_id(sample.metadata)
        if own and self._is_recent(hash(own)):
            raise _LeftOut("duplicate", "same_id")
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
                self._counters.failed(f"sink {sink.name}", error)
        return origin

    def _enqueue(self, task: Pending) -> None:
        """Add a sample to the queue, as soon as it fits or the monitor is closed."""
        if task.size > self._settings.queue.bytes:
            raise _LeftOut("dropped", "too_large")
        while not (self._queue.fits(task) or self.closed):
            if self._settings.queue.when_full == "drop_oldest":
                if not self._queue.drop():
                    raise _LeftOut("dropped", "queue_full")
            elif running_loop() is not None:
                # It would stop for everybody.
                raise _LeftOut("dropped", "would_block_loop")
            else:
                time.sleep(POLL)
        self._queue.put(task)
