"""`ragstone label`: results in, a page on which a person labels some of them out."""

import shlex

import click

from ragstone.cli.options import check_apart, database_file, json_option, name_of_scores, open_option, unused
from ragstone.cli.output import called, check_shown, write_page
from ragstone.plain import printable, to_json
from ragstone.report import Report


@click.command(short_help="Make a page to label samples on.")
@click.argument("results", metavar="RESULTS")
@click.argument("other", metavar="[B]", required=False)
@click.option("-n", type=click.IntRange(1), default=60, show_default=True, help="How many samples, or pairs.")
@click.option("--metric", metavar="NAME", help="The metric to label, where RESULTS holds several.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Where the page goes (- : stdout). A file that is there is replaced. Default: label.html, with a number "
    "where there is one.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Another number gives another draw.")
@open_option
@json_option
def label(
    results: str,
    other: str | None,
    n: int,
    metric: str | None,
    out: str | None,
    seed: int,
    *,
    opened: bool,
    as_json: bool,
) -> None:
    """Draw samples by chance, and make a page on which you label them: each item, or one score for the sample.

    RESULTS is a file that `ragstone score` wrote, or a monitor's database with texts. Each scored sample has the same
    chance, so that the labels stand for all. With a second file B, over the same samples, you label both answers to
    each drawn question, and nothing says which system gave which.

    The page is one file that loads nothing and sends nothing, and nothing that the judge said is in it. Its download is
    for `ragstone correct RESULTS --labels FILE` (with B: `ragstone correct RESULTS B --labels FILE`).

    \b
    Exit status:
      0    written
      2    a file cannot be read, or holds nothing to label
    """  # noqa: D301 - click's mark for lines that stay as they are
    from ragstone.labels.drawing import draw_samples

    inputs = [("RESULTS", database_file(results)), ("B", None if other is None else database_file(other))]
    out = out or unused("label.html")
    check_apart([("--out", None if out == "-" else out)], inputs)
    check_shown(opened, out)
    reports = [Report.load(source) for source in (results, other) if source is not None]
    chosen = draw_samples(*reports, n=n, metric=name_of_scores(metric), seed=seed)
    files = shlex.join(source for source in (results, other) if source is not None)
    then = f"{called()} correct {files} --labels labels.jsonl"
    write_page("--out", out, chosen.page(then))
    if as_json:
        drawn = {"page": out, "metric": chosen.metric, "samples": len(chosen.entries), "remarks": chosen.notes}
        click.echo(to_json({**drawn, "next": then}), err=out == "-")
    else:
        first, *notes = chosen.notes
        click.echo(printable(f"{out}: {first}"), err=out == "-")
        for note in notes:
            click.echo(printable(note), err=True)
        click.echo(f"Next: label on the page, download labels.jsonl, and: {then}", err=True)
    if opened:
        click.launch(out)
