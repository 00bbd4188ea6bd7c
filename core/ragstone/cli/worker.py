"""`ragstone worker`: scores what a monitor left in its outbox."""

import shlex
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from tqdm import tqdm

from ragstone.cli.options import (
    NotThere,
    asking_option,
    check_apart,
    database_file,
    embedder_option,
    import_from_here,
    llm_option,
    local_file,
    make_metrics,
    metric_option,
    parse_settings,
    settings_option,
)
from ragstone.metrics import ContextRelevancy
from ragstone.monitor import Entry, Monitor, Stats
from ragstone.registry import NullJudge, RegistryError, load_entry_point, metric_names
from ragstone.store.base import SinkError
from ragstone.text.plain import printable

if TYPE_CHECKING:
    from types import FrameType

    from ragstone.sinks import Sink
    from ragstone.store.outbox import Contents

_HOW = ("names", "llm", "embedder", "asking", "settings", "db", "store_text", "workers")
Ended = Literal["done", "interrupted", "terminated", "judge", "sink"]

GIVE_UP_AFTER = 100
"""Evaluations in a row on which the judge fails: what comes after them would only wait for retries, for hours."""

_LOOK = 0.1  # seconds between two looks at the monitor
_SINK_PATIENCE = 30.0
_FAILURES_OF_THE_JUDGE = ("judge_error", "timeout", "over_budget", "cancelled")
_MOST_WAITING = 100  # samples taken at once: several workers on one outbox share what is left


@click.command(short_help="Score what a monitor left in its outbox.")
@click.option("--outbox", required=True, type=click.Path(), metavar="PATH", help="The monitor's outbox=.")
@click.option(
    "--monitor",
    metavar="MODULE:NAME",
    help="Your app's own Monitor, or a function that returns it, imported with this folder on the path. "
    "It says all else.",
)
@click.option("--follow", is_flag=True, help="Go on until Ctrl-C or SIGTERM.")
@metric_option("What to score by; repeat it. Default: the metrics that the samples wait for.")
@llm_option
@embedder_option
@asking_option
@settings_option
@click.option(
    "--db",
    default="ragstone.db",
    show_default=True,
    metavar="PATH|URL",
    help="Where outcomes go: a SQLite file, or a database's URL (extra ragstone[sql]).",
)
@click.option("--store-text", is_flag=True, help="Keep the samples' texts in the database, too.")
@click.option("--workers", type=click.IntRange(1), default=4, show_default=True, help="Evaluations at a time.")
@click.pass_context
def worker(
    ctx: click.Context,
    /,
    outbox: str,
    monitor: str | None,
    follow: bool,
    names: tuple[str, ...],
    **how: Any,  # noqa: ANN401 - click's values, passed on by name
) -> None:
    """Score what a monitor left in its outbox when its process ended.

    Takes samples that no living process works on, scores them, and brings their outcomes to the database, and those
    that wait for it there already. Outcomes that wait for another one stay; the worker says how to deliver them. What
    the judge fails on stays in the outbox for another try. Several workers, and the app, may work on one outbox;
    none takes what another has.

    \b
    Exit status:
      0    nothing is left (with --follow: ended by SIGTERM)
      1    something could not be scored or delivered
      2    there is no such outbox, the database takes nothing, or an option is wrong
      130  interrupted; what was in hand was finished
    """  # noqa: D301 - click's mark for lines that stay as they are
    path = Path(outbox)
    left = _contents(path)
    if not (left.samples or left.records or follow):
        click.echo(f"{outbox}: nothing in it")
        return
    if monitor is not None:
        others = [name for name in _HOW if ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE]
        if others:
            option = {"names": "metric", "settings": "set"}.get(others[0], others[0].replace("_", "-"))
            raise click.UsageError(f"--{option}: --monitor says that already; leave one of them out")
        its_monitor = _imported(monitor, path)
    else:
        its_monitor = _made(path, left, names, follow=follow, **how)
    work = Work(its_monitor, total=left.waiting(), follow=follow)
    ended = work.run()
    left = _contents(path)
    status = work.report(left, ended)
    sinks = its_monitor.stats().sinks
    for name in left.records:
        click.echo(f"{printable(name)}: {_way(name, outbox, again=name in sinks)}", err=True)
    sys.exit(status)


def _contents(path: Path) -> "Contents":
    """Return what an outbox holds; rows of processes that are no more are freed.

    Raises:
        NotThere: There is no such file, it is no outbox, or it cannot be read.
    """
    from ragstone.store.outbox import Outbox, OutboxError  # loads sqlite3

    if not path.is_file():
        what = "is a folder" if path.is_dir() else "there is no such file"
        raise NotThere(f"--outbox {path}: {what}; name the file that the app's monitor has as outbox=")
    try:
        outbox = Outbox(path.absolute())
        try:
            with outbox.transaction():
                outbox.adopt()
                return outbox.contents()
        finally:
            outbox.close()
    except OutboxError as error:
        raise NotThere(f"--outbox {error}") from None
    except (sqlite3.Error, OSError) as error:
        raise NotThere(f"--outbox {path}: cannot be used: {error}") from error


