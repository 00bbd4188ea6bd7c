"""Numbers as text, and a report as a table: for a terminal, a notebook and the top of a page alike."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from ragstone.reporting.html.markup import Html, foreign, html_table, tag, together
from ragstone.text.plain import printable, text_table

if TYPE_CHECKING:
    from ragstone.outcome import Evidence, Suspicion
    from ragstone.reporting.aggregates import Cost, MetricSummary
    from ragstone.reporting.report import Report

DASH = "\u2013"  # between the ends of a range
INTERVAL = "95 % interval"
COSTS = ("judge calls", "embedder calls", "tokens in", "tokens out")
_NAME = 100


def number(value: float | None, sign: str = "") -> str:
    """Return a score; a dash where there is none."""
    return DASH if value is None else f"{value:{sign}.3f}"


def interval(low: float | None, high: float | None, sign: str = "") -> str:
    """Return an interval; a dash where there is none."""
    return DASH if low is None or high is None else f"{number(low, sign)} {DASH} {number(high, sign)}"


def percent(share: float) -> str:
    """Return a share as percent."""
    return f"{100 * share:.1f} %"


def count(n: int, noun: str) -> str:
    """Return a number of things."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def moment(at: float | None) -> str:
    """Return a time in UTC, to the minute."""
    return "unknown" if at is None else f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M}"


def place(passage: "Evidence | Suspicion") -> str:
    """Return where a passage is in its sample."""
    chunk = "" if passage.chunk is None else f"[{passage.chunk}]"
    return f"{passage.field}{chunk}, characters {passage.start} to {passage.end}"


def cost_cells(cost: "Cost") -> tuple[str, ...]:
    """Return judge calls, embedder calls, tokens in and out. What a provider did not report is unknown, never 0."""
    tokens = [
        f"{cost.n[f'{side}_tokens']:,}"
        if not cost.n[f"{side}_untold"]
        else f"at least {cost.n[f'{side}_tokens']:,}"
        if cost.n[f"{side}_tokens"]
        else "unknown"
        for side in ("input", "output")
    ]
    return f"{cost.n['llm_calls']:,}", f"{cost.n['embed_calls']:,}", *tokens


def overview(summaries: "Mapping[str, MetricSummary]") -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the head and the rows of a table that has all metrics; the first column is the name."""
    noisy = any(each.noise is not None for each in summaries.values())
    head = ("metric", "mean", INTERVAL, *(["± by noise"] if noisy else []), "scored")
    rows = [
        (
            name,
            number(each.mean),
            interval(each.low, each.high),
            *([DASH if each.noise_reach is None else f"±{each.noise_reach:.3f}"] if noisy else []),
            f"{each.scored:,}/{each.total:,}",
            *cost_cells(each.cost),
        )
        for name, each in summaries.items()
    ]
    return (*head, *COSTS), rows


def lines(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], remarks: Iterator[str]) -> str:
    """Return a table with remarks below it, as text that a terminal obeys nothing of."""
    table = text_table(head, [[printable(cell, _NAME) for cell in row] for row in rows]) if rows else []
    return "\n".join([printable(title, 2 * _NAME), *table, *map(printable, remarks)])


def notebook(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], remarks: Iterator[str]) -> Html:
    """Return the same as HTML for a notebook, every text in it escaped."""
    cells = [[foreign(cell, 2 * _NAME) for cell in row] for row in rows]
    table = html_table(title, head, cells, numbers=len(head) - 1) if rows else tag("p", foreign(title))
    return together([table, *(tag("p", foreign(printable(remark))) for remark in remarks)])


def remarks(report: "Report") -> Iterator[str]:
    """Yield what there is to say of a report beside its table, in sentences."""
    for name, each in report.summary().items():
        if each.noise is not None:
            agreed = each.noise.agreement
            yield (
                f"judge's noise in {name}: one score of a row varies by {number(each.noise.sd)} (standard deviation "
                f"between draws, {count(each.noise.rows, 'row')}), "
                f"the mean by ±{number(each.noise_reach)} of that alone"
                + ("" if agreed is None else f"; draws agree on passing in {percent(agreed)}")
            )
        for reason, n in each.failures.most_common():
            yield f"unscored by {name}: {n:,} {reason}; first: {each.examples[reason]}"
    aggregates = report.aggregates()
    if aggregates.flagged:
        first = aggregates.flags[0]
        yield (
            f"{count(aggregates.flagged, 'row')} with a passage that looks like an attack on the judge; first: "
            f"{first.record.sample_id}, {first.suspicion.kind.replace('_', ' ')} in {place(first.suspicion)}"
        )
    yield from report.notes
    if report.bad_rows:
        bad = report.bad_rows[0]
        yield f"{count(len(report.bad_rows), 'row')} held no sample; the first, line {bad.line}: {bad.problem}"
