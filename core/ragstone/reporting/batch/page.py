"""A report as a page: one file that loads nothing and runs nothing."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from ragstone._version import __version__
from ragstone.reporting.batch.facts import MetricFacts
from ragstone.reporting.batch.tally import Column, MetricSummary, Tally, Worst
from ragstone.reporting.batch.text import count_of, estimate_of, scored_of
from ragstone.reporting.live.facts import Bin, Group, Low, Reason
from ragstone.reporting.live.figures import axis, bin_edges, bin_of
from ragstone.reporting.live.lowest import low_of
from ragstone.reporting.live.markup import Html, cut, foreign, tag
from ragstone.reporting.live.operation import cost_figures, cost_table
from ragstone.reporting.live.page import document
from ragstone.reporting.live.pieces import DASH, interval, moment, percent, table
from ragstone.reporting.live.sections import Words, card, group_section
from ragstone.sample import BadLine, Sample

_BAD_ROWS = 20
_DETAIL = 500
_INTERVALS = (
    "A mean is over rows, each the mean of its draws. Its interval is the 95 % percentile bootstrap interval over "
    "rows: how far the mean could be from that of all such samples. With fewer than some twenty rows it is too narrow."
)
_NOISE = (
    "“± by noise” is how far the judge's own noise takes a mean in 95 of 100 runs over these same rows; a "
    "difference between two systems that are scored so may be the judge's alone up to 1.4 times that."
)
_NO_TEXTS = "The texts are not at hand: a report that evaluate made, or that its to_json wrote, has them."


def report_page(
    tally: Tally,
    summary: Mapping[str, MetricSummary],
    sample_of: Callable[[int], Sample | None],
    name: str,
    bad_rows: Sequence[BadLine],
    notes: Sequence[str],
) -> str:
    """Return the page as HTML."""
    title = f"{cut(name, 100)}: ragstone report" if name else "ragstone report"
    counted = list(zip(summary.items(), tally.columns, strict=True))
    parts = [
        tag("h1", foreign(name or "ragstone report")),
        tag(
            "p",
            f"{count_of(len(tally.labels))}, {sum(found.total for found in summary.values()):,} outcomes. "
            f"Made {moment(time.time())} UTC by ragstone {__version__}.",
            class_="soft",
        ),
        *(tag("p", foreign(note)) for note in notes),
        _overview(summary),
        *(
            card(
                foreign(each),
                group_section(group_of(found, column, sample_of), f"metric-{i}", words=_words(column.facts)),
            )
            for i, ((each, found), column) in enumerate(counted)
        ),
    ]
    if counted:
        costs = [(foreign(each), column.cost) for (each, _), column in counted]
        of_metric = cost_table("Judge calls and tokens by metric", "metric", costs)
        parts.append(card("Judge calls and tokens", *cost_figures(cost for _, cost in costs), of_metric))
    if bad_rows:
        parts.append(_bad_rows(bad_rows))
    return document(title, tag("main", *parts))


def _overview(summary: Mapping[str, MetricSummary]) -> Html:
    if not summary:
        return card("Scores", tag("p", "Nothing was scored."))
    noisy = any(found.noise is not None for found in summary.values())
    rows = [
        (
            tag("a", foreign(each), href=f"#metric-{i}"),
            foreign(cut(found.facts.version, 40)),
            foreign(cut(found.facts.judge, 80)),
            DASH if found.mean is None else f"{found.mean:.3f}",
            interval(estimate_of(found)),
            *([DASH if found.noise_reach is None else f"±{found.noise_reach:.3f}"] if noisy else []),
            scored_of(found),
        )
        for i, (each, found) in enumerate(summary.items())
    ]
    head = ("metric", "version", "judge", "mean", "95 % interval", *(["± by noise"] if noisy else []), "scored")
    said = [tag("p", text, class_="soft") for text in ([_INTERVALS, _NOISE] if noisy else [_INTERVALS])]
    return card("Scores", table("Mean score by metric", head, rows, numbers=4 if noisy else 3), *said)


def _words(facts: MetricFacts) -> Words:
    return Words(
        share="by share of the rows",
        unscored="outcomes",
        example="first sample",
        lowest="Lowest scores" if facts.higher_is_better else "Highest scores (lower is better)",
        no_texts=_NO_TEXTS,
    )


def group_of(found: MetricSummary, column: Column, sample_of: Callable[[int], Sample | None]) -> Group:
    """Return a metric's outcomes as a page's section takes them."""
    rows = column.by_row()
    means = rows.means[rows.draws > 0]
    ends = axis(float(means.min(initial=0.0)), float(means.max(initial=0.0))) if len(means) else (0.0, 1.0)
    reasons = [
        Reason(reason, count, column.firsts[reason][0], cut(column.firsts[reason][1], _DETAIL))
        for reason, count in found.failures.items()
    ]
    return Group(
        metric=found.facts.name,
        version=found.facts.version,
        judge=found.facts.judge or "not told",
        scored=found.scored,
        unscored=found.total - found.scored,
        estimate=estimate_of(found),
        passed=found.passed,
        axis=ends,
        distribution=bins_of(means, ends),
        reasons=tuple(reasons),
        lowest=tuple(low_of_worst(worst, sample_of) for worst in column.worst()),
        more=tuple(_noise_figures(found)),
    )


def _noise_figures(found: MetricSummary) -> Iterator[tuple[str, str, str]]:
    if found.noise is None:
        return
    yield "judge's noise", f"{found.noise.sd:.3f}", f"between up to {found.draws} draws of a row"
    if found.noise.agreement is not None:
        yield "draws agree on passing", percent(found.noise.agreement), ""


def bins_of(values: "np.ndarray[tuple[int], np.dtype[np.float64]]", ends: tuple[float, float]) -> tuple[Bin, ...]:
    """Return how numbers spread over an axis."""
    edges = bin_edges(*ends)
    counts = [0] * (len(edges) - 1)
    for value, count in zip(*np.unique(values, return_counts=True), strict=True):
        counts[bin_of(float(value), *ends)] += int(count)
    return tuple(
        Bin(a, b, n, n / len(values) if len(values) else 0.0) for (a, b), n in zip(pairwise(edges), counts, strict=True)
    )


def low_of_worst(found: Worst, sample_of: Callable[[int], Sample | None]) -> Low:
    """Return what a page shows of a row with one of the worst scores."""
    row, sample_id = found.label
    low = low_of(found.score, sample_id=sample_id, sample=found.sample or sample_of(row))
    if found.draws == 1:
        return low
    why = f"mean of {found.draws} draws, of which the worst is shown, {low.value:.3f}: {low.why}"
    return replace(low, value=found.value, why=why)


def _bad_rows(bad_rows: Iterable[BadLine]) -> Html:
    found = list(bad_rows)
    caption = f"The first {_BAD_ROWS} of {len(found):,}" if len(found) > _BAD_ROWS else "By place in the input, from 1"
    rows = [(f"{bad.line:,}", foreign(cut(bad.problem, _DETAIL))) for bad in found[:_BAD_ROWS]]
    return card("Rows that held no sample", table(caption, ("row", "why"), rows))
