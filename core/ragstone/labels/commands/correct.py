"""`ragstone correct`: results and people's labels in, what people would say of all samples out."""

import click

from ragstone.cli.options import check_apart, check_writable, database_file
from ragstone.cli.output import write_page
from ragstone.plain import printable
from ragstone.report import Report
from ragstone.report.statistics import Interval
from ragstone.text.plain import text_table


@click.command(short_help="Say what people would say, from a judge and a few labels.")
@click.argument("results", metavar="RESULTS")
@click.option(
    "--labels",
    required=True,
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The download of `ragstone label`, of samples that `ragstone choose` drew. A second one, by another "
    "person: how far the two agree is printed, too.",
)
@click.option("--drawn-at-random", is_flag=True, help="Take labels of samples that you drew at random yourself.")
@click.option(
    "--report",
    "page",
    type=click.Path(dir_okay=False),
    metavar="HTML",
    help="Write a page with the corrected means in front. A file that is there is replaced.",
)
def correct(results: str, labels: tuple[str, ...], page: str | None, *, drawn_at_random: bool) -> None:
    """Say what people would say of all samples, from a judge's scores of them and people's labels of a few.

    RESULTS is a file that `ragstone score` wrote, or a monitor's database. Prints, for each metric that has labels,
    the corrected mean with a 95 % interval that holds, the means of the labels alone and of the judge alone, how far
    the judge is off, what the labels are worth, and whether the judge's error goes with something. 20 labels are the
    least. Of two people's labels the first file's count, and the share of equal answers and Cohen's kappa are printed.

    \b
    Exit status:
      0    done, also with fewer than 20 labels
      2    RESULTS cannot be read, or a label cannot be used
    """  # noqa: D301 - click's mark for lines that stay as they are
    if len(labels) > 2:
        raise click.UsageError(f"--labels: given {len(labels)} times; name one person's file, or two")
    if page is not None:
        given = [("--labels", each) for each in labels]
        check_apart([("--report", page)], [("RESULTS", database_file(results)), *given])
        check_writable("--report", page, replaced=True)
    corrections = Report.load(results).corrected(labels[0], drawn_at_random=drawn_at_random)
    text = None if page is None else corrections.report.html(corrections)
    click.echo(str(corrections))
    if len(labels) == 2:
        _show_agreement(*labels)
    if page is not None and text is not None:
        write_page("--report", page, text)
        click.echo(f"Report: {page}", err=True)


def _show_agreement(a: str, b: str) -> None:
    from ragstone.labels.agreement import of_files

    kinds, notes = of_files(a, b)
    rows = [
        (f"{metric}: {kind}", str(each.items), *map(_figure, (each.share, each.kappa)))
        for (metric, kind), each in kinds.items()
    ]
    click.echo("\n".join(text_table(("two people", "items", "same answer", "Cohen's kappa"), rows, names=1)))
    for note in notes:
        click.echo(printable(note))


def _figure(estimate: Interval | None) -> str:
    if estimate is None:
        return "undefined"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.mean:.3f}"
    return f"{estimate.mean:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"
