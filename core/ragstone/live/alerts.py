"""Alerts: they count live scores, and raise an alarm once when the mean has fallen too low."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from heapq import nsmallest
from math import isfinite
from typing import TYPE_CHECKING, cast

from ragstone.live.alarms import Alarm, LowScore, Tallies, Tally, Window
from ragstone.live.betting import ALPHA, bet, bets_against, evidence, share
from ragstone.live.delivery import start_thread
from ragstone.live.sink import Sink
from ragstone.live.trace import Fact, facts_of
from ragstone.metrics.base import Metric
from ragstone.outcome import Score
from ragstone.plain import clean_key, is_list, printable
from ragstone.results.record import Record
from ragstone.results.tables import TALLIES

if TYPE_CHECKING:
    from threading import Thread

_FACTS = ("run_name", "tags")
_NAMELESS = 20  # samples
_TOO_MANY = ("id", "run_id", "user_id", "thread_id")
_WINDOW, _WINDOWS = 25, 8
_LOWEST = 10
_STRIKES = 3
_SECONDS_UNTIL_TOLD_AGAIN = 600.0
_log = logging.getLogger("ragstone.live")


@dataclass(frozen=True)
class Alert:
    """Raises an alarm, once, when a metric's mean over live traffic falls below what you accept.

    It looks after every batch of scores. All looks together raise a false alarm with a probability of at most 5 %, as
    long as the mean is `below` or higher. It counts the scores of samples that `sample_rate` chose, whether or not a
    rule of `always` chose them too; never those that a rule or feedback alone chose.

    Args:
        metric: The metric's name. Its scores must have bounds, and higher ones must be better.
        below: The lowest mean that you accept, between the metric's bounds.
        by: Watch each value of this field apart: "run_name", "tags", or a key of the samples' metadata. The 5 % hold
            for all values together. Values beyond the first 1,000 are one slice.

    Attributes:
        name: What tells it from others, such as "faithfulness below 0.8 by run_name". With another name it counts anew.

    Raises:
        ValueError: `below` is not finite, a name is empty, or `by` has a value for nearly every sample, such as "id".
        TypeError: An option has the wrong type; the message names it.

    Example:
        >>> Alert("faithfulness", below=0.8, by="run_name").name
        'faithfulness below 0.8 by run_name'
    """

    metric: str
    below: float = field(kw_only=True)
    by: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name, text in (("metric", cast("object", self.metric)), ("by", self.by)):
            if not isinstance(text, str) and (name, text) != ("by", None):
                raise TypeError(f"{name}: is {type(text).__name__}; pass a name")
            if text == "":
                raise ValueError(f"{name}: is empty; pass a name")
        if not isinstance(cast("object", self.below), (int, float)) or not isfinite(self.below):
            raise ValueError(f"below: {self.below!r} is not a finite number")
        if self.by in _TOO_MANY:
            raise ValueError(
                f'by: {self.by!r} has too few samples of each value; name another field, such as "run_name"'
            )

    @property
    def name(self) -> str:
        """What tells it from others."""
        return clean_key(f"{self.metric} below {float(self.below)}" + ("" if self.by is None else f" by {self.by}"))

    def check(self, metric: Metric, keep: Collection[str]) -> None:
        """Refuse, with a ValueError, a metric that it cannot watch and a field that is not kept."""
        low, high = metric.bounds
        if not isfinite(low) or not isfinite(high):
            raise ValueError(f"alerts: scores of {self.metric} have no bounds; an alert needs both")
        if not metric.higher_is_better:
            raise ValueError(f"alerts: lower scores of {self.metric} are better; an alert watches for low ones")
        if not low < self.below < high:
            raise ValueError(
                f"alerts: below: is {self.below}; {self.metric} needs a number between {low:g} and {high:g}"
            )
        if self.by in _FACTS and self.by not in keep:
            raise ValueError(f"alerts: by: {self.by!r} is not in keep=; add it there")

    def slices(self, metadata: Mapping[str, object]) -> tuple[str, ...]:
        """Return the slices that a sample belongs to.

        Example:
            >>> alert = Alert("faithfulness", below=0.8, by="tenant")
            >>> alert.slices({"tenant": "ann"}), alert.slices({"tenant": ["a", "b"]}), alert.slices({})
            (('ann',), ('a', 'b'), ('',))
        """
        if self.by is None:
            return ("",)
        value = facts_of(metadata, _FACTS).get(cast("Fact", self.by)) if self.by in _FACTS else metadata.get(self.by)
        values = value if is_list(value) else [value]
        return tuple(dict.fromkeys("" if each is None else clean_key(str(each)) for each in values)) or ("",)


def count(tally: Tally, scores: Iterable[LowScore], below: float, bounds: tuple[float, float], *, by: bool) -> bool:
    """Count scores in a tally; return whether that raises the alarm, after which nothing is counted.

    Of the last windows it then keeps those since the drop: where what is missing to `below` is the most in all.

    Example:
        >>> tally = Tally(place=1)
        >>> count(tally, [LowScore(sample_id="a", value=0.0, submitted_at=0)] * 30, 0.8, (0.0, 1.0), by=False)
        True
        >>> tally.samples
        4
    """
    import numpy as np

    low, high = bounds
    mean = (below - low) / (high - low)
    bets = bets_against(mean)
    limit = 1 / (ALPHA * share(tally.place) if by else ALPHA)
    stakes = np.asarray(tally.stakes) if len(tally.stakes) == len(bets) else np.zeros(len(bets))
    for score in scores:
        if not tally.windows or tally.windows[-1].samples == _WINDOW:
            tally.windows = [*tally.windows[1 - _WINDOWS :], Window()]
        window = tally.windows[-1]
        window.samples += 1
        window.total += score.value
        window.lowest = nsmallest(_LOWEST, [*window.lowest, score], key=lambda each: each.value)
        x = min(max((score.value - low) / (high - low), 0.0), 1.0)
        stakes = bet(stakes, bets, mean, tally.samples, np.asarray(x))
        tally.samples += 1
        tally.total += score.value
        if evidence(stakes, tally.samples) >= limit:
            tally.raised_at = tally.claimed_at = time.time()
            since = [tally.windows[start:] for start in range(len(tally.windows))]
            tally.windows = max(since, key=lambda last: sum(each.samples * below - each.total for each in last))
            break
    tally.stakes = stakes.tolist()
    return tally.raised_at is not None


class Watch:
    """What one process does for the alerts: it counts outcomes as a sink keeps them, and tells of alarms.

    The tallies are in the database of the first sink that has room for them. There an outcome is counted in the
    transaction that keeps it, and only when it is new; so it is counted once, whatever is killed or handed over again.

    Args:
        alerts: The alerts, each with the bounds of its metric.
        sink: The sink that keeps the tallies; one that cannot has them kept in this process's memory.
        tell: Called with each alarm, to hand it to the sinks.
        on_alarm: The user's function.
        failed: Called with the place and the error when something fails.
    """

    def __init__(
        self,
        alerts: Mapping[Alert, tuple[float, float]],
        sink: Sink,
        tell: Callable[[Alarm], object],
        on_alarm: Callable[[Alarm], object] | None,
        failed: Callable[[str, BaseException], object],
    ) -> None:
        self._alerts = alerts
        self._sink = sink
        self._memory = None if keeps_tallies(sink) else _in_memory()
        self._tell = tell
        self._on_alarm = on_alarm
        self._failed = failed
        self._strikes = 0
        self._nameless: dict[str, int] = {}  # by the alert: samples without its name; -1 when that is settled
        self._told: set[tuple[str, str, float | None]] = set()
        self._threads: list[Thread] = []

    def write(self, records: Sequence[Record]) -> None:
        """Have the sink keep the records, and count them.

        If that fails, it raises what the sink raised and is to be called again; from the third time on the records
        are kept without being counted, so that a tally that cannot be written never holds up outcomes.
        """
        watched = [record for record in records if record.alerts]
        alarms: list[Alarm] = []
        if not watched:
            self._sink.write(records)
        elif self._memory is not None:
            self._sink.write(records)
            try:
                alarms = self._count(self._memory, watched)
            except Exception as error:
                self._failed("alerts", error)
        else:
            try:
                alarms = self._sink.watch(records, self._count) or []
                self._strikes = 0
            except Exception as error:
                self._strikes += 1
                if self._strikes < _STRIKES:
                    raise
                self._sink.write(records)
                self._failed("alerts", error)
        if alarms:
            self._announce(alarms)

    def join(self, timeout: float) -> None:
        """Wait until the user's function has been told, or `timeout` seconds have passed."""
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _count(self, tallies: Tallies, records: Sequence[Record]) -> list[Alarm]:
        """Count outcomes; return the alarms to tell of: new ones, and those whose process ended before it told."""
        alarms: list[Alarm] = []
        for alert, bounds in self._alerts.items():
            by_slice: dict[str, list[LowScore]] = {}
            for record in records:
                if isinstance(record.outcome, Score) and alert.name in record.alerts:
                    name, at = clean_key(record.sample_id), record.submitted_at
                    score = LowScore(sample_id=name, value=record.outcome.value, submitted_at=at)
                    for value in record.alerts[alert.name]:
                        by_slice.setdefault(value, []).append(score)
            self._note_names(alert, by_slice)
            for value, scores in by_slice.items():
                slice_, tally = tallies.load(alert.name, value)
                if tally.raised_at is None:
                    raised = count(tally, scores, alert.below, bounds, by=alert.by is not None)
                elif (alert.name, slice_, tally.raised_at) in self._told:
                    raised, tally.told = False, True
                else:
                    raised = not tally.told and abs(time.time() - tally.claimed_at) > _SECONDS_UNTIL_TOLD_AGAIN
                    tally.claimed_at = time.time() if raised else tally.claimed_at
                tallies.save(alert.name, slice_, tally)
                if raised:
                    sample_of = partial(tallies.sample, metric=alert.metric) if self._memory is None else None
                    alarms.append(tally.alarm(alert.name, slice_, sample_of))
        return alarms

    def _note_names(self, alert: Alert, by_slice: Mapping[str, Sequence[LowScore]]) -> None:
        """Say once that no sample so far has what an alert watches apart."""
        if alert.by is None or self._nameless.get(alert.name, 0) < 0:
            return
        self._nameless[alert.name] = self._nameless.get(alert.name, 0) + len(by_slice.get("", ()))
        named = by_slice.keys() - {""}
        if named or self._nameless[alert.name] >= _NAMELESS:
            self._nameless[alert.name] = -1
        if not named and self._nameless[alert.name] < 0:
            what = printable(f"alert {alert.name!r}: none of the first {_NAMELESS} samples has {alert.by!r}")
            _log.warning("%s in its metadata; they are watched together", what)

    def _announce(self, alarms: Sequence[Alarm]) -> None:
        """Tell of alarms: the sinks on their threads, the log and the user's function on one of their own."""
        for alarm in alarms:
            self._tell(alarm)
        try:
            self._threads.append(start_thread(partial(self._call, alarms), "ragstone-alarm"))
        except RuntimeError:  # the interpreter is about to exit
            self._call(alarms)

    def _call(self, alarms: Sequence[Alarm]) -> None:
        for alarm in alarms:
            with suppress(Exception):  # of a log handler's or filter's
                _log.warning("%s", printable(alarm, 1_000))
            try:
                if self._on_alarm is not None:
                    self._on_alarm(alarm)
            except BaseException as error:
                self._failed("on_alarm", error)
            self._told.add((alarm.alert, alarm.slice, alarm.at))
        try:
            if self._memory is None:
                self._sink.watch((), partial(_note_told, alarms))
        except Exception as error:  # the next batch notes it
            self._failed("alerts", error)


def keeps_tallies(sink: Sink) -> bool:
    """Whether a sink has room for tallies."""
    return type(sink).watch is not Sink.watch


def _in_memory() -> Tallies:
    import sqlite3  # loaded where it is used

    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.execute(TALLIES)
    return Tallies(connection)


def _note_told(alarms: Iterable[Alarm], tallies: Tallies, _: object) -> None:
    for alarm in alarms:
        slice_, tally = tallies.load(alarm.alert, alarm.slice)
        if tally.raised_at == alarm.at:  # it was not reset meanwhile
            tally.told = True
            tallies.save(alarm.alert, slice_, tally)
