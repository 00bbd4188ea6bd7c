"""A report as a page: one file that loads nothing, and runs no script but ours."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from ragstone._version import __version__
from ragstone.page.markup import Html, asset, card, cut, document, folded, foreign, html_table, soft, tag, together
from ragstone.page.samples import Samples
from ragstone.report.aggregates import Aggregates, Facet, MetricSummary
from ragstone.report.statistics import Bin, bucket_width
from ragstone.report.tables import DASH, INTERVAL, Shown, count, interval, moment, number, percent, slice_cells
from ragstone.results.record import Record
from ragstone.results.traffic import Health
from ragstone.sample import BadLine, Sample

_MOST = 20
_DETAIL = 500
_ENDS = ("scored", "unscored", "dropped", "not_sampled", "over_budget", "duplicate", "spooled", "pending")
_INTERVALS = (
    "The mean is over samples. A sample with several draws counts once, by their mean. The 95 % interval is that of "
    "the mean. It counts what few samples may hide: twenty scores of 1 do not show that no other is 0. A single sample "
    "has no interval, nor have samples of which most score alike by a metric whose bounds are not known."
)
_NOISE = (
    "“± by noise”: in 95 of 100 runs over these samples, the judge's own noise moves the mean by no more than this. "
    "It moves a difference between two systems by up to 1.4 times as much."
)
_WEIGHTS = (
    "Samples had different chances to be chosen, and a rule chooses all of its samples. Each sample weighs 1 / its "
    "chance, so weighted means and all shares stand for the whole traffic."
)
_APART = "Scores by different versions or judges are not comparable, so they are never averaged. The newest come first."
_THUMBS = "Only some people give feedback, so these means do not stand for the whole traffic."


class Scored(Protocol):
    """What the page needs of a `Report`."""

    name: str
    since: float | None
    bad_rows: tuple[BadLine, ...]

    def aggregates(self) -> Aggregates:
        """Return all outcomes added up."""
        ...

    def read(self, on_row: Callable[[Sequence[Record]], object], facets: Iterable[Facet]) -> Aggregates:
        """Call a function with each row's records, and return all outcomes added up."""
        ...

    def sample(self, record: Record) -> Sample | None:
        """Return the sample of a record."""
        ...

    def health(self) -> Sequence[Health]:
        """Return how the monitors stand."""
        ...

    def table(self) -> tuple[str, Sequence[str], list[tuple[str, ...]]]:
        """Return the title, head and rows of a table that has all metrics."""
        ...

    def remarks(self) -> Iterator[str]:
        """Yield what there is to say beside the table."""
        ...


def report_html(report: Scored, *also: Shown) -> str:
    """Return the page of a report.

    Args:
        report: The report.
        *also: What stands before its scores, such as a comparison with another run or means corrected by labels.
    """
    aggregates = report.aggregates()
    samples = Samples(aggregates, report.sample)
    aggregates = report.read(samples.add, aggregates.slices)
    summaries = aggregates.named()
    # Metrics in their order; of one metric the newest first.
    metrics = [each.info.name for each in summaries.values()]
    order = sorted(summaries, key=lambda name: (metrics.index(summaries[name].info.name), -(summaries[name].last or 0)))
    period = aggregates.period()
    since = "" if report.since is None else f", none before {moment(report.since)}"
    submitted = "" if period is None else f", samples submitted from {moment(period[0])} to {moment(period[1])}{since}"
    parts = [
        tag("h1", foreign(report.name or "ragstone report")),
        soft(
            f"{count(aggregates.rows, 'sample')}, {count(aggregates.cost.outcomes, 'outcome')}{submitted}. "
            f"Made {moment(time.time())} by ragstone {__version__}. Times are UTC."
        ),
        *map(_table, also),
        _overview(report, aggregates, order),
        tag("section", id="samples", class_="card", hidden=""),
        *_slices(aggregates),
    ]
    for i, title in enumerate(order):
        parts.append(card(foreign(title, 200), _group(summaries[title], f"group-{i}", period)))
    if health := report.health():
        parts.append(_queue(health))
    if report.bad_rows:
        parts.append(_bad_rows(report.bad_rows))
    title = f"{cut(report.name, 100)}: ragstone report" if report.name else "ragstone report"
    if not aggregates.rows:
        return document(title, *parts)
    names = {summaries[name].info.key: name for name in order}
    return document(title, *parts, script=asset("report.js"), data=samples.data(names))


