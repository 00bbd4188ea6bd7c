"""`ragstone report` and `ragstone explain`: a file of results as a page, and one sample with its verdicts."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import click

from ragstone.cli.options import (
    NotThere,
    check_apart,
    check_suffix,
    database_file,
    group_option,
    json_option,
    name_of_scores,
    open_option,
    unused,
)
from ragstone.cli.output import check_shown, evidence_lines, sample_lines, write_page
from ragstone.errors import RagstoneError
from ragstone.metrics.names import GROUPS
from ragstone.plain import count, printable, to_json
from ragstone.report import Report, compare
from ragstone.report.aggregates import Facet
from ragstone.report.tables import INTERVAL, slice_cells
from ragstone.results.read import open_results
from ragstone.results.record import encode
from ragstone.text.plain import text_table

# How many ids an error names.
_IDS = 5
_NO_TEXTS = "The texts are not stored: score without --no-texts, or have Monitor(store_text=True)."


@click.command("report", short_help="Make a page of scores.")
@click.argument("source", metavar="SOURCE")
@click.option(
    "--since",
    metavar="TIME",
    help="Leave out samples submitted before: 30m, 24h or 7d ago, or a date and time (ISO 8601, UTC).",
)
@click.option("--against", metavar="SOURCE", help="Show the change against another run over the same samples.")
@click.option("--by", type=click.Choice(get_args(Facet)), multiple=True, help="Print and show the means by this, too.")
@group_option
@click.option(
    "--out",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Where the page goes (- : stdout). A file that is there is replaced. Default: SOURCE-report.html, with a "
    "number where there is one.",
)
@open_option
@json_option
def make_page(
    source: str,
    since: str | None,
    against: str | None,
    by: tuple[Facet, ...],
    group: str | None,
    out: str | None,
    opened: bool,
    as_json: bool,
) -> None:
    """Make a page of scores.

    SOURCE is a file that `ragstone score --out` wrote, the frame of a Scorer or of Report.to_pandas() (Parquet, JSON
    lines, CSV, or a folder of such parts), the file of a monitor's SQLiteSink, or the URL of its SQLSink, such as
    postgresql+psycopg://user@host/name. It is read, never changed. The page is one file that loads nothing:
    scores and their spread, over time where times are known, all samples with what lowered their scores, and slices by
    metadata.

    \b
    Exit status:
      0    done, also where nothing was scored yet
      2    there is no such source, it cannot be read, the runs are
           not comparable, or the page cannot be written
    """  # noqa: D301 - click's mark for lines that stay as they are
    out = out or unused(f"{Path(database_file(source) or 'ragstone').stem}-report.html")
    inputs = [("the input", database_file(source)), ("--against", None if against is None else database_file(against))]
    check_apart([("--out", None if out == "-" else out)], inputs)
    check_suffix("--out", out, ".html", ".htm")
    check_shown(opened, out)
    page = loaded(source, since, group)
    page.name = page.name or Path(source).name
    slices = [(facet, name, slice_cells(means)) for facet in by for name, means in page.by(facet).items()]
    changes = [] if against is None else [compare(against, page, group=group)]
    write_page("--out", out, page.html(*changes))
    if opened:
        click.launch(out)
    if as_json:
        figures = {"page": out, **page.figures(), **({"by": _means(page, by)} if by else {})}
        if changes:
            figures["against"] = changes[0].figures()
        click.echo(to_json(figures), err=out == "-")
        return
    outcomes = page.aggregates().cost.outcomes
    what = f"{count(outcomes, 'outcome')} of {', '.join(dict.fromkeys(info.name for info in page.metrics))}"
    if not outcomes:
        what = "0 outcomes; nothing was scored yet" if page.since is None else "0 outcomes since then"
    click.echo(printable(f"{out}: {what}"), err=out == "-")
    for facet in by:
        if not any(value for means in page.by(facet).values() for value in means):
            click.echo(f"--by {facet}: no sample has one", err=True)
    for facet, name, cells in slices:
        rows = [[printable(cell, 80) for cell in row] for row in cells]
        lines = text_table((facet, "n", "mean", INTERVAL), rows)
        click.echo("\n".join([f"\n{printable(name, 200)}", *lines]), err=out == "-")


def loaded(source: str, since: str | None, group: str | None = None) -> Report:
    """Return the report of what an argument names; a wrong time of --since is an error of its use."""
    try:
        return Report.load(source, since=since, group=group)
    except RagstoneError:
        raise
    except ValueError as error:
        raise click.UsageError(f"--{error}") from None


def _means(page: Report, by: Sequence[Facet]) -> dict[str, object]:
    return {
        facet: {
            name: {value: {"mean": e.mean, "low": e.low, "high": e.high, "n": e.n} for value, e in means.items()}
            for name, means in page.by(facet).items()
        }
        for facet in by
    }


@click.command(short_help="Print why a sample scored as it did.")
@click.argument("results", type=click.Path(exists=True))
@click.argument("sample_id", required=False)
@click.option("--metric", metavar="NAME", help="Only this metric, or the metrics of this group.")
@click.option("--json", "as_json", is_flag=True, help="Print each outcome as a line of JSON, as results files have it.")
def explain(results: str, sample_id: str | None, metric: str | None, as_json: bool) -> None:
    """Print a sample and why it scored as it did, from a file that `ragstone score` or Report.to_json wrote.

    SAMPLE_ID is its id (or, where it had none, its line number); by default the first sample of the file.
    """
    names = GROUPS.get(metric or "", (name_of_scores(metric),))
    first_row: int | None = None
    shown_row: int | None = None
    ids: dict[str, None] = {}
    metrics: dict[str, None] = {}
    file = open_results(results)
    for result in file.records():
        first_row = result.row if first_row is None else first_row
        ids[result.sample_id] = metrics[result.outcome.metric] = None
        wanted = result.row == first_row if sample_id is None else result.sample_id == sample_id
        if not wanted or (metric is not None and result.outcome.metric not in names):
            continue
        is_shown = as_json or result.row == shown_row
        sample = None if is_shown else file.sample(result)
        texts = [] if sample is None else list(sample_lines(sample))
        if not texts and not is_shown:
            click.echo(_NO_TEXTS, err=True)
        shown_row = result.row
        lines = [encode(result)] if as_json else list(evidence_lines(result.sample_id, result.outcome))
        click.echo("\n".join([*texts, *lines]))
    for note in file.notes:
        click.echo(printable(note), err=True)
    if shown_row is None:
        what = "result" if sample_id is None else f"sample {sample_id!r}"
        by_metric = f" with {metric}" if metric else ""
        some = ", ".join(map(repr, list(ids)[:_IDS]))
        if len(ids) > _IDS:
            some += ", ..."
        holds = f"; it holds {', '.join(metrics)} of {some}" if ids else ""
        raise NotThere(printable(f"{results} has no {what}{by_metric}{holds}", 1_000))
