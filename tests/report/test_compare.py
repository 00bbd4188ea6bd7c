"""Which of two is better: what is paired with what, what it says, and what it refuses."""

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstone import Sample
from ragstone.report import MetricInfo, NotComparableError, Report, compare
from ragstone.report.statistics import Mean, permutation_p

from .reports import records, report


def only(a, b, **changes):
    (found,) = compare(a, b, **changes).metrics.values()
    return found


def test_pairs_are_by_id_whatever_the_order():
    a = report([0.1, 0.2, 0.3], ids=["x", "y", "z"])
    b = report([0.3, 0.1, 0.7], ids=["z", "x", "new"])
    found = only(a, b)
    assert (found.pairs, found.left_out["only in a"], found.left_out["only in b"], found.ties) == (2, 1, 1, 2)
    assert (found.mean_a, found.mean_b) == (0.2, 0.2)


def test_repeated_ids_are_paired_in_their_order_and_said_so():
    a = report([0.1, 0.2, 0.3], ids=["x", "x", "x"])
    b = report([0.1, 0.9], ids=["x", "x"])
    found = compare(a, b)
    each = found.metrics["demo"]
    assert (each.pairs, each.left_out["only in a"], each.ties, each.wins) == (2, 1, 1, 1)
    assert [(m.row_a, m.row_b, m.a, m.b) for m in each.moved] == [(1, 1, 0.2, 0.9)]
    assert "1 id stands more than once: their rows are paired in order." in str(found)


def test_unscored_samples_are_left_out_and_counted():
    found = compare(report([0.5, None, 0.5, None, 0.2]), report([0.7, 0.5, None, None]))
    each = found.metrics["demo"]
    assert (each.pairs, *each.left_out.values()) == (1, 1, 1, 1, 1, 0)
    assert (each.low, each.difference) == (None, pytest.approx(0.2))
    assert "left out: 1 unscored in a alone, 1 unscored in b alone, 1 unscored in both, 1 only in a." in str(found)


pairs = st.lists(
    st.tuples(*[st.one_of(st.none(), st.integers(0, 10).map(lambda n: n / 10))] * 2), min_size=1, max_size=20
)


@given(pairs, st.booleans())
@settings(deadline=None, max_examples=60)
def test_the_numbers_are_those_of_the_pairs(given, higher):
    metrics = [MetricInfo("demo", "1", "judge", (0.0, 1.0), higher_is_better=higher)]
    found = only(report([a for a, _ in given], metrics=metrics), report([b for _, b in given], metrics=metrics))
    both = [(a, b) for a, b in given if a is not None and b is not None]
    assert found.pairs == len(both)
    if not both:
        assert (found.mean_a, found.difference, found.permutation_p, found.better) == (None, None, None, None)
        return
    differences = [b - a for a, b in both]
    assert found.mean_a == pytest.approx(statistics.fmean(a for a, _ in both))
    assert found.mean_b == pytest.approx(statistics.fmean(b for _, b in both))
    assert found.difference == pytest.approx(statistics.fmean(differences))
    added = Mean()
    for each in differences:
        added.add(each)
    interval = added.estimate((-1.0, 1.0))
    assert (found.low, found.high) == (interval.low, interval.high)
    up, down = sum(d > 1e-9 for d in differences), sum(d < -1e-9 for d in differences)
    assert (found.wins, found.losses) == ((up, down) if higher else (down, up))
    assert found.ties == len(both) - up - down
    assert found.permutation_p == permutation_p(np.array([0.0 if abs(d) < 1e-9 else d for d in differences]))
    sizes = [abs(m.b - m.a) for m in found.moved]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == min(10, up + down)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": "2"}, r"demo: version: 1, 2 \(in a and b\)"),
        ({"judge": ""}, "judge: judge, unknown"),
    ],
)
def test_other_versions_and_judges_are_refused_unless_told(changes, said):
    a, b = report([0.1, 0.5]), report([0.2, 0.5], **changes)
    with pytest.raises(NotComparableError, match=said):
        compare(a, b)
    with pytest.raises(ValueError, match="any_version=True"):
        compare(a, b)
    found = compare(a, b, any_version=True)
    assert found.metrics["demo"].pairs == 2
    assert "not a comparison of the systems alone, for the scores differ in" in str(found)


def test_metrics_of_one_alone_are_named():
    a = Report.of([*records([0.1, 0.2]), *records([0.1, 0.2], metric="mine")])
    found = compare(a, report([0.1, 0.3]))
    assert found.left_out == ["mine (only in a)"]
    assert "Not compared: mine (only in a)." in str(found)
    with pytest.raises(NotComparableError, match=r"no metric is in both: a has demo, mine, b has other"):
        compare(a, report([0.5], metric="other"))
    with pytest.raises(NotComparableError, match="a has none, b has none"):
        compare(Report.of([]), Report.of([]))


def asked(questions, *, ids=None, values=None):
    ids = ids or [f"q{i}" for i in range(len(questions))]
    samples = [Sample(id=name, user_input=question) for name, question in zip(ids, questions, strict=True)]
    return report(values or [0.5] * len(ids), ids=ids, samples=samples)


def test_pairs_that_hold_different_questions_are_counted_and_most_of_them_refused():
    base = asked(["a?", "b?", "c?", "d?"])
    found = compare(base, asked(["a?", "b?", "C?", "D?"]))
    assert found.other_questions == ["q2", "q3"]
    assert "2 pairs hold different questions under one id, the first q2." in str(found)
    with pytest.raises(NotComparableError, match="3 of 4 pairs hold different questions under one id, the first q1"):
        compare(base, asked(["a?", "B?", "C?", "D?"]))
    # rows of one id are paired in the order of the input; a sample without texts says nothing
    twice = asked(["a?", "b?"], ids=["x", "x"])
    assert "different questions" not in str(compare(twice, twice)) + str(compare(base, report([0.5] * 4)))


def test_rows_without_ids_that_hold_other_questions_are_no_pairs():
    runs = [
        report([0.5] * 3, ids=["1", "2", "3"], samples=[Sample(user_input=f"Q{i}?") for i in range(first, first + 3)])
        for first in (0, 1)
    ]
    with pytest.raises(
        NotComparableError, match="the rows have no ids.*3 of them hold other questions, the first row 1"
    ):
        compare(*runs)
    assert compare(runs[0], runs[0]).metrics["demo"].pairs == 3


@pytest.mark.parametrize(("n", "better"), [(40, None), (71, None), (72, "b")])
def test_few_pairs_may_hide_others_and_a_conclusion_says_how_many_would_show_them(n, better):
    base = report([0.5] * n, metrics=[MetricInfo("demo", "1", "judge", (0.0, 1.0))])
    found = compare(base, report([0.51, 0.53] * (n // 2) + [0.52] * (n % 2), metrics=base.metrics)).metrics["demo"]
    assert found.better == better
    said = " ".join(found.remarks())
    assert ("; 72 would show what 1 in 20 does" in said) == (better is None)
    assert "if nothing rarer exists than these" in said
