"""`ragstone drift`: labelled samples with a judge's outcomes then in, whether it judges otherwise now out."""

from collections.abc import Iterator

import click

from ragstone.cli.options import (
    EMBEDDER_HELP,
    JUDGE_HELP,
    NotThere,
    check_apart,
    check_writable,
    local_file,
    make_metrics,
    metric_option,
    own_names,
)
from ragstone.labels import CalibrationError
from ragstone.metrics.setup import check_setup, options_of
from ragstone.plain import printable
from ragstone.registry import metric_names
from ragstone.report import MetricInfo
from ragstone.report.checks import Drift, status_of
from ragstone.report.tables import count, number
from ragstone.text.plain import text_table

_SHOWN = 10


@click.command(short_help="Say whether a judge still judges as it did.")
@click.argument("anchors", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--labels",
    type=click.Path(exists=True, dir_okay=False),
    help="The download of `ragstone label`, where ANCHORS are results of `ragstone score` that do not hold it yet.",
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write the labelled samples with their labels and outcomes to this file, for later, and ask no judge.",
)
@click.option("--llm", metavar="JUDGE", help=JUDGE_HELP)
@click.option("--embedder", metavar="EMBEDDER", help=EMBEDDER_HELP)
@metric_option("A metric of your own, which ANCHORS only name.", multiple=True)
@click.option(
    "--repeat",
    type=click.IntRange(2),
    default=3,
    show_default=True,
    metavar="K",
    help="Judge each sample K times, to know the judge's own noise.",
)
@click.option("--concurrency", type=click.IntRange(1), default=16, show_default=True, help="Judge calls in flight.")
@click.pass_context
def drift(
    ctx: click.Context,
    anchors: str,
    labels: str | None,
    save: str | None,
    llm: str | None,
    embedder: str | None,
    names: tuple[str, ...],
    repeat: int,
    concurrency: int,
) -> None:
    """Judge labelled samples again, and say whether the judge has changed: for the day its provider changes the model.

    ANCHORS is what --save wrote from results and their labels: the samples, the labels, and the judge's outcomes then.
    Prints, for each metric, the change of the mean with its 95 % interval, the agreement with the labels then and now,
    and the verdicts that flipped on items of the same text.

    \b
    Exit status:
      0    no drift is shown, or --save wrote the file
      1    drift: the interval of a metric's change excludes 0, and the change is greater than the judge's own noise
      2    a file or an option cannot be used
      3    cannot tell: fewer than 20 samples are scored then and now, or more than a tenth is not scored now
    """  # noqa: D301 - click's mark for lines that stay as they are
    from ragstone.labels.drift import drift as judged_again
    from ragstone.labels.drift import load_anchors, save_anchors

    if (save is None) == (llm is None):
        raise click.UsageError("give --llm JUDGE to judge the anchors again, or --save FILE to make them, one of them")
    read = [("ANCHORS", anchors), ("--labels", labels), ("--llm", local_file(llm))]
    check_apart([("--save", save)], read)
    known = load_anchors(anchors, labels)
    if save is not None:
        check_writable("--save", save, replaced=True)
        try:
            save_anchors(known, save)
        except OSError as error:
            raise NotThere(f"--save {save}: cannot write: {error.strerror}") from error
        for each in known:
            click.echo(f"{save}: {count(len(each.labelled), 'sample')} labelled for {each.info.name}")
        return
    own, options = own_names(names), dict[str, dict[str, object]]()
    for each in known:
        options[own.get(each.info.name, each.info.name)] = _options(each.info, own)
    if len(options) < len(known):
        raise CalibrationError(f"{anchors}: has a metric in two versions or by two judges; save the anchors of one")
    metrics = make_metrics(options, llm=llm or "", embedder=embedder, concurrency=concurrency)
    try:
        for each, metric in zip(known, metrics, strict=True):
            check_setup(metric, each.info.version, each.info.setup)
    except ValueError as error:
        raise CalibrationError(f"{error}; the judge alone may differ: score and label samples again") from None
    drifts: list[Drift] = []
    for each, metric in zip(known, metrics, strict=True):
        drifts.append(judged_again(each, metric, repeat=repeat, max_concurrency=concurrency))
        click.echo("\n".join(_lines(drifts[-1])))
    ctx.exit(status_of(drifts))


def _options(info: MetricInfo, own: dict[str, str]) -> dict[str, object]:
    """Return the options by which a metric was set up; of one of your own, none."""
    if "+cal:" in info.version:
        raise CalibrationError(f"{info.name}: these scores are calibrated; score the anchors without --calibration")
    if info.name not in metric_names():
        if info.name in own:
            return {}
        raise click.UsageError(f"{info.name}: is a metric of your own; name it: --metric module:Class")
    try:
        return options_of(info.name, info.setup)
    except KeyError:
        problem = "the results do not say how it was set up; save a file that `ragstone score --out FILE` wrote"
        raise CalibrationError(f"{info.name}: {problem}") from None


def _lines(result: Drift) -> Iterator[str]:
    compared, flipped, (noisy, of) = result.change, result.flips, result.noise_flips
    by = " then, by ".join(
        printable(each.judge or "an unknown judge", 80) for each in (compared.info_a, compared.info_b)
    )
    yield f"{printable(compared.name, 80)}: {count(compared.pairs, 'sample')} scored by {by} now"
    rows = [
        ("mean", number(compared.mean_a), number(compared.mean_b), number(compared.difference, "+")),
        *(
            (f"{each.name} ({each.n:,})", number(each.then), number(each.now), number(each.now - each.then, "+"))
            for each in result.agreement
        ),
    ]
    yield from text_table(("", "then", "now", "change"), rows)
    yield f"verdicts that flipped: {len(flipped):,} of {result.items:,}; between two scorings now: {noisy:,} of {of:,}"
    for each in flipped[:_SHOWN]:
        item = f"{each.kind} {printable(each.text, 100)!r}"
        change = printable(f"{each.then}, now {each.now}", 80)
        yield f"  {printable(each.sample_id, 60)}: {printable(item, 140)}: {change}"
    if len(flipped) > _SHOWN:
        yield f"  and {len(flipped) - _SHOWN:,} more"
    for why, n in result.unscored.most_common(_SHOWN):
        yield f"not scored now: {n:,} {printable(why, 160)}"
    yield result.conclusion
