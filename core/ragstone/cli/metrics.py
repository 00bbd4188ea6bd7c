"""`ragstone metrics`: what can be scored, what each metric asks, what it needs, and its calls."""

import json

import click

from ragstone.batch.estimation import estimate_sample
from ragstone.cli.options import json_option
from ragstone.judge_names import NullJudge
from ragstone.metrics.names import GROUPS, make_metric, metric_class, metric_names
from ragstone.sample import Sample
from ragstone.text.plain import text_table

_SAMPLE = Sample(
    user_input="Who wrote Emma, and when?",
    retrieved_contexts=[
        "Emma is by Jane Austen. It is long.",
        "It came out in 1815. So they say.",
        "It rains. It pours.",
    ],
    response="Jane Austen wrote Emma [1]. It came out in 1815 [2].",
    reference="Jane Austen wrote it in 1815.",
)


@click.command(short_help="List the metrics: what each asks, needs and costs.")
@json_option
def metrics(as_json: bool) -> None:
    """List the metrics: the question of each, the fields that it needs, and its groups.

    The calls are those of a sample with three contexts of two sentences and an answer of two, by a judge that is asked
    about all items together, and by one that is asked one by one. `ragstone score FILE --dry-run` counts yours.
    """
    found = {name: metric_class(name) for name in metric_names()}
    needs = {
        name: [*metric.required_fields, *(["an embedder"] if metric.needs_embedder else [])]
        for name, metric in found.items()
    }
    groups = {name: [group for group, names in GROUPS.items() if name in names] for name in found}
    calls = {name: [_calls(name, judge) for judge in _JUDGES] for name in found}
    if as_json:
        listed = [
            {
                "metric": name,
                "question": metric.asks,
                "needs": needs[name],
                "groups": groups[name],
                "calls": dict(zip(("together", "one_by_one"), calls[name], strict=True)),
            }
            for name, metric in found.items()
        ]
        click.echo(json.dumps(listed, indent=2))
        return
    for name, metric in found.items():
        click.echo(f"{name}: {metric.asks}")
    rows = [
        (name, ", ".join(needs[name]), ", ".join(groups[name]), " or ".join(map(str, calls[name]))) for name in found
    ]
    click.echo("\n".join(["", *text_table(("metric", "needs", "groups", "calls"), rows, names=4)]))


_JUDGES = (NullJudge(), NullJudge(asking="one_by_one", gives_probabilities=True))


def _calls(name: str, judge: NullJudge) -> int:
    embedder = judge if metric_class(name).needs_embedder else None
    return estimate_sample(make_metric(name, {}, judge, embedder), _SAMPLE).calls
