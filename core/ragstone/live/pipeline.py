"""One process's part of a monitor: intake, judging and delivery over one queue, and how they start and end."""

import atexit
import math
import os
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Mapping

from ragstone.background import start_thread
from ragstone.live.counters import FATES, Counters, FlushResult, Stats
from ragstone.live.delivery import Delivery
from ragstone.live.health import Health
from ragstone.live.intake import Intake
from ragstone.live.judging import Judging
from ragstone.live.queue import MemoryQueue
from ragstone.live.settings import Settings
from ragstone.live.steps import Steps
from ragstone.live.waiting import wait_while
from ragstone.plain import count

_TICK = 0.25
_SECONDS_BETWEEN_REPORTS = 60.0
# For what a thread had just taken in hand.
_SECONDS_TO_GIVE_BACK = 1.0
_SECONDS_FOR_LAST_CALL = 1.0
_MOST_SECONDS_TO_DELIVER = 5.0


class Pipeline:
    """The way of samples through one process. A forked child has its own.

    Args:
        settings: The monitor's.
        advice: What to do about what is missing, by reason; handlers add to it.

    Attributes:
        counters: What became of samples.
        intake: Takes samples from the app.
        steps: What handlers have yet to do before they hand a sample over.
        queue: Where they wait.
        judging: Scores them.
        delivery: Brings the outcomes to the sinks.
    """

    def __init__(self, settings: Settings, advice: Mapping[str, str]) -> None:
        self._settings = settings
        self._pid = os.getpid()
        self._name = f"{self._pid}-{secrets.token_hex(4)}"
        self._started_at: float | None = None
        self._starting = threading.Lock()
        # Re-entrant: a signal handler may close while we close.
        self._closing = threading.RLock()
        required = {field for metric in settings.metrics.values() for field in metric.required_fields}
        self.counters = Counters(sorted(required), advice)
        self.delivery = Delivery(settings, self.counters, lambda rows: self.queue.delivered(rows))
        if settings.outbox is None:
            self.queue = MemoryQueue(settings.queue, self.counters, self.delivery)
        else:
            # Loads sqlite3. Imported late, in a thread of ours, a fork meanwhile would leave it half-imported.
            from ragstone.live.file_queue import FileQueue

            self.queue = FileQueue(settings, self.counters, self.delivery, settings.outbox)
        self.judging = Judging(settings, self.counters, self.queue, self.delivery.database)
        self.intake = Intake(settings, self.counters, self.queue, self.start)
        self.steps = Steps(self.intake.failed)

    def begin(self) -> None:
        """Go on with what an earlier process left in the outbox, although no sample came yet."""
        if self.queue.keeps and not self.intake.closed:
            self.start()

    def start(self) -> None:
        """Start the threads, unless they run. Where no more can be had it raises, and the next call tries again."""
        if self._started_at is not None or not self._starting.acquire(blocking=False):
            # They run, or another thread is at it.
            return
        try:
            if self._settings.queue.workers:
                # Else another process judges and delivers.
                self.delivery.start()
            self.judging.start()
            start_thread(self._maintain, "ragstone-monitor")
            atexit.register(_at_exit, weakref.ref(self))
            self._started_at = time.time()
        finally:
            self._starting.release()

    def later(self, step: Callable[[], object], size: int) -> bool:
        """Have a step run on a thread; False where that cannot be."""
        if self.intake.closed:
            return False
        # At the process's end it is run at least.
        self.start()
        return self.steps.add(step, size)

    def _maintain(self) -> None:
        """Store what waits for it, look for judges that hang, and report; on a thread of its own."""
        reported = time.monotonic()
        while not self.queue.ended.is_set():
            try:
                self.queue.maintain()
                self.judging.check_timeouts()
                if time.monotonic() - reported >= _SECONDS_BETWEEN_REPORTS:
                    reported = time.monotonic()
                    self._report()
            except Exception as error:
                self.counters.failed("monitor", error)
            self.queue.wait(_TICK)

    def flush(self, timeout: float | None, *, put_off: bool = False) -> FlushResult:
        """Wait until nothing is left to do, as `Monitor.flush` says."""
        self.begin()
        self._wait(math.inf if timeout is None else time.monotonic() + timeout, put_off=put_off)
        return self._left()

    def _wait(self, until: float, *, put_off: bool = False) -> None:
        """Wait for steps, then for judging and delivery, and again where more has come meanwhile."""

        def over() -> bool:
            return time.monotonic() >= until or not self.judging.allowed.is_set() or self.queue.ended.is_set()

        delivery, judging = self.delivery, self.judging
        if self.steps.wait(over) and judging.flush(over, put_off=put_off):
            while wait_while(delivery.busy, over) and judging.busy() and wait_while(judging.busy, over):
                pass

    def _left(self) -> FlushResult:
        waiting = self.steps.waiting * len(self._settings.metrics)
        remaining = self.counters.remaining() + self.queue.in_file + waiting
        return FlushResult(remaining=remaining, undelivered=self.delivery.undelivered())

    def close(self, timeout: float | None) -> FlushResult:
        """Take nothing more, do what is left while there is time, and keep or count the rest."""
        with self._closing:
            if self.intake.closed:
                return self._left()
            until = math.inf if timeout is None else time.monotonic() + timeout
            self.steps.close(lambda: time.monotonic() >= until)
            self.intake.closed = True
            if self._started_at is None:
                self.queue.end([])
                self.queue.close()
                return self._left()
            try:
                self._wait(until)
            finally:
                # Also on Ctrl-C.
                self._end(min(_MOST_SECONDS_TO_DELIVER, max(0.0, until - time.monotonic())))
                self._warn_of_rest("closed")
        return self._left()

    def at_exit(self) -> None:
        """Keep or count what is left: no judge can be asked any more, and no thread started."""
        if self.intake.closed or self._pid != os.getpid():
            # A forked child runs its parent's exit hooks, too.
            return
        until = time.monotonic() + _SECONDS_TO_GIVE_BACK
        self.steps.close(lambda: time.monotonic() >= until)
        self.intake.closed = True
        self._end(1.0)
        stats = self.stats()
        judged = stats.scored or stats.unscored
        self._warn_of_rest("the process ended without close()" + ("" if judged else ", and nothing was judged"))

    def _end(self, seconds: float) -> None:
        """End judging, then delivery, then the queue, which has what they left."""
        self.judging.close(_SECONDS_TO_GIVE_BACK)
        self._report()
        self.delivery.close(seconds + _SECONDS_FOR_LAST_CALL)
        self.queue.close()
        self.counters.log()

    def _warn_of_rest(self, why: str) -> None:
        """Log how much was left when the monitor ended, and where it is."""
        stats, path = self.stats(), self._settings.outbox
        waiting = sum(sink.waiting for sink in stats.sinks.values())
        cut, undelivered = stats.reasons.get("dropped", {}).get("closed", 0), self.delivery.undelivered() - waiting
        rest: list[str] = []
        if self._settings.queue.workers and (self.queue.in_file or waiting):
            # Else another process goes on with them.
            go_on = f"the next start goes on with them, or: ragstone live worker --outbox {path}"
            rest.append(
                f"{count(self.queue.in_file, 'evaluation')} and {count(waiting, 'outcome')} wait in {path}; {go_on}"
            )
        if cut or undelivered:
            rest.append(
                f"{count(cut, 'evaluation')} and {count(undelivered, 'outcome')} were lost: call close() and give it "
                "time, or use outbox="
            )
        if rest:
            self.counters.warn(f"{why}: {'; '.join(rest)}")

    def _report(self) -> None:
        stats = self.stats()
        health = Health(
            process=self._name,
            at=time.time(),
            started_at=self._started_at or time.time(),
            counts={name: getattr(stats, name) for name in ("samples", "accepted", *FATES, "pending")},
            reasons=stats.reasons,
            longest_queue=stats.longest_queue,
            skipped=stats.skipped,
            missing=stats.missing,
            names={name: {", ".join(there): n for there, n in by.items()} for name, by in stats.names.items()},
            read_from=stats.read_from,
        )
        self.delivery.report(health)

    def stats(self) -> Stats:
        """Count all that happened so far."""
        return self.counters.stats(
            self.delivery.stats(),
            in_hand=len(self.judging.evaluations),
            longest_queue=self.queue.longest,
            queued_bytes=self.queue.bytes,
        )


def _at_exit(reference: "weakref.ref[Pipeline]") -> None:
    if (pipeline := reference()) is not None:
        pipeline.at_exit()
