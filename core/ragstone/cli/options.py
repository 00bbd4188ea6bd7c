"""Options that more than one command has, as decorators: they mean the same in each."""

import math
from typing import Any

import click

from ragstone.cli.judges import EMBEDDER_HELP, JUDGE_HELP


class FiniteRange(click.FloatRange):
    """A number within bounds. For click's own type NaN is within all of them, and infinity is a number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401
        """Return the number, or fail with what was given."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


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
