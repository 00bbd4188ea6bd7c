"""`ragstone live alarms`: what a monitor's alerts have counted, and which raised an alarm."""

from contextlib import closing

import click

from ragstone.cli.options import json_option
from ragstone.live.alarms import Alarm, alerts_in, count_new
from ragstone.live.commands.options import database_sink
from ragstone.plain import count, printable, to_json
from ragstone.text.plain import text_table

_NAMES = ("metric", "by", "below", "samples", "sum", "alarm")


@click.command(short_help="List a monitor's alerts and alarms.")
@click.argument("db", metavar="DB")
@click.option("--reset", is_flag=True, help="Have the alerts that raised an alarm start anew.")
@json_option
@click.pass_context
def alarms(ctx: click.Context, /, db: str, reset: bool, as_json: bool) -> None:
    """Let a monitor's alerts count new scores; list each alert on a line, and the alarms.

    DB is the file of a monitor's SQLiteSink, or the URL of its SQLSink. An alert that raised an alarm stays silent
    until --reset has it start anew.

    \b
    Exit status:
      0    no alarm, or --reset
      1    an alarm was raised and not reset
      2    the database cannot be read
    """  # noqa: D301 - click's mark for lines that stay as they are
    with closing(database_sink(db)) as sink:
        if note := count_new(sink.database):
            click.echo(note, err=True)
        every = alerts_in(sink.database, reset=reset)
    raised = [alarm for *_, alarm in every if alarm is not None]
    if as_json:
        click.echo(to_json([dict(zip(_NAMES, each, strict=True)) for each in every]))
    elif every:
        rows = [_alert_cells(*each) for each in every]
        click.echo("\n".join(text_table(("metric", "by", "below", "samples", "mean", ""), rows)))
        for alarm in raised:
            click.echo(printable(alarm, 1_000))
    else:
        click.echo(printable(f"{sink.name}: no alert has counted anything"))
    if reset and not as_json:
        click.echo(f"{count(len(raised), 'alert')} started anew")
    if raised and not reset:
        ctx.exit(1)


def _alert_cells(
    metric: str, by: str, below: float, samples: int, total: float, alarm: Alarm | None
) -> tuple[str, ...]:
    mean = f"{total / samples:.3f}" if samples else ""
    return (
        printable(metric, 100),
        printable(by, 100),
        str(below),
        f"{samples:,}",
        mean,
        "" if alarm is None else "ALARM",
    )
