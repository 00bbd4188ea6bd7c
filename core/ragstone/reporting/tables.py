"""Numbers as text, and a report as a table: for a terminal, a notebook and the top of a page alike."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from ragstone.reporting.html.markup import Html, foreign, html_table, tag, together
from ragstone.text.plain import printable, text_table

if TYPE_CHECKING:
    from ragstone.outcome import Evidence, Suspicion
    from ragstone.reporting.aggregates import MetricSummary
    from ragstone.reporting.report import Report

DASH = "\u2013"  # between the ends of a range
INTERVAL = "95 % interval"
_NAME = 100


def number(value: float | None, sign: str = "") -> str:
    """Return a score; a dash where there is none.

    Example:
        >>> number(0.25), number(0.25, "+"), number(None)
        ('0.250', '+0.250', '–')
    """
    return DASH if value is None else f"{value:{sign}.3f}"


def interval(low: float | None, high: float | None, sign: str = "") -> str:
    """Return an interval; a dash where there is none.

    Example:
        >>> interval(0.25, 0.75), interval(None, None)
        ('0.250 – 0.750', '–')
    """
    return DASH if low is None or high is None else f"{number(low, sign)} {DASH} {number(high, sign)}"


def percent(share: float) -> str:
    """Return a share as percent.

    Example:
        >>> percent(0.125), percent(0.0001)
        ('12.5 %', '0.0 %')
    """
    return f"{100 * share:.1f} %"


def count(n: int, noun: str) -> str:
    """Return a number of things.

    Example:
        >>> count(1, "row"), count(1_200, "row")
        ('1 row', '1,200 rows')
    """
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def tokens(known: int, untold: int) -> str:
    """Return a number of tokens. What a provider did not report is unknown, never 0.

    Example:
        >>> tokens(1_200, 0), tokens(1_200, 2), tokens(0, 2), tokens(0, 0)
        ('1,200', 'at least 1,200', 'unknown', '0')
    """
    return f"{known:,}" if not untold else f"at least {known:,}" if known else "unknown"


def moment(at: float | None) -> str:
    """Return a time in UTC, to the minute.

    Example:
        >>> moment(0.0), moment(None)
        ('1970-01-01 00:00', 'unknown')
    """
    return "unknown" if at is None else f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M}"


def place(passage: "Evidence | Suspicion") -> str:
    """Return where a passage is in its sample.

    Example:
        >>> from ragstone import Evidence
        >>> place(Evidence(field="retrieved_contexts", chunk=2, start=4, end=9, text=""))
        'retrieved_contexts[2], characters 4 to 9'
    """
    chunk = "" if passage.chunk is None else f"[{passage.chunk}]"
    return f"{passage.field}{chunk}, characters {passage.start} to {passage.end}"


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
            f"{each.cost.llm_calls:,}",
            tokens(each.cost.input_tokens, each.cost.input_untold),
            tokens(each.cost.output_tokens, each.cost.output_untold),
        )
        for name, each in summaries.items()
    ]
    return (*head, "judge calls", "tokens in", "tokens out"), rows


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
        if (said := noise_remark(each)) is not None:
            yield f"judge's noise in {name}: {said}"
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


def noise_remark(summary: "MetricSummary") -> str | None:
    """Return what there is to say of the judge's own noise; None where no row was scored twice."""
    noise = summary.noise
    if noise is None or summary.noise_reach is None:
        return None
    agreed = "" if noise.agreement is None else f"; draws agree on passing in {percent(noise.agreement)}"
    return (
        f"one score of a row varies by {noise.sd:.3f} (standard deviation between draws, {count(noise.rows, 'row')}), "
        f"the mean by ±{summary.noise_reach:.3f} of that alone{agreed}"
    )
