"""`ragstone calibrate`: labelled samples in, what the judge's probabilities mean by these labels out."""

import json
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ragstone.cli.options import (
    NotThere,
    check_apart,
    check_writable,
    embedder_option,
    field_option,
    llm_option,
    local_file,
    make_metrics,
    metric_option,
    parse_keys,
    parse_settings,
    settings_option,
)
from ragstone.plain import printable
from ragstone.sources import SAMPLE_FIELDS
from ragstone.text.plain import text_table

if TYPE_CHECKING:
    from ragstone.labels.calibration import Calibration, Figure
    from ragstone.labels.fit import FitResult

_LABELS = ("labels", "relevant", "noncommittal", "score", "sentences")


@click.command(short_help="Fit a judge's probabilities to your labels.")
@click.argument("file", type=click.Path(exists=True, allow_dash=True), required=False)
@click.option(
    "--labels",
    "labels_file",
    type=click.Path(exists=True, dir_okay=False),
    help="The download of `ragstone label`: FILE then holds the results, and no judge is asked.",
)
@metric_option("What the labels are for; not with --labels.", "name")
@llm_option
@embedder_option
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False), help="The calibration's file; replaced, if it is there."
)
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="LABEL=KEY",
    help=f"The row's key that holds a label ({', '.join(_LABELS)}); KEY.KEY for what is inside an object.",
)
@field_option
@settings_option
@click.option("--concurrency", type=click.IntRange(1), default=16, show_default=True, help="Judge calls in flight.")
@click.option(
    "--journal",
    type=click.Path(dir_okay=False),
    metavar="PATH",
    help="Keep the judge's answers in this file as they come; the same command goes on from there.",
)
def calibrate(
    file: str | None,
    labels_file: str | None,
    name: str | None,
    llm: str,
    embedder: str | None,
    out: str,
    maps: tuple[str, ...],
    fields: tuple[str, ...],
    settings: tuple[str, ...],
    concurrency: int,
    journal: str | None,
) -> None:
    """Fit how a judge's probabilities map to your labels.

    With --labels, FILE holds results, and the labels of them come from the page of `ragstone label`. Otherwise the
    judge scores the samples in FILE: as for `ragstone score`, and one label with each. context_relevancy: "labels",
    true or false for each sentence, or "relevant", [context, sentence] pairs from 0; "sentences" says what the
    sentences are, a list per context. response_relevancy: "noncommittal", true or false. Any metric: "score", a number
    from 0 to 1, or true or false. null: not labelled, left out.

    Prints how well judge and labels agree before and after, each sample judged by a fit that has not seen it, and
    writes the calibration for `ragstone score --calibration` and for `calibration=` of a metric.

    \b
    Exit status:
      0    written
      2    a line or an option cannot be used, or the labels are too few
    """  # noqa: D301 - click's mark for lines that stay as they are
    from ragstone.labels.fit import load_sklearn
    from ragstone.labels.label_rows import read_labels
    from ragstone.labels.make import make

    if labels_file is not None:
        _from_results(file, labels_file, out)
        return
    if name is None:
        raise click.UsageError("--metric: say what the labels are for")
    if file is None:
        raise click.UsageError("give FILE, the labelled samples")
    check_apart(
        [("--out", out), ("--journal", journal)],
        [("the input FILE", file), ("--llm", local_file(llm)), ("--embedder", local_file(embedder))],
    )
    check_writable("--out", out)
    load_sklearn("linear_model")  # before a judge is loaded for nothing
    (metric,) = make_metrics(parse_settings(settings, (name,)), llm=llm, embedder=embedder, concurrency=concurrency)
    keys = parse_keys("--field", "NAME", fields, SAMPLE_FIELDS), parse_keys("--map", "NAME", maps, _LABELS)
    labels = read_labels(file, metric, *keys)
    calibration, fit, unscored = make(metric, labels, max_concurrency=concurrency, journal=journal)
    _show(calibration, fit)  # before it is saved: it was paid for, whatever becomes of the file
    if labels.skipped:
        click.echo(f"{labels.skipped} line(s) have null for a label and were left out", err=True)
    for reason, count in unscored.items():
        click.echo(f"unscored, left out: {count} {printable(reason, 160)}", err=True)
    _save(calibration, out)


def _from_results(file: str | None, labels: str, out: str) -> None:
    from ragstone.labels.make import from_results
    from ragstone.report import Report

    ctx = click.get_current_context()
    taken = ("file", "labels_file", "out")
    passed = [name for name in ctx.params if ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE]
    options = [each.opts[0] for each in ctx.command.params if each.name in passed and each.name not in taken]
    if options or file is None:
        wrong = f"leave out {', '.join(options)}" if options else "give the results as FILE"
        raise click.UsageError(f"--labels: the results say how they were scored; {wrong}")
    check_apart([("--out", out)], [("the results", file), ("--labels", labels)])
    check_writable("--out", out)
    calibration, fit, notes = from_results(Report.load(file), labels)
    _show(calibration, fit)
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
    weights = ", ".join(f"{name} {weight:.3g}" for name, weight in calibration.weights.items()) or "none"
    click.echo(f"weights: {weights}; intercept {calibration.intercept:.3g}")
    if calibration.threshold is not None:
        use = "suggested threshold" if calibration.item == "score" else "threshold for yes"
        click.echo(f"{use}: {calibration.threshold:.3f}")
    for warning in fit.warnings:
        click.echo(printable(f"Warning: {warning}", 1_000), err=True)


def _figure(figure: "Figure") -> str:
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"
