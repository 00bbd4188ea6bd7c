"""`ragstone report`: a results database in, one page out."""

import sys
import time

import click

from ragstone.cli.files import check_apart, database_file
from ragstone.reporting.live import DatabaseError
from ragstone.reporting.live.facts import Findings
from ragstone.reporting.live.gather import gather
from ragstone.reporting.live.page import page
from ragstone.reporting.live.since import seconds_since
from ragstone.store.private_files import open_private


class _NoReport(click.ClickException):
    exit_code = 2


@click.command(short_help="Make a page of what a monitor scored.")
@click.argument("database", metavar="DB")
@click.option(
    "--since",
    metavar="TIME",
    help="Leave out samples submitted before: 30m, 24h or 7d ago, or a date and time (ISO 8601, UTC).",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="report.html",
    show_default=True,
    help="Where the page goes (- : stdout). A file that is there is replaced.",
)
def report(database: str, since: str | None, out: str) -> None:
    """Make a page of what a monitor scored, from its results database DB.

    DB is the file of a monitor's SQLiteSink, or the URL of its SQLSink, such as
    postgresql+psycopg://user@host/name. It is read, never changed. The page is one file that loads nothing:
    scores over time, their spread, the lowest with what cost them, failures, judge calls and the queue.

    \b
    Exit status:
      0    done, also where nothing was scored yet
      2    there is no such database, it cannot be read, or the page
           cannot be written
    """  # noqa: D301 - click's mark for lines that stay as they are
    check_apart([("--out", None if out == "-" else out)], [("the database", database_file(database))])
    now = time.time()
    try:
        findings = gather(database, seconds_since(since, now=now))
    except ValueError as error:
        raise click.UsageError(f"--{error}") from None
    except (DatabaseError, ImportError) as error:
        raise _NoReport(str(error)) from None
    _write(page(findings, made_at=now).encode(), out)
    click.echo(f"{out}: {_what(findings)}", err=out == "-")


def _write(text: bytes, out: str) -> None:
    if out == "-":
        sys.stdout.buffer.write(text)
        return
    try:
        with open_private(out, "wb") as target:
            target.write(text)
    except OSError as error:
        raise _NoReport(f"--out {out}: cannot write: {error.strerror}") from None


def _what(found: Findings) -> str:
    if not found.outcomes:
        return "0 outcomes; nothing was scored yet" if found.since is None else "0 outcomes since then"
    names = dict.fromkeys(group.metric for group in found.groups)
    return f"{found.outcomes:,} outcomes of {', '.join(names)}"
