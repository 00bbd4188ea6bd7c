"""A comparison as a page: one file that loads nothing and runs nothing."""

import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ragstone._version import __version__
from ragstone.reporting.aggregates import Aggregates, Key, Worst, by_row
from ragstone.reporting.buckets import Bin
from ragstone.reporting.html.charts import distribution, round_up
from ragstone.reporting.html.evidence import evidence, reason
from ragstone.reporting.html.markup import Html, card, cut, figures, foreign, html_table, soft, tag
from ragstone.reporting.html.page import document
from ragstone.reporting.statistics import TIE
from ragstone.reporting.tables import moment, number

if TYPE_CHECKING:
    from ragstone.reporting.comparison import Comparison, MetricComparison, Moved
    from ragstone.reporting.report import Report

_EXPLAINED = (
    "Differences are b - a, over the samples that have a score in both, each sample by the mean of its draws. The "
    "interval is the 95 % paired bootstrap interval. “p (permutation)” is how likely so great a mean difference were "
    "if a's and b's score of a sample could as well be swapped; “p (sign)” counts wins against losses alone (exact)."
)
_BINS = 21

Place = tuple[Key, int, str]
"""A metric, and the row and id of a sample."""


def comparison_page(comparison: "Comparison") -> str:
    """Return the page as HTML."""
    metrics = list(comparison.metrics.values())
    name_a, name_b = comparison.name_a, comparison.name_b
    scores_a = _scores(comparison.a, [(each.info_a.key, m.row_a, m.sample_id) for each in metrics for m in each.moved])
    scores_b = _scores(comparison.b, [(each.info_b.key, m.row_b, m.sample_id) for each in metrics for m in each.moved])
    head, rows = comparison.table()
    cells = [(tag("a", foreign(name, 200), href=f"#metric-{i}"), *rest) for i, (name, *rest) in enumerate(rows)]
    return document(
        f"{cut(name_a, 60)} and {cut(name_b, 60)}: ragstone comparison",
        tag("h1", "Which is better?"),
        soft("a: ", foreign(name_a, 200), ", b: ", foreign(name_b, 200)),
        soft(f"Made {moment(time.time())} UTC by ragstone {__version__}."),
        card(
            "Scores",
            html_table(f"a: {cut(name_a, 100)}; b: {cut(name_b, 100)}", head, cells, numbers=len(head) - 1),
            *(tag("p", tag("b", foreign(each.name)), ": ", each.conclusion()) for each in metrics),
            *(soft(foreign(text)) for text in (*comparison.remarks(), _EXPLAINED)),
        ),
        *(
            card(foreign(each.name), *_section(each, f"metric-{i}", scores_a, scores_b))
            for i, each in enumerate(metrics)
        ),
    )


def _section(
    each: "MetricComparison", name: str, scores_a: Mapping[Place, Worst], scores_b: Mapping[Place, Worst]
) -> Iterator[Html]:
    yield tag("p", each.conclusion(), id=name)
    if each.difference is None:
        return
    yield figures(_figures(each))
    caption = "Differences, b - a"
    chart = distribution(_bins(each), name, caption=caption, what="difference", small="by share of the pairs")
    yield tag("div", chart, class_="charts")
    if each.moved:
        yield tag("h3", "Moved most")
        yield soft("What lowered each score is marked in the texts, where they are at hand.")
    for moved in each.moved:
        yield _moved(
            moved,
            scores_a.get((each.info_a.key, moved.row_a, moved.sample_id)),
            scores_b.get((each.info_b.key, moved.row_b, moved.sample_id)),
        )


def _bins(each: "MetricComparison") -> list[Bin]:
    """Return how differences spread: an odd number of bins, so that ties are in the middle of one."""
    most = float(np.abs(each.differences).max())
    end = round_up(most) if most > TIE else 1.0
    counts, edges = np.histogram(each.differences, bins=_BINS, range=(-end, end))
    return [
        Bin(float(low), float(high), int(n), float(n) / each.pairs)
        for (low, high), n in zip(pairwise(edges), counts, strict=True)
    ]


def _figures(each: "MetricComparison") -> Iterator[tuple[str, str, str]]:
    _, _, a, b, difference, between, permutation, sign, _ = each.cells()
    yield "a", a, ""
    yield "b", b, ""
    yield "b - a", difference, ""
    yield "95 % interval", between, "needs two pairs" if each.low is None else ""
    yield "p (permutation)", permutation, ""
    yield "p (sign)", sign, ""
    yield "b better / same / worse", f"{each.wins:,} / {each.ties:,} / {each.losses:,}", f"of {each.pairs:,}"
    if each.sampling_error is not None:
        yield "sampling error", f"{each.sampling_error:.4f}", "standard error of b - a"
    if each.noise_error is not None:
        yield "judge's noise", f"{each.noise_error:.4f}", "the part of it that is the judge's own"


def _moved(moved: "Moved", a: Worst | None, b: Worst | None) -> Html:
    head = tag(
        "summary",
        tag("b", number(moved.b - moved.a, "+")),
        tag("span", foreign(moved.sample_id, 200)),
        tag("span", f" {number(moved.a)} to {number(moved.b)}", class_="soft"),
    )
    sides = [
        tag("div", tag("h4", f"{name}: {number(worst.value)}"), soft(foreign(reason(worst))), *evidence(worst))
        for name, worst in (("a", a), ("b", b))
        if worst is not None
    ]
    return tag("details", head, tag("div", *sides, class_="sides"), class_="low")


def _scores(report: "Report", places: Iterable[Place]) -> Mapping[Place, Worst]:
    """Return the scores of some rows: one reading of the report, holding no more than these."""
    left = set(places)
    rows = {(row, sample_id) for _, row, sample_id in left}
    scores: dict[Place, Worst] = {}
    for records in by_row(report.results()):
        row = records[0].row, records[0].sample_id
        if row in rows:
            aggregates = Aggregates(report.metrics)
            aggregates.add(records, report.sample(records[0]))
            for each in aggregates:
                if (each.info.key, *row) in left:
                    scores |= {(each.info.key, *row): worst for worst in each.worst(with_best=True)}
    return scores
