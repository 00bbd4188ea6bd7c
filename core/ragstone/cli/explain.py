"""`ragstone explain`: one sample's verdicts with the passages they point to."""

import sys
from pathlib import Path

import click

from ragstone.cli.metrics import METRICS
from ragstone.cli.results import read_results
from ragstone.cli.show import evidence_lines


@click.command()
@click.argument("results", type=click.Path(exists=True, dir_okay=False))
@click.argument("sample_id", required=False)
@click.option("--metric", type=click.Choice(METRICS), help="Only this metric.")
def explain(results: str, sample_id: str | None, metric: str | None) -> None:
    """Print why a sample scored as it did, from a file that `ragstone score --out RESULTS` wrote.

    SAMPLE_ID is its id (or, where it had none, its line number); by default the first sample of the file.
    """
    found = False
    with Path(results).open(encoding="utf-8", errors="replace") as lines:
        try:
            for result in read_results(lines):
                sample_id = result.id if sample_id is None else sample_id
                if result.id == sample_id and metric in (None, result.outcome.metric):
                    found = True
                    for line in evidence_lines(result.id, result.outcome):
                        click.echo(line)
        except ValueError as error:
            raise click.UsageError(f"{results}: {error}") from None
    if not found:
        what = f"sample {sample_id!r}" if sample_id is not None else "result"
        click.echo(f"{results} has no {what}" + (f" with {metric}" if metric else ""), err=True)
        sys.exit(2)
