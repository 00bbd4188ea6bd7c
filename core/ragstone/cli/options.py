"""Options that more than one command has, as decorators: they mean the same in each."""

import click

from ragstone.cli.judges import EMBEDDER_HELP, JUDGE_HELP

llm_option = click.option("--llm", default="local", show_default=True, metavar="JUDGE", help=JUDGE_HELP)
embedder_option = click.option("--embedder", metavar="EMBEDDER", help=EMBEDDER_HELP)
asking_option = click.option(
    "--asking",
    type=click.Choice(["auto", "together", "one_by_one"]),
    default="auto",
    show_default=True,
    help="All items in one call, or one item per call, which small models (8B or less) need.",
)
settings_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="METRIC.OPTION=VALUE",
    help="An option of a metric, its value as JSON or text.",
)
