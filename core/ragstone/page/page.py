"""A report as a page: scores, their spread and course, the lowest with what lowered them, failures, cost, queues.

And a comparison of two. A page is one file that loads nothing, and runs no script but ours.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ragstone._version import __version__
from ragstone.page.charts import Ends, calls_over_time, distribution, intervals, means_over_time, stretch
from ragstone.page.markup import (
    Html,
    asset,
    card,
    cut,
    document,
    figures,
    folded,
    foreign,
    html_table,
    soft,
    tag,
    together,
)
from ragstone.page.samples import Samples, evidence, flagged_text, low_score, reason
from ragstone.report.aggregates import (
    FLAGGED,
    Aggregates,
    Key,
    MetricInfo,
    MetricSummary,
    Worst,
    by_metric,
    by_row,
)
from ragstone.report.statistics import Estimate, bucket_width
from ragstone.report.tables import (
    COSTS,
    INTERVAL,
    cost_cells,
    count,
    interval,
    moment,
    number,
    percent,
    place,
    reach,
    slice_cells,
)

if TYPE_CHECKING:
    from ragstone.outcome import UnscoredReason
    from ragstone.report.comparison import Comparison, MetricComparison
    from ragstone.report.corrections import Correction, Corrections
    from ragstone.report.report import Report
    from ragstone.results.traffic import Health
    from ragstone.sample import BadLine, Sample

_SHOWN = 20
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
_NO_TEXTS = (
    "The texts are not stored. A results file has them unless it was written without. A monitor stores them with "
    "Monitor(..., store_text=True)."
)
_MARKED = "Highlighted passages lowered the score."
_UNSCORED = "These outcomes have no score and enter no mean. Open a reason to see its messages and samples."
_UNANSWERABLE = (
    " refused, and no context holds an answer. A right “I don't know” scores 0, and that is no fault of the answer."
)
_APART = "Scores by different versions or judges are not comparable, so they are never averaged. The newest come first."
_FLAGS = "These passages look like an attack on the judge. No score was changed because of them."
_THUMBS = (
    "Only some people give feedback, so these means do not stand for the whole traffic. A sample that was scored only "
    "because of feedback enters no mean: "
)
_EXPLAINED = (
    "Differences are b - a by this judge, over the samples that have a score in both. A sample with several draws "
    "counts once, by their mean. The 95 % interval is that of the mean "
    "difference. “p (permutation)”: how often "
    "chance alone gives so great a mean difference, if a's and b's scores of each sample are swapped at random. "
    "“p (sign)” counts only wins and losses. One is said to be better where p (permutation) is below 0.05, the "
    "interval does not hold 0, and the difference is more than the judge's noise."
)

Place = tuple[Key, int, str]
"""A metric, and the row and id of a sample."""
ScoredRow = tuple[Worst, "Sample | None"]


def report_html(
    report: "Report", comparison: "Comparison | None" = None, corrections: "Corrections | None" = None
) -> str:
    """Return the page of a report; a comparison of another run with it shows what changed, labels what people say."""
    samples = Samples(report)
    aggregates = report.read(samples.add, report.aggregates().slices)
    summaries = aggregates.named()
    # Metrics in their order; of one metric the newest first.
    metrics = [each.info.name for each in summaries.values()]
    order = sorted(summaries, key=lambda name: (metrics.index(summaries[name].info.name), -(summaries[name].last or 0)))
    period = aggregates.period()
    name = report.name
    since = "" if report.since is None else f", none before {moment(report.since)}"
    submitted = "" if period is None else f", samples submitted from {moment(period[0])} to {moment(period[1])}{since}"
    parts = [
        tag("h1", foreign(name or "ragstone report")),
        soft(
            f"{count(aggregates.rows, 'sample')}, {count(aggregates.cost.outcomes, 'outcome')}{submitted}. "
            f"Made {moment(time.time())} by ragstone {__version__}. Times are UTC."
        ),
        *(tag("p", foreign(note)) for note in report.notes),
        _overview(report, order, comparison, corrections),
        tag("section", id="samples", class_="card", hidden=""),
    ]
    if samples.unscored:
        parts.append(_unscored(samples.unscored, aggregates))
    if aggregates.flagged:
        parts.append(_flags(aggregates, report))
    parts += _slices(aggregates)
    for i, title in enumerate(order):
        parts.append(card(foreign(title, 200), _group(summaries[title], f"group-{i}", report, period)))
    if aggregates.cost.outcomes:
        parts.append(_costs(aggregates))
    if health := report.health():
        parts.append(_queue(health))
    if report.bad_rows:
        parts.append(_bad_rows(report.bad_rows))
    title = f"{cut(name, 100)}: ragstone report" if name else "ragstone report"
    if not aggregates.rows:
        return document(title, *parts)
    names = {summaries[name].info.key: name for name in order}
    return document(title, *parts, script=asset("report.js"), data=samples.data(names, aggregates.feedback))


def _overview(
    report: "Report",
    names: Sequence[str],
    comparison: "Comparison | None",
    corrections: "Corrections | None",
) -> Html:
    summaries = report.summary()
    if not report.aggregates().rows:
        what = "scored" if report.since is None else f"submitted since {moment(report.since)} UTC"
        why = f" {count(len(report.bad_rows), 'row')}, and none held a sample." if report.bad_rows else ""
        return card("Scores", tag("p", f"Nothing was {what}.{why}"))
    _, head, rows = report.table()
    by_name = {name: cells for name, *cells in rows}
    changes = {} if comparison is None else {each.info_b.key: each for each in comparison.metrics.values()}
    old = "" if comparison is None else comparison.name_a
    cards = [
        _score(
            f"group-{i}",
            name,
            each,
            changes.get(each.info.key),
            old,
            None if corrections is None else corrections.get(name),
        )
        for i, name in enumerate(names)
        for each in (summaries[name],)
    ]
    notes = [_INTERVALS]
    notes += [_NOISE] if any(each.noise is not None for each in summaries.values()) else []
    notes += [_APART] if len({each.info.name for each in summaries.values()}) < len(summaries) else []
    notes += [_WEIGHTS] if any(each.weighted for each in summaries.values()) else []
    notes += [] if comparison is None else [foreign(text) for text in comparison.caveats()]
    unanswerable = report.aggregates().unanswerable
    refusals = [tag("p", tag("b", count(unanswerable, "sample")), _UNANSWERABLE)] if unanswerable else []
    cells = [(foreign(name, 200), *by_name[name]) for name in names]
    table = html_table("Mean score by metric", head, cells, numbers=len(head) - 1)
    if corrections is not None:
        title, head, rows = corrections.table()
        cells = [(foreign(name, 200), *numbers) for name, *numbers in rows]
        table = together([html_table(title, head, cells, numbers=len(head) - 1), table])
        notes = [*map(foreign, corrections.remarks_on_all()), *notes]
    return card(
        "Scores",
        tag("ul", *cards, class_="scores"),
        *refusals,
        folded("As a table, and how to read it", together([table, *map(soft, notes)])),
    )


def _score(
    place: str,
    name: str,
    summary: MetricSummary,
    change: "MetricComparison | None",
    old: str,
    correction: "Correction | None",
) -> Html:
    """Return one metric's line of the scorecard: what people would say, where that is known, and then the judge."""
    info, facts = summary.info, list[str]()
    if summary.mean is None:
        facts.append("nothing was scored")
    elif summary.low is None:
        facts.append(interval(None, None, of=summary.rows))
    else:
        facts.append(f"{INTERVAL} {interval(summary.low, summary.high)}")
    facts += summary.doubts()
    if summary.weighted:
        facts.append("weighted")
    if summary.passed is not None:
        least = "the threshold" if info.threshold is None else f"the threshold of {info.threshold:g}"
        facts.append(f"{percent(summary.passed)} reach {least}")
    if summary.noise is not None:
        facts.append(f"{reach(summary.noise_reach)} by the judge's noise" if summary.noise_reach else "no noise seen")
    if summary.total > summary.scored:
        facts.append(f"{summary.total - summary.scored:,} unscored")
    if not info.higher_is_better:
        facts.append("lower is better")
    lines: list[str] = [f"{'; '.join(facts)}. " if facts else ""]
    if summary.main_cause is not None:
        cause, rows = summary.main_cause
        where = f" ({rows:,} of {count(summary.rows, 'sample')})."
        lines += ["Main cause: ", tag("b", foreign(cause, 100)), where]
    lines = [soft("" if correction is None else f"By the judge alone: {number(summary.mean)}; ", *lines)]
    if change is not None and change.difference is not None:
        word = {"b": "better", "a": "worse", None: "no difference is shown"}[change.better]
        moved = f"{number(change.difference, '+')} ({interval(change.low, change.high, '+', of=change.pairs)})"
        why = "within the judge's own noise" if change.within_noise else f"{word} by this judge"
        lines.append(tag("p", tag("b", moved), " against ", foreign(old, 80), f": {why}", class_=f"change {word[:6]}"))
    mean, front = summary.mean, [] if summary.mean is None else [_gauge(summary, summary.mean)]
    if correction is not None:
        mean = mean if correction.front is None else correction.front.mean
        front = (
            _people(correction, place)
            if correction.people is not None
            else [*map(_sentence, correction.sentences()), *front]
        )
    link = tag("a", foreign(name, 200), href=f"#{place}")
    return tag("li", tag("h3", link), tag("b", number(mean), class_="mean"), tag("div", *front, *lines))


