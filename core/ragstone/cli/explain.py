"""`ragstone explain`: one sample's verdicts with the passages they point to."""

import sys
from pathlib import Path

import click

from ragstone.batch.report.lines import read_results
from ragstone.batch.sources.rows import BadLine
from ragstone.cli.metrics import METRICS
from ragstone.cli.show import evidence_lines


@click.command(short_help="Print why a sample scored as it did.")
@click.argument("results", type=click.Path(exists=True, dir_okay=False))
@click.argument("sample_id", required=False)
@click.option("--metric", type=click.Choice(METRICS), help="Only this metric.")
def explain(results: str, sample_id: str | None, metric: str | None) -> None:
    """Print why a sample scored as it did, from a file that `ragstone score --out RESULTS` wrote.

    SAMPLE_ID is its id (or, where it had none, its line number); by default the first sample of the file.
    """
    first_row: int | None = None
    first_bad: BadLine | None = None
    bad = 0
    found = False
    with Path(results).open("rb") as lines:
        for result in read_results(lines):
            if isinstance(result, BadLine):
                first_bad = first_bad or result
                bad += 1
                continue
            first_row = result.row if first_row is None else first_row
            wanted = result.row == first_row if sample_id is None else result.sample_id == sample_id
            if wanted and metric in (None, result.outcome.metric):
                found = True
                for line in evidence_lines(result.sample_id, result.outcome):
                    click.echo(line)
    if first_bad is not None:
        click.echo(f"{results}: {bad} line(s) skipped: line {first_bad.line} {first_bad.problem}", err=True)
    if not found:
        what = "result" if sample_id is None else f"sample {sample_id!r}"
        click.echo(f"{results} has no {what}" + (f" with {metric}" if metric else ""), err=True)
        sys.exit(2)
