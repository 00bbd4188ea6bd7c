"""One run over a data set: what `evaluate` does, from rows and metrics to the report."""

import asyncio
import contextlib
import logging
import signal
import threading
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence, Sized
from concurrent.futures import wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragstone.background import SHORT_LOOPS, daemon
from ragstone.batch.evaluations import Evaluations
from ragstone.batch.prices import Price, check_price
from ragstone.batch.recording import Listener, Recording
from ragstone.batch.rows import RunRows
from ragstone.batch.scheduler import Scheduler
from ragstone.errors import JournalError
from ragstone.judge import LLM, Embedder, Judge, Meter
from ragstone.limits.gate import RequestGate
from ragstone.limits.limits import Limits, limits_of
from ragstone.metrics.base import Metric
from ragstone.metrics.models import naming
from ragstone.metrics.names import metrics_from
from ragstone.options import checked
from ragstone.plain import count, printable
from ragstone.sample import Sample
from ragstone.sources.base import SourceError
from ragstone.sources.rows import Source

if TYPE_CHECKING:
    from os import PathLike

    from ragstone.batch.earlier import EarlierOutcomes
    from ragstone.batch.journal import Journal
    from ragstone.batch.progress import Progress
    from ragstone.batch.spending import Spending
    from ragstone.report.report import Report

_log = logging.getLogger(__name__)
# A signal that comes just before a thread goes to wait does not wake it: it wakes by itself, after so many seconds.
_BEAT = 0.2


