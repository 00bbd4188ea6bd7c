"""The data of a report's page, as JSON for the viewer: numbers, and the sentences of the terminal."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from ragstone._version import __version__
from ragstone.page.html import html_page
from ragstone.plain import count
from ragstone.report.aggregates import STEPS, Aggregates, MetricSummary
from ragstone.report.page_rows import OldRows, SampleRows
from ragstone.report.statistics import DAY, bucket_width
from ragstone.report.tables import Tabular, interval_of, moment, narrower, of_groups, percent, spaced
from ragstone.sample import BadLine

MEANINGS = {
    "supported": "the text says it, or it follows from the text",
    "unsupported": "the text does not say it, or says otherwise",
    "contradicted": "the text says otherwise",
    "not_in_source": "the text does not say it",
    "relevant": "the question cannot be answered in full without it",
    "irrelevant": "the answer is the same without it",
    "useful": "it helps to arrive at the answer",
    "useless": "the answer does not need it",
    "needed": "without it the sentence is not supported",
    "needless": "the sentence is supported without it",
    "answer": "the answer answers the user's question",
    "no_answer": "the answer does not answer the user's question",
    "missed": "it should have been retrieved and was not",
    "repeated": "it stands at an earlier rank, too",
    "cannot_tell": "the text does not answer the question",
}
"""What a verdict's word means, for people who give it."""

_MOST = 20
_INTERVALS = (
    "The mean is over samples, and the 95 % interval is that of the mean. It counts what few samples may hide: twenty "
    "scores of 1 do not show that no other is 0. It assumes that samples are a random draw and that scores lie within "
    "their bounds. Where it is much wider than what the samples show, the narrower one stands beside it. A single "
    "sample has no interval, nor have fewer than five groups. By a metric whose bounds are not known there is the "
    "narrower one alone."
)
_WEIGHTS = (
    "Samples had different chances to be chosen, and a rule chooses all of its samples. Each sample weighs 1 / its "
    "chance, so weighted means and all shares stand for the whole traffic."
)
_REFUSED = "without an answer, and no context holds one. A right refusal scores 0, and that is no fault of the answer."
_APART = (
    "Scores by different versions, judges or set-ups are not comparable, so they are never averaged. The newest come "
    "first."
)
_THUMBS = "Only some people give feedback, so these means do not stand for the whole traffic."


def report_html(
    report: Tabular,
    also: Sequence[Tabular],
    aggregates: Aggregates,
    rows: SampleRows,
    *,
    name: str,
    since: float | None,
    bad_rows: Sequence[BadLine],
) -> str:
    """The page of a report.

    Args:
        report: The report, for its table and what it says beside it.
        also: Shown before its scores, such as a comparison with another run or means corrected by labels.
        aggregates: All its outcomes added up.
        rows: Its rows.
        name: Its name, or "".
        since: When the samples were submitted at the earliest, in seconds since 1970 (UTC); None: at any time.
        bad_rows: The rows of the input that held no sample.
    """
    summaries = _newest_first(aggregates) if aggregates.rows else {}
    metrics = list(summaries.values())
    period = aggregates.period()
    _, head, cells = report.table()
    by_name = {row[0]: row for row in cells}
    shown = [each.data() for each in also]
    old = cast("OldRows", next((each.pop("old") for each in shown if "old" in each), None) or {})
    conclusions = [*(each.conclusion() for each in also), report.conclusion()]
    data = {
        "title": name or "ragstone report",
        "conclusion": next(filter(None, conclusions)),
        "facts": list(_facts(aggregates, period, since)),
        "also": shown,
        "metrics": [_metric_data(name, each, period) for name, each in summaries.items()],
        "table": {"head": head, "rows": [by_name[name] for name in summaries if name in by_name]},
        "remarks": [*_refusals(aggregates.unanswerable), *report.remarks()],
        "notes": list(_notes(metrics)),
        "meanings": MEANINGS,
        "slices": list(_slices(aggregates, metrics)),
        "bad_rows": [(f"{bad.line:,}", bad.problem[:500]) for bad in bad_rows[:_MOST]],
    }
    return html_page("report", f"{name[:100]}: ragstone report" if name else "ragstone report", data, rows.json(old))


def _newest_first(aggregates: Aggregates) -> dict[str, MetricSummary]:
    """The aggregates by name, metrics in their order; of one metric the newest first."""
    summaries = aggregates.named()
    metrics = [each.info.name for each in summaries.values()]
    order = sorted(summaries.items(), key=lambda item: (metrics.index(item[1].info.name), -(item[1].last or 0)))
    return dict(order)


