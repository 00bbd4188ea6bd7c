"""`ragstone correct`: results and people's labels in, what people would say of all samples out."""

import click

from ragstone.cli.options import check_apart, check_writable, database_file
from ragstone.cli.output import write_page
from ragstone.report import Report


@click.command(short_help="Say what people would say, from a judge and a few labels.")
@click.argument("results", metavar="RESULTS")
@click.option(
    "--labels",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The download of `ragstone label`, of samples that `ragstone choose` drew.",
)
@click.option("--drawn-at-random", is_flag=True, help="Take labels of samples that you drew at random yourself.")
@click.option(
    "--report",
    "page",
    type=click.Path(dir_okay=False),
    metavar="HTML",
    help="Write a page with the corrected means in front. A file that is there is replaced.",
)
def correct(results: str, labels: str, page: str | None, *, drawn_at_random: bool) -> None:
    """Say what people would say of all samples, from a judge's scores of them and people's labels of a few.

    RESULTS is a file that `ragstone score` wrote, or a monitor's database. Prints, for each metric that has labels,
    the corrected mean with a 95 % interval that holds, the means of the labels alone and of the judge alone, how far
    the judge is off, what the labels are worth, and whether the judge's error goes with something. 20 labels are the
    least.

    \b
    Exit status:
      0    done, also with fewer than 20 labels
      2    RESULTS cannot be read, or a label cannot be used
    """  # noqa: D301 - click's mark for lines that stay as they are
    if page is not None:
        check_apart([("--report", page)], [("RESULTS", database_file(results)), ("--labels", labels)])
        check_writable("--report", page, replaced=True)
    corrections = Report.load(results).corrected(labels, drawn_at_random=drawn_at_random)
    text = None if page is None else corrections.report.html(corrections)
    click.echo(str(corrections))
    if page is not None and text is not None:
        write_page("--report", page, text)
        click.echo(f"Report: {page}", err=True)