ProgressChoice = Literal[True, False, "auto"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run.

    Attributes:
        report: The scores so far.
    """

    def __init__(self, message: str, report: "Report") -> None:
        super().__init__(message)
        self.report = report


class BatchRun:
    """One run of `evaluate`, whose options these are: its parts, put together, and how it ends.

    Attributes:
        total: How many samples there are, for the bar, where that is known.
    """

    def __init__(
        self,
        samples: Source,
        metrics: Metric | str | Sequence[Metric | str] | None = None,
        *,
        llm: Judge | str | object | None = None,
        writer: LLM | str | object | None = None,
        embedder: Embedder | str | object | None = None,
        fields: Mapping[str, str] | str | None = None,
        group: str | None = None,
        limits: Limits | None = None,
        price: tuple[float, float] | None = None,
        journal: str | Path | None = None,
        resume: "Report | str | PathLike[str] | None" = None,
        share_replies: bool = True,
        progress: ProgressChoice = "auto",
        name: str = "",
        stop_on_give_up: bool = False,
    ) -> None:
        limits = limits_of(limits)
        self._progress: ProgressChoice = checked("progress", progress, ProgressChoice)
        check_price(price)
        self._limits = limits
        self._spending = _spending(limits, price) if limits.caps() else None
        models = {"llm": llm, "writer": writer, "embedder": embedder}
        self._make = partial(_metrics_of, models, limits.max_concurrency)
        self._metrics = [] if metrics is None else self._make(metrics)
        self._rows = RunRows(samples, fields, group)
        self._journal: Path | None = checked("journal", journal, Path | None)
        self._resume = resume
        self._share_replies = share_replies
        self._stop_on_give_up = stop_on_give_up
        self._recording = Recording(name, price, self._rows.group)
        self.total = None if isinstance(samples, str) or not isinstance(samples, Sized) else len(samples)
        self._evaluations: Evaluations | None = None
        self._scheduler: Scheduler | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        # How often Ctrl-C was pressed.
        self._presses = 0

    def evaluated(self, listener: Listener | None = None) -> "Report":
        """Score everything and report; what ends it early has the report of what was scored by then.

        Args:
            listener: Who is told of each row as it ends.
        """
        self._recording.listener = listener
        try:
            self._complete()
            if not self._presses:
                return self.report()
        except (JournalError, SourceError) as error:
            error.report = self.report("An error ended the run early: these are the scores so far.")
            raise
        except asyncio.CancelledError:
            if not self._presses:
                raise
        except KeyboardInterrupt:
            # It is of a third Ctrl-C, or of a listener's own.
            pass
        report = self.report("The run was ended early: these are the scores so far.")
        way_on = "The scores are in this exception's report; evaluate(..., resume=that) goes on from there."
        if self._journal is not None:
            way_on = f"What was judged is in {self._journal}: make the same call again, and it goes on from there."
        raise Interrupted(way_on, report)

    def report(self, *notes: str) -> "Report":
        """The report of what has been scored."""
        return self._recording.report(self._metrics, self._evaluations, *notes)

    def _complete(self) -> None:
        """Score everything on an event loop of its own: in this thread or, where a loop runs in it, in another one.

        The first Ctrl-C stops the run, the second cancels it, the third raises where it is. Only Python's own handling
        of Ctrl-C is replaced meanwhile, never an app's.
        """
        main = partial(asyncio.run, self._on_own_loop())
        with _on_ctrl_c(self._pressed):
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                main()
                return
            done = daemon(main, "ragstone-evaluate")
            while not done.done():
                try:
                    wait((done,), _BEAT)
                except KeyboardInterrupt:  # noqa: PERF203 - of an app's handler
                    self._pressed()
            done.result()

    async def _on_own_loop(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        SHORT_LOOPS.add(self._loop)
        self._beat()
        await self.all()

    async def all(self) -> None:
        """Score everything."""
        await self._rows.check_group()
        if not self._metrics:
            with naming("metrics"):
                group, line = await self._rows.fitting_group()
            self._metrics = self._make(group)
            if line:
                _write_line(line)
        limits, metrics, spending = self._limits, self._metrics, self._spending
        if all(getattr(metric.judge, "in_turn", False) for metric in metrics):
            limits = replace(limits, max_concurrency=1)
        journal = None if self._journal is None else _open_journal(self._journal)
        with journal or contextlib.nullcontext():
            gate = RequestGate(
                limits,
                first_alone=spending is not None and spending.counts_tokens,
                share_replies=self._share_replies,
                replies=journal,
            )
            self._evaluations = Evaluations(
                metrics,
                gate,
                _uncapped if spending is None else spending.meter,
                limits.sample_timeout,
                journal,
                stop_on_give_up=self._stop_on_give_up,
                earlier=None if self._resume is None else _earlier_outcomes(self._resume, metrics),
            )
            with self._bar(gate) as self._recording.bar:
                self._scheduler = Scheduler(self._rows, self._evaluations, self._recording.add, limits.max_concurrency)
                if self._presses:
                    self._end()
                await self._scheduler.run()
        # Where the run ended there, the report says it.
        for why in () if self._stop_on_give_up else self._evaluations.not_asked:
            _log.warning("Gave up: %s; the rest is unscored (judge_error).", printable(why, 1_000))

    def _bar(self, gate: RequestGate) -> "contextlib.AbstractContextManager[Progress | None]":
        if self._progress is False:
            return contextlib.nullcontext()
        # It is loaded where something is shown.
        from ragstone.batch.progress import Progress

        return contextlib.closing(Progress(gate, self.total, lines=self._progress is True))

    def _beat(self) -> None:
        """Wake the loop now and then, so that a press of Ctrl-C is seen."""
        asyncio.get_running_loop().call_later(_BEAT, self._beat)

    def _pressed(self) -> None:
        self._presses += 1
        if self._presses > 2:
            raise KeyboardInterrupt
        if self._loop is not None:
            # The loop is closed where the run is over.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        """End the run: at the first press, once it is under way, what is in flight still ends."""
        if self._evaluations is not None and self._scheduler is not None and self._presses == 1:
            if in_flight := self._evaluations.gate.in_flight:
                _write_line(f"Finishing {count(in_flight, 'judge call')} in flight; Ctrl-C again stops at once.")
            self._scheduler.stop()
        elif self._task is not None:
            self._task.cancel()


def _metrics_of(models: Mapping[str, object], max_concurrency: int, metrics: object) -> list[Metric]:
    """The metrics, with the models, no two of one name."""
    made = metrics_from(metrics, **models, max_concurrency=max_concurrency)
    names = [metric.name for metric in made]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"metrics: holds two of the name {min(twice)!r}; evaluate twice, and compare the reports")
    return made


def _write_line(line: str) -> None:
    from ragstone.batch.progress import write_line

    write_line(line)


def _uncapped(_metric: Metric, _sample: Sample) -> Meter:
    return Meter()


def _spending(limits: Limits, price: Price | None) -> "Spending":
    # It is loaded where there is a cap.
    from ragstone.batch.spending import Spending

    return Spending(limits, price, _expected)


def _expected(metric: Metric, sample: Sample) -> Counter[str]:
    from ragstone.batch.estimation import estimate_sample

    whole = estimate_sample(metric, sample)
    return Counter(calls=whole.calls, input=whole.input_tokens, output=whole.output_tokens)


def _open_journal(path: Path) -> "Journal":
    # It is loaded where there is a journal.
    from ragstone.batch.journal import Journal

    return Journal(path)


def _earlier_outcomes(source: "Report | str | PathLike[str]", metrics: Sequence[Metric]) -> "EarlierOutcomes":
    # It is loaded where there was an earlier run.
    from ragstone.batch.earlier import EarlierOutcomes

    return EarlierOutcomes(source, metrics)


@contextlib.contextmanager
def _on_ctrl_c(act: Callable[[], None]) -> Generator[None, None, None]:
    """Act on Ctrl-C in place of Python, where this is its thread and no app does."""
    handler = signal.getsignal(signal.SIGINT)
    # The one of asyncio.run is a partial.
    function = getattr(handler, "func", handler)
    is_pythons = handler is signal.default_int_handler or getattr(function, "__module__", "") == "asyncio.runners"
    if threading.current_thread() is not threading.main_thread() or not is_pythons:
        yield
        return
    signal.signal(signal.SIGINT, lambda _signal, _frame: act())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
