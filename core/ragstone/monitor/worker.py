"""The threads that judge: one evaluation at a time, from a task to a record."""

import contextvars
import math
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from ragstone.errors import score_safely, unscored
from ragstone.judging.flow import CannotScore, Meter
from ragstone.limits.budget import Account, BudgetMeter
from ragstone.metrics.base import Metric
from ragstone.monitor.counters import Counters
from ragstone.monitor.redaction import storable
from ragstone.monitor.settings import Settings
from ragstone.monitor.task import Task, TaskQueue
from ragstone.outcome import Outcome, Score, Unscored
from ragstone.store.pending import Choice
from ragstone.store.record import Record

MOST_ATTEMPTS = 11

# Threads that hang are replaced, but no more of them than this per worker: then judging stands still.
_LOST_PER_WORKER = 8


@dataclass(slots=True)
class _Evaluation:
    """One evaluation in a thread. Whoever ends it first, the thread or the clock, says what came of it."""

    task: Task
    choice: Choice
    started: float
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: bool = False

    def end(self) -> bool:
        """Return True to the first who asks."""
        with self._lock:
            first, self._ended = not self._ended, True
            return first

    @contextmanager
    def untimed(self) -> Generator[None, None, None]:
        """Do not count the block's time: it is not the judge's."""
        used = time.monotonic() - self.started
        self.started = math.inf
        try:
            yield
        finally:
            self.started = time.monotonic() - used


