"""Scoring live traffic off the request path."""

import os
import time
import warnings
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast, get_args

from pydantic import BeforeValidator, InstanceOf

from ragstone.background import in_daemon
from ragstone.judge import LLM, Embedder, Judge
from ragstone.live.alarms import Alarm
from ragstone.live.alerts import Alert
from ragstone.live.budget import Budget
from ragstone.live.counters import FlushResult, Stats
from ragstone.live.pipeline import Pipeline
from ragstone.live.redaction import Redact, RedactionFailed, snapshot
from ragstone.live.sampling import Sampling, check_function, thumb
from ragstone.live.settings import Queue, Settings, Waits
from ragstone.live.sink import Sink
from ragstone.live.trace import Fact
from ragstone.metrics.base import Metric
from ragstone.metrics.names import metrics_from
from ragstone.options import Flag, checked
from ragstone.plain import is_list
from ragstone.results.groups import group_name
from ragstone.results.record import Watched
from ragstone.results.traffic import Feedback
from ragstone.sample import Sample
from ragstone.text import _pysbd

_ASYNC_ONLY = (
    "{} has async methods only: a monitor calls them on its own event loop. If your app uses the same client, "
    "give the monitor another one, or define the sync methods"
)
_SECONDS_TO_CLOSE, _SECONDS_TO_CLOSE_OUTBOX = 20.0, 5.0

T = TypeVar("T")
_listed = BeforeValidator(lambda value: value if is_list(value) else [value])
_Sinks = Annotated[list[InstanceOf[Sink]], _listed]
_Alerts = Annotated[list[InstanceOf[Alert]], _listed]