def _people(correction: "Correction", place: str) -> list[Html]:
    """Return what labels say of a metric's scores: the three intervals, and the sentences."""
    summary = correction.summary
    rows = [
        (label, each.mean, each.low, each.high)
        for label, each in (
            ("corrected", correction.corrected),
            (f"{count(correction.labels, 'label')} alone", correction.people),
            ("judge alone", summary),
        )
        if each is not None and each.mean is not None
    ]
    first, *rest = map(_sentence, correction.sentences())
    picture = intervals(rows, summary.ends, f"{place}-people", "Who says what")
    return [first, picture, *([folded("What the labels say of the judge", together(rest))] if rest else [])]


def _sentence(text: str) -> Html:
    return tag("p", foreign(f"{text[0].upper()}{text[1:]}"))


def _gauge(summary: MetricSummary, mean: float) -> Html:
    """Return a bar as long as the mean, with its interval and the threshold."""
    low, high = summary.ends

    def at(value: float) -> float:
        return 100 * min(1.0, max(0.0, (value - low) / (high - low)))

    def rect(kind: str, start: float, end: float) -> Html:
        width = max(0.4, end - start)
        y, height = (3.5, 3) if kind == "range" else (0, 10)
        return tag("rect", class_=kind, x=round(start, 2), y=y, width=round(width, 2), height=height)

    label = f"{number(mean)} on a scale from {low:g} to {high:g}"
    parts = [tag("title", label), rect("rail", 0, 100), rect("bar", 0, at(mean))]
    if summary.low is not None and summary.high is not None:
        parts.append(rect("range", at(summary.low), at(summary.high)))
    if (threshold := summary.info.threshold) is not None:
        parts.append(rect("tick", at(threshold) - 0.2, at(threshold) + 0.2))
        label += f", threshold {threshold:g}"
    box = {"viewBox": "0 0 100 10", "preserveAspectRatio": "none"}
    return tag("svg", *parts, class_="gauge", role="img", aria_label=label, **box)


