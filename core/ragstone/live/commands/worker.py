"""`ragstone live worker`: scores what a monitor left in its outbox."""

import shlex
import signal
import time
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragstone.cli.options import (
    NotThere,
    check_apart,
    database_file,
    import_from_here,
    json_option,
    local_file,
    make_metrics,
    parse_settings,
    scoring_options,
)
from ragstone.judge_names import NullJudge, RegistryError, load_entry_point
from ragstone.live import Monitor, Queue, Stats
from ragstone.live.commands.options import database_sink, opened_outbox
from ragstone.live.database import DatabaseSink
from ragstone.live.sink import SinkError
from ragstone.metrics import ContextRelevancy
from ragstone.metrics.names import metric_names
from ragstone.plain import count, printable, to_json

if TYPE_CHECKING:
    from types import FrameType

    from ragstone.live.outbox import Contents

# Seconds between two looks at the monitor.
_LOOK = 0.1
# Seconds in which something must have been done, where nothing is in hand.
_PATIENCE = 30.0
_FAILURES_OF_THE_JUDGE = ("judge_error", "timeout", "over_budget", "cancelled")
_WAYS = {
    "again": "run this again when it takes them",
    "sqlite": "ragstone live worker --outbox {} --db {}",
    "sql": "ragstone live worker --outbox {} --db {} (with the password if it has one)",
    "unreadable": "there is no way, they cannot be read",
}
# Samples taken at once: several workers on one outbox share what is left.
_MOST_WAITING = 100


