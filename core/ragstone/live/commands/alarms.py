"""`ragstone live alarms`: what a monitor's alerts have counted, and which raised an alarm."""

from contextlib import closing

import click

from ragstone.live.alarms import alerts_in
from ragstone.live.commands.options import database_sink
from ragstone.plain import printable
from ragstone.text.plain import text_table


@click.command(short_help="List a monitor's alerts and alarms.")
@click.argument("db", metavar="DB")
@click.option("--reset", is_flag=True, help="Have the alerts that raised an alarm start anew.")
@click.pass_context
def alarms(ctx: click.Context, /, db: str, reset: bool) -> None:
    """Count what a monitor's alerts have not counted yet; list each slice on a line, and the alarms.

    DB is the file of a monitor's SQLiteSink, or the URL of its SQLSink. An alert that raised an alarm stays silent
    until --reset has it start anew.

    \b
    Exit status:
      0    no alarm, or --reset
      1    an alarm was raised and not reset
      2    the database cannot be read
    """  # noqa: D301 - click's mark for lines that stay as they are
    with closing(database_sink(db)) as sink:
        every = alerts_in(sink.database, reset=reset)
    rows = [
        (
            printable(name, 100),
            printable(part, 60),
            f"{samples:,}",
            f"{total / samples:.3f}" if samples else "",
            "" if alarm is None else "ALARM",
        )
        for name, part, samples, total, alarm in every
    ]
    if not rows:
        click.echo(printable(f"{sink.name}: no alert has counted anything"))
        return
    click.echo("\n".join(text_table(("alert", "slice", "samples", "mean", ""), rows, names=2)))
    raised = [alarm for *_, alarm in every if alarm is not None]
    for alarm in raised:
        click.echo(printable(alarm, 1_000))
    if reset:
        click.echo(f"{len(raised):,} start anew")
    elif raised:
        ctx.exit(1)
