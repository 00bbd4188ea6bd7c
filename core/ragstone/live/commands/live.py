"""`ragstone live`: the commands of live traffic."""

import click

from ragstone.live.commands.alarms import alarms
from ragstone.live.commands.samples import feedback, forget
from ragstone.live.commands.traffic import live_report, stats
from ragstone.live.commands.worker import worker


@click.group(short_help="Work for monitors: judge what waits, alarms, feedback, forgetting.")
def live() -> None:
    """Work for an app's monitor, beside the app."""


for _command in (alarms, feedback, forget, live_report, stats, worker):
    live.add_command(_command)