def _group(summary: MetricSummary, name: str, report: "Report", period: Ends | None) -> Html:
    """Return the section of what may be averaged together."""
    info, bins = summary.info, summary.spread.bins()
    when = "" if summary.first is None else f", {moment(summary.first)} to {moment(summary.last)} UTC"
    parts = [
        soft("Version ", foreign(info.version, 200), ", judge ", foreign(info.judge or "unknown", 200), when),
    ]
    if bins:
        small = "by share of the traffic" if summary.over_time.buckets else "by share of the rows"
        charts = [distribution(bins, name, small)]
        if period is not None and summary.over_time.buckets:
            summary.over_time.widen(bucket_width(*period))
            axis = bins[0].low, bins[-1].high
            charts.insert(0, means_over_time(summary.over_time, info.bounds, name, period, axis))
        parts += [tag("div", *charts, class_="charts"), *_worst(summary, report)]
    return tag("div", *parts, id=name, class_="group")


def _unscored(
    by_reason: "Mapping[UnscoredReason, Mapping[tuple[Key, str], Sequence[str]]]", aggregates: Aggregates
) -> Html:
    """Return all outcomes without a score, by reason, with the ids of their samples."""
    total: Counter[UnscoredReason] = Counter()
    for each in aggregates:
        total.update(each.failures)
    names = {each.info.key: name for name, each in aggregates.named().items()}
    parts: list[Html] = []
    for why, n in total.most_common():
        rows = [
            (foreign(names[key], 200), foreign(detail, _DETAIL), together(_listed(ids)), f"{len(ids):,}")
            for (key, detail), ids in by_reason.get(why, {}).items()
        ]
        table = html_table(
            f"{count(n, 'outcome')}: {why}", ("metric", "message", "samples", "outcomes"), rows, numbers=1
        )
        parts.append(tag("details", tag("summary", tag("b", why), f" {n:,}"), table, class_="low"))
    cut_off = sum(total.values()) - sum(len(ids) for of in by_reason.values() for ids in of.values())
    left = [soft(f"{cut_off:,} further outcomes are not listed.")] if cut_off else []
    return card("Unscored", soft(_UNSCORED), *parts, *left)


