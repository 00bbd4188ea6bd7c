"""The threads that judge: one evaluation at a time, from a task to a record."""

import contextvars
import threading
import time
from collections.abc import Callable
from typing import cast

from ragstone.errors import CannotScore, score_safely, unscored
from ragstone.judge import Meter
from ragstone.limits.budget import BudgetMeter
from ragstone.metrics.base import Metric
from ragstone.monitor.redaction import storable
from ragstone.monitor.task import Shared, Task
from ragstone.outcome import Outcome, Score
from ragstone.store.pending import Choice
from ragstone.store.record import Record

MOST_ATTEMPTS = 11

# Threads that hang are replaced, but no more of them than this per worker: then judging stands still.
_LOST_PER_WORKER = 8


class _Evaluation:
    """A sample that a thread scores by one metric."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.choice = task.todo[0]
        self.started = time.monotonic()
        self.meter = Meter()

    def seconds(self) -> float:
        """Return how long it takes, without the time spent with the budget's ledger."""
        return time.monotonic() - self.started - (self.meter.waited if isinstance(self.meter, BudgetMeter) else 0.0)


class Workers:
    """Threads that take tasks from the queue and score them, one evaluation at a time.

    Args:
        shared: What the pipeline shares.
        done: Called with a task that has nothing left to do.
        late: Called with a task that a thread had in hand when it was stopped.
    """

    def __init__(self, shared: Shared, *, done: Callable[[Task], None], late: Callable[[Task], None]) -> None:
        self._shared = shared
        self._settings = shared.settings
        self._done = done
        self._late = late
        self._allowed = threading.Event()
        self._allowed.set()
        self._evaluations: set[_Evaluation] = set()
        self._lock = threading.Lock()
        self._alive = self._lost = 0  # threads that take tasks, and those that hang
        self._settling = 0
        self._stopped = False

    def start(self) -> None:
        """Start the threads that are missing, unless too many hang; RuntimeError where no more can be had."""
        number = self._settings.workers
        while not self._stopped and self._alive < number and self._lost <= number * _LOST_PER_WORKER:
            self._count(alive=1)
            try:
                start_thread(self._run, "ragstone-judge")
            except BaseException:
                self._count(alive=-1)
                raise

    def _count(self, *, alive: int = 0, lost: int = 0, settling: int = 0) -> None:
        with self._lock:
            self._alive, self._lost, self._settling = self._alive + alive, self._lost + lost, self._settling + settling

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
        for evaluation in self._evaluations.copy():
            account = self._shared.account
            if account is not None and evaluation.meter in account.waiting:
                continue
            if evaluation.seconds() > timeout and self._ends(evaluation):
                self._count(alive=-1, lost=1)
                detail = f"the judge did not answer within {timeout:g} s (the monitor's timeout)"
                error = CannotScore("timeout", detail)
                self._note(evaluation, unscored(self._metric(evaluation.choice), error, Meter()), None)
                self._hand_on(evaluation.task)
        self.start()

    def _ends(self, evaluation: _Evaluation) -> bool:
        """Return True to the first who ends it, the thread or the clock: that one says what came of it."""
        try:
            self._evaluations.remove(evaluation)
        except KeyError:
            return False
        return True

    def stop(self) -> list[Task]:
        """Take no further task, and return those that were being judged: what their threads find out is too late."""
        self._stopped = True
        self._allowed.set()
        return [evaluation.task for evaluation in self._evaluations.copy() if self._ends(evaluation)]

    def release(self) -> None:
        """Let the threads that wait for a task end."""
        for _ in range(self._settings.workers):
            self._shared.queue.put(None)

    def _run(self) -> None:
        while True:
            self._allowed.wait()
            task = self._shared.queue.get()
            if task is None:
                return
            self._allowed.wait()
            try:
                if not self._work_on(task):
                    return
            except BaseException as error:  # ours, not the judge's: the thread lives on
                self._shared.counters.failed("worker", error)

    def _work_on(self, task: Task) -> bool:
        """Do all that is left to do in a task; False when it took so long that the task was given to others."""
        meter: Meter | None = None
        while task.todo and not self._stopped:
            evaluation = _Evaluation(task)
            self._evaluations.add(evaluation)
            if self._is_stopped() and self._ends(evaluation):  # since `stop` looked at what is being made
                break
            _settle(meter)  # of the metric before
            outcome, meter = self._evaluate(evaluation), evaluation.meter
            if not self._ends(evaluation):
                self._count(lost=-1)  # so that another one may be started, where too many hung
                _settle(meter)
                return False
            self._note(evaluation, outcome, meter)
        self._count(settling=1)  # before it is handed on, after which nobody waits for it
        try:
            self._hand_on(task)
            _settle(meter)
        finally:
            self._count(settling=-1)
        return True

    def _is_stopped(self) -> bool:
        return self._stopped  # by another thread, meanwhile

    def _hand_on(self, task: Task) -> None:
        if task.todo:
            (self._late if self._stopped else self._shared.queue.put)(task)
        else:
            self._done(task)

    # --- one evaluation ---------------------------------------------------------------------------------------

    def _metric(self, choice: Choice) -> Metric:
        return self._settings.metrics[choice.metric, choice.version]

    def _evaluate(self, evaluation: _Evaluation) -> Outcome:
        """Score a sample by one metric, blocking. Raises nothing."""
        metric, account = self._metric(evaluation.choice), self._shared.account
        try:
            if account is not None:
                evaluation.meter = BudgetMeter(account, evaluation.choice[:2])
            outcome = cast("object", score_safely(metric, evaluation.task.sample, evaluation.meter))
        except Exception as error:  # ours: an exception of a judge or a metric is an outcome already
            self._shared.counters.failed("evaluation", error)
            detail = f"{type(error).__name__} was raised inside the monitor; the log of ragstone.monitor says more"
        except BaseException as error:  # what ends threads, raised by a judge: this one lives on
            detail = f"{type(error).__name__} was raised in the judge"
        else:
            if isinstance(outcome, Outcome):
                return outcome
            detail = f"the metric returned {type(outcome).__name__}, which is no outcome"  # one of the user's own
        return unscored(metric, CannotScore("cancelled", detail), evaluation.meter)

    def _note(self, evaluation: _Evaluation, outcome: Outcome, meter: Meter | None) -> None:
        """Note in the task what came of an evaluation."""
        task, choice = evaluation.task, evaluation.choice
        task.todo.remove(choice)
        limit = meter.refused_by if isinstance(meter, BudgetMeter) else None
        if limit is not None:
            task.settled.append(("over_budget", limit))
            if not outcome.usage.llm_calls:
                return  # it has no outcome
        try:
            record = self._record(task, choice, outcome)
        except Exception as error:  # a metric or judge of the user's whose name, version or model is no text
            self._shared.counters.failed("record", error)
            if limit is None:
                task.settled.append(("dropped", "no_record"))
            return
        if limit is None and isinstance(outcome, Score):
            task.settled.append(("scored", "scored"))
        elif limit is None:
            judge_failed = outcome.reason in ("judge_error", "timeout")
            if judge_failed and self._settings.outbox is not None and task.attempts + 1 < MOST_ATTEMPTS:
                task.retries.append((choice, record))
                return  # counted when the outbox has it
            task.settled.append(("unscored", outcome.reason))
        task.records.append(record)

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
    """Start a daemon thread with nothing of the app's context: no trace, no callbacks."""
    run = contextvars.Context().run
    thread = threading.Thread(target=run, args=(work,), name=name, daemon=True)
    thread.start()
    return thread
