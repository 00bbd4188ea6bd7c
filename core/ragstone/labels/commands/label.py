"""`ragstone label`: results in, a page on which a person labels them out."""

import click

from ragstone.cli.options import check_apart, database_file, name_of_scores, unused
from ragstone.cli.output import write_page
from ragstone.plain import printable
from ragstone.report import Report


@click.command(short_help="Make a page to label samples on.")
@click.argument("results", metavar="RESULTS")
@click.option("--metric", metavar="NAME", help="The metric to label, where RESULTS holds several.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Where the page goes (- : stdout). A file that is there is replaced. Default: label.html, with a number "
    "where there is one.",
)
@click.option("--show-verdicts", is_flag=True, help="Show the judge's verdicts, and mark the labels so.")
@click.option("--open", "opened", is_flag=True, help="Show the page in the browser.")
def label(results: str, metric: str | None, out: str | None, *, show_verdicts: bool, opened: bool) -> None:
    """Make a page on which you label scored samples: a verdict on each item, or one score for the sample.

    RESULTS is a file of `ragstone choose`, or one that `ragstone score` wrote, or a monitor's database with texts. The
    page is one file that loads nothing and sends nothing. Samples come in a random order, and the judge's verdicts are
    not in it. Its download is for `ragstone correct` (of samples that `ragstone choose` drew) and for
    `ragstone calibrate`, each with --labels FILE.

    \b
    Exit status:
      0    written
      2    RESULTS cannot be read, or holds nothing to label
    """  # noqa: D301 - click's mark for lines that stay as they are
    from ragstone.labels.choose import read_chosen
    from ragstone.labels.page import label_page

    out = out or unused("label.html")
    check_apart([("--out", None if out == "-" else out)], [("RESULTS", database_file(results))])
    if opened and out == "-":
        raise click.UsageError("--open: shows a file; name one for --out")
    left_out = 0
    if (chosen := read_chosen(results)) is None:
        page, samples, left_out = label_page(Report.load(results), name_of_scores(metric), show_verdicts=show_verdicts)
    elif show_verdicts or metric is not None:
        option = "--show-verdicts" if show_verdicts else "--metric"
        raise click.UsageError(f"{option}: nothing of the judge is in a file of `ragstone choose`; leave it out")
    else:
        page, samples = chosen.page(), len(chosen.entries)
    write_page("--out", out, page)
    click.echo(printable(f"{out}: {samples:,} samples to label"), err=out == "-")
    if left_out:
        click.echo(f"{left_out:,} scores are left out: no texts, or the same sample again", err=True)
    if opened:
        click.launch(out)
