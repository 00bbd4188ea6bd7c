"""One run over a data set: what `evaluate` does, from the arguments to the report."""

import asyncio
import contextlib
import logging
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence, Sized
from concurrent.futures import wait
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args

from pydantic import Field
from typing_extensions import TypedDict

from ragstone.background import SHORT_LOOPS, daemon, in_daemon
from ragstone.batch.runner import Progress, Runner, Scored, Shown, above_bar
from ragstone.batch.spending import Spending, cost_of
from ragstone.errors import GroupError, JournalError
from ragstone.judge import LLM, Embedder, Judge
from ragstone.judge_names import NullJudge, RegistryError
from ragstone.limits.gate import RequestGate
from ragstone.metrics.base import Metric
from ragstone.metrics.models import naming
from ragstone.metrics.names import GROUPS, make_metric, metric_names, metrics_from
from ragstone.options import Count, checked
from ragstone.outcome import Score, Unscored, Usage
from ragstone.plain import printable
from ragstone.results.groups import group_name, group_of
from ragstone.results.record import Record
from ragstone.sample import BadLine, Row, Sample, SampleField
from ragstone.sources import Source, SourceError, rows_of

if TYPE_CHECKING:
    from ragstone.batch.journal import Journal
    from ragstone.report.report import Report

_log = logging.getLogger(__name__)
Metrics = Metric | str | Sequence[Metric | str] | None
_BEAT = 0.2  # seconds; a signal that comes just before a thread goes to wait does not wake it: it wakes by itself

_LOOKED_AT = 100  # rows at most
_AboveZero = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
_LIMITS = (
    "requests_per_minute",
    "tokens_per_minute",
    "max_calls",
    "max_tokens",
    "max_cost",
    "call_timeout",
    "sample_timeout",
)
Item = Row | BadLine


class RunOptions(TypedDict, total=False):
    """The options of `evaluate` and `aevaluate`, as their docstring has them."""

    llm: Judge | str | object | None
    writer: LLM | str | object | None
    embedder: Embedder | str | object | None
    fields: Mapping[str, str] | str | None
    group: str | None
    max_concurrency: int
    requests_per_minute: float | None
    tokens_per_minute: float | None
    max_calls: int | None
    max_tokens: int | None
    max_cost: float | None
    price: tuple[float, float] | None
    call_timeout: float | None
    sample_timeout: float | None
    journal: str | Path | None
    share_replies: bool
    progress: Shown
    total: int | None
    name: str
    on_result: Callable[[Sequence[Record]], object] | None
    on_bad_row: Callable[[BadLine], object] | None
    stop_on_give_up: bool


_RENAMED = {
    "batch_size": "max_concurrency=",
    "dataset": "samples, the first argument",
    "data": "samples, the first argument",
    "embeddings": "embedder=",
    "judge": "llm=",
    "max_workers": "max_concurrency=",
    "metric": "metrics, the second argument",
    "model": "llm=",
    "raise_exceptions": "nothing: what fails is Unscored, with its reason",
    "run_config": "max_concurrency=, call_timeout= and sample_timeout=",
    "show_progress": "progress=",
    "threshold": "threshold= of a metric, such as Faithfulness(threshold=0.8)",
    "timeout": "call_timeout= or sample_timeout=",
}
"""What other libraries call the options of `evaluate`."""


