"""`ragstone compare`: two result files in, which system is better out."""

import click

from ragstone.cli.options import check_apart, group_option, json_option
from ragstone.cli.output import as_called
from ragstone.plain import printable, to_json
from ragstone.report import Comparison, compare
from ragstone.report.checks import check_drops, status_of
from ragstone.report.checks import markdown as as_markdown
from ragstone.report.statistics import RAREST

drop_option = click.option(
    "--allow-drop",
    "drops",
    multiple=True,
    metavar="[METRIC=]NUMBER",
    help="End with 1 where B is worse than A by more, with 3 if its 95 % interval leaves it open. A number for all "
    "metrics, or for those that are named (repeatable).",
)
rarest_option = click.option(
    "--rarest",
    type=click.FloatRange(0, 1, max_open=True),
    default=RAREST,
    show_default=True,
    metavar="SHARE",
    help="--allow-drop ignores faults in a smaller share of the samples, if there are enough to show the others (72 "
    "for 0.05). 0: every rare fault counts.",
)
any_version_option = click.option(
    "--any-version",
    is_flag=True,
    help="Compare scores of different versions, judges, options or embedders all the same.",
)
markdown_option = click.option("--markdown", is_flag=True, help="Print Markdown, for a pull request.")


@click.command("compare", short_help="Say which of two systems is better.")
@click.argument("a", type=click.Path(exists=True))
@click.argument("b", type=click.Path(exists=True))
@any_version_option
@group_option
@drop_option
@rarest_option
@markdown_option
@json_option
@click.pass_context
def compare_files(
    ctx: click.Context,
    a: str,
    b: str,
    any_version: bool,
    group: str | None,
    drops: tuple[str, ...],
    rarest: float,
    markdown: bool,
    as_json: bool,
) -> None:
    """Say which of two systems is better, from two results files of `ragstone score`.

    A and B hold scores of the same samples, which are paired by their ids (by line, where they have none). Prints,
    for each metric, both means over the samples that are scored in both, their difference with its 95 % interval and
    p-values, and on how many samples B is better, the same and worse: all by the judge. The systems are
    called as their files are. `ragstone correct A B --labels FILE` says first what people would say.

    With --allow-drop, A is the base and B the new run, and d is B's mean - A's (of a metric whose lower values are
    better, A's - B's) with its 95 % interval: the narrower one where the samples would have shown what breaks in a
    share --rarest of them, else the one that holds whatever is rare. Samples that A scored and B did not, be they
    unscored or missing, count neither way, unless their worst possible scores would turn a pass. Of several metrics
    the worst counts: 1, then 3, then 0.

    \b
    Exit status:
      0    done, also where one of the two is better; with
           --allow-drop 0.02: the low end of d's interval is -0.02
           or more
      1    with --allow-drop 0.02: the high end is below -0.02, and A is
           said to be better
      3    with --allow-drop: neither, which more samples would tell, or
           B lacks a metric of A
      2    a file holds no results, the scores are not comparable
    """  # noqa: D301 - click's mark for lines that stay as they are
    check_apart([("B", b)], [("A", a)])
    comparison = compare(a, b, any_version=any_version, group=group)
    ctx.exit(conclude(comparison, drops, rarest, markdown=markdown, as_json=as_json))


def conclude(
    comparison: Comparison, drops: tuple[str, ...], rarest: float, *, markdown: bool, as_json: bool = False
) -> int:
    """Print a comparison, check it against the drops that are allowed, and return the exit status."""
    everywhere, by_name = _drops(drops)
    try:
        checks = check_drops(comparison, everywhere, by_name, rarest=rarest) if drops else []
    except ValueError as error:
        raise click.UsageError(f"--allow-drop: {error}") from None
    if as_json:
        click.echo(to_json({**comparison.figures(), "checks": [str(each) for each in checks]}))
    elif markdown:
        click.echo(as_markdown(comparison, checks))
    else:
        click.echo("\n".join([as_called(str(comparison)), *(printable(str(each), 1_000) for each in checks)]))
    return status_of(checks)


def _drops(drops: tuple[str, ...]) -> tuple[float | None, dict[str, float]]:
    """Return the drop allowed of all metrics, if any, and those of single ones."""
    everywhere, by_name = None, dict[str, float]()
    for each in drops:
        name, named, text = each.rpartition("=")
        try:
            drop = float(text)
        except ValueError:
            raise click.UsageError(f"--allow-drop {each}: write a number such as 0.02, or METRIC=0.02") from None
        if named:
            by_name[name] = drop
        else:
            everywhere = drop
    return everywhere, by_name
