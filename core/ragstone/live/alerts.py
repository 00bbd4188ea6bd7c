"""Alerts: they count live scores, and raise an alarm once when the mean has fallen too low."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import isfinite

from ragstone.live.alarms import Alarm, raise_alarms
from ragstone.live.delivery import start_thread
from ragstone.metrics.base import Metric
from ragstone.metrics.setup import in_words, setup_of
from ragstone.options import Finite, Text, checked_fields
from ragstone.plain import printable
from ragstone.results.database import Database
from ragstone.results.record import Record, Watched

_log = logging.getLogger("ragstone.live")


@dataclass(frozen=True)
class Alert:
    """Raises an alarm, once, when a metric's mean over live traffic falls below what you accept.

    It looks after every batch of scores. All looks together raise a false alarm with a probability of at most 5 %, as
    long as the mean is `below` or higher. It counts the scores of samples that `rate` chose, whether or not a
    rule of `always` chose them too; never those that a rule or feedback alone chose. Of a conversation (or of what the
    monitor's `group` names) it counts the score that comes first, and no other for a day: so the mean is one over
    conversations.

    Args:
        metric: The metric's name. Its scores must have bounds, and higher ones must be better.
        below: The lowest mean that you accept, between the metric's bounds.
            With another one it counts anew, as with another version, judge or set-up of the metric.

    Raises:
        ValueError: `below` is no finite number, or the name is empty or no text.

    Example:
        >>> Alert("faithfulness", below=0.8)
        Alert(metric='faithfulness', below=0.8)
    """

    metric: Text
    below: Finite = field(kw_only=True)

    def __post_init__(self) -> None:
        for _ in checked_fields(self, ()):
            pass

    def watched(self, metric: Metric) -> Watched:
        """Return the lowest mean with the metric's bounds; refuse with a ValueError a metric that cannot be watched."""
        low, high = metric.bounds
        if not (isfinite(low) and isfinite(high) and metric.higher_is_better):
            raise ValueError(f"alerts: {self.metric} needs two bounds, and higher scores must be better")
        if not low < self.below < high:
            raise ValueError(
                f"alerts: below: is {self.below}; {self.metric} needs a number between {low:g} and {high:g}"
            )
        return Watched(float(self.below), low, high, in_words(metric.version, metric.judge.model, setup_of(metric)))


class Watch:
    """What one process does for the alerts: it has stored outcomes counted, and announces alarms.

    Args:
        database: Where outcomes are counted.
        announce: Called with each alarm, to hand it to the sinks.
        on_alarm: The user's function.
        failed: Called with the part and the error when something fails.
    """

    def __init__(
        self,
        database: Database,
        announce: Callable[[Alarm], object],
        on_alarm: Callable[[Alarm], object] | None,
        failed: Callable[[str, BaseException], object],
    ) -> None:
        self._database = database
        self._announce = announce
        self._on_alarm = on_alarm
        self._failed = failed
        self._new = threading.Event()  # set while there may be outcomes to count
        self._ended = threading.Event()
        self._counting = False
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Count from now on, on a thread of its own: a database that hangs holds up nothing else."""
        self._new.set()  # outcomes of earlier processes
        self._threads.append(start_thread(self._run, "ragstone-alerts"))

    def note(self, records: Sequence[Record]) -> None:
        """Note that a sink has stored outcomes."""
        if any(record.watched for record in records):
            self._new.set()

    def busy(self) -> bool:
        """Whether outcomes wait to be counted, or are being counted."""
        return self._new.is_set() or self._counting

    def _run(self) -> None:
        while not self._ended.is_set():
            self._look()
            self._new.wait()

    def _look(self) -> None:
        """Count what is new, and announce what nobody has announced. Where it fails, the next look does it."""
        self._counting = True  # before it is no longer new: `busy` must not miss it
        self._new.clear()
        try:
            alarms = raise_alarms(self._database)
            for alarm in alarms:
                self._announce(alarm)
        except Exception as error:
            self._failed("alerts", error)
            return
        finally:
            self._counting = False
        if alarms:
            try:
                self._threads.append(start_thread(partial(self._call, alarms), "ragstone-alarm"))
            except RuntimeError:  # the interpreter is about to exit
                self._call(alarms)

    def end(self, timeout: float) -> None:
        """Count no more; wait until the user's function has returned, or `timeout` seconds have passed."""
        self._ended.set()
        self._new.set()
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _call(self, alarms: Sequence[Alarm]) -> None:
        for alarm in alarms:
            with suppress(Exception):  # of a log handler's or filter's
                _log.warning("%s", printable(alarm, 1_000))
            try:
                if self._on_alarm is not None:
                    self._on_alarm(alarm)
            except BaseException as error:
                self._failed("on_alarm", error)
