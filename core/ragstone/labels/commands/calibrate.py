"""`ragstone calibrate`: labelled results in, what the judge's probabilities mean by these labels out."""

import json
from typing import TYPE_CHECKING

import click

from ragstone.cli.options import NotThere, check_apart, check_writable
from ragstone.plain import printable
from ragstone.text.plain import text_table

if TYPE_CHECKING:
    from ragstone.labels.calibration import Calibration, Figure
    from ragstone.labels.fit import FitResult


@click.command(short_help="Fit a judge's probabilities to your labels.")
@click.argument("file", type=click.Path(exists=True))
@click.option(
    "--labels",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    help="The labels of the results: what the page of `ragstone label` downloads.",
)
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False), help="The calibration's file; replaced, if it is there."
)
def calibrate(file: str, labels: str, out: str) -> None:
    """Fit how a judge's probabilities map to your labels.

    FILE holds results, and the labels of them come from the page of `ragstone label`. No judge is asked.

    Prints how well judge and labels agree before and after, each sample judged by a fit that has not seen it, and
    writes the calibration for `ragstone score --calibration` and for `calibration=` of a metric.

    \b
    Exit status:
      0    written
      2    a label or an option cannot be used, or the labels are too few
    """  # noqa: D301 - click's mark for lines that stay as they are
    from ragstone.labels.make import from_results
    from ragstone.report import Report

    check_apart([("--out", out)], [("the results", file), ("--labels", labels)])
    check_writable("--out", out)
    calibration, fit, notes = from_results(Report.load(file), labels)
    _show(calibration, fit)  # before it is saved: whatever becomes of the file
    for note in notes:
        click.echo(printable(note), err=True)
    _save(calibration, out)


def _save(calibration: "Calibration", out: str) -> None:
    try:
        calibration.save(out)
    except OSError as error:
        raise NotThere(f"--out {out}: cannot write: {error.strerror}") from error
    click.echo(f"written: {json.dumps(out)} ({calibration.digest})")


def _show(calibration: "Calibration", fit: "FitResult") -> None:
    rows = [
        (change.name, *(_figure(each) for each in (change.before, change.after, change.difference)))
        for change in fit.agreement
    ]
    click.echo("\n".join(text_table(("out of fold, 95 %", "before", "after", "difference"), rows)))
    click.echo(f"labels: {calibration.labels} ({calibration.item}) in {calibration.samples} samples")
    click.echo(f"weight: {calibration.weight:.3g}; intercept {calibration.intercept:.3g}")
    if calibration.threshold is not None:
        use = "suggested threshold" if calibration.item == "score" else "threshold for yes"
        click.echo(f"{use}: {calibration.threshold:.3f}")
    for warning in fit.warnings:
        click.echo(printable(f"Warning: {warning}", 1_000), err=True)


def _figure(figure: "Figure") -> str:
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"