def _listed(ids: Sequence[str]) -> Iterator[Html]:
    for i, each in enumerate(ids):
        yield together([", " if i else "", foreign(each, 80)])


def _worst(summary: MetricSummary, report: "Report") -> list[Html]:
    rows = [(worst, report.sample(worst.record)) for worst in summary.worst()]
    if not rows:
        return []
    heading = "Lowest scores" if summary.info.higher_is_better else "Highest scores (lower is better)"
    note = _MARKED if any(sample is not None for _, sample in rows) else _NO_TEXTS
    feedback = report.aggregates().feedback
    return [tag("h3", heading), soft(note), *(low_score(*row, feedback.get(row[0].record.sample_id)) for row in rows)]


def _slices(aggregates: Aggregates) -> Iterator[Html]:
    """Yield means by run names, tags, feedback and what else was asked for, where there are two values or more."""
    for facet, by_key in aggregates.slices.items():
        if max(map(len, by_key.values()), default=0) < 2 and not (facet == "feedback" and aggregates.apart):
            continue
        apart = ", ".join(f"{n:,} with {value or 'none'}" for value, n in aggregates.apart.most_common(_SHOWN))
        note = [soft(_THUMBS, foreign(apart or "none"), ".")] if facet == "feedback" else []
        title = facet.removesuffix("s").replace("_", " ")
        yield _slice(title, {n: aggregates.by(facet, each.info) for n, each in aggregates.named().items()}, note)
    for key in aggregates.metadata_keys():
        yield _slice(
            foreign(key, 80), {n: aggregates.by_metadata(key, each.info) for n, each in aggregates.named().items()}, []
        )


def _slice(title: str, by_metric: Mapping[str, Mapping[str, Estimate]], note: Sequence[Html]) -> Html:
    tables: list[Html] = []
    for name, means in by_metric.items():
        rows = [(foreign(value, 80), *cells) for value, *cells in slice_cells(means)]
        tables.append(html_table(cut(name, 200), (title, "n", "mean", INTERVAL), rows, numbers=3))
    return card(together(["By ", title]), *note, tag("div", *tables, class_="charts"))