class Workers:
    """Threads that take tasks from a queue and score them, one evaluation at a time.

    Args:
        settings: The monitor's.
        queue: Where tasks come from; None ends a thread.
        counters: Where failures of the monitor's own are counted.
        account: Returns the budget's account, None without a budget.
        done: Called with a task that has nothing left to do.
        late: Called with a task that a thread had in hand when it was stopped.
    """

    def __init__(
        self,
        settings: Settings,
        queue: TaskQueue,
        counters: Counters,
        *,
        account: Callable[[], Account | None],
        done: Callable[[Task], None],
        late: Callable[[Task], None],
    ) -> None:
        self._settings = settings
        self._queue = queue
        self._counters = counters
        self._account = account
        self._done = done
        self._late = late
        self._allowed = threading.Event()
        self._allowed.set()
        self._evaluations: dict[int, _Evaluation] = {}
        self._lock = threading.Lock()
        self._alive = self._lost = 0  # threads that take tasks, and those that hang
        self._settling = 0
        self._stopped = False

    def start(self) -> None:
        """Start the threads that are missing, unless too many hang.

        Raises:
            RuntimeError: The system gives no more threads.
        """
        number = self._settings.workers
        while not self._stopped and self._alive < number and self._lost <= number * _LOST_PER_WORKER:
            with self._lock:
                self._alive += 1
            try:
                start_thread(self._run, "ragstone-judge")
            except BaseException:
                with self._lock:
                    self._alive -= 1
                raise

    def pause(self) -> None:
        """Take no further task; what is being judged goes on."""
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
        return len(self._evaluations)

    def settling(self) -> bool:
        """Whether a thread settles the cost of what it has handed on."""
        return self._settling > 0

    def check_timeouts(self) -> None:
        """Give up evaluations that take too long, and start threads in place of those that hang in them."""
        timeout = self._settings.timeout
        for thread, evaluation in list(self._evaluations.items()):
            if time.monotonic() - evaluation.started > timeout and evaluation.end():
                self._evaluations.pop(thread, None)
                with self._lock:
                    self._alive, self._lost = self._alive - 1, self._lost + 1
                metric = self._metric(evaluation.choice)
                detail = f"the judge did not answer within {timeout:g} s (the monitor's timeout)"
                self._note(evaluation, unscored(metric, CannotScore("timeout", detail), Meter()), None)
                self._hand_on(evaluation.task)
        self.start()

    def stop(self) -> list[Task]:
        """Take no further task, and return those that were being judged: what their threads find out is too late."""
        self._stopped = True
        self._allowed.set()
        tasks = [evaluation.task for evaluation in list(self._evaluations.values()) if evaluation.end()]
        self._evaluations.clear()
        return tasks

    def release(self) -> None:
        """Let the threads that wait for a task end."""
        for _ in range(self._settings.workers):
            self._queue.put(None)

    def _run(self) -> None:
        while True:
            self._allowed.wait()
            task = self._queue.get()
            if task is None:
                return
            self._allowed.wait()
            try:
                if not self._work_on(task):
                    return
            except BaseException as error:  # ours, not the judge's: the thread lives on
                self._counters.failed("worker", error)

    def _work_on(self, task: Task) -> bool:
        """Do all that is left to do in a task; False when it took so long that the task was given to others."""
        thread = threading.get_ident()
        meter: Meter | None = None
        while task.todo and not self._stopped:
            evaluation = _Evaluation(task, task.todo[0], time.monotonic())
            self._evaluations[thread] = evaluation
            if self._is_stopped() and evaluation.end():  # since `stop` looked at what is being made
                self._evaluations.pop(thread, None)
                break
            with evaluation.untimed():
                _settle(meter)  # of the metric before
            outcome, meter = self._evaluate(evaluation)
            mine = evaluation.end()
            if self._evaluations.get(thread) is evaluation:
                del self._evaluations[thread]
            if not mine:
                with self._lock:
                    self._lost -= 1  # so that another one may be started, where too many hung
                _settle(meter)
                return False
            self._note(evaluation, outcome, meter)
        with self._lock:
            self._settling += 1  # before it is handed on, after which nobody waits for it
        try:
            self._hand_on(task)
            _settle(meter)
        finally:
            with self._lock:
                self._settling -= 1
        return True

    def _is_stopped(self) -> bool:
        return self._stopped  # by another thread, meanwhile

    def _hand_on(self, task: Task) -> None:
        if task.todo:
            (self._late if self._stopped else self._queue.put)(task)
        else:
            self._done(task)

    # --- one evaluation ---------------------------------------------------------------------------------------

    def _metric(self, choice: Choice) -> Metric:
        return self._settings.metrics[choice.metric, choice.version]

    def _evaluate(self, evaluation: _Evaluation) -> tuple[Outcome, Meter]:
        """Score a sample by one metric, blocking. Raises nothing."""
        metric, account = self._metric(evaluation.choice), self._account()
        meter = Meter()
        try:
            if account is not None:
                meter = BudgetMeter(account, evaluation.choice[:2], evaluation.untimed)
            outcome = cast("object", score_safely(metric, evaluation.task.sample, meter))
        except Exception as error:  # ours: an exception of a judge or a metric is an outcome already
            self._counters.failed("evaluation", error)
            detail = f"{type(error).__name__} was raised inside the monitor; the log of ragstone.monitor says more"
        except BaseException as error:  # what ends threads, raised by a judge: this one lives on
            detail = f"{type(error).__name__} was raised in the judge"
        else:
            if isinstance(outcome, Outcome):
                return outcome, meter
            detail = f"the metric returned {type(outcome).__name__}, which is no outcome"  # one of the user's own
        return unscored(metric, CannotScore("cancelled", detail), meter), meter

    def _note(self, evaluation: _Evaluation, outcome: Outcome, meter: Meter | None) -> None:
        """Note in the task what came of an evaluation."""
        task, choice = evaluation.task, evaluation.choice
        task.todo.remove(choice)
        limit = meter.refused_by if isinstance(meter, BudgetMeter) else None
        if limit is not None and not outcome.usage.llm_calls:
            task.settled.append(("over_budget", limit))  # it has no outcome
            return
        try:
            record = self._record(task, choice, outcome)
        except Exception as error:  # a metric or judge of the user's whose name, version or model is no text
            self._counters.failed("record", error)
            task.settled.append(("dropped", "no_record"))
            return
        if limit is not None:
            task.settled.append(("over_budget", limit))
        elif isinstance(outcome, Score):
            task.settled.append(("scored", "scored"))
        elif self._can_be_tried_again(task, outcome):
            task.retries.append((choice, record))
            return  # counted when the outbox has it
        else:
            task.settled.append(("unscored", outcome.reason))
        task.records.append(record)

    def _can_be_tried_again(self, task: Task, outcome: Unscored) -> bool:
        judge_failed = outcome.reason in ("judge_error", "timeout")
        return judge_failed and self._settings.outbox is not None and task.attempts + 1 < MOST_ATTEMPTS

    def _record(self, task: Task, choice: Choice, outcome: Outcome) -> Record:
        store_text = self._settings.store_text
        return Record(
            sample_id=task.sample_id,
            outcome=storable(outcome, task.sample, store_text=store_text),
            judge=self._metric(choice).judge.model,
            submitted_at=task.submitted_at,
            scored_at=self._settings.clock(),
            rate=choice.rate,
            chosen_by=choice.by,
            origin=task.origin,
            sample=task.sample if store_text else None,
        )


def _settle(meter: Meter | None) -> None:
    if isinstance(meter, BudgetMeter):
        meter.settle()


def start_thread(work: Callable[[], None], name: str) -> threading.Thread:
    """Start a daemon thread with nothing of the app's context: no trace, no callbacks.

    Raises:
        RuntimeError: The system gives no more threads.
    """
    run = contextvars.Context().run
    thread = threading.Thread(target=run, args=(work,), name=name, daemon=True)
    thread.start()
    return thread
