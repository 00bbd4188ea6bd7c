"""The gate: when a drop is within what is allowed, when it is not, and when nobody can tell."""

import math
import random
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragstone.report import MetricInfo, Report, compare
from ragstone.report.checks import check_drops, drop_status, markdown, status_of
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


def of_differences(*differences, base=1.0, bounds=(-1.0, 1.0), **changes):
    """A base, and a new run that differs by so much."""
    info = MetricInfo("demo", "1", "judge", bounds, **changes)
    return report([base] * len(differences), metrics=[info]), report([base + d for d in differences], metrics=[info])


@pytest.mark.parametrize("n", [2, 3, 5, 10, 20, 30, 50, 80])
@pytest.mark.parametrize(("loss", "share", "allowed"), [(-1.0, 0.04, 0.02), (-0.5, 0.1, 0.025), (-1.0, 0.2, 0.1)])
@pytest.mark.parametrize("jitter", [0.0, 0.01, 0.05])
def test_a_drop_of_twice_the_allowed_one_passes_in_5_of_100_draws_at_most(n, loss, share, allowed, jitter):
    """Exact: every number of answers that break, by its binomial probability; the others move by next to nothing."""
    passes = 0.0
    for k in range(n + 1):
        others = [jitter * math.sin(i) for i in range(n - k)]
        runs = of_differences(*[loss] * k, *others, bounds=(0.0, 1.0))
        chance = math.comb(n, k) * share**k * (1 - share) ** (n - k)
        passes += chance * (chance > 1e-6 and only(*runs, allowed=allowed, rarest=0.04).status == 0)
    assert passes <= 0.05


@pytest.mark.parametrize(
    ("differences", "rarest", "status"),
    [
        ([0.0] * 72, 0.05, 0),
        ([0.0] * 71, 0.05, 3),
        ([0.0] * 72, 0.0, 3),
        ([0.0] * 183, 0.0, 0),
        ([0.04, -0.04] * 40, 0.05, 0),
        ([0.04, -0.04] * 40, 0.01, 3),
        ([-0.1, -0.14] * 40, 0.05, 1),
        ([-1.0, *[0.0] * 99], 0.05, 3),
    ],
)
def test_a_gate_says_what_it_assumes_and_what_is_rare_enough_to_pass(differences, rarest, status):
    found = only(*of_differences(*differences, bounds=(0.0, 1.0)), rarest=rarest)
    assert found.status == status
    narrow = "if nothing breaks in fewer than 5 % of the samples), and" in found.sentence
    assert narrow == (rarest == 0.05 and len(differences) >= 72)
    assert narrow == ("whatever few samples may hide), and" not in found.sentence)
    with pytest.raises(ValueError, match="rarest is 1; it is a share"):
        only(*of_differences(0.0, 0.0), rarest=1)


@given(
    st.lists(st.integers(-4, 4).map(lambda n: n / 40), min_size=1, max_size=30),
    st.sampled_from([0.0, 0.02, 0.05]),
    st.booleans(),
    st.sampled_from([None, (-1.0, 1.0)]),
)
@example([-0.01, -0.02] * 200, 0.05, True, (0.0, 1.0))
@example([0.01, 0.02] * 200, 0.05, False, (0.0, 1.0))
@settings(deadline=None, max_examples=150)
def test_all_that_is_said_says_the_same(differences, allowed, higher, bounds):
    """The table's conclusion, the gate's word and its status."""
    old, new = of_differences(*differences, bounds=bounds, higher_is_better=higher)
    comparison = compare(old, new)
    (found,) = check_drops(comparison, allowed)
    better = comparison.metrics["demo"].better
    said = markdown(comparison, [found])
    shown = {"a": "a is better", "b": "b is better", None: "no difference is shown"}[better]
    assert f"by this judge, {shown}" in str(comparison)
    assert f"by this judge, {shown}" in said
    assert {0: "not worse", 1: "worse", 3: "cannot tell"}[found.status] == found.word or (
        (found.word, found.status, better) == ("worse, but allowed", 0, "a")
    )
    assert f"**{found.word}**" in said
    more = {"worse, but allowed": ", but no more than allowed: "}.get(found.word, ": ")
    by = "" if found.word == "cannot tell" else " by this judge"
    assert found.sentence.startswith(f"{found.word.split(',')[0]}{by}{more}")
    if found.word.startswith("worse"):
        assert better == "a"
    if found.word == "not worse":
        assert better != "a"
    assert "nan" not in f"{comparison}{said}".lower()