def _flags(aggregates: Aggregates, report: "Report") -> Html:
    rows = [
        (
            foreign(record.sample_id, 80),
            suspicion.kind.replace("_", " "),
            place(suspicion),
            foreign(flagged_text(report.sample(record), suspicion)),
        )
        for suspicion, record in aggregates.flags
    ]
    some = "" if len(rows) < FLAGGED else "the first "
    caption = f"{count(aggregates.flagged, 'sample')}, {some}{count(len(rows), 'passage')}"
    table = html_table(caption, ("sample", "looks like", "where", "passage"), rows)
    return card("Possible attacks on the judge", soft(_FLAGS), table)


def _costs(aggregates: Aggregates) -> Html:
    total, line = aggregates.cost, aggregates.costs
    parts = [figures((name, cell, "") for name, cell in zip(COSTS, cost_cells(total), strict=True))]
    if total.unknown["tokens"]:
        unreported = f"{total.unknown['tokens']:,} of {count(total.outcomes, 'outcome')}"
        parts.append(
            soft(f"The provider did not report all tokens of {unreported}. “At least” is the part that it reported.")
        )
    if line.buckets:
        caption = f"Judge calls per {stretch(line.width)} (UTC)"
        costs = sorted(line.buckets.items())
        chart = calls_over_time([(start, round(cost.sums["llm_calls"])) for start, cost in costs], line.width)
        rows = [(tag("time", moment(start)), f"{cost.outcomes:,}", *cost_cells(cost)) for start, cost in costs]
        parts.append(tag("figure", tag("figcaption", caption), chart))
        parts.append(folded("As a table", html_table(caption, ("from", "outcomes", *COSTS), rows, numbers=5)))
    return card("Judge calls and tokens", *parts)


def _queue(processes: "Sequence[Health]") -> Html:
    """Return what became of all evaluations, by process and together."""
    newest = sorted(processes, key=lambda each: (-each.at, each.process))
    total: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    for each in newest:
        total.update(each.counts)
        reasons.update({(kind, reason): n for kind, of_kind in each.reasons.items() for reason, n in of_kind.items()})
    missing = total["accepted"] - sum(total[end] for end in _ENDS)
    longest = max(each.longest_queue for each in newest)
    counts = [("evaluations", f"{total['accepted']:,}", "accepted"), ("longest queue", f"{longest:,}", "samples")]
    counts += [(end.replace("_", " "), f"{total[end]:,}", "") for end in _ENDS if total[end]]
    balance = (
        "Every accepted evaluation is accounted for."
        if not missing
        else f"{missing:,} of them are not accounted for: a process ended before it reported, or has not reported all."
    )
    parts = [
        soft("One evaluation is one sample by one metric, counted since each process started."),
        figures(counts),
        soft(balance),
    ]
    if reasons:
        by_reason = [(foreign(kind), foreign(reason), f"{n:,}") for (kind, reason), n in reasons.most_common()]
        parts.append(html_table("Why", ("what", "reason", "evaluations"), by_reason, numbers=1))
    head = ("process", "started", "last seen", "accepted", *(end.replace("_", " ") for end in _ENDS), "longest queue")
    rows = [
        (
            foreign(each.process, 80),
            *(tag("time", moment(at)) for at in (each.started_at, each.at)),
            *(f"{each.counts.get(name, 0):,}" for name in ("accepted", *_ENDS)),
            f"{each.longest_queue:,}",
        )
        for each in newest[:_SHOWN]
    ]
    caption = f"The latest {_SHOWN} of {len(newest):,} processes" if len(newest) > _SHOWN else "Processes (UTC)"
    parts.append(folded("By process", html_table(caption, head, rows, numbers=len(head) - 3)))
    return card("Queue", *parts)


