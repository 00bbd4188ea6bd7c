"""Alerts: they count live scores, and raise an alarm once when the mean has fallen too low."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import isfinite

from ragstone.background import start_thread
from ragstone.live.alarms import Alarm, raise_alarms
from ragstone.metrics.base import Metric
from ragstone.metrics.setup import in_words, setup_of
from ragstone.options import Finite, Text, checked_fields
from ragstone.plain import printable
from ragstone.results.database import Database
from ragstone.results.record import Watched

_log = logging.getLogger("ragstone.live")


@dataclass(frozen=True)
class Alert:
    """Raises an alarm, once, when a metric's mean over live traffic falls below your limit.

    It looks after every batch of scores. All looks together raise a false alarm with a probability of at most 5 %, as
    long as the mean is `below` or higher. It counts the scores of samples that `rate` chose, not of those that only a
    rule of `always` or feedback chose. Of a conversation (or another `group` of the monitor) it counts the first
    score, and no other for a day. So the mean is over conversations.

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
        announce: Called with each alarm, to bring it to the sinks.
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
        self._threads = list[threading.Thread]()

    def count(self) -> None:
        """Count the outcomes that are new, and announce alarms. If it fails, the next time tries again."""
        try:
            alarms = raise_alarms(self._database)
        except Exception as error:
            self._failed("alerts", error)
            return
        for alarm in alarms:
            self._announce(alarm)
            call = partial(self._call, alarm)
            try:
                self._threads.append(start_thread(call, "ragstone-alarm"))
            except RuntimeError:
                # The interpreter is about to exit.
                call()

    def end(self, timeout: float) -> None:
        """Wait until the user's function has returned, or `timeout` seconds have passed."""
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _call(self, alarm: Alarm) -> None:
        with suppress(Exception):
            # A log handler or filter may raise.
            _log.warning("%s", printable(alarm, 1_000))
        try:
            if self._on_alarm is not None:
                self._on_alarm(alarm)
        except BaseException as error:
            self._failed("on_alarm", error)
