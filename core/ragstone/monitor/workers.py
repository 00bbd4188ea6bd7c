"""The threads that judge: started on first use, given up when a judge hangs, never waited for by the interpreter."""

import contextvars
import math
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from ragstone.monitor.job import Job
from ragstone.monitor.queue import JobQueue

# Threads that hang are replaced, but no more of them than this per worker: then judging stands still.
_LOST_PER_WORKER = 8


@dataclass(slots=True)
class Running:
    """One evaluation in a thread. Whoever settles it first, the thread or the clock, says what came of it."""

    job: Job
    started: float
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _settled: bool = False

    def settle(self) -> bool:
        """Return True to the first who asks."""
        with self._lock:
            first, self._settled = not self._settled, True
            return first

    @contextmanager
    def untimed(self) -> Generator[None, None, None]:
        """Do not count what the block takes: it is not the judge's time."""
        used = time.monotonic() - self.started
        self.started = math.inf
        try:
            yield
        finally:
            self.started = time.monotonic() - used


class Evaluated(NamedTuple):
    """What is left to do when an evaluation has ended.

    Attributes:
        note: Notes in the job what came of it.
        settle: Settles what it cost, which may take long where the account cannot be reached.
    """

    note: Callable[[], None]
    settle: Callable[[], None]


class Workers:
    """Threads that take jobs from a queue, one evaluation at a time.

    Args:
        number: How many.
        queue: Where jobs come from; None ends a thread.
        evaluate: Does the first thing that is left to do in a job.
        done: Called with a job that has nothing left to do.
        expired: Called with a job whose first evaluation took too long; returns the job that goes on without it.
        returned: Called with a job that a thread had in hand when it was stopped.
        timeout: Seconds that an evaluation may take.
        broken: Called with an exception that should not have been.
    """

    def __init__(
        self,
        number: int,
        queue: JobQueue,
        *,
        evaluate: Callable[[Job, Running], Evaluated],
        done: Callable[[Job], None],
        expired: Callable[[Job], Job],
        returned: Callable[[Job], None],
        timeout: float,
        broken: Callable[[BaseException], None],
    ) -> None:
        self._number = number
        self._queue = queue
        self._evaluate = evaluate
        self._done = done
        self._expired = expired
        self._returned = returned
        self._timeout = timeout
        self._broken = broken
        self._allowed = threading.Event()
        self._allowed.set()
        self._running: dict[int, Running] = {}
        self._lock = threading.Lock()
        self._alive = self._lost = 0  # threads that take jobs, and those that hang
        self._settling = 0
        self._stopped = False

    def start(self) -> None:
        """Start the threads that are missing, unless too many hang.

        Raises:
            RuntimeError: The system gives no more threads.
        """
        while not self._stopped and self._alive < self._number and self._lost <= self._number * _LOST_PER_WORKER:
            self._start_one()

    def pause(self) -> None:
        """Take no further job; what is being judged goes on."""
        self._allowed.clear()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._allowed.set()

    @property
    def paused(self) -> bool:
        """Whether `pause` holds."""
        return not self._allowed.is_set()

    def in_hand(self) -> int:
        """Return how many evaluations are being made."""
        return len(self._running)

    def settling(self) -> bool:
        """Whether a thread settles the cost of what it has handed on."""
        return self._settling > 0

    def look(self) -> None:
        """Give up evaluations that take too long, and start threads in place of those that hang in them."""
        for name, running in list(self._running.items()):
            if time.monotonic() - running.started > self._timeout and running.settle():
                self._running.pop(name, None)
                with self._lock:
                    self._alive, self._lost = self._alive - 1, self._lost + 1
                self._go_on(self._expired(running.job))
        self.start()

    def stop(self) -> list[Job]:
        """Take no further job, and return those that were being judged: what their threads find out is too late."""
        self._stopped = True
        self._allowed.set()
        found = [running.job for running in list(self._running.values()) if running.settle()]
        self._running.clear()
        return found

    def release(self) -> None:
        """Let the threads that wait for a job end."""
        for _ in range(self._number):
            self._queue.put(None)

    def _start_one(self) -> None:
        run = contextvars.Context().run  # nothing of the app's context: no trace, no callbacks
        with self._lock:
            self._alive += 1
        try:
            threading.Thread(target=run, args=(self._work,), name="ragstone-judge", daemon=True).start()
        except BaseException:
            with self._lock:
                self._alive -= 1
            raise

    def _work(self) -> None:
        while True:
            self._allowed.wait()
            job = self._queue.get()
            if job is None:
                return
            self._allowed.wait()
            try:
                if not self._judge(job):
                    return
            except BaseException as error:  # ours, not the judge's: the thread lives on
                self._broken(error)

    def _judge(self, job: Job) -> bool:
        """Do all that is left to do in a job; False when it took so long that it was given to others."""
        name = threading.get_ident()
        settle = _nothing
        while job.todo and not self._stopped:
            running = Running(job, time.monotonic())
            self._running[name] = running
            if self._is_stopped() and running.settle():  # since `stop` looked at who is running
                self._running.pop(name, None)
                break
            try:
                with running.untimed():
                    settle()  # of the metric before
                note, settle = self._evaluate(job, running)
            finally:
                mine = running.settle()
                if self._running.get(name) is running:
                    del self._running[name]
            if not mine:
                with self._lock:
                    self._lost -= 1  # so that `look` may start another one, where too many hung
                settle()
                return False
            note()
        with self._lock:
            self._settling += 1  # before it is handed on, after which nobody waits for it
        try:
            self._go_on(job)
            settle()
        finally:
            with self._lock:
                self._settling -= 1
        return True

    def _is_stopped(self) -> bool:
        return self._stopped  # by another thread, meanwhile

    def _go_on(self, job: Job) -> None:
        if job.todo:
            (self._returned if self._stopped else self._queue.put)(job)
        else:
            self._done(job)


def _nothing() -> None:
    pass
