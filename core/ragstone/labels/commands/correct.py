"""`ragstone correct`: results and people's labels in, what people would say of all samples out."""

import click

from ragstone.cli.compare import any_version_option, conclude, drop_option, markdown_option, rarest_option
from ragstone.cli.options import check_apart, check_writable, database_file, group_option, json_option
from ragstone.cli.output import write_page
from ragstone.cli.report import loaded
from ragstone.labels.correct import corrected, corrected_comparison
from ragstone.plain import to_json


@click.command(short_help="Say what people would say, from a judge and a few labels.")
@click.argument("results", metavar="RESULTS")
@click.argument("other", metavar="[NEW]", required=False)
@click.option(
    "--labels",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The download of a page of `ragstone label`.",
)
@click.option("--drawn-at-random", is_flag=True, help="Take labels of samples that you drew at random yourself.")
@click.option(
    "--since",
    metavar="TIME",
    help="Leave out samples submitted before: 30m, 24h or 7d ago, or a date and time (ISO 8601, UTC).",
)
@click.option(
    "--page",
    type=click.Path(dir_okay=False),
    metavar="HTML",
    help="Write a page with what people would say in front. A file that is there is replaced.",
)
@any_version_option
@group_option
@drop_option
@rarest_option
@markdown_option
@json_option
@click.pass_context
def correct(
    ctx: click.Context,
    results: str,
    other: str | None,
    labels: str,
    drawn_at_random: bool,
    since: str | None,
    page: str | None,
    any_version: bool,
    group: str | None,
    drops: tuple[str, ...],
    rarest: float,
    markdown: bool,
    as_json: bool,
) -> None:
    """Say what people would say of all samples, from a judge's scores of them and people's labels of a few.

    RESULTS is a file that `ragstone score` wrote, or a monitor's database. Prints, for each metric that has labels,
    the corrected mean with a 95 % interval that holds, the means of the labels alone and of the judge alone, how far
    the judge is off, and what the labels are worth. 20 labels are the least.

    With NEW, the results of another system over the same samples, prints what `ragstone compare RESULTS NEW` does,
    with what people would say of the difference in front; --allow-drop goes by that.

    \b
    Exit status:
      0    done, also with fewer than 20 labels; with --allow-drop as of `ragstone compare`
      1    with --allow-drop: NEW is worse
      3    with --allow-drop: the labels cannot tell
      2    a file cannot be read, the scores are not comparable, or a label cannot be used
    """  # noqa: D301 - click's mark for lines that stay as they are
    if other is None and (drops or markdown or any_version):
        raise click.UsageError("--allow-drop, --markdown and --any-version: compare two systems; give NEW, too")
    if page is not None:
        read = [("RESULTS", database_file(results)), ("NEW", other and database_file(other))]
        check_apart([("--page", page)], [*read, ("--labels", labels)])
        check_writable("--page", page, replaced=True)
    status = 0
    reports = [loaded(source, since) for source in (results, other) if source is not None]
    if other is None:
        corrections = corrected(reports[0], labels, drawn_at_random=drawn_at_random, group=group)
        text = page and corrections.report.html(corrections)
        click.echo(to_json(corrections.figures()) if as_json else str(corrections))
    else:
        old, new = reports
        comparison = corrected_comparison(
            old, new, labels, any_version=any_version, drawn_at_random=drawn_at_random, group=group
        )
        text = page and new.html(comparison)
        status = conclude(comparison, drops, rarest, markdown=markdown, as_json=as_json)
    if page and text:
        write_page("--page", page, text)
        click.echo(f"Page: {page}", err=True)
    ctx.exit(status)
