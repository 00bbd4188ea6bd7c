"""`ragstone score --dry-run`: what a run would take. No judge is asked, loaded, or even there."""

from collections.abc import Iterable, Iterator, Sequence

import click

from ragstone.batch.estimation.estimate import estimate
from ragstone.metrics import Metric
from ragstone.sample import BadLine, Row
from ragstone.text.plain import printable


def show_estimate(
    rows: Iterable[Row | BadLine], metrics: Sequence[Metric], repeat: int, price: tuple[float, float] | None
) -> int:
    """Print what a run would take; return the exit status: 2 where a row, or every row, holds no sample.

    Args:
        rows: The input.
        metrics: What would be scored.
        repeat: Scorings of each sample by each metric.
        price: Of a million prompt tokens, and of a million reply tokens.
    """
    input_price, output_price = price or (None, None)
    found = estimate(_told(rows), metrics, repeat=repeat, input_price=input_price, output_price=output_price)
    click.echo(str(found))
    if not found.samples:
        click.echo("No sample: no line of the input holds one. Each line must be one JSON object.", err=True)
    return 2 if found.bad_rows or not found.samples else 0


def _told(rows: Iterable[Row | BadLine]) -> Iterator[Row | BadLine]:
    for row in rows:
        if isinstance(row, BadLine):
            click.echo(f"line {row.line}: {printable(row.problem)} (skipped)", err=True)
        yield row