@pytest.mark.parametrize("differences", [[0.0] * 20, [-0.5] * 3, [0.02] * 30, [*[-1.0] * 2, *[0.0] * 30]])
def test_so_many_samples_as_it_asks_for_do_tell(differences):
    found = only(*of_differences(*differences), allowed=0.05)
    assert found.status == 3
    needed = int(re.search(r"About ([\d,]+) samples would do", found.sentence)[1].replace(",", ""))
    times = -(-needed // len(differences))
    assert only(*of_differences(*differences * times), allowed=0.05).status != 3
    fewer = max(1, needed * 2 // 3 // len(differences))
    assert only(*of_differences(*differences * fewer), allowed=0.05).status == 3


def test_one_pair_that_differs_asks_for_no_thousands():
    found = only(*of_differences(-0.9, *[0.0] * 5), allowed=0.05)
    assert re.search(r"About \d\d\d? samples would do", found.sentence)


def test_lower_is_better_turns_the_difference():
    metrics = [MetricInfo("demo", "1", "judge", (0.0, 1.0), higher_is_better=False)]
    low, high = report([0.4] * 300, metrics=metrics), report([0.5] * 300, metrics=metrics)
    assert only(high, low).status == 0
    found = only(low, high)
    assert (found.status, "+0.100" in found.sentence, "a rise of 0.02" in found.sentence) == (1, True, True)
    few = only(low, report([0.5] * 3 + [None] * 297, metrics=metrics))
    assert (few.status, "+0.100" in few.sentence, few.word) == (3, True, "cannot tell")


@pytest.mark.parametrize("lost", [[None], []])  # unscored; missing, as after broken lines or a stop
def test_lost_samples_do_not_hide_a_drop(lost):
    # 1,000 - n pairs that are equal: the mean over all is lower by n / 1,000 at worst
    base = report([0.9] * 1_000, metrics=[KNOWN])
    few, many = (only(base, report([0.9] * (1_000 - n) + lost * n, metrics=[KNOWN])) for n in (15, 22))
    assert (few.status, many.status) == (0, 3)
    assert "Left out: 15 samples that the base scored and the new run did not." in few.sentence
    assert "score them again" in many.sentence
    assert "would do" not in many.sentence
    # nobody knows the worst score of a metric without bounds; what the base left unscored hides nothing
    assert only(report([0.9] * 100), report([0.9] * 99 + lost)).status == 3
    assert only(report([0.9] * 500 + [None] * 500, metrics=[KNOWN]), base).status == 0
    assert only(report([0.9] * 500 + [None] * 500, metrics=[KNOWN]), report([0.9] * 500, metrics=[KNOWN])).status == 0
    assert only(base, report([0.1] * 500 + lost * 500, metrics=[KNOWN])).status == 1


def both(base, new):
    metrics = [KNOWN, MetricInfo("other", "1", "judge", (0.0, 1.0))]
    return compare(*(Report.of([*records(a), *records(b, metric="other")], metrics) for a, b in (base, new)))


def test_of_several_metrics_worse_goes_before_cannot_tell():
    same, lower, noisy = [0.5] * 200, [0.1] * 200, [0.1, 0.9] * 100
    ends = [status_of(check_drops(both((same, same), new), 0.02)) for new in
            ((same, same), (same, noisy), (noisy, lower), (lower, noisy), (same, lower))]  # fmt: skip
    assert ends == [0, 3, 1, 1, 1]


def test_drops_by_name():
    comparison = both(([0.5] * 200, [0.5] * 200), ([0.5] * 200, [0.4] * 200))
    assert [c.status for c in check_drops(comparison, 0.02)] == [0, 1]
    assert [c.status for c in check_drops(comparison, 0.02, {"other": 0.2})] == [0, 0]
    assert [(c.name, c.status) for c in check_drops(comparison, None, {"other": 0.02})] == [("other", 1)]
    with pytest.raises(ValueError, match="a has no metric mine; it has demo, other"):
        check_drops(comparison, 0.02, {"mine": 0.1})


def test_a_metric_that_the_new_run_lacks_is_never_passed_over():
    base = Report.of([*records([0.5] * 300), *records([0.5] * 300, metric="other")], [KNOWN])
    alone = report([0.5] * 300, metrics=[KNOWN])
    found = check_drops(compare(base, alone), 0.02)
    assert [(c.name, c.status) for c in found] == [("demo", 0), ("other", 3)]
    assert status_of(check_drops(compare(base, alone), None, {"demo": 0.02})) == 0
    assert status_of(check_drops(compare(alone, base), 0.02)) == 0  # a new metric has no base


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
    assert {row.count("|") for row in rows} == {9}
    assert len(rows) == 2 + len(comparison.metrics)
    outside = re.sub(r"<code>[\w &#;-]*</code>|`[^`\n]*`", "", f"{table}\n{shown}")
    assert not re.search(r"[@`\\<\[#]|evil", outside)
    assert more.startswith("<details>")
    fenced = text.split("<summary>More</summary>\n\n")[1].splitlines()
    fence = re.match("`+", fenced[0])[0]
    assert len(fence) > HOSTILE.count("`" * 3) * 3
    assert [i for i, line in enumerate(fenced) if line.startswith(fence)] == [0, len(fenced) - 3]