class Monitor:
    """Scores live samples outside of requests and sends the outcomes to sinks.

    `submit` takes a snapshot and returns. Daemon threads call the judge's sync methods, so your app's model is only
    ever used on your app's event loop. In each process the first sample starts the threads. `stats` counts the fate
    of every sample. Before the process ends call `close`, or use the monitor as a context manager or as a web app's
    `lifespan`. At interpreter exit no judge can be asked: remaining samples are only counted, or with `outbox` kept
    for the next start.

    Args:
        metrics: One metric or several, by name too where `llm` is given. Each scores every chosen sample.
        llm: The judge of metrics that are given by name or lack one, as for `ragstone.evaluate`; also `writer` and
            `embedder`.
        writer: The writer of these metrics, if the judge does not write.
        embedder: Their embedder.
        sinks: One sink or several; None: `SQLiteSink("ragstone.db")`.
        sampling: Which samples are scored: `Sampling(rate=0.1, always=["error"])`.
        queue: How many samples may wait, what happens then, and how many threads judge: `Queue(when_full="block")`.
        budget: Limits on the cost of judging in each process: `Budget(calls_per_day=10_000)`.
        redact: Called with every text of a chosen sample except its id, on the thread that submits it: the app's, or
            `ragstone-reading` of a run that searched. Its result replaces the text before the sample is queued. If it
            raises, the sample is dropped.
        outbox: A file that keeps samples until they are scored. If the process is killed, the next one or
            `ragstone live worker` scores the rest. After a judge's failure a sample is retried for about four hours.
        store_text: Whether sinks get the samples' texts. Otherwise they get ids, scores, times and verdicts without
            texts.
        keep: Facts about the run that outcomes keep, with or without texts: any of "id", "run_id",
            "run_name", "tags", "user_id" and "thread_id". Without "id", the id is random.
        group: The group of a sample, as for `ragstone.evaluate`; outcomes keep it. By default they are
            grouped by `thread_id`, where that is kept. Reports then draw groups, and of a group one sample a day
            moves an alarm.
        alerts: Alerts that raise an alarm when a metric's mean falls too low. Processes whose first sink with a
            database is the same count together; one of the sinks must have a database.
        on_alarm: Called with each `Alarm` once, on a thread of its own, in a process that judges. The log of
            `ragstone.live` and sinks that define `alarm` get it, too.

    Raises:
        ValueError: An option has an impossible value; the message names it.
        TypeError: An option has the wrong type; the message names it.

    Example:
        >>> from ragstone import ContextRelevancy, Sample
        >>> from ragstone.live import CallableSink
        >>> from ragstone.testing import FakeLLM
        >>> metric = ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]}))
        >>> outcomes = []
        >>> with Monitor(metric, sinks=CallableSink(outcomes.extend)) as monitor:
        ...     monitor.submit(Sample(id="trace 1", user_input="Where?", retrieved_contexts=["Here."]))
        >>> outcomes[0].sample_id, outcomes[0].outcome.value
        ('trace 1', 1.0)
    """

    waits: ClassVar = Waits()

    def __init__(
        self,
        metrics: Metric | str | Sequence[Metric | str],
        *,
        llm: Judge | str | object | None = None,
        writer: LLM | str | object | None = None,
        embedder: Embedder | str | object | None = None,
        sinks: Sink | Sequence[Sink] | None = None,
        sampling: Sampling | None = None,
        queue: Queue | None = None,
        budget: Budget | None = None,
        redact: Redact | None = None,
        outbox: str | os.PathLike[str] | None = None,
        store_text: bool = False,
        keep: Collection[Fact] = get_args(Fact),
        group: str | None = None,
        alerts: Alert | Sequence[Alert] = (),
        on_alarm: Callable[[Alarm], object] | None = None,
    ) -> None:
        every = metrics_from(metrics, llm=llm, writer=writer, embedder=embedder)
        checked("sampling", sampling, InstanceOf[Sampling] | None)
        checked("queue", queue, InstanceOf[Queue] | None)
        sampling, queue = sampling or Sampling(), queue or Queue()
        checked("budget", budget, InstanceOf[Budget] | None)
        checked("store_text", store_text, Flag)
        keep = frozenset(checked("keep", keep, set[Fact]))
        check_function("redact", redact)
        check_function("on_alarm", on_alarm)
        by_key = _by_key("metrics", every, attrgetter("name", "version"))
        if sinks is None:
            from ragstone.live.database import SQLiteSink

            sinks = SQLiteSink()
        several = list(_by_key("sinks", checked("sinks", sinks, _Sinks), attrgetter("name")).values())
        path = _outbox_path(outbox)
        if path is None and not queue.workers:
            raise ValueError('queue: workers=0 needs a file through which another process judges: outbox="PATH"')
        self._use(
            Settings(
                metrics=by_key,
                choices=sampling.choices(every),
                sinks=several,
                sampling=sampling,
                queue=queue,
                budget=budget,
                redact=redact,
                outbox=path,
                store_text=store_text,
                keep=keep,
                group=None if group is None else group_name(group),
                alerts=_watched(checked("alerts", alerts, _Alerts), every, several),
                on_alarm=on_alarm,
                waits=self.waits,
            )
        )
        for judge in {judge for metric in every for judge in metric.models}:
            if getattr(judge, "async_only", False):
                warnings.warn(_ASYNC_ONLY.format(type(judge).__name__), stacklevel=2)
        # Imported late, in a thread of ours, a fork meanwhile would leave it half-imported.
        _pysbd.load()

    def _use(self, settings: Settings) -> None:
        self._settings = settings
        self._advice: dict[str, str] = {}
        # By the process: a forked one starts with a queue of its own.
        self._pipelines: dict[int, Pipeline] = {}

    @classmethod
    def _of(cls, settings: Settings) -> "Monitor":
        monitor = cls.__new__(cls)
        cls._use(monitor, settings)
        return monitor

    @property
    def _pipeline(self) -> Pipeline:
        """What this process has. What is of before a fork stays as it is: what it holds open is the parent's."""
        pid = os.getpid()
        pipeline = self._pipelines.get(pid)
        if pipeline is None:
            pipeline = self._pipelines.setdefault(pid, Pipeline(self._settings, self._advice))
        return pipeline

    def judging(self, workers: int) -> "Monitor":
        """Make one that judges itself: this one, or where it leaves judging to others (`workers=0`) one like it."""
        settings = self._settings
        if settings.queue.workers:
            return self
        return self._of(replace(settings, queue=replace(settings.queue, workers=workers)))

    @property
    def outbox(self) -> Path | None:
        """The file to which samples are written ahead; None without one."""
        return self._settings.outbox

    def submit(self, sample: Sample | Mapping[str, Any]) -> None:
        """Take a sample, or a row that `evaluate` takes, to be scored. Returns at once; raises nothing.

        A sample whose `id` was submitted lately is a duplicate. One without an id gets one. A row that holds no sample
        is counted as dropped, and the log says why.
        """
        try:
            self._pipeline.intake.submit(sample)
        except Exception as error:
            # It is never the app's trouble.
            self.failed("submit", error)

    def later(self, step: Callable[[], object], *, size: int = 0) -> bool:
        """Run a step on a thread of the monitor's, for handlers, before `flush` and `close` come back.

        Handlers use it for work before a sample that is too much for the app's thread. An error of
        a step is counted in `stats().errors["reading"]`.

        Args:
            step: The step, which submits the sample.
            size: How many characters it holds.

        Returns:
            False where the monitor is closed, or too much waits: then it is not run, and the handler does without.
        """
        try:
            return self._pipeline.later(step, size)
        except Exception as error:
            # No thread can be had.
            self.failed("reading", error)
            return False

    def feedback(self, sample_id: str, value: str | float, comment: str | None = None) -> None:
        """Keep a person's feedback on an answer, beside its outcomes. Returns at once; raises nothing.

        Args:
            sample_id: The sample's id.
            value: "up", True or 1 becomes "thumbs_up"; "down", False or -1 "thumbs_down"; another word stays as it is.
            comment: A comment; redacted, and kept only with `store_text`.
        """
        try:
            if "id" not in self._settings.keep:
                raise ValueError('feedback: needs "id" in keep=, to find the sample')
            normalised = Feedback(sample_id=sample_id, value=cast("str", thumb(value)), comment=comment, at=time.time())
            self._pipeline.intake.feedback(normalised.model_copy(update={"comment": self._kept(comment)}))
        except Exception as error:
            # It is never the app's trouble.
            self.failed("feedback", error)

    def _kept(self, comment: str | None) -> str | None:
        try:
            kept = snapshot(Sample(response=comment), "", self._settings.redact)
            return kept.response if self._settings.store_text else None
        except RedactionFailed as error:
            self.failed("redact", error)
            return None

    def skip(self, reason: str, runs: int = 1, names: Sequence[str] = (), likely: str = "") -> None:
        """Count runs of the app that gave no sample, for handlers; `stats().skipped` has them by reason.

        Args:
            reason: Why. Of "no_answer" and "no_question" the log says so, once for the same names.
            runs: How many. A negative number takes counts back: the run is part of a sample.
            names: The names in the run's output, if the missing field has no usual one.
            likely: The one of them that can be meant, where exactly one can: the line to paste has it.
        """
        self._pipeline.counters.skip(reason, runs, names, likely)

    def count_fields(
        self,
        read_from: Mapping[str, str],
        names: Sequence[str] = (),
        likely: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Count where a sample's fields came from, for handlers, once beside `submit`; `stats().read_from` has it.

        A field that a metric requires and that came from nowhere is counted in `stats().missing`, and logged once for
        the same names.

        Args:
            read_from: By the field, where it was read: {"response": "answer", "retrieved_contexts": "searches (5)"}.
            names: The names of the run's output that hold no field.
            likely: By the field, the one of them that can be meant, where exactly one can.
        """
        self._pipeline.counters.count_fields(read_from, names, likely)

    def advise(self, advice: Mapping[str, str]) -> None:
        """Note a handler's advice on missing fields, by reason; the log and printed `stats` say it.

        Of runs that gave no sample it is the reason of `skip`; of samples without contexts it is "no_contexts". "NAME"
        in it stands for the entry that can be meant.
        """
        self._advice |= advice

    def failed(self, part: str, error: BaseException) -> None:
        """Count an exception in code that stands between the app and us, and log it at most once a minute."""
        self._pipeline.intake.failed(part, error)

    def flush(self, timeout: float | None = None, *, put_off: bool = False) -> FlushResult:
        """Wait until every sample is scored and every sink has its outcomes, blocking.

        Returns early after `timeout` seconds, while the monitor is paused, and when the rest of the outbox is put
        off. With `put_off`, samples that earlier processes put off after a judge's failure are tried now.
        """
        return self._pipeline.flush(timeout, put_off=put_off)

    def close(self, timeout: float | Literal["auto"] | None = "auto") -> FlushResult:
        """Take no more samples, score the waiting ones for at most `timeout` seconds, and close the sinks.

        The rest stays in the outbox, or is counted as dropped. The result says how much, and is truthy if nothing is
        left. A second call closes nothing and says the same.

        Args:
            timeout: Seconds; "auto": 5 with an outbox, which loses nothing, and 20 without; None: no limit.
        """
        if timeout == "auto":
            timeout = _SECONDS_TO_CLOSE if self._settings.outbox is None else _SECONDS_TO_CLOSE_OUTBOX
        return self._pipeline.close(timeout)

    def pause(self) -> None:
        """Judge nothing further; samples are taken all the same, until the queue is full."""
        self._pipeline.judging.allowed.clear()

    def resume(self) -> None:
        """Judge again after `pause`."""
        self._pipeline.judging.allowed.set()

    def stats(self) -> Stats:
        """The counts of this process's samples so far."""
        return self._pipeline.stats()

    @asynccontextmanager
    async def lifespan(
        self, app: object = None, *, timeout: float | Literal["auto"] | None = "auto"
    ) -> AsyncGenerator[None, None]:
        """Close the monitor when a web app ends: `FastAPI(lifespan=monitor.lifespan)`, or within a lifespan of yours.

        At the app's start, the monitor goes on with the samples that an earlier process left in the outbox.

        Args:
            app: The server's argument; not used.
            timeout: As for `close`. A server's own limit should be some seconds longer.

        Example:
            >>> import asyncio
            >>> from ragstone import ContextRelevancy
            >>> from ragstone.testing import FakeLLM
            >>> monitor = Monitor(ContextRelevancy(llm=FakeLLM(lambda _: "yes")))
            >>> async def serve():
            ...     async with monitor.lifespan():
            ...         pass
            >>> asyncio.run(serve())
        """
        # A server hands itself over.
        del app
        self._pipeline.begin()
        try:
            yield
        finally:
            await in_daemon(lambda: self.close(timeout))

    def __enter__(self) -> "Monitor":
        self._pipeline.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> "Monitor":
        # Frameworks copy what holds a handler; its queue and counters are one.
        return self

    def __deepcopy__(self, memo: object) -> "Monitor":
        return self

    def __reduce__(self) -> "tuple[Callable[[Settings], Monitor], tuple[Settings]]":
        return self._of, (self._settings,)


def _by_key(name: str, items: Sequence[T], key: Callable[[T], Any]) -> dict[Any, T]:
    """Find things by what tells them apart; refuse two alike."""
    by_key = {key(item): item for item in items}
    if len(by_key) < len(items):
        twice = next(each for each in by_key if sum(key(item) == each for item in items) > 1)
        raise ValueError(f"{name}: two are called {twice!r}; leave one out, or give it another name")
    return by_key


def _watched(alerts: Sequence[Alert], metrics: Sequence[Metric], sinks: Sequence[Sink]) -> dict[str, Watched]:
    """Find the lowest mean and the bounds of each metric that an alert watches; refuse what cannot be watched."""
    by_name = {metric.name: metric for metric in metrics}
    if alerts and all(sink.database is None for sink in sinks):
        raise ValueError("alerts: need a sink with a database, such as SQLiteSink(PATH)")
    watched: dict[str, Watched] = {}
    for alert in alerts:
        if alert.metric not in by_name:
            raise ValueError(f"alerts: {alert.metric!r} is not a metric of this monitor; it has {sorted(by_name)}")
        if alert.metric in watched:
            raise ValueError(f"alerts: two watch {alert.metric!r}; a metric has one alert, so leave the other out")
        watched[alert.metric] = alert.watched(by_name[alert.metric])
    return watched


def _outbox_path(outbox: str | os.PathLike[str] | None) -> Path | None:
    path: Path | None = checked("outbox", outbox, Path | None)
    if path is None:
        return None
    if path.is_dir():
        raise ValueError(f"outbox: {path} is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"outbox: {path}: no folder {path.absolute().parent}")
    return path.absolute()