@click.command(short_help="Score the samples in a monitor's outbox.")
@click.option("--outbox", required=True, type=click.Path(), metavar="PATH", help="The monitor's outbox=.")
@click.option(
    "--monitor",
    metavar="MODULE:NAME",
    help="Your app's own Monitor, or a function that returns it, imported with this folder on the path. "
    "It says all else.",
)
@click.option("--follow", is_flag=True, help="Go on until Ctrl-C or SIGTERM.")
@scoring_options("What to score by; repeat it. Default: the metrics that the samples wait for.")
@click.option(
    "--db",
    default="ragstone.db",
    show_default=True,
    metavar="PATH|URL",
    help="Where outcomes go: a SQLite file, or a database's URL (extra ragstone[sql]).",
)
@click.option("--store-text", is_flag=True, help="Keep the samples' texts in the database, too.")
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    help="Evaluations at a time. A --monitor says that itself, unless it has workers=0.",
)
@json_option
@click.pass_context
def worker(
    ctx: click.Context,
    /,
    outbox: str,
    monitor: str | None,
    follow: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Score the samples that a monitor left in its outbox.

    Takes samples that no living process works on, scores them, and brings their outcomes to the database, and those
    that wait for it there already. Outcomes that wait for another one stay; the worker says how to deliver them. A
    sample on which the judge fails stays in the outbox for another try. Several workers, and the app, may work on one
    outbox;
    none takes what another has.

    \b
    Exit status:
      0    nothing is left (with --follow: ended by SIGTERM)
      1    something could not be scored or delivered
      2    there is no such outbox, the database takes nothing, or an option is wrong
      130  interrupted; what was in hand was finished
    """  # noqa: D301 - click's mark for lines that stay as they are
    path = Path(outbox)
    left = _contents(path, make=follow and monitor is not None)
    if not (left.samples or left.records or follow):
        click.echo(_summary(Stats(), {}, 0, as_json=True) if as_json else printable(f"{outbox}: nothing in it"))
        return
    if monitor is None:
        scoring = _monitor_of_options(path, left, options, follow=follow)
    else:
        scoring = _monitor_of_app(ctx, monitor, path, options)
    ended = _work(scoring, follow=follow)
    left, stats = _contents(path), scoring.stats()
    for line in _why_left(left, ended, stats, outbox):
        click.echo(printable(line, 1_000), err=True)
    unscored = stats.reasons.get("unscored", {})
    open_ = sum(left.metrics.values()) + sum(left.records.values())
    click.echo(_summary(stats, unscored, open_, as_json=as_json))
    if ended == "interrupted":
        ctx.exit(130)
    failed = sum(unscored.get(reason, 0) for reason in _FAILURES_OF_THE_JUDGE)
    lost = sum(sink.lost for sink in stats.sinks.values())
    wrong = open_ or left.unreadable or failed or lost or stats.over_budget or stats.dropped
    ctx.exit(int(bool(wrong) and not (follow and ended == "terminated")))


def _summary(stats: Stats, unscored: Mapping[str, int], open_: int, *, as_json: bool) -> str:
    if as_json:
        return to_json({"scored": stats.scored, "unscored": unscored, "over_budget": stats.over_budget, "left": open_})
    reasons = ", ".join(f"{reason} {n:,}" for reason, n in unscored.items())
    listed = f" ({reasons})" if reasons else ""
    over_budget = f", over budget {stats.over_budget:,}" if stats.over_budget else ""
    return f"scored {stats.scored:,}, unscored {stats.unscored:,}{listed}{over_budget}, left {open_:,}"


def _contents(path: Path, *, make: bool = False) -> "Contents":
    """Count what an outbox holds, an empty one if it is to be made; rows of processes that are no more are freed."""
    with opened_outbox(path, make=make) as outbox, outbox.transaction():
        outbox.adopt()
        return outbox.contents()


def _monitor_of_app(ctx: click.Context, spec: str, path: Path, options: Mapping[str, Any]) -> Monitor:
    """Import the app's monitor, which says all that options would say."""
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
    judging = monitor.judging(options["workers"])
    said = options.keys() if judging is monitor else options.keys() - {"workers"}
    for option in ctx.command.params:
        chosen = ctx.get_parameter_source(str(option.name)) is click.core.ParameterSource.COMMANDLINE
        if chosen and option.name in said:
            raise click.UsageError(f"{option.opts[0]}: --monitor says that already; leave one of them out")
    return judging


def _monitor_of_options(path: Path, contents: "Contents", given: Mapping[str, Any], *, follow: bool) -> Monitor:
    """Make a monitor of the command's options."""
    names, llm, embedder = given["names"], given["llm"], given["embedder"]
    wanted: tuple[str, ...] = tuple(dict.fromkeys(names or (name for name, _ in contents.metrics)))
    if unknown := [name for name in wanted if name not in (*metric_names(), *names)]:
        raise click.UsageError(
            f"samples wait for {unknown[0]}, which ragstone does not have; name the app's monitor, which does "
            f"(--monitor MODULE:NAME), or what to score by (--metric)"
        )
    if not wanted and follow:
        raise click.UsageError(f"{path} is empty: say what to score by (--metric, or --monitor MODULE:NAME)")
    options = parse_settings(given["settings"], wanted, asking=given["asking"])
    check_apart(
        [("--db", database_file(given["db"]))],
        [("--outbox", str(path)), ("--llm", local_file(llm)), ("--embedder", local_file(embedder))],
    )
    sink = _writable(given["db"])
    queue = Queue(size=_MOST_WAITING, workers=given["workers"])
    metrics = (
        make_metrics(options, llm=llm, writer=given["writer"], embedder=embedder, concurrency=4 * queue.workers)
        if wanted
        else [_Nothing(llm=NullJudge())]
    )
    return Monitor(metrics, sinks=sink, outbox=path, store_text=given["store_text"], queue=queue)


def _writable(name: str) -> DatabaseSink:
    """Make a database's sink, and refuse one that takes nothing, before a judge is paid."""
    sink = database_sink(name, "--db ", new=True)
    try:
        with closing(sink), sink.database.transaction():
            return sink
    except SinkError as error:
        raise NotThere(f"--db {error}") from None


class _Nothing(ContextRelevancy):
    """A metric that no sample waits for, where there are only outcomes to deliver."""

    name = "nothing"


def _work(monitor: Monitor, *, follow: bool) -> str:
    """Let the monitor score until nothing is left, or until a signal; then it finishes the samples in progress."""
    asked: list[str] = []
    before: list[int] = []
    with _signals(monitor, asked):
        while not asked:
            monitor.flush(_PATIENCE, put_off=not before)
            stats = monitor.stats()
            written = sum(sink.written for sink in stats.sinks.values())
            done = [stats.scored, stats.unscored, stats.over_budget, stats.spooled, written]
            if done == before and not (follow or stats.in_hand):
                break
            before = done
            time.sleep(1.0 if follow else _LOOK)
        still = 0
        while asked and still < 3:
            # Between two evaluations of a sample none is in hand.
            still = 0 if monitor.stats().in_hand else still + 1
            time.sleep(_LOOK / 3)
        monitor.close()
    return asked[0] if asked else ""


@contextmanager
def _signals(monitor: Monitor, asked: list[str]) -> Generator[None, None, None]:
    """Ctrl-C and SIGTERM end the run after the samples in progress; a second one ends it at once."""

    def once(number: int, frame: "FrameType | None") -> None:
        del frame
        signal.signal(number, before[number])
        asked.append("interrupted" if number == signal.SIGINT else "terminated")
        monitor.pause()

    before: dict[int, Any] = {number: signal.signal(number, once) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _why_left(left: "Contents", ended: str, stats: Stats, outbox: str) -> Generator[str, None, None]:
    if ended:
        yield "Stopped, after the samples in progress."
    for name, sink in stats.sinks.items():
        if sink.last_error and (sink.lost or left.records.get(name)):
            yield f"{name}: {printable(sink.last_error)}"
    for (name, version), n in left.metrics.items():
        yield f"waiting to be scored by {printable(name)} (version {printable(version)}): {count(n, 'sample')}"
    for name, n in left.records.items():
        kind, _, address = name.partition(":")
        way = _WAYS.get("again" if name in stats.sinks else kind, "start the app, or --monitor MODULE:NAME")
        way = way.format(shlex.quote(outbox), shlex.quote(address))
        yield f"waiting for {printable(name)}: {count(n, 'outcome')}; to deliver them: {printable(way, 10_000)}"
    if left.elsewhere:
        yield f"in the hands of another process: {count(left.elsewhere, 'sample')}"
    if left.unreadable:
        yield f"not readable: {count(left.unreadable, 'sample')}"
    for part, n in stats.errors.items():
        yield f"{part}: failed {count(n, 'time')}"