def _bad_rows(bad_rows: "Sequence[BadLine]") -> Html:
    few = len(bad_rows) <= _SHOWN
    caption = "By place in the input, from 1" if few else f"The first {_SHOWN} of {len(bad_rows):,}"
    rows = [(f"{bad.line:,}", foreign(bad.problem, _DETAIL)) for bad in bad_rows[:_SHOWN]]
    return card("Rows that held no sample", html_table(caption, ("row", "why"), rows))


def comparison_html(comparison: "Comparison") -> str:
    """Return the page as HTML."""
    metrics = list(comparison.metrics.values())
    moved = [(each, m) for each in metrics for m in each.moved]
    sides = (
        _rows_of(comparison.a, {(each.info_a.key, m.row_a, m.sample_id): each.info_a for each, m in moved}),
        _rows_of(comparison.b, {(each.info_b.key, m.row_b, m.sample_id): each.info_b for each, m in moved}),
    )
    by_people = [
        tag("p", foreign(f"{each.name}: {sentence}"))
        for each in metrics
        if each.people is not None
        for sentence in each.people.difference(*comparison.short_names(), higher_is_better=each.higher_is_better)
    ]
    title, head, rows = comparison.table()
    cells = [(tag("a", foreign(name, 200), href=f"#metric-{i}"), *rest) for i, (name, *rest) in enumerate(rows)]
    return document(
        f"{cut(comparison.name_a, 60)} and {cut(comparison.name_b, 60)}: ragstone comparison",
        tag("h1", "Which is better?"),
        soft("a: ", foreign(comparison.name_a, 200), ", b: ", foreign(comparison.name_b, 200)),
        soft(f"Made {moment(time.time())} UTC by ragstone {__version__}."),
        *([card("What people would say", *by_people)] if by_people else []),
        card(
            "Scores by the judge",
            html_table(title, head, cells, numbers=len(head) - 1),
            *(soft(foreign(text)) for text in (*comparison.caveats(), _EXPLAINED)),
        ),
        *(_section(each, f"metric-{i}", comparison.short_names(), *sides) for i, each in enumerate(metrics)),
    )


def _section(
    each: "MetricComparison",
    name: str,
    systems: tuple[str, str],
    rows_a: Mapping[Place, ScoredRow],
    rows_b: Mapping[Place, ScoredRow],
) -> Html:
    parts = [tag("div", _sentence(each.conclusion(*systems)), id=name)]
    if each.moved:
        parts += [tag("h3", "Moved most"), soft(_MARKED)]
    for moved in each.moved:
        head = tag(
            "summary",
            tag("b", number(moved.b - moved.a, "+")),
            tag("span", foreign(moved.sample_id, 200)),
            tag("span", f" {number(moved.a)} to {number(moved.b)}", class_="soft"),
        )
        a = rows_a[each.info_a.key, moved.row_a, moved.sample_id]
        b = rows_b[each.info_b.key, moved.row_b, moved.sample_id]
        parts.append(
            tag("details", head, tag("div", _side(systems[0], *a), _side(systems[1], *b), class_="sides"), class_="low")
        )
    return card(foreign(each.name), *parts)


def _side(name: str, worst: Worst, sample: "Sample | None") -> Html:
    title = tag("h4", f"{name}: {number(worst.value)}")
    return tag("div", title, soft(foreign(reason(worst))), *evidence(worst, sample))


def _rows_of(report: "Report", infos: Mapping[Place, MetricInfo]) -> dict[Place, ScoredRow]:
    """Return some rows with their samples: one reading of the report, holding no more than these."""
    rows: dict[Place, ScoredRow] = {}
    for records in by_row(report.results()):
        for key, of_metric in by_metric(records).items():
            place = key, records[0].row, records[0].sample_id
            if place in infos and (worst := Worst.of(of_metric, infos[place])) is not None:
                rows[place] = worst, report.sample(records[0])
    return rows
