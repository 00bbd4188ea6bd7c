"""A comparison as a page: one file that loads nothing and runs nothing."""

import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragstone._version import __version__
from ragstone.reporting.batch.facts import Key
from ragstone.reporting.batch.page import low_of_worst
from ragstone.reporting.batch.statistics import TIE
from ragstone.reporting.batch.tally import Label, Tally, Worst
from ragstone.reporting.comparison.text import between, conclusion, others, overview_table, p_value
from ragstone.reporting.live.facts import Bin, Low
from ragstone.reporting.live.figures import round_up
from ragstone.reporting.live.markup import Html, cut, foreign, tag
from ragstone.reporting.live.page import document
from ragstone.reporting.live.pieces import evidence, figures, moment, why
from ragstone.reporting.live.sections import card, distribution

if TYPE_CHECKING:
    from ragstone.reporting.batch.report import Report
    from ragstone.reporting.comparison.comparison import Comparison, MetricComparison, Moved

_EXPLAINED = (
    "Differences are b - a, over the samples that have a score in both, each sample by the mean of its draws. The "
    "interval is the 95 % paired bootstrap interval. “p (permutation)” is how likely so great a mean difference were "
    "if a's and b's score of a sample could as well be swapped; “p (sign)” counts wins against losses alone (exact)."
)
_BINS = 21
Scores = Mapping[tuple[Key, Label], Worst]


def comparison_page(found: "Comparison") -> str:
    """Return the page as HTML."""
    metrics = list(found.metrics.values())
    names = [tag("a", foreign(each.name), href=f"#metric-{i}") for i, each in enumerate(metrics)]
    scores_a = _scores(found.a, ((m.facts_a.key, (moved.row_a, moved.sample_id)) for m in metrics for moved in m.moved))
    scores_b = _scores(found.b, ((m.facts_b.key, (moved.row_b, moved.sample_id)) for m in metrics for moved in m.moved))
    parts = [
        tag("h1", "Which is better?"),
        tag("p", "a: ", foreign(cut(found.name_a, 200)), ", b: ", foreign(cut(found.name_b, 200)), class_="soft"),
        tag("p", f"Made {moment(time.time())} UTC by ragstone {__version__}.", class_="soft"),
        card(
            "Scores",
            overview_table(found, list(names)),
            *(tag("p", tag("b", foreign(each.name)), ": ", conclusion(each)) for each in metrics),
            *(tag("p", foreign(text), class_="soft") for text in (*others(found), _EXPLAINED)),
        ),
        *(
            card(foreign(each.name), *_section(found, each, f"metric-{i}", scores_a, scores_b))
            for i, each in enumerate(metrics)
        ),
    ]
    return document(f"{cut(found.name_a, 60)} and {cut(found.name_b, 60)}: ragstone comparison", tag("main", *parts))


def _section(
    found: "Comparison", each: "MetricComparison", name: str, scores_a: Scores, scores_b: Scores
) -> Iterator[Html]:
    yield tag("p", conclusion(each), id=name)
    if each.difference is None:
        return
    yield figures(_figures(each, each.difference))
    most = float(np.abs(each.differences).max())
    ends = (-round_up(most), round_up(most)) if most > TIE else (-1.0, 1.0)
    chart = distribution(
        _bins(each.differences, ends),
        ends,
        name,
        caption="Differences, b - a",
        what="difference",
        small="by share of the pairs",
    )
    yield tag("div", chart, class_="charts")
    if each.moved:
        yield tag("h3", "Moved most")
        yield tag("p", "What cost each score is marked in the texts, where they are at hand.", class_="soft")
        for moved in each.moved:
            yield _moved(
                moved,
                _low(scores_a.get((each.facts_a.key, (moved.row_a, moved.sample_id))), found.a),
                _low(scores_b.get((each.facts_b.key, (moved.row_b, moved.sample_id))), found.b),
            )


def _bins(differences: NDArray[np.float64], ends: tuple[float, float]) -> tuple[Bin, ...]:
    """Return how differences spread: an odd number of bins, so that ties are in the middle of one."""
    counts, edges = np.histogram(differences, bins=_BINS, range=ends)
    shares = counts / len(differences)
    return tuple(
        Bin(float(low), float(high), int(count), float(share))
        for (low, high), count, share in zip(pairwise(edges), counts, shares, strict=True)
    )


def _figures(each: "MetricComparison", difference: float) -> Iterator[tuple[str, str, str]]:
    yield "a", f"{each.mean_a:.3f}", ""
    yield "b", f"{each.mean_b:.3f}", ""
    yield "b - a", f"{difference:+.3f}", ""
    yield "95 % interval", between(each), "needs two pairs" if each.low is None else ""
    yield "p (permutation)", p_value(each.permutation_p), ""
    yield "p (sign)", p_value(each.sign_p), ""
    yield "b better / same / worse", f"{each.wins:,} / {each.ties:,} / {each.losses:,}", f"of {each.pairs:,}"
    if each.sampling_error is not None:
        yield "sampling error", f"{each.sampling_error:.4f}", "standard error of b - a"
    if each.noise_error is not None:
        yield "judge's noise", f"{each.noise_error:.4f}", "the part of it that is the judge's own"


def _moved(moved: "Moved", a: Low | None, b: Low | None) -> Html:
    head = tag(
        "summary",
        tag("b", f"{moved.b - moved.a:+.3f}"),
        tag("span", foreign(cut(moved.sample_id, 200))),
        tag("span", f" {moved.a:.3f} to {moved.b:.3f}", class_="soft"),
    )
    sides = [
        tag("div", tag("h4", f"{name}: {low.value:.3f}"), tag("p", foreign(why(low)), class_="soft"), *evidence(low))
        for name, low in (("a", a), ("b", b))
        if low is not None
    ]
    return tag("details", head, tag("div", *sides, class_="sides"), class_="low")


def _low(found: Worst | None, report: "Report") -> Low | None:
    return None if found is None else low_of_worst(found, report.sample)


def _scores(report: "Report", wanted: Iterable[tuple[Key, Label]]) -> Scores:
    """Return the scores of some rows, by metric and row: one reading of the report, holding no more than these."""
    keys = set(wanted)
    labels = {label for _, label in keys}
    found: dict[tuple[Key, Label], Worst] = {}
    for label, results in groupby(report.results(), key=lambda result: (result.row, result.sample_id)):
        if label in labels:
            tally = Tally(report.metrics)
            tally.add(tuple(results))
            for column in tally.columns:
                for worst in column.worst(full=True):
                    if (column.facts.key, label) in keys:
                        found[column.facts.key, label] = worst
    return found
