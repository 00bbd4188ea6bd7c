"""`ragstone live stats` and `ragstone live report`: how live scoring stands, as a table or on the report's page."""

from contextlib import closing
from pathlib import Path

import click

from ragstone.cli.options import check_apart, database_file, json_option, unused
from ragstone.cli.output import write_page
from ragstone.cli.report import loaded
from ragstone.live.commands.options import database_sink, opened_outbox
from ragstone.live.traffic import Traffic, read_traffic
from ragstone.plain import count, printable, to_json

_outbox_option = click.option("--outbox", metavar="PATH", help="The monitor's outbox=, where samples wait.")


def _traffic(db: str, outbox: str | None) -> Traffic:
    contents = None
    if outbox is not None:
        with opened_outbox(outbox) as opened, opened.transaction():
            contents = opened.contents()
    with closing(database_sink(db)) as sink:
        return read_traffic(sink.name, sink.database, contents)


@click.command(short_help="Count samples by outcome, and those that wait.")
@click.argument("db", metavar="DB")
@_outbox_option
@json_option
def stats(db: str, outbox: str | None, as_json: bool) -> None:
    """Count scored and unscored samples, by reason, and those that wait; list the alarms.

    DB is the file of a monitor's SQLiteSink, or the URL of its SQLSink. Without --outbox, what waits is what processes
    reported as pending.
    """
    traffic = _traffic(db, outbox)
    click.echo(to_json(traffic) if as_json else str(traffic))


@click.command("report", short_help="Make a report's page with alarms and counts of unscored samples.")
@click.argument("db", metavar="DB")
@_outbox_option
@click.option("--since", metavar="TIME", help="Leave out samples submitted before: 30m, 24h or 7d ago, or a date.")
@click.option(
    "--out", type=click.Path(dir_okay=False, allow_dash=True), help="Where the page goes. Default: DB-report.html."
)
@json_option
def live_report(db: str, outbox: str | None, since: str | None, out: str | None, as_json: bool) -> None:
    """Make the page of `ragstone report DB`, with alarms, waiting and unscored samples in front."""
    out = out or unused(f"{Path(database_file(db) or 'ragstone').stem}-report.html")
    check_apart([("--out", None if out == "-" else out)], [("DB", database_file(db)), ("--outbox", outbox)])
    traffic = _traffic(db, outbox)
    page = loaded(db, since)
    page.name = page.aggregates().run_name or page.name
    write_page("--out", out, page.html(traffic))
    if as_json:
        click.echo(to_json({"page": out, **page.figures(), "traffic": traffic}), err=out == "-")
        return
    click.echo(printable(f"{out}: {count(len(page), 'outcome')}"), err=out == "-")