def _table(shown: Shown) -> Html:
    """Return a table and what there is to say beside it; the first column is text."""
    title, head, rows = shown.table()
    cells = [[foreign(name, 200), *rest] for name, *rest in rows]
    table = html_table(foreign(title), head, cells, numbers=len(head) - 1) if rows else ""
    return card(foreign(title, 200), table, _listed(shown.remarks()))


def _listed(sentences: Iterable[str]) -> Html:
    items = [tag("li", foreign(text)) for text in sentences]
    return tag("ul", *items) if items else Html("")


def _overview(report: Scored, aggregates: Aggregates, order: Sequence[str]) -> Html:
    if not aggregates.rows:
        what = "scored" if report.since is None else f"submitted since {moment(report.since)} UTC"
        why = f" {count(len(report.bad_rows), 'row')}, and none held a sample." if report.bad_rows else ""
        return card("Scores", tag("p", f"Nothing was {what}.{why}"), _listed(report.remarks()))
    summaries = aggregates.named()
    _, head, rows = report.table()
    by_name = {name: cells for name, *cells in rows}
    cells = [
        (tag("a", foreign(name, 200), href=f"#group-{i}"), _meter(summaries[name]), *by_name[name])
        for i, name in enumerate(order)
    ]
    table = html_table("Mean score by metric", (head[0], "bar", *head[1:]), cells, numbers=len(head) - 1)
    facts = [f"{name}: {'; '.join(of)}." for name in order if (of := list(_facts(summaries[name])))]
    unanswerable = aggregates.unanswerable
    if unanswerable:
        facts.append(
            f"{count(unanswerable, 'sample')} refused, and no context holds an answer. A right “I don't know” scores "
            "0, and that is no fault of the answer."
        )
    notes = [_INTERVALS]
    notes += [_NOISE] if any(each.noise is not None for each in summaries.values()) else []
    notes += [_APART] if len({each.info.name for each in summaries.values()}) < len(summaries) else []
    notes += [_WEIGHTS] if any(each.weighted for each in summaries.values()) else []
    how = folded("How to read it", together(map(soft, notes)))
    return card("Scores", table, _listed((*facts, *report.remarks())), how)


def _meter(summary: MetricSummary) -> Html:
    return Html("") if summary.mean is None else _bar(summary.mean, *summary.ends)


def _bar(value: float, low: float = 0.0, high: float = 1.0) -> Html:
    label = f"{value:.3f} on a scale from {low:g} to {high:g}"
    return tag("meter", value=f"{value:g}", min=f"{low:g}", max=f"{high:g}", aria_label=label)


def _facts(summary: MetricSummary) -> Iterator[str]:
    """Yield what the table does not say of a metric."""
    if summary.main_cause is not None:
        cause, rows = summary.main_cause
        yield f"main cause: {cut(cause, 100)} ({rows:,} of {count(summary.rows, 'sample')})"
    if summary.passed is not None:
        threshold = summary.info.threshold
        least = "the threshold" if threshold is None else f"the threshold of {threshold:g}"
        yield f"{percent(summary.passed)} reach {least}"
    if summary.weighted:
        yield "weighted"
    if not summary.info.higher_is_better:
        yield "lower is better"


def _group(summary: MetricSummary, name: str, period: tuple[float, float] | None) -> Html:
    """Return the section of what may be averaged together."""
    info, bins = summary.info, summary.spread.bins()
    when = "" if summary.first is None else f", {moment(summary.first)} to {moment(summary.last)} UTC"
    parts = [soft("Version ", foreign(info.version, 200), ", judge ", foreign(info.judge or "unknown", 200), when)]
    if period is not None and summary.over_time.buckets:
        parts.append(_over_time(summary, period))
    if bins:
        most = max(each.share for each in bins)
        rows = [(_range(each), _bar(each.share, 0.0, most), percent(each.share), f"{each.n:,}") for each in bins]
        parts.append(html_table("Distribution of scores", ("score", "bar", "share", "how many"), rows, numbers=2))
    return tag("div", *parts, id=name, class_="sides")


