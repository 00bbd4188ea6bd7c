"""The gate: when a drop is within what is allowed, when it is not, and when nobody can tell."""

import math
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.reporting import MetricInfo, Report, compare
from ragstone.reporting.checks import check_drops, drop_status, markdown, samples_needed, status_of
from ragstone.testing import assert_not_worse

from .reports import records, report, rich

KNOWN = MetricInfo("demo", "1", "judge", (0.0, 1.0))


def only(base, new, allowed=0.02, **changes):
    (found,) = check_drops(compare(base, new), allowed, **changes)
    return found


def moved(change, sd, n=100, seed=1):
    """A base of n scores, and a new run whose mean differs by a change."""
    draw = random.Random(seed)
    base, noise = ([draw.gauss(0.5, sd) for _ in range(n)] for _ in range(2))
    new = [x + change + each - sum(noise) / n for x, each in zip(base, noise, strict=True)]
    return report(base, metrics=[KNOWN]), report(new, metrics=[KNOWN])


@pytest.mark.parametrize(
    ("low", "high", "status"),
    [
        (-0.02, 0.3, 0),
        (-0.020001, 0.3, 3),
        (-0.3, -0.02, 3),
        (-0.3, -0.020001, 1),
        (-0.02, -0.02, 0),
        (0.48 - 0.5, 0.48 - 0.5, 0),  # -0.02 but for rounding
        (-0.3, 0.48 - 0.5, 3),
        (0.1, 0.2, 0),
    ],
)
def test_the_ends_decide(low, high, status):
    assert drop_status(low, high, 0.02) == status


@pytest.mark.parametrize(("change", "sd", "status"), [(0, 0.02, 0), (-0.1, 0.02, 1), (0, 0.2, 3)])
def test_three_ends(change, sd, status):
    found = only(*moved(change, sd))
    assert found.status == status
    assert found.sentence.startswith(
        ("not worse by this judge: ", "worse by this judge: ", "", "cannot tell: ")[status]
    )
    assert "a drop of 0.02 is allowed" in found.sentence
    assert ("samples would do" in found.sentence) == (status == 3)


def test_as_many_samples_as_it_says_do():
    a, b = moved(0, 0.2)
    needed = int(re.search(r"About ([\d,]+) samples", only(a, b).sentence)[1].replace(",", ""))
    (before,) = compare(a, b).metrics.values()
    half = (before.difference - before.low) * math.sqrt(before.pairs / needed)
    assert before.difference - half == pytest.approx(-0.02, abs=0.001)


@given(st.floats(-1, 1), st.floats(0.001, 1), st.floats(0.001, 1), st.floats(0, 1), st.integers(2, 10**6))
def test_more_samples_are_needed_where_an_interval_cannot_tell(difference, below, above, allowed, n):
    low, high = difference - below, difference + above
    if drop_status(low, high, allowed) == 3:
        assert samples_needed(difference, low, high, allowed, n) >= n


def test_a_difference_on_the_limit_is_settled_by_no_number():
    found = only(report([0.5] * 40), report([0.38, 0.58] * 20))
    assert (found.status, "no reasonable number" in found.sentence) == (3, True)


def test_lower_is_better_turns_the_difference():
    metrics = [MetricInfo("demo", "1", "judge", (0.0, 1.0), higher_is_better=False)]
    low, high = report([0.4] * 30, metrics=metrics), report([0.5] * 30, metrics=metrics)
    assert only(high, low).status == 0
    found = only(low, high)
    assert (found.status, "+0.100" in found.sentence, "a rise of 0.02" in found.sentence) == (1, True, True)


@pytest.mark.parametrize("scores", [[], [0.9]])
def test_too_few_pairs_cannot_tell(scores):
    found = only(report([*scores, *[0.5] * 5]), report([*scores, *[None] * 5]))
    assert (found.status, f"{len(scores)} sample" in found.sentence) == (3, True)


def test_unscored_samples_do_not_hide_a_drop():
    # 100 - n pairs that are equal: the mean over all is lower by n / 100 at worst
    base = report([0.9] * 100, metrics=[KNOWN])
    few, many = (only(base, report([0.9] * (100 - n) + [None] * n, metrics=[KNOWN])) for n in (2, 3))
    assert (few.status, many.status) == (0, 3)
    assert "Left out: 2 samples that the base scored and the new run left unscored." in few.sentence
    assert "score them again" in many.sentence
    assert "would do" not in many.sentence
    # nobody knows the worst score of a metric without bounds; what the base left unscored hides nothing
    assert only(report([0.9] * 100), report([0.9] * 99 + [None])).status == 3
    assert only(report([0.9] * 50 + [None] * 50), report([0.9] * 100)).status == 0
    assert only(base, report([0.1] * 50 + [None] * 50, metrics=[KNOWN])).status == 1