def refuse(function: str, renamed: Mapping[str, object]) -> None:
    """Refuse options that there are not, by a TypeError that says what is meant."""
    for name in renamed:
        meant = f"; write {_RENAMED[name]}" if name in _RENAMED else f"; `help({function})` lists those that there are"
        raise TypeError(f"{name}: {function} has no such option{meant}")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run.

    Attributes:
        report: What was scored by then.
    """

    def __init__(self, message: str, report: "Report") -> None:
        super().__init__(message)
        self.report = report


class Run:
    """One run: its arguments, checked before anything is read or asked, and what it has scored so far."""

    def __init__(self, samples: Source, metrics: object, options: RunOptions) -> None:
        self._options = options
        self._calls = checked("max_concurrency", options.get("max_concurrency", 16), Count)
        for name in _LIMITS:
            if (limit := options.get(name)) is not None:
                checked(name, limit, _AboveZero)
        self._progress = checked("progress", options.get("progress", "auto"), Shown)
        limits: dict[str, Any] = {name: options.get(name) for name in ("max_calls", "max_tokens", "max_cost")}
        self._spending = Spending(options.get("price"), expected=_expected, **limits)
        self._metrics = [] if metrics is None else self._made(metrics)
        self._samples = samples
        group = options.get("group")
        self._group = None if group is None else group_name(group)
        self._rows = rows_of(samples, options.get("fields"))
        self._bad_rows: list[BadLine] = []
        self._runner: Runner | None = None
        self._gate: RequestGate | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._raised: set[str] = set()  # listeners
        self._unread = ""
        self._lacking: dict[str, bool] = {}  # by the metric: whether all samples lacked an input
        self.presses = 0  # of Ctrl-C

        from ragstone.results.memory import MemoryResults

        self._results = MemoryResults()

    def evaluated(self) -> "Report":
        """Score everything and report; what ends it early has the report of what was scored by then."""
        try:
            self.complete()
            if not self.presses:
                return self.report()
        except (JournalError, SourceError) as error:
            error.report = self.report("An error ended the run early: this is what was scored by then.")
            raise
        except asyncio.CancelledError:
            if not self.presses:
                raise
        except KeyboardInterrupt:  # of a third Ctrl-C, or of a callback's own
            pass
        raise Interrupted(self.interrupted(), self.report("The run was ended early: this is what was scored by then."))

    def complete(self) -> None:
        """Score everything on an event loop of its own: in this thread or, where a loop runs in it, in another one.

        The first Ctrl-C stops the run, the second cancels it, the third raises where it is. Only Python's own handling
        of Ctrl-C is replaced meanwhile, never an app's.
        """
        main = partial(asyncio.run, self.all(own_loop=True))
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

    async def all(self, *, own_loop: bool = False) -> None:
        """Score everything."""
        options = self._options
        if own_loop:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            SHORT_LOOPS.add(self._loop)
            self._beat()
        if self._group is not None:
            self._rows = await in_daemon(partial(check_group, self._group, self._rows))
        if not self._metrics:
            await self._choose()
        path: Path | None = checked("journal", options.get("journal"), Path | None)
        journal = None if path is None else _opened(path)
        with journal or contextlib.nullcontext():
            self._gate = RequestGate(
                self._calls,
                first_alone=self._spending.counts_tokens,
                requests_per_minute=options.get("requests_per_minute"),
                tokens_per_minute=options.get("tokens_per_minute"),
                call_timeout=options.get("call_timeout"),
                share_replies=options.get("share_replies", True),
                replies=journal,
            )
            with contextlib.closing(Progress(self._gate, self._total(), self._progress)) as bar:
                self._runner = Runner(
                    self._rows,
                    self._metrics,
                    self._gate,
                    partial(self._take, bar),
                    journal=journal,
                    sample_timeout=options.get("sample_timeout"),
                    in_memory=isinstance(self._samples, (list, tuple)),
                    meter=self._spending.meter,
                    flows=1 if self._calls == 1 else 2 * self._calls,  # in turn: what shares a text is asked together
                    window=16 * self._calls,
                )
                if self.presses:
                    self._end()
                await self._runner.run()
        for why in () if options.get("stop_on_give_up") else self._runner.not_asked:  # else the report says it
            _log.warning("Gave up: %s; what was not asked is unscored (judge_error).", printable(why, 1_000))

    def report(self, *notes: str) -> "Report":
        """Return the report of what has been scored."""
        from ragstone.report.report import Report  # what shows results is loaded when there are some

        runner, gate = self._runner, self._gate
        said = list(notes)
        lacking = [metric for metric, lacks in self._lacking.items() if lacks]
        if lacking and self._unread:
            said.append(f"{', '.join(lacking)}: every sample lacks an input; row 1 {self._unread}")
        gave_up: tuple[str, ...] = ()
        spent = Usage()
        if runner is not None and gate is not None:
            gave_up, spent = tuple(runner.not_asked), gate.usage()
            said += [*runner.notes, *[f"Gave up: {why}." for why in gave_up]]
            if not (runner.rows_done or self._bad_rows or self.presses):
                said.append("samples: held no row; a generator that was used before is empty")
            if runner.kept or gate.calls_failed:
                said.append(self._bill(runner, gate))
        self._bad_rows.sort(key=lambda bad: bad.line)
        report = Report(
            self._results, self._metrics, bad_rows=self._bad_rows, name=self._options.get("name", ""), notes=said
        )
        report.gave_up, report.spent, report.price = gave_up, spent, self._options.get("price")
        return report

    def interrupted(self) -> str:
        """Return what to say after Ctrl-C."""
        journal = self._options.get("journal")
        if journal is None:
            return "What was scored is in this exception's report."
        return f"What was judged is in {journal}: make the same call again, and it goes on from there."

    def _made(self, metrics: object) -> list[Metric]:
        models = {name: self._options.get(name) for name in ("llm", "writer", "embedder")}
        made = metrics_from(metrics, **models, max_concurrency=self._calls)
        names = [metric.name for metric in made]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"metrics: holds two of the name {min(twice)!r}; evaluate twice, and compare the reports")
        if all(getattr(metric.judge, "in_turn", False) for metric in made):
            self._calls = 1
        return made

    async def _choose(self) -> None:
        """Take the metrics that fit the rows, and say so."""
        with naming("metrics"):
            group, line, self._rows = await in_daemon(partial(choose, self._rows))
        self._metrics = self._made(group)
        _say(line)

    def _beat(self) -> None:
        """Wake the loop now and then, so that a press of Ctrl-C is seen."""
        asyncio.get_running_loop().call_later(_BEAT, self._beat)

    def _pressed(self) -> None:
        self.presses += 1
        if self.presses > 2:
            raise KeyboardInterrupt
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it is closed: the run is over
                self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        """End the run: at the first press, once it is under way, what is in flight still ends."""
        if self._runner is not None and self._gate is not None and self.presses == 1:
            if self._gate.in_flight:
                _say(f"Finishing {self._gate.in_flight} judge call(s) in flight; Ctrl-C again stops at once.")
            self._runner.stop()
        elif self._task is not None:
            self._task.cancel()

    def _bill(self, runner: Runner, gate: RequestGate) -> str:
        """Return what this run spent, where its results are worth another sum."""
        from ragstone.report.tables import count

        spent, price = gate.usage(), self._options.get("price")
        sent, received = spent.input_tokens, spent.output_tokens
        failed = f", {gate.calls_failed:,} of them failed" if gate.calls_failed else ""
        facts = f"{count(spent.llm_calls, 'judge call')}{failed}"
        if sent is not None and received is not None:
            facts += f", {sent + received:,} tokens"
            facts += "" if price is None else f", cost {cost_of(price, sent, received):.4f}"
        elif price is not None:
            facts += ", unknown cost"
        whole = f"; {count(runner.rows_done, 'sample')}, {runner.kept:,} from the journal" if runner.kept else ""
        return f"Spent in this run: {facts}{whole}. The table says what the results are worth."

    def _take(self, bar: Progress, item: Scored | BadLine) -> None:
        """Keep what came out of the runner, and tell the caller."""
        if isinstance(item, BadLine):
            self._bad_rows.append(item)
            bar.done()
            self._tell("on_bad_row", item)
            return
        records, sample = item.records, item.row.sample
        if (group := self._group) is not None:
            records = tuple([replace(record, group=group_of(group, record, sample)) for record in records])
        self._unread = self._unread or item.row.unread
        unscored = 0
        for record in records:
            outcome = record.outcome
            unscored += not isinstance(outcome, Score)
            lacks = isinstance(outcome, Unscored) and outcome.reason == "missing_input"
            self._lacking[outcome.metric] = lacks and self._lacking.get(outcome.metric, True)
        self._results.add(records, sample)
        bar.done(unscored)
        self._tell("on_result", (replace(records[0], sample=sample), *records[1:]))
        if self._options.get("stop_on_give_up") and self._runner is not None and self._runner.gave_up:
            self._runner.cancel()

    def _tell(self, event: Literal["on_result", "on_bad_row"], what: object) -> None:
        listener = cast("Callable[[object], object] | None", self._options.get(event))
        if listener is not None and event not in self._raised:
            self._raised.add(event)  # if it raises: it ends the run, and is not called again
            listener(what)
            self._raised.remove(event)

    def _total(self) -> int | None:
        total, samples = self._options.get("total"), cast("object", self._samples)
        return len(samples) if total is None and isinstance(samples, Sized) and not isinstance(samples, str) else total


def _opened(path: Path) -> "Journal":
    from ragstone.batch.journal import Journal  # loaded where there is one

    return Journal(path)


def _expected(metric: Metric, sample: Sample) -> Counter[str]:
    from ragstone.batch.estimation import estimate_sample  # loaded where there is a limit

    whole = estimate_sample(metric, sample)
    return Counter(calls=whole.calls, input=whole.input_tokens, output=whole.output_tokens)


@contextlib.contextmanager
def _on_ctrl_c(act: Callable[[], None]) -> Generator[None, None, None]:
    """Act on Ctrl-C in place of Python, where this is its thread and no app does."""
    handler = signal.getsignal(signal.SIGINT)
    function = getattr(handler, "func", handler)  # asyncio.run's is a partial
    is_pythons = handler is signal.default_int_handler or getattr(function, "__module__", "") == "asyncio.runners"
    if threading.current_thread() is not threading.main_thread() or not is_pythons:
        yield
        return
    signal.signal(signal.SIGINT, lambda _signal, _frame: act())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _say(line: str) -> None:
    with above_bar(sys.stderr), contextlib.suppress(OSError, AttributeError):  # the stream may be closed
        sys.stderr.write(f"{line}\n" * bool(line))
        sys.stderr.flush()


def check_group(group: str, rows: Iterator[Item]) -> Iterator[Item]:
    """Return all the rows, if one of the first 100 has the field that `group` names.

    Raises:
        GroupError: None has; the message says what their metadata have.
    """
    seen = list(islice(rows, _LOOKED_AT))
    samples = [item.sample for item in seen if isinstance(item, Row)]
    nothing = Record("", Unscored(metric="", reason="undefined", detail="", version=""))
    if samples and not any(group_of(group, nothing, sample) for sample in samples):
        known = dict.fromkeys(f"metadata.{name}" for sample in samples for name in sample.metadata)
        have = (
            f"; they have {printable(', '.join(known), 300)}"
            if known
            else "; they have no metadata: name a column as fields={'metadata': COLUMN} (--field metadata=COLUMN)"
        )
        raise GroupError(f"group: none of the first {len(samples)} row(s) has {group}{have}")
    return chain(seen, rows)


def choose(rows: Iterator[Item]) -> tuple[str, str, Iterator[Item]]:
    """Return the group of metrics that fits the rows, a line that says so, and all the rows.

    The first of the first 100 rows that has contexts and a response decides, and none after it is read. Where no row
    holds a sample, the group is "rag" and the line empty.

    Raises:
        RegistryError: None of them has both; the message says for which metrics the first sample would do.

    Example:
        >>> choose(iter([Row(1, Sample(retrieved_contexts=["Emma is a novel."], response="A novel."))]))[1]
        'Metrics: summary (summarization_score, alignment_coverage), because row 1 has retrieved_contexts and response.'
    """
    seen: list[Item] = []
    for item in islice(rows, _LOOKED_AT):
        seen.append(item)
        if isinstance(item, Row) and _decides(item):
            has = _fields(item.sample)
            group = "rag" if "user_input" in has else "summary"
            line = f"Metrics: {group} ({', '.join(GROUPS[group])}), because row {item.line} has {_and(has)}."
            line += " The group golden compares with the reference." if "reference" in has else ""
            return group, line, chain(seen, rows)
    first = next((item for item in seen if isinstance(item, Row)), None)
    if first is None:
        return "rag", "", chain(seen, rows)
    has = _fields(first.sample)
    metrics = [make_metric(name, {}, NullJudge(), NullJudge()) for name in metric_names()]
    enough = ", ".join(metric.name for metric in metrics if set(metric.required_fields) <= set(has))
    raise RegistryError(
        f"none is named, and none of the first {len(seen)} row(s) has retrieved_contexts and response; "
        f"row {first.line} has {_and(has) or 'no text'}, which is enough for {enough or 'no metric of ragstone'}"
    )


def _decides(item: Item) -> bool:
    return isinstance(item, Row) and bool(item.sample.retrieved_contexts and item.sample.response)


def _fields(sample: Sample) -> list[str]:
    return [name for name in get_args(SampleField) if getattr(sample, name)]


def _and(words: Sequence[str]) -> str:
    return " and ".join(", ".join(part) for part in (words[:-1], words[-1:]) if part)