def _range(each: Bin) -> str:
    return f"{each.low:.4g} {DASH} {each.high:.4g}"


def _over_time(summary: MetricSummary, period: tuple[float, float]) -> Html:
    line = summary.over_time
    line.widen(bucket_width(*period))
    unit = {60: "minute", 3_600: "hour", 86_400: "day"}.get(line.width, "week")
    rows: list[Sequence[str]] = []
    for start, mean in sorted(line.buckets.items()):
        if (e := mean.estimate(summary.info.bounds)) is not None:
            bar = _bar(e.mean, *summary.ends)
            rows.append((tag("time", moment(start)), bar, number(e.mean), interval(e.low, e.high, of=e.n), f"{e.n:,}"))
    head = ("from", "bar", "mean", INTERVAL, "scored")
    return html_table(f"Mean score per {unit} (UTC)", head, rows, numbers=3)


def _slices(aggregates: Aggregates) -> Iterator[Html]:
    """Yield means by run names, tags, feedback and what else was asked for, where there are two values or more."""
    named = aggregates.named().items()
    for facet, by_key in aggregates.slices.items():
        if max(map(len, by_key.values()), default=0) < 2:
            continue
        note = [soft(_THUMBS)] if facet == "feedback" else []
        title = facet.removesuffix("s").replace("_", " ")
        yield _slice(title, {name: slice_cells(aggregates.by(facet, each.info)) for name, each in named}, note)
    for key in aggregates.metadata_keys():
        cells = {name: slice_cells(aggregates.by_metadata(key, each.info)) for name, each in named}
        yield _slice(foreign(key, 80), cells, [])


def _slice(title: str, by_metric: Mapping[str, Sequence[tuple[str, ...]]], note: Sequence[Html]) -> Html:
    tables: list[Html] = []
    for name, cells in by_metric.items():
        rows = [(foreign(value, 80), *rest) for value, *rest in cells]
        tables.append(html_table(cut(name, 200), (title, "n", "mean", INTERVAL), rows, numbers=3))
    return card(together(["By ", title]), *note, tag("div", *tables, class_="sides"))


def _queue(processes: Sequence[Health]) -> Html:
    """Return what became of all evaluations, by process and together."""
    newest = sorted(processes, key=lambda each: (-each.at, each.process))
    total: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    for each in newest:
        total.update(each.counts)
        reasons.update({(kind, reason): n for kind, of_kind in each.reasons.items() for reason, n in of_kind.items()})
    missing = total["accepted"] - sum(total[end] for end in _ENDS)
    balance = f"{missing:,} of them are not accounted for: a process ended before it reported all." if missing else ""
    ends = [end for end in _ENDS if total[end]]
    head = ("process", "started", "last seen", "accepted", *(end.replace("_", " ") for end in ends), "longest queue")
    rows: list[Sequence[str]] = [("all", "", "", *_counted(total, ends), f"{max(e.longest_queue for e in newest):,}")]
    for each in newest[:_MOST]:
        times = (tag("time", moment(at)) for at in (each.started_at, each.at))
        rows.append((foreign(each.process, 80), *times, *_counted(each.counts, ends), f"{each.longest_queue:,}"))
    caption = f"The latest {_MOST} of {len(newest):,} processes" if len(newest) > _MOST else "Processes (UTC)"
    why = [(foreign(kind), foreign(reason), f"{n:,}") for (kind, reason), n in reasons.most_common()]
    return card(
        "Queue",
        soft("One evaluation is one sample by one metric, counted since each process started. ", balance),
        html_table(caption, head, rows, numbers=len(head) - 3),
        html_table("Why", ("what", "reason", "evaluations"), why, numbers=1) if why else "",
    )


def _counted(counts: Mapping[str, int], ends: Iterable[str]) -> list[str]:
    return [f"{counts.get(name, 0):,}" for name in ("accepted", *ends)]


def _bad_rows(bad_rows: Sequence[BadLine]) -> Html:
    few = len(bad_rows) <= _MOST
    caption = "By place in the input, from 1" if few else f"The first {_MOST} of {len(bad_rows):,}"
    rows = [(f"{bad.line:,}", foreign(bad.problem, _DETAIL)) for bad in bad_rows[:_MOST]]
    return card("Rows that held no sample", html_table(caption, ("row", "why"), rows))