def both(base, new):
    return compare(*(Report.of([*records(a), *records(b, metric="other")]) for a, b in (base, new)))


def test_of_several_metrics_worse_goes_before_cannot_tell():
    same, lower, noisy = [0.5] * 40, [0.1] * 40, [0.1, 0.9] * 20
    ends = [status_of(check_drops(both((same, same), new), 0.02)) for new in
            ((same, same), (same, noisy), (noisy, lower), (lower, noisy), (same, lower))]  # fmt: skip
    assert ends == [0, 3, 1, 1, 1]


def test_drops_by_name():
    comparison = both(([0.5] * 40, [0.5] * 40), ([0.5] * 40, [0.4] * 40))
    assert [c.status for c in check_drops(comparison, 0.02)] == [0, 1]
    assert [c.status for c in check_drops(comparison, 0.02, {"other": 0.2})] == [0, 0]
    assert [(c.name, c.status) for c in check_drops(comparison, None, {"other": 0.02})] == [("other", 1)]
    with pytest.raises(ValueError, match="a has no metric mine; it has demo, other"):
        check_drops(comparison, 0.02, {"mine": 0.1})


@pytest.mark.parametrize("drop", [-0.01, math.nan, math.inf])
def test_what_is_no_drop_is_refused(drop):
    with pytest.raises(ValueError, match="not a number of 0 or more"):
        check_drops(compare(report([0.5]), report([0.5])), drop)


def test_a_metric_that_the_new_run_lacks_is_never_passed_over():
    base = Report.of([*records([0.5] * 30), *records([0.5] * 30, metric="other")])
    found = check_drops(compare(base, report([0.5] * 30)), 0.02)
    assert [(c.name, c.status) for c in found] == [("demo", 0), ("other", 3)]
    assert status_of(check_drops(compare(base, report([0.5] * 30)), None, {"demo": 0.02})) == 0
    assert status_of(check_drops(compare(report([0.5] * 30), base), 0.02)) == 0  # a new metric has no base


def test_assert_not_worse(tmp_path):
    base, new = tmp_path / "base.jsonl", tmp_path / "new.jsonl"
    one, other = moved(0, 0.2)
    one.to_json(base)
    other.to_json(new)
    with pytest.raises(AssertionError, match=r"^demo: cannot tell: .* samples would do"):
        assert_not_worse(base, new, allow_drop=0.02)
    assert assert_not_worse(base, new, allow_drop=0.02, cannot_tell="pass").metrics["demo"].pairs == 100
    assert_not_worse(base, new, allow_drop=0.2, metrics="demo")
    with pytest.raises(AssertionError, match="^demo: worse by this judge"):
        assert_not_worse(*moved(-0.1, 0.02), cannot_tell="pass")
    for wrong in ({"metrics": []}, {"metrics": ["mine"]}, {"cannot_tell": "maybe"}, {"allow_drop": math.nan}):
        with pytest.raises(ValueError, match="names none|has no metric mine|neither|not a number"):
            assert_not_worse(base, new, **wrong)


HOSTILE = "@org/team | `x` ```\n| a | <img src=x> [y](https://evil.example) #1 \\| **"


def test_no_text_from_outside_is_markup():
    a, b = rich(HOSTILE), rich(HOSTILE)
    comparison = compare(a, b)
    text = markdown(comparison, check_drops(comparison, 0.02))
    table, shown, more = text.split("\n\n")[1:4]
    rows = table.splitlines()
    assert {row.count("|") for row in rows} == {12}
    assert len(rows) == 2 + len(comparison.metrics)
    outside = re.sub(r"<code>[\w &#;-]*</code>|`[^`\n]*`", "", f"{table}\n{shown}")
    assert not re.search(r"[@`\\<\[#]|evil", outside)
    assert more.startswith("<details>")
    fenced = text.split("<summary>More</summary>\n\n")[1].splitlines()
    fence = re.match("`+", fenced[0])[0]
    assert len(fence) > HOSTILE.count("`" * 3) * 3
    assert [i for i, line in enumerate(fenced) if line.startswith(fence)] == [0, len(fenced) - 3]


def test_markdown_says_what_the_table_does():
    comparison = compare(*moved(-0.1, 0.02))
    plain, checked = markdown(comparison), markdown(comparison, check_drops(comparison, 0.02))
    assert "| `demo` | 100 | 0." in plain
    assert "result" not in plain
    assert "| 0.02 | **worse** |" in checked
    assert "- `demo`: worse by this judge: -0.10" in checked
