"""`ragstone plan`: how narrow an interval is wanted in, how many labels it takes out."""

import click

from ragstone.cli.options import FiniteRange
from ragstone.labels import CalibrationError
from ragstone.report import Report
from ragstone.report import compare as compared
from ragstone.report.tables import count

_ASSUMED_SD = 0.5


@click.command(short_help="Say how many labels a number takes.")
@click.argument("results", nargs=-1, type=click.Path(exists=True, dir_okay=False))
@click.option("--width", type=FiniteRange(0.001, 1), help="How wide the 95 % interval of a mean may be.")
@click.option("--difference", type=FiniteRange(0.001, 1), help="The difference of two systems that is to be seen.")
@click.option(
    "--labels",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Labels of a pilot on RESULTS: they say how people's scores vary and how far the judge agrees.",
)
@click.option("--drawn-at-random", is_flag=True, help="Take labels of samples that you drew at random yourself.")
@click.option(
    "--agreement",
    type=FiniteRange(0, 0.99),
    metavar="R",
    help="Without a pilot: the correlation of judge and people that you assume.  [default: 0]",
)
@click.option("--samples", type=click.IntRange(20), metavar="N", help="Without a pilot: how many samples have scores.")
def plan(
    results: tuple[str, ...],
    width: float | None,
    difference: float | None,
    labels: str | None,
    agreement: float | None,
    samples: int | None,
    *,
    drawn_at_random: bool,
) -> None:
    """Say how many labels an interval of a given width takes, or a comparison that is to show a given difference.

    Give --width for the mean of one system, or --difference for two. A pilot's labels say how people's scores vary: of
    RESULTS for --width, of two RESULTS for --difference. Without one, people's scores are taken to vary as yes/no half
    and half does (standard deviation 0.5), for two systems as if people saw a difference in one answer of four.

    \b
    Exit status:
      0    said
      2    an option, a file or a label cannot be used, or a pilot has fewer than 20 labels
    """  # noqa: D301 - click's mark for lines that stay as they are
    from ragstone.labels.plan import Spread

    if (width is None) == (difference is None):
        raise click.UsageError("give --width for a mean, or --difference for two systems")
    wanted = 0 if labels is None else 1 if difference is None else 2
    if len(results) != wanted:
        files = ("none without --labels", "one with --width", "two with --difference")[wanted]
        raise click.UsageError(f"RESULTS: give {files}")
    if labels is None:
        spreads: dict[str, Spread | None] = {"": Spread(_ASSUMED_SD, agreement or 0.0, samples)}
    elif agreement is not None or samples is not None:
        raise click.UsageError("--labels: a pilot says it; leave out --agreement and --samples")
    elif difference is None:
        corrections = Report.load(results[0]).corrected(labels, drawn_at_random=drawn_at_random)
        spreads = {name: Spread.of(each, each.summary.scored) for name, each in corrections.items()}
    else:
        metrics = compared(*results, labels=labels, drawn_at_random=drawn_at_random).metrics
        spreads = {name: Spread.of(each.people, each.pairs) for name, each in metrics.items() if each.people}
    unit = "label" if difference is None else "labelled pair"
    for name, spread in spreads.items():
        if spread is None:
            raise CalibrationError(f"{name}: the pilot has fewer than 20 {unit}s; label more, or leave out --labels")
        n = spread.pairs_for(difference) if difference is not None else spread.labels_for(width or 0.0)
        goal = f"an interval {width:g} wide" if difference is None else f"seeing a difference of {difference:g}"
        takes = f"takes {count(n, unit)}" if n else "takes more than all of them: score more samples"
        scored = "" if spread.samples is None else f", {spread.samples:,} samples with scores"
        known = f"standard deviation {spread.sd:.2f}, correlation with the judge {spread.rho:.2f}{scored}"
        click.echo(f"{name}: {goal} {takes} ({known})" if name else f"{goal} {takes} ({known}, assumed)")
