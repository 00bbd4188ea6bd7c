"""A report as a table of text, and as one for a notebook."""

from collections.abc import Iterable, Mapping, Sequence

from ragstone.reporting.batch.tally import MetricSummary
from ragstone.reporting.live.figures import Estimate
from ragstone.reporting.live.markup import foreign, tag, together
from ragstone.reporting.live.pieces import DASH, interval, percent, table
from ragstone.sample import BadLine
from ragstone.text.plain import printable, text_table

HEAD = ("metric", "mean", "95 % interval", "scored", "judge calls", "tokens in", "tokens out")


def report_text(
    summary: Mapping[str, MetricSummary], name: str, rows: int, bad_rows: Sequence[BadLine], notes: Sequence[str]
) -> str:
    """Return a report as lines: a table, then the failures by reason, and what else is to be said."""
    lines = [_title(name, rows)]
    if summary:
        cells = [[printable(cell, 100) for cell in _cells(each, found)] for each, found in summary.items()]
        lines += text_table(HEAD, cells)
    for each, found in summary.items():
        if (said := noise_said(found)) is not None:
            lines.append(f"judge's noise in {printable(each, 100)}: {said}")
        for reason, count in found.failures.items():
            lines.append(f"unscored by {printable(each, 100)}: {count:,} {reason}")
            lines.append(f"    first: {printable(found.examples[reason])}")
    return "\n".join([*lines, *map(printable, _others(bad_rows, notes))])


def summary_html(
    summary: Mapping[str, MetricSummary], name: str, rows: int, bad_rows: Sequence[BadLine], notes: Sequence[str]
) -> str:
    """Return a report as a table for a notebook, every text in it escaped."""
    cells = [[foreign(cell) for cell in _cells(each, found)] for each, found in summary.items()]
    said = [
        f"Judge's noise in {each}: {noise}."
        for each, found in summary.items()
        if (noise := noise_said(found)) is not None
    ]
    failed = [
        (foreign(each), reason, foreign(printable(found.examples[reason], 200)), f"{count:,}")
        for each, found in summary.items()
        for reason, count in found.failures.items()
    ]
    head = ("metric", "reason", "first of them", "outcomes")
    return together(
        [
            table(_title(name, rows), HEAD, cells, numbers=6),
            table("Unscored", head, failed, numbers=1) if failed else "",
            *(tag("p", foreign(text)) for text in (*said, *_others(bad_rows, notes))),
        ]
    )


def _title(name: str, rows: int) -> str:
    return f"{printable(name, 100)}: {count_of(rows)}" if name else count_of(rows)


def count_of(rows: int) -> str:
    """Return a number of rows in words.

    Example:
        >>> count_of(1), count_of(1_200)
        ('1 row', '1,200 rows')
    """
    return f"{rows:,} row" + ("" if rows == 1 else "s")


def _cells(name: str, found: MetricSummary) -> tuple[str, ...]:
    return (
        name,
        DASH if found.mean is None else f"{found.mean:.3f}",
        interval(estimate_of(found)),
        scored_of(found),
        f"{found.usage.llm_calls:,}",
        told(found.usage.input_tokens),
        told(found.usage.output_tokens),
    )


def estimate_of(found: MetricSummary) -> Estimate | None:
    """Return the mean with its interval; None where nothing was scored."""
    return None if found.mean is None else Estimate(found.rows, found.mean, found.low, found.high)


def scored_of(found: MetricSummary) -> str:
    """Return how many outcomes are scores, of how many."""
    return f"{found.scored:,}/{found.total:,}"


def told(tokens: int | None) -> str:
    """Return a number of tokens.

    Example:
        >>> told(1_200), told(None)
        ('1,200', 'not told')
    """
    return "not told" if tokens is None else f"{tokens:,}"


def noise_said(found: MetricSummary) -> str | None:
    """Return what there is to say of the judge's own noise; None where no row was scored twice."""
    if found.noise is None or found.noise_reach is None:
        return None
    agreed = "" if found.noise.agreement is None else f"; draws agree on passing in {percent(found.noise.agreement)}"
    return (
        f"one score of a row varies by {found.noise.sd:.3f} (standard deviation between draws, "
        f"{count_of(found.noise.rows)}), the mean by ±{found.noise_reach:.3f} of that alone{agreed}"
    )


def _others(bad_rows: Sequence[BadLine], notes: Iterable[str]) -> list[str]:
    said = list(notes)
    if bad_rows:
        first = bad_rows[0]
        said.append(f"{count_of(len(bad_rows))} held no sample; the first, line {first.line}: {first.problem}")
    return said
