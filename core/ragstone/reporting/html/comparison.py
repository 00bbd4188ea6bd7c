"""A comparison as a page: one file that loads nothing and runs nothing."""

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ragstone._version import __version__
from ragstone.reporting.aggregates import Aggregates, Key, Worst, by_row
from ragstone.reporting.html.evidence import evidence, reason
from ragstone.reporting.html.markup import Html, card, cut, foreign, html_table, soft, tag
from ragstone.reporting.html.page import document
from ragstone.reporting.tables import moment, number

if TYPE_CHECKING:
    from ragstone.reporting.comparison import Comparison, MetricComparison, Moved
    from ragstone.reporting.report import Report

_EXPLAINED = (
    "Differences are b - a, over the samples that have a score in both, each sample by the mean of its draws. The "
    "interval is the 95 % paired bootstrap interval. “p (permutation)” is how likely so great a mean difference were "
    "if a's and b's score of a sample could as well be swapped; “p (sign)” counts wins against losses alone."
)

Place = tuple[Key, int, str]
"""A metric, and the row and id of a sample."""


def comparison_page(comparison: "Comparison") -> str:
    """Return the page as HTML."""
    metrics = list(comparison.metrics.values())
    scores_a = _scores(comparison.a, [(each.info_a.key, m.row_a, m.sample_id) for each in metrics for m in each.moved])
    scores_b = _scores(comparison.b, [(each.info_b.key, m.row_b, m.sample_id) for each in metrics for m in each.moved])
    title, head, rows = comparison.table()
    cells = [(tag("a", foreign(name, 200), href=f"#metric-{i}"), *rest) for i, (name, *rest) in enumerate(rows)]
    return document(
        f"{cut(comparison.name_a, 60)} and {cut(comparison.name_b, 60)}: ragstone comparison",
        tag("h1", "Which is better?"),
        soft("a: ", foreign(comparison.name_a, 200), ", b: ", foreign(comparison.name_b, 200)),
        soft(f"Made {moment(time.time())} UTC by ragstone {__version__}."),
        card(
            "Scores",
            html_table(title, head, cells, numbers=len(head) - 1),
            *(soft(foreign(text)) for text in (*comparison.remarks(), _EXPLAINED)),
        ),
        *(_section(each, f"metric-{i}", scores_a, scores_b) for i, each in enumerate(metrics)),
    )


def _section(
    each: "MetricComparison", name: str, scores_a: Mapping[Place, Worst], scores_b: Mapping[Place, Worst]
) -> Html:
    parts = [tag("p", each.conclusion(), id=name)]
    if each.moved:
        parts += [tag("h3", "Moved most"), soft("What lowered each score is marked in the texts that are at hand.")]
    for moved in each.moved:
        a = scores_a.get((each.info_a.key, moved.row_a, moved.sample_id))
        b = scores_b.get((each.info_b.key, moved.row_b, moved.sample_id))
        parts.append(_moved(moved, a, b))
    return card(foreign(each.name), *parts)


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
    wanted = set(places)
    rows = {place[1:] for place in wanted}
    scores: dict[Place, Worst] = {}
    for records in by_row(report.results()):
        row = records[0].row, records[0].sample_id
        if row in rows:
            aggregates = Aggregates(report.metrics)
            aggregates.add(records, report.sample(records[0]))
            scores |= {(each.info.key, *row): worst for each in aggregates for worst in each.worst(with_best=True)}
    return {place: worst for place, worst in scores.items() if place in wanted}
