"""Outcomes as text for people."""

from collections.abc import Mapping

from ragstone.reporting import MetricSummary
from ragstone.text.plain import printable, text_table


def summary_table(summaries: Mapping[str, MetricSummary]) -> str:
    """Return the totals of each metric as a table, with the failures by reason and one of each below it."""
    head = ("metric", "mean", "scored", "judge calls", "tokens in", "tokens out")
    rows = [
        (
            name,
            "-" if s.mean is None else f"{s.mean:.3f}",
            f"{s.scored}/{s.total}",
            f"{s.usage.llm_calls:,}",
            _count(s.usage.input_tokens),
            _count(s.usage.output_tokens),
        )
        for name, s in summaries.items()
    ]
    lines = text_table(head, rows)
    for name, s in summaries.items():
        for reason, count in sorted(s.failures.items()):
            lines += [f"unscored by {name}: {count} {reason}", f"    first: {printable(s.examples[reason])}"]
    return "\n".join(["", *lines])


def _count(tokens: int | None) -> str:
    return "not told" if tokens is None else f"{tokens:,}"