def _facts(aggregates: Aggregates, period: tuple[float, float] | None, since: float | None) -> Iterator[str]:
    rows = of_groups(count(aggregates.rows, "sample"), aggregates.groups)
    yield f"{rows}, {count(aggregates.cost.outcomes, 'outcome')}"
    if period is not None:
        yield f"submitted from {moment(period[0])} to {moment(period[1])}"
    if judges := dict.fromkeys(each.info.judge or "unknown" for each in aggregates):
        yield f"judged by {', '.join(judges)}"
    if since is not None:
        yield f"none before {moment(since)}"
    yield f"written {moment(time.time())} UTC by ragstone {__version__}"


def _refusals(n: int) -> Iterator[str]:
    if n:
        yield f"{count(n, 'sample')} {_REFUSED}"


def _metric_data(name: str, summary: MetricSummary, period: tuple[float, float] | None) -> dict[str, object]:
    info = summary.info
    low, high = summary.ends
    return {
        "name": name,
        "question": info.question,
        "key": info.key,
        "low": low,
        "high": high,
        "up": info.higher_is_better,
        "mean": summary.mean,
        "interval": summary.interval,
        "ends": interval_of(summary.estimate),
        "scored": f"{summary.scored:,} of {summary.total:,} scored",
        "unscored": [(spaced(reason), n) for reason, n in summary.failures.most_common()],
        "facts": list(_metric_facts(summary)),
        "apart": info.apart,
        "bins": _bins(summary.spread),
        **(_over_time(summary, period) if period is not None and summary.over_time.buckets else {}),
    }


def _bins(spread: Mapping[int, float]) -> list[tuple[str, float]]:
    """Where each step begins, and its share; nothing where scores are on no common scale."""
    if len(spread) > STEPS:
        return []
    total = sum(spread.values())
    return [(f"{step / 20:.2f}", weight / total) for step, weight in sorted(spread.items())]


def _metric_facts(summary: MetricSummary) -> Iterator[str]:
    """Yield what the table does not say of a metric."""
    if beside := narrower(summary.estimate, "row"):
        yield beside
    if summary.main_cause is not None:
        cause, rows = summary.main_cause
        yield f"in {rows:,} of {count(summary.scored, 'sample')} {cause}"
    if summary.passed is not None:
        threshold = summary.info.threshold
        least = "the threshold" if threshold is None else f"the threshold of {threshold:g}"
        yield f"{percent(summary.passed)} reach {least}"
    if summary.weighted:
        yield "weighted"
    if not summary.info.higher_is_better:
        yield "lower is better"


def _over_time(summary: MetricSummary, period: tuple[float, float]) -> dict[str, object]:
    """The mean of each minute, hour, day or week."""
    line, bounds = summary.over_time, summary.info.bounds
    line.widen(bucket_width(*period))
    unit = {60: "minute", 3_600: "hour", DAY: "day"}.get(line.width, "week")
    points = [(start, each) for start, mean in sorted(line.buckets.items()) if (each := mean.estimate(bounds))]
    return {"unit": unit, "time": [(start, moment(start), e.mean, e.low, e.high) for start, e in points]}


def _notes(summaries: Sequence[MetricSummary]) -> Iterator[str]:
    if summaries:
        yield _INTERVALS
    if len({each.info.name for each in summaries}) < len(summaries):
        yield _APART
    if any(each.weighted for each in summaries):
        yield _WEIGHTS


def _slices(aggregates: Aggregates, metrics: Sequence[MetricSummary]) -> Iterator[dict[str, object]]:
    """Yield a matrix for each slicing: a row for each value, the worst first, and a column for each metric."""
    for slicing in aggregates.slicings():
        of_metadata, name = slicing
        means = [aggregates.by(slicing, each.info) for each in metrics]
        values = list(dict.fromkeys(value for by_value in means for value in by_value))
        rows: list[object] = []
        for value in values[:_MOST]:
            found = [by_value.get(value) for by_value in means]
            rows.append((value or "none", [e and (e.mean, e.n, e.low, e.high) for e in found]))
        yield {
            "title": name[:80] if of_metadata else spaced(name.removesuffix("s")),
            "note": _THUMBS if slicing == (False, "feedback") else "",
            "rows": rows,
            "more": max(0, len(values) - _MOST),
        }
