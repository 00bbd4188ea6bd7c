"""`ragstone metrics`: what can be scored, what each metric asks, and what it needs."""

import json

import click

from ragstone import registry
from ragstone.cli.options import json_option
from ragstone.text.plain import text_table


@click.command(short_help="List the metrics: what each asks and needs.")
@json_option
def metrics(as_json: bool) -> None:
    """List the metrics: what each asks, the fields of a sample that it needs, and the groups that hold it.

    How many judge calls a metric takes depends on the samples: `ragstone score FILE --dry-run` counts them.
    """
    found = {name: registry.metric_class(name) for name in registry.metric_names()}
    needs = {
        name: [*metric.required_fields, *(["an embedder"] if metric.needs_embedder else [])]
        for name, metric in found.items()
    }
    groups = {name: [group for group, names in registry.GROUPS.items() if name in names] for name in found}
    if as_json:
        listed = [
            {"metric": name, "question": metric.asks, "needs": needs[name], "groups": groups[name]}
            for name, metric in found.items()
        ]
        click.echo(json.dumps(listed, indent=2))
        return
    for name, metric in found.items():
        click.echo(f"{name}: {metric.asks}")
    rows = [(name, ", ".join(needs[name]), ", ".join(groups[name])) for name in found]
    click.echo("\n".join(["", *text_table(("metric", "needs", "groups"), rows, names=3)]))
