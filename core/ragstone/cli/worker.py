"""`ragstone worker`: scores what a monitor left in its outbox."""

import importlib
import shlex
import sqlite3
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from ragstone.cli.files import check_apart, database_file
from ragstone.cli.judges import NotThere, local_file
from ragstone.cli.metrics import METRICS, make_metrics, parse_settings
from ragstone.cli.options import asking_option, embedder_option, llm_option, settings_option
from ragstone.cli.work import Work
from ragstone.monitor import Entry, Monitor
from ragstone.store.errors import SinkError
from ragstone.text.plain import printable

if TYPE_CHECKING:
    from ragstone.sinks import Sink
    from ragstone.store.outbox import Contents

_HOW = ("names", "llm", "embedder", "asking", "settings", "db", "store_text", "workers")
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
@click.option(
    "--metric",
    "names",
    multiple=True,
    type=click.Choice(METRICS),
    help="What to score by; repeat it. Default: the metrics that the samples wait for.",
)
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
    found = contents(path)
    if not (found.samples or found.records or follow):
        click.echo(f"{outbox}: nothing in it")
        return
    if monitor is not None:
        given = [name for name in _HOW if ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE]
        if given:
            option = {"names": "metric", "settings": "set"}.get(given[0], given[0].replace("_", "-"))
            raise click.UsageError(f"--{option}: --monitor says that already; leave one of them out")
        made = _imported(monitor, path)
    else:
        made = _made(path, found, names, follow=follow, **how)
    work = Work(made, total=found.waiting(), follow=follow)
    ended = work.run()
    left = contents(path)
    status = work.report(left, ended)
    sinks = made.stats().sinks
    for name in left.records:
        click.echo(f"{printable(name)}: {_way(name, outbox, again=name in sinks)}", err=True)
    sys.exit(status)


def contents(path: Path) -> "Contents":
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
    """Return the app's monitor.

    Raises:
        click.UsageError: There is none of that name, or its outbox is another one.
    """
    module, colon, name = spec.partition(":")
    if not (module and colon and name):
        raise click.UsageError(f"--monitor {spec}: write MODULE:NAME, such as my_app:monitor")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        if not isinstance(found, Monitor) and callable(found):
            found = found()
    except Exception as error:  # the app's own code
        raise click.UsageError(f"--monitor {spec}: {type(error).__name__}: {error}") from error
    if not isinstance(found, Monitor):
        raise click.UsageError(
            f"--monitor {spec}: is {type(found).__name__}, no Monitor nor a function that returns one"
        )
    if found.outbox is None or found.outbox.resolve() != path.resolve():
        has = "it has none" if found.outbox is None else f"its outbox is {found.outbox}"
        raise click.UsageError(f"--monitor {spec}: {has}; --outbox names {path.absolute()}")
    return found


def _made(
    path: Path,
    found: "Contents",
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
    """Return a monitor of the command's options.

    Raises:
        click.ClickException: The judge, the embedder or the database cannot be had, or an option is wrong.
    """
    wanted = tuple(dict.fromkeys(names or (name for name, _ in found.metrics)))
    if unknown := [name for name in wanted if name not in METRICS]:
        raise click.UsageError(
            f"samples wait for {unknown[0]}, which ragstone does not have; name the app's monitor, which does "
            f"(--monitor MODULE:NAME), or what to score by (--metric)"
        )
    if not wanted and follow:
        raise click.UsageError(f"{path} is empty: say what to score by (--metric, or --monitor MODULE:NAME)")
    options = parse_settings(settings, wanted)
    for given in options.values():
        given.setdefault("asking", asking)
    check_apart(
        [("--db", database_file(db))],
        [("--outbox", str(path)), ("--llm", local_file(llm)), ("--embedder", local_file(embedder))],
    )
    sink = _sink(db)
    metrics = make_metrics(options, llm=llm, embedder=embedder, concurrency=4 * workers) if wanted else [_nothing()]
    versions = {metric.name: metric.version for metric in metrics}
    for name, version in found.metrics:
        if versions.get(name, version) != version:
            click.echo(
                f"Note: {name} is scored as version {versions[name]}; the app's is {version}. "
                "To score as the app does: --monitor MODULE:NAME",
                err=True,
            )
    _open(sink, found.records.get(sink.name, 0))
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
    """Open the database once, before a judge is paid for what it would not take.

    Args:
        sink: The database.
        waiting: How many outcomes wait for it.

    Raises:
        NotThere: It cannot be opened, or is none that takes outcomes.
    """
    ledger = sink.ledger()
    try:
        if ledger is not None:
            ledger.spend([Entry("opening", int(time.time()), 1, 0)])  # beyond its limit: nothing is entered
    except SinkError as error:
        more = f". {waiting:,} outcomes wait for it and go to no other: mend it or move it away, and run this again"
        raise NotThere(f"--db {error}{more if waiting else ''}") from None
    finally:
        sink.close()


def _nothing() -> Any:  # noqa: ANN401 - a metric
    """Return a metric that no sample waits for, where there are only outcomes to deliver."""
    from ragstone.metrics import ContextRelevancy
    from ragstone.testing import FakeLLM

    class Nothing(ContextRelevancy):
        name = "nothing"

    return cast("Any", Nothing(llm=FakeLLM(lambda _: RuntimeError("nothing is judged"))))
