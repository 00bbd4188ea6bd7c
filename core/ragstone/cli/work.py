"""One run of `ragstone worker`: until nothing is left, nothing comes of it any more, or somebody says stop."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import click
from tqdm import tqdm

from ragstone.monitor import Monitor, Stats
from ragstone.text.plain import printable

if TYPE_CHECKING:
    from types import FrameType

    from ragstone.store.outbox import Contents

Ended = Literal["done", "interrupted", "terminated", "judge", "sink"]

GIVE_UP_AFTER = 100
"""Evaluations in a row on which the judge fails: what comes after them would only wait for retries, for hours."""

_LOOK = 0.1
_SINK_PATIENCE = 30.0
_FAILURES_OF_THE_JUDGE = ("judge_error", "timeout", "over_budget", "cancelled")


class Work:
    """Has a monitor do what is in its outbox.

    Args:
        monitor: The monitor. It is closed in the end.
        total: How many evaluations there are, for the progress bar.
        follow: Whether to go on when nothing is left.
    """

    def __init__(self, monitor: Monitor, *, total: int, follow: bool) -> None:
        self._monitor = monitor
        self._total = total
        self._follow = follow
        self._asked: Ended | None = None
        self._stopped = threading.Event()
        self._judged = self._put_off = self._written = 0
        self._written_at = time.monotonic()

    def run(self) -> Ended:
        """Score until there is a reason to end; then finish what is in hand and close the monitor."""
        with _signals(self._stop), self._bar() as bar:
            flushing = threading.Thread(target=self._flush, name="ragstone-flush", daemon=True)
            flushing.start()
            while (ended := self._ended(flushing)) is None:
                self._stopped.wait(_LOOK)
                bar.update(_made(self._monitor.stats()) - bar.n)
            if ended != "done":
                self._finish_what_is_in_hand()
            self._monitor.close()
            bar.update(_made(self._monitor.stats()) - bar.n)
        return ended

    def report(self, left: "Contents", ended: Ended) -> int:
        """Print what came of it and return the exit status."""
        stats = self._monitor.stats()
        for line in self._why_left(left, ended, stats):
            click.echo(line, err=True)
        reasons = ", ".join(f"{reason} {n:,}" for reason, n in stats.reasons.get("unscored", {}).items())
        other = f", over budget {stats.over_budget:,}" if stats.over_budget else ""
        open_ = left.waiting() + sum(left.records.values())
        unscored = f"unscored {stats.unscored:,}" + (f" ({reasons})" if reasons else "")
        click.echo(f"scored {stats.scored:,}, {unscored}{other}, left {open_:,}")
        if ended == "interrupted":
            return 130
        if ended == "terminated" and self._follow:
            return 0
        failed = sum(stats.reasons.get("unscored", {}).get(reason, 0) for reason in _FAILURES_OF_THE_JUDGE)
        lost = sum(sink.lost for sink in stats.sinks.values())
        return int(bool(open_ or left.unreadable or failed or lost or stats.over_budget or stats.dropped))

    def _flush(self) -> None:
        self._monitor.flush(put_off=True)

    def _stop(self, number: int, frame: "FrameType | None") -> None:
        del frame
        self._asked = "interrupted" if number == signal.SIGINT else "terminated"
        self._stopped.set()

    def _ended(self, flushing: threading.Thread) -> Ended | None:
        if self._asked is not None or self._follow:
            return self._asked
        return self._hopeless(self._monitor.stats()) if flushing.is_alive() else "done"

    def _hopeless(self, stats: Stats) -> Ended | None:
        """Say what keeps failing, so that it makes no sense to go on."""
        if (judged := _made(stats)) != self._judged:
            self._judged, self._put_off = judged, stats.spooled
        if stats.spooled - self._put_off >= GIVE_UP_AFTER:
            return "judge"
        written, now = sum(sink.written for sink in stats.sinks.values()), time.monotonic()
        if written != self._written or not any(sink.waiting for sink in stats.sinks.values()):
            self._written, self._written_at = written, now
        return "sink" if now - self._written_at > _SINK_PATIENCE else None

    def _finish_what_is_in_hand(self) -> None:
        self._monitor.pause()
        still = 0
        while still < 3:  # between two evaluations of a sample none is in hand
            still = 0 if self._monitor.stats().in_hand else still + 1
            time.sleep(_LOOK / 3)

    def _why_left(self, left: "Contents", ended: Ended, stats: Stats) -> Generator[str, None, None]:
        if ended == "judge":
            yield f"Gave up: the judge failed {GIVE_UP_AFTER} times in a row. `ragstone doctor` tries a judge."
        if ended in ("interrupted", "terminated"):
            yield "Stopped: what was in hand was finished."
        for name, sink in stats.sinks.items():
            if sink.last_error and (sink.lost or left.records.get(name)):
                yield f"{name}: {printable(sink.last_error)}"
        for (name, version), n in left.metrics.items():
            yield f"{n:,} wait to be scored by {printable(name)} (version {printable(version)})"
        for name, n in left.records.items():
            yield f"{n:,} outcomes wait for {printable(name)}"
        if left.elsewhere:
            yield f"{left.elsewhere:,} samples are in the hands of another process"
        if left.unreadable:
            yield f"{left.unreadable:,} samples cannot be read"
        for place, n in stats.errors.items():
            yield f"{place}: failed {n:,} times"

    def _bar(self) -> "tqdm[Any]":
        shown = sys.stderr.isatty()
        total = None if self._follow else self._total
        return tqdm(total=total, unit=" evaluations", disable=not shown, file=sys.stderr, dynamic_ncols=True)


def _made(stats: Stats) -> int:
    return stats.scored + stats.unscored + stats.over_budget


@contextmanager
def _signals(stop: "Callable[[int, FrameType | None], None]") -> Generator[None, None, None]:
    """Have Ctrl-C and SIGTERM ask for the end; a second one ends at once."""

    def once(number: int, frame: "FrameType | None") -> None:
        signal.signal(number, before[signal.Signals(number)])
        stop(number, frame)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, once) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
