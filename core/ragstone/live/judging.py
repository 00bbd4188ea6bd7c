"""Judging: threads that take samples from the queue and score them, within the budget and their time."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from ragstone.background import CALLS, Calls, start_thread
from ragstone.errors import CannotScore
from ragstone.judge import Meter
from ragstone.judging.flow import Flow, run
from ragstone.live.budget import Account, BudgetMeter
from ragstone.live.counters import Counters
from ragstone.live.pending import Pending
from ragstone.live.queue import MemoryQueue
from ragstone.live.redaction import storable
from ragstone.live.settings import Settings
from ragstone.live.trace import facts_of
from ragstone.live.waiting import POLL, wait_while
from ragstone.metrics.base import Metric
from ragstone.metrics.outcomes import unscored
from ragstone.metrics.setup import setup_of
from ragstone.outcome import Outcome, Score
from ragstone.results.database import Database
from ragstone.results.groups import group_of
from ragstone.results.record import Record

# Seconds after which a thread computes beside another one that does not end.
_LONGEST_COMPUTING = 5.0
_SECONDS_FOR_APP = 0.002


def _one_at_a_time(flow: Flow[Outcome], computing: threading.Lock, wanted: Callable[[], bool]) -> Flow[Outcome]:
    """Run a flow so that one thread splits texts and builds prompts at a time: each further one slows the app.

    It ends between two rounds once its outcome is no longer wanted.
    """
    replies: tuple[object, ...] | None = None
    try:
        while True:
            if not wanted():
                raise CannotScore("cancelled", "its time was over, or the monitor was closed")
            alone = computing.acquire(timeout=_LONGEST_COMPUTING)
            try:
                round_ = next(flow) if replies is None else flow.send(replies)
                if not round_:
                    # A piece of a long text is split: the app's threads come next.
                    time.sleep(_SECONDS_FOR_APP)
            finally:
                if alone:
                    computing.release()
            replies = yield round_
    except StopIteration as stop:
        return cast("Outcome", stop.value)
    finally:
        flow.close()


class _Evaluation:
    """A sample that a thread scores by one metric."""

    def __init__(self, task: Pending, metrics: Mapping[tuple[str, str], Metric]) -> None:
        self.task = task
        self.choice = task.todo[0]
        self.metric = metrics[self.choice[:2]]
        self.started = time.monotonic()
        self.meter = Meter()
        self.calls = Calls()


class Judging:
    """The part of a monitor that scores samples: threads that take them from the queue, one evaluation at a time each.

    Args:
        settings: The monitor's.
        counters: Where failures are counted.
        queue: Where samples wait, and where they go back with their outcomes.
        database: Where earlier processes have kept outcomes, if anywhere.

    Attributes:
        allowed: Cleared by a pause: no further sample is taken.
        evaluations: Those that are being made.
    """

    def __init__(self, settings: Settings, counters: Counters, queue: MemoryQueue, database: Database | None) -> None:
        budget = settings.budget
        self._account = None if budget is None else Account(budget, settings.waits.clock, database)
        self._settings = settings
        self._setups = {key: setup_of(metric) for key, metric in settings.metrics.items()}
        self._counters = counters
        self._queue = queue
        self._stopped = threading.Event()
        self._computing = threading.Lock()
        # Threads that take samples.
        self._alive = 0
        self.evaluations: set[_Evaluation] = set()
        self._hanging: set[_Evaluation] = set()
        self.allowed = threading.Event()
        self.allowed.set()

    def start(self) -> None:
        """Start the threads that are missing, unless too many hang; RuntimeError where no more can be had."""
        number = self._settings.queue.workers
        most = number * self._settings.waits.hanging
        while not self._stopped.is_set() and self._alive < number and len(self._hanging) <= most:
            start_thread(self._run, "ragstone-judge")
            self._alive += 1

    def busy(self) -> bool:
        """Whether samples are to be judged, or what was judged is to be stored."""
        return bool(self._counters.pending() or self._queue.busy())

    def flush(self, over: Callable[[], bool], *, put_off: bool) -> bool:
        """Wait until all is judged, what others left in the queue's store too; False when the time is over before."""
        while wait_while(self.busy, over):
            self._queue.ask(put_off=put_off)
            # What comes meanwhile may have kept the queue from taking more: then it is asked again.
            if not wait_while(lambda: self._queue.has_more() and not self.busy(), over):
                break
            if not (self._queue.has_more() or self._counters.pending()):
                return True
        return False

    def close(self, seconds: float) -> None:
        """Judge nothing more, and give the queue what is left; wait so long for what threads had just taken."""
        self._stopped.set()
        self.allowed.set()
        cut = [evaluation for evaluation in self.evaluations.copy() if self._ends(evaluation)]
        for evaluation in cut:
            evaluation.calls.cancel()
        self._queue.end([evaluation.task for evaluation in cut])
        until = time.monotonic() + seconds
        while self._counters.pending() and time.monotonic() < until:
            time.sleep(POLL)
            self._queue.maintain()

    def check_timeouts(self) -> None:
        """Give up evaluations that take too long, and start threads in place of those that hang in them."""
        timeout = self._settings.queue.timeout
        for evaluation in self.evaluations.copy():
            if time.monotonic() - evaluation.started <= timeout:
                continue
            self._hanging.add(evaluation)
            if not self._ends(evaluation):
                self._hanging.discard(evaluation)
                continue
            evaluation.calls.cancel()
            # The other one may never be free again.
            self._computing = threading.Lock()
            self._alive -= 1
            error = CannotScore("timeout", f"the judge did not answer within {timeout:g} s (the monitor's timeout)")
            self._note(evaluation, unscored(evaluation.metric, error, Meter()), Meter())
            self._queue.done(evaluation.task)
        self.start()

    def _ends(self, evaluation: _Evaluation) -> bool:
        """Whether the caller ended it first, of the thread and the clock: then it says what came of it."""
        try:
            self.evaluations.remove(evaluation)
        except KeyError:
            return False
        return True

    # --- on its threads ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._read_account()
        while True:
            self.allowed.wait()
            task = self._queue.take()
            if task is None:
                return
            self.allowed.wait()
            try:
                if not self._work_on(task):
                    return
            except BaseException as error:
                # It is ours, not the judge's: the thread lives on.
                self._counters.failed("worker", error)

    def _read_account(self) -> None:
        """Read what was spent today. While the database is away samples wait, until they are stopped."""
        wait, longest = self._settings.waits.sink
        while self._account is not None and not self._stopped.is_set():
            try:
                self._account.read()
                return
            except Exception as error:
                self._counters.failed("budget", error)
            self._stopped.wait(wait)
            wait = min(2 * wait, longest)

    def _work_on(self, task: Pending) -> bool:
        """Do all that is left to do of a sample; False when it took so long that the sample was given to others."""
        while task.todo and not self._stopped.is_set():
            evaluation = _Evaluation(task, self._settings.metrics)
            self.evaluations.add(evaluation)
            CALLS.set(evaluation.calls)
            if self._stopped.is_set() and self._ends(evaluation):
                # It was stopped since `close` looked at what is being made.
                break
            outcome = self._evaluate(evaluation)
            if not self._ends(evaluation):
                # Another thread may be started, where too many hung.
                self._hanging.discard(evaluation)
                return False
            with self._computing:
                self._note(evaluation, outcome, evaluation.meter)
        self._queue.done(task)
        return True

    # --- one evaluation ---------------------------------------------------------------------------------------

    def _evaluate(self, evaluation: _Evaluation) -> Outcome:
        """Score a sample by one metric, blocking. Raises nothing."""
        metric = evaluation.metric
        try:
            if self._account is not None:
                evaluation.meter = BudgetMeter(self._account, evaluation.choice[:2])
            flow = _one_at_a_time(
                metric.flow(evaluation.task.sample), self._computing, lambda: evaluation in self.evaluations
            )
            return run(flow, metric.models, evaluation.meter)
        except Exception as error:
            return unscored(metric, error, evaluation.meter)
        except BaseException as error:
            # A judge raised what ends threads: this one lives on.
            detail = f"{type(error).__name__} was raised in the judge"
            return unscored(metric, CannotScore("cancelled", detail), evaluation.meter)

    def _note(self, evaluation: _Evaluation, outcome: Outcome, meter: Meter) -> None:
        """Note with the sample what came of an evaluation."""
        task, choice = evaluation.task, evaluation.choice
        task.todo.remove(choice)
        limit = meter.refused_by if isinstance(meter, BudgetMeter) else None
        if limit is not None:
            task.settled.append(("over_budget", limit))
            if not outcome.usage.llm_calls:
                # It has no outcome.
                return
        elif isinstance(outcome, Score):
            task.settled.append(("scored", "scored"))
        elif task.attempts + 1 < self._queue.most_attempts and outcome.reason in ("judge_error", "timeout"):
            task.settled.append(("spooled", "outbox"))
            task.retries.append(choice)
            why = f"{choice.metric}: {outcome.reason}: {outcome.detail}"
            self._counters.note(f"a sample waits in the outbox to be tried again: {why}")
            return
        else:
            task.settled.append(("unscored", outcome.reason))
        try:
            task.records.append(self._record(evaluation, outcome))
        except Exception as error:
            # A metric or judge of the user's whose name, version or model is no text.
            self._counters.failed("record", error)
            if limit is None:
                task.settled[-1] = "dropped", "no_record"

    def _record(self, evaluation: _Evaluation, outcome: Outcome) -> Record:
        task, choice, store_text = evaluation.task, evaluation.choice, self._settings.store_text
        record = Record(
            sample_id=task.sample_id,
            outcome=storable(outcome, task.sample, store_text=store_text),
            judge=evaluation.metric.judge.model,
            setup=self._setups[choice[:2]],
            submitted_at=task.submitted_at,
            scored_at=time.time(),
            rate=choice.rate,
            chosen_by=choice.by,
            origin=task.origin,
            sample=task.sample if store_text else None,
            watched=self._settings.alerts.get(choice.metric) if choice.represents else None,
            **cast("Any", facts_of(task.sample.metadata, self._settings.keep)),
        )
        group = self._settings.group
        return record if group is None else replace(record, group=group_of(group, record, task.sample))
