"""`ragstone explain`: one sample's verdicts with the passages they point to."""

import click

from ragstone.cli.options import import_from_here
from ragstone.cli.output import evidence_lines, sample_lines
from ragstone.registry import GROUPS, is_entry_point, metric_name
from ragstone.store.results import open_results


@click.command(short_help="Print why a sample scored as it did.")
@click.argument("results", type=click.Path(exists=True, dir_okay=False))
@click.argument("sample_id", required=False)
@click.option("--metric", metavar="NAME", help="Only this metric, or the metrics of this group.")
@click.pass_context
def explain(ctx: click.Context, results: str, sample_id: str | None, metric: str | None) -> None:
    """Print a sample and why it scored as it did, from a file that `ragstone score` or Report.to_json wrote.

    SAMPLE_ID is its id (or, where it had none, its line number); by default the first sample of the file.
    """
    names = () if metric is None else GROUPS.get(metric, (metric,))
    if metric is not None and is_entry_point(metric):
        import_from_here(metric)
        names = (metric_name(metric),)
    first_row: int | None = None
    shown_row: int | None = None
    file = open_results(results)
    for result in file.records():
        first_row = result.row if first_row is None else first_row
        wanted = result.row == first_row if sample_id is None else result.sample_id == sample_id
        if wanted and (metric is None or result.outcome.metric in names):
            if result.row != shown_row and (sample := file.sample(result)) is not None:
                click.echo("\n".join(sample_lines(sample)))
            shown_row = result.row
            for line in evidence_lines(result.sample_id, result.outcome):
                click.echo(line)
    for note in file.notes:
        click.echo(note, err=True)
    if shown_row is None:
        what = "result" if sample_id is None else f"sample {sample_id!r}"
        click.echo(f"{results} has no {what}" + (f" with {metric}" if metric else ""), err=True)
        ctx.exit(2)
