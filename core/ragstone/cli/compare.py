"""`ragstone compare`: two result files in, which system is better out."""

import click

from ragstone.cli.options import check_apart, check_writable
from ragstone.cli.output import write_page
from ragstone.reporting import compare as compared


@click.command(short_help="Say which of two systems is better.")
@click.argument("a", type=click.Path(exists=True, dir_okay=False))
@click.argument("b", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--report",
    "page",
    type=click.Path(dir_okay=False),
    metavar="HTML",
    help="Write a page, with the samples that moved most. A file that is there is replaced.",
)
@click.option("--open", "opened", is_flag=True, help="Show the page of --report in the browser.")
@click.option("--any-version", is_flag=True, help="Compare scores of different metric versions or judges all the same.")
def compare(a: str, b: str, page: str | None, opened: bool, any_version: bool) -> None:
    """Say which of two systems is better, from two results files of `ragstone score`.

    A and B hold scores of the same samples, which are paired by their ids (by line, where they have none). Prints,
    for each metric, both means over the samples that are scored in both, their difference with its 95 % interval and
    p-values, and on how many samples B is better, the same and worse. The systems are called as their files are.
    Where samples were scored several times (--repeat), a difference that is smaller than the judge's own noise is said
    to be one.

    \b
    Exit status:
      0    done, whichever is better
      2    a file holds no results, or the scores are not comparable
    """  # noqa: D301 - click's mark for lines that stay as they are
    if opened and page is None:
        raise click.UsageError("--open: shows the page of --report; name its file")
    if page is not None:
        check_apart([("--report", page)], [("the input A", a), ("the input B", b)])
        check_writable("--report", page, replaced=True)
    comparison = compared(a, b, any_version=any_version)
    text = None if page is None else comparison.html()
    click.echo(str(comparison))
    if page is not None and text is not None:
        write_page("--report", page, text)
        click.echo(f"Report: {page}", err=True)
        if opened:
            click.launch(page)
