"""`ragstone live alarms`: what a monitor's alerts have counted, and which raised an alarm."""

from contextlib import closing

import click

from ragstone.live.commands.options import database_sink
from ragstone.plain import printable
from ragstone.text.plain import text_table


@click.command(short_help="List a monitor's alerts and alarms.")
@click.argument("db", metavar="DB")
@click.option("--reset", is_flag=True, help="Have the alerts that raised an alarm start anew.")
def alarms(db: str, reset: bool) -> None:
    """List what a monitor's alerts have counted, each slice on a line, and the alarms that they raised.

    DB is the file of a monitor's SQLiteSink, or the URL of its SQLSink. An alert that raised an alarm stays silent
    until --reset has it start anew.
    """
    with closing(database_sink(db)) as sink:
        every, n = sink.watch((), lambda tallies, _: (tallies.all(), tallies.reset() if reset else 0)) or ([], 0)
    rows = [
        (
            printable(name, 100),
            printable(part, 60),
            f"{tally.samples:,}",
            f"{tally.total / tally.samples:.3f}" if tally.samples else "",
            "" if tally.raised_at is None else "ALARM",
        )
        for name, part, tally in every
    ]
    if not rows:
        click.echo(printable(f"{sink.name}: no alert has counted anything"))
        return
    click.echo("\n".join(text_table(("alert", "slice", "samples", "mean", ""), rows, names=2)))
    for name, part, tally in every:
        if tally.raised_at is not None:
            click.echo(printable(tally.alarm(name, part), 1_000))
    if reset:
        click.echo(f"{n:,} start anew")