def _imported(spec: str, path: Path) -> Monitor:
    """Return the app's monitor."""
    import_from_here(spec)
    try:
        monitor = load_entry_point(spec, call=True)
    except RegistryError as error:
        raise click.UsageError(f"--monitor {error}") from error
    if not isinstance(monitor, Monitor):
        kind = type(monitor).__name__
        raise click.UsageError(f"--monitor {spec}: is {kind}, no Monitor nor a function that returns one")
    if monitor.outbox is None or monitor.outbox.resolve() != path.resolve():
        has = "it has none" if monitor.outbox is None else f"its outbox is {monitor.outbox}"
        raise click.UsageError(f"--monitor {spec}: {has}; --outbox names {path.absolute()}")
    return monitor


def _made(
    path: Path,
    contents: "Contents",
    names: Sequence[str],
    *,
    follow: bool,
    llm: str,
    embedder: str | None,
    asking: str,
    settings: Sequence[str],
    db: str,
    store_text: bool,
    workers: int,
) -> Monitor:
    """Return a monitor of the command's options."""
    wanted = tuple(dict.fromkeys(names or (name for name, _ in contents.metrics)))
    if unknown := [name for name in wanted if name not in (*metric_names(), *names)]:
        raise click.UsageError(
            f"samples wait for {unknown[0]}, which ragstone does not have; name the app's monitor, which does "
            f"(--monitor MODULE:NAME), or what to score by (--metric)"
        )
    if not wanted and follow:
        raise click.UsageError(f"{path} is empty: say what to score by (--metric, or --monitor MODULE:NAME)")
    options = parse_settings(settings, wanted)
    for values in options.values():
        values.setdefault("asking", asking)
    check_apart(
        [("--db", database_file(db))],
        [("--outbox", str(path)), ("--llm", local_file(llm)), ("--embedder", local_file(embedder))],
    )
    sink = _sink(db)
    metrics = (
        make_metrics(options, llm=llm, embedder=embedder, concurrency=4 * workers)
        if wanted
        else [_Nothing(llm=NullJudge())]
    )
    versions = {metric.name: metric.version for metric in metrics}
    for name, version in contents.metrics:
        if versions.get(name, version) != version:
            click.echo(
                f"Note: {name} is scored as version {versions[name]}; the app's is {version}. "
                "To score as the app does: --monitor MODULE:NAME",
                err=True,
            )
    _open(sink, contents.records.get(sink.name, 0))
    return Monitor(metrics, sinks=sink, outbox=path, store_text=store_text, workers=workers, max_queue=_MOST_WAITING)


def _way(name: str, outbox: str, *, again: bool) -> str:
    """Say what delivers the outcomes that wait for a sink: they go to one of its name and to no other."""
    kind, _, place = name.partition(":")
    if kind == "unreadable":
        return "what waits for it cannot be read, and stays in the outbox"
    if again:
        return "to deliver what waits for it, run this again when it takes outcomes; no other sink gets them"
    if kind not in ("sqlite", "sql"):
        return "to deliver what waits for it, start the app, or name the app's monitor (--monitor MODULE:NAME)"
    command = printable(f"ragstone worker --outbox {shlex.quote(outbox)} --db {shlex.quote(place)}", 10_000)
    return f"to deliver what waits for it: {command}" + (" (add the password, if it has one)" if kind == "sql" else "")


def _sink(db: str) -> "Sink":
    from ragstone.sinks import SQLiteSink, SQLSink

    try:
        if "://" in db:
            return SQLSink(db)
        if not Path(db).absolute().parent.is_dir():
            raise ValueError(f"there is no folder {Path(db).absolute().parent}")
        if Path(db).is_dir():
            raise ValueError("is a folder; name a file in it")
        return SQLiteSink(db)
    except ValueError as error:
        raise click.UsageError(f"--db {db}: {error}") from None
    except ImportError as error:
        raise NotThere(f"--db {db}: {error}") from None


def _open(sink: "Sink", waiting: int) -> None:
    """Open the database once, before a judge is paid for what it would not take."""
    ledger = sink.ledger()
    try:
        if ledger is not None:
            ledger.spend([Entry("opening", int(time.time()), 1, 0)])  # beyond its limit: nothing is entered
    except SinkError as error:
        more = f". {waiting:,} outcomes wait for it and go to no other: mend it or move it away, and run this again"
        raise NotThere(f"--db {error}{more if waiting else ''}") from None
    finally:
        sink.close()


class _Nothing(ContextRelevancy):
    """A metric that no sample waits for, where there are only outcomes to deliver."""

    name = "nothing"


class Work:
    """Has a monitor do what is in its outbox."""

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
            flushing = threading.Thread(
                target=partial(self._monitor.flush, put_off=True), name="ragstone-flush", daemon=True
            )
            flushing.start()
            while (ended := self._ended(flushing)) is None:
                self._stopped.wait(_LOOK)
                bar.update(_evaluated(self._monitor.stats()) - bar.n)
            if ended != "done":
                self._finish_what_is_in_hand()
            self._monitor.close()
            bar.update(_evaluated(self._monitor.stats()) - bar.n)
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
        if (judged := _evaluated(stats)) != self._judged:
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


def _evaluated(stats: Stats) -> int:
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
