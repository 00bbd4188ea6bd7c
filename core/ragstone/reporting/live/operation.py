"""The sections of a page about running: what judging cost, and how the queues stand."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from ragstone.reporting.live.facts import Cost, Queue
from ragstone.reporting.live.figures import round_up, ticks
from ragstone.reporting.live.markup import Html, cut, foreign, tag
from ragstone.reporting.live.pieces import figures, short_moment, stretch, table, when
from ragstone.reporting.live.sections import card, folded, time_ticks
from ragstone.reporting.live.svg import Bar, bar_chart

_PROCESSES = 20
_ENDS = ("scored", "unscored", "dropped", "not_sampled", "over_budget", "duplicate", "spooled", "pending")


def cost_section(costs: Mapping[int, Cost], width: int) -> Html:
    """Return calls and tokens by time.

    Args:
        costs: By when the stretch of time begins, in order.
        width: How many seconds each spans.
    """
    unit = stretch(width)
    rows = [(when(start), c) for start, c in costs.items()]
    return card(
        "Judge calls and tokens",
        *cost_figures(costs.values()),
        tag("figure", tag("figcaption", f"Judge calls per {unit} (UTC)"), _chart(costs, width)),
        folded("As a table", cost_table(f"Judge calls and tokens per {unit} (UTC)", "from", rows)),
    )


def cost_figures(costs: Iterable[Cost]) -> list[Html]:
    """Return calls and tokens in all, and what is not known of them."""
    total = added(costs)
    said = [
        ("judge calls", f"{total.llm_calls:,}", ""),
        ("embedder calls", f"{total.embed_calls:,}", ""),
        ("tokens in", tokens(total)[0], ""),
        ("tokens out", tokens(total)[1], ""),
    ]
    untold = (
        f"The provider did not tell all tokens of {total.untold:,} of {total.outcomes:,} outcomes: "
        "“at least” is what it told."
    )
    return [figures(said), *([tag("p", untold, class_="soft")] if total.untold else [])]


def cost_table(caption: str, by: str, rows: Iterable[tuple[str, Cost]]) -> Html:
    """Return calls and tokens as a table; the first column holds what they are of."""
    head = (by, "outcomes", "judge calls", "embedder calls", "tokens in", "tokens out")
    cells = [(of, f"{c.outcomes:,}", f"{c.llm_calls:,}", f"{c.embed_calls:,}", *tokens(c)) for of, c in rows]
    return table(caption, head, cells, numbers=5)


def added(costs: Iterable[Cost]) -> Cost:
    """Return the sum."""
    total = Cost()
    for cost in costs:
        for field in fields(Cost):
            setattr(total, field.name, getattr(total, field.name) + getattr(cost, field.name))
    return total


def tokens(cost: Cost) -> tuple[str, str]:
    """Return input and output tokens as text: what was not told is said to be unknown, never 0.

    Example:
        >>> tokens(Cost(outcomes=2, input_tokens=1_200, output_tokens=90, untold=1))
        ('at least 1,200', 'at least 90')
        >>> tokens(Cost(outcomes=1, untold=1)), tokens(Cost(outcomes=1))
        (('unknown', 'unknown'), ('0', '0'))
    """
    return _told(cost.input_tokens, cost.untold), _told(cost.output_tokens, cost.untold)


def _told(known: int, untold: int) -> str:
    return f"{known:,}" if not untold else f"at least {known:,}" if known else "unknown"


def _chart(costs: Mapping[int, Cost], width: int) -> Html:
    first, last = min(costs), max(costs) + width
    most = max(cost.llm_calls for cost in costs.values())
    top = round_up(max(2, most))
    return bar_chart(
        "cost",
        [
            Bar(start, start + width, c.llm_calls, f"{short_moment(start, width)}: {c.llm_calls:,} calls")
            for start, c in costs.items()
        ],
        x=(first, last),
        top=top,
        x_ticks=time_ticks((first, last), width),
        y_ticks=[(value, f"{value:,.0f}") for value in ticks(0.0, top, 2)],
        title="Judge calls",
        description=f"At most {most:,}; the table below has them all.",
    )


def queue_section(queues: Sequence[Queue]) -> Html:
    """Return what became of all evaluations, by process and together. Processes come newest first."""
    total: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    for queue in queues:
        total.update(queue.counts)
        reasons.update({(kind, r): n for kind, found in queue.reasons.items() for r, n in found.items()})
    longest = max(queue.longest for queue in queues)
    missing = total["accepted"] - sum(total[end] for end in _ENDS)
    said = [("evaluations", f"{total['accepted']:,}", "accepted"), ("longest queue", f"{longest:,}", "samples")]
    said += [(end.replace("_", " "), f"{total[end]:,}", "") for end in _ENDS if total[end]]
    head = ("process", "started", "last seen", "accepted", *(end.replace("_", " ") for end in _ENDS), "longest queue")
    rows = [
        (
            foreign(cut(queue.process, 80)),
            when(queue.started_at),
            when(queue.at),
            *(f"{queue.counts.get(name, 0):,}" for name in ("accepted", *_ENDS)),
            f"{queue.longest:,}",
        )
        for queue in queues[:_PROCESSES]
    ]
    balance = (
        "Every accepted evaluation is accounted for."
        if not missing
        else f"{missing:,} of them are not accounted for: a process ended before it told, or tells only part yet."
    )
    parts = [
        tag("p", "One evaluation is one sample by one metric, counted since each process started.", class_="soft"),
        figures(said),
        tag("p", balance, class_="soft"),
    ]
    if reasons:
        by_reason = [(foreign(kind), foreign(reason), f"{n:,}") for (kind, reason), n in reasons.most_common()]
        parts.append(table("Why", ("what", "reason", "evaluations"), by_reason, numbers=1))
    caption = f"The latest {_PROCESSES} of {len(queues):,} processes" if len(queues) > _PROCESSES else "Processes (UTC)"
    parts.append(folded("By process", table(caption, head, rows, numbers=len(head) - 3)))
    return card("Queue", *parts)
