"""`ragstone choose`: results in, a file of samples to label out."""

import click

from ragstone.cli.options import check_apart, database_file, name_of_scores, unused
from ragstone.cli.output import write_page
from ragstone.plain import printable
from ragstone.report import Report


@click.command(short_help="Draw samples to label.")
@click.argument("results", metavar="RESULTS")
@click.argument("other", metavar="[B]", required=False)
@click.option("-n", "n", type=click.IntRange(1), default=60, show_default=True, help="How many samples, or pairs.")
@click.option("--metric", metavar="NAME", help="The metric to label, where RESULTS holds several.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Where they go (- : stdout). A file that is there is replaced. Default: to-label.jsonl, with a number "
    "where there is one.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Another number gives another draw.")
def choose(
    results: str,
    other: str | None,
    n: int,
    metric: str | None,
    out: str | None,
    seed: int,
) -> None:
    """Draw samples to label by chance, so that their labels stand for all.

    RESULTS is a file that `ragstone score` wrote, or a monitor's database with texts. Each scored sample has the same
    chance. With a second file B, over the same samples, both answers to
    each drawn question are to be labelled, and nothing says which system gave which.

    Nothing that the judge said is in the file. Its page comes from `ragstone label`, and the labels are for
    `ragstone correct RESULTS --labels FILE` or `ragstone correct RESULTS B --labels FILE`.

    \b
    Exit status:
      0    written
      2    a file cannot be read, or holds nothing to label
    """  # noqa: D301 - click's mark for lines that stay as they are
    from ragstone.labels.choose import choose as chosen_of

    inputs = [("RESULTS", database_file(results)), ("B", None if other is None else database_file(other))]
    out = out or unused("to-label.jsonl")
    check_apart([("--out", None if out == "-" else out)], inputs)
    reports = [Report.load(source) for source in (results, other) if source is not None]
    chosen = chosen_of(*reports, n=n, metric=name_of_scores(metric), seed=seed)
    write_page("--out", out, str(chosen))
    first, *notes = chosen.notes
    click.echo(printable(f"{out}: {first}"), err=out == "-")
    for note in notes:
        click.echo(printable(note), err=True)
