"""Corrected means and differences: arithmetic against independent formulas, bounds, and truth that is known."""

import math
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragstone.labels import CorrectedEstimate, corrected_difference, corrected_mean

scipy_stats = pytest.importorskip("scipy.stats")

RNG = np.random.default_rng(7)
YES_NO = RNG.integers(0, 2, 40).astype(float)
VERDICTS = np.where(RNG.random(40) < 0.15, 1 - YES_NO, YES_NO)
OTHER_VERDICTS = RNG.integers(0, 2, 400).astype(float)
GRADED = RNG.random(40)
SCORES = np.clip(GRADED + RNG.normal(0, 0.15, 40), 0, 1)
OTHER_SCORES = np.clip(RNG.random(400) + RNG.normal(0, 0.15, 400), 0, 1)


def numbers(estimate: CorrectedEstimate) -> tuple[float, float, float]:
    return estimate.mean, estimate.low, estimate.high


def test_yes_no_is_post_stratified_by_the_verdict() -> None:
    estimate = corrected_mean(YES_NO, VERDICTS, OTHER_VERDICTS)
    everything = np.concatenate([VERDICTS, OTHER_VERDICTS])

    def jeffreys(values: np.ndarray) -> tuple[float, float]:
        yes, n = values.sum() + 0.5, len(values) + 1.0
        return yes / n, yes * (n - yes) / n**2 / (n + 1)

    (q, q_var), (a, a_var), (b, b_var) = (
        jeffreys(values) for values in (everything, YES_NO[VERDICTS == 1], YES_NO[VERDICTS == 0])
    )
    assert estimate.mean == pytest.approx(q * a + (1 - q) * b, abs=1e-12)
    sd = math.sqrt((a - b) ** 2 * q_var + (q**2 + q_var) * a_var + ((1 - q) ** 2 + q_var) * b_var)
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * sd, rel=0.05)
    assert estimate.method == "post-stratified by the judge's verdict (yes/no labels)"


def test_a_graded_mean_is_that_of_ppi() -> None:
    """The paper's estimate, with the power-tuned lambda, before the shift for labels that few draws show."""
    estimate = corrected_mean(GRADED, SCORES, OTHER_SCORES)
    n, rest = len(GRADED), len(OTHER_SCORES)
    power = np.cov(GRADED, SCORES)[0, 1] / SCORES.var(ddof=1) * rest / (n + rest)
    paper = GRADED.mean() + power * (OTHER_SCORES.mean() - SCORES.mean())
    assert estimate.mean == pytest.approx(paper, abs=0.002)
    residual = np.sqrt((GRADED - power * SCORES).var(ddof=1) / n + power**2 * OTHER_SCORES.var() / rest)
    assert estimate.high - estimate.low == pytest.approx(2 * 2.02 * residual, rel=0.12)
    assert estimate.method == "PPI++ (graded labels)"
    assert estimate.labels_worth > 2 * n


def test_a_judge_who_knows_nothing_leaves_the_labels_alone() -> None:
    noise = RNG.random(440)
    estimate = corrected_mean(YES_NO, noise[:40], noise[40:])
    wilson = scipy_stats.binomtest(int(YES_NO.sum()), 40).proportion_ci(method="wilson")
    assert numbers(estimate) == pytest.approx((YES_NO.mean(), wilson.low, wilson.high), abs=1e-9)
    assert estimate.labels_worth == 40
    assert estimate.method == "labels alone: the judge agrees with them no more than chance would"
    against = corrected_mean(GRADED, 1 - SCORES, 1 - OTHER_SCORES)
    assert against.method.startswith("labels alone: the judge agrees with them no more")
    constant = corrected_mean(GRADED, np.full(40, 0.9), np.full(400, 0.9))
    assert (constant.method, constant.labels_worth) == ("labels alone: the judge gives one score to all", 40)
    assert constant.mean == pytest.approx(GRADED.mean(), abs=0.01)


def test_labels_that_never_differ_from_the_judge_do_not_make_the_mean_certain() -> None:
    ones = corrected_mean(np.ones(30), np.ones(30), np.r_[np.ones(200), np.zeros(20)])
    assert ones.high - ones.low > 0.05
    same = corrected_mean(GRADED, GRADED, OTHER_SCORES)
    assert same.high - same.low > 2 * 1.96 * OTHER_SCORES.std() / math.sqrt(440)


def test_most_graded_labels_equal_do_not_hide_the_rare_others() -> None:
    noise = RNG.random(430)
    crowded = corrected_mean(np.r_[np.ones(28), 0.7, 0.8], noise[:30], noise[30:])
    student = 2 * 2.045 * np.r_[np.ones(28), 0.7, 0.8].std(ddof=1) / math.sqrt(30)
    assert crowded.high - crowded.low > 1.5 * student
    spread = np.linspace(0.7, 1.0, 30)
    usual = corrected_mean(spread, noise[:30], noise[30:])
    assert usual.high - usual.low < 1.1 * 2 * 2.045 * spread.std(ddof=1) / math.sqrt(30)


@pytest.mark.parametrize("size", [1.0, 0.1])
@pytest.mark.parametrize("n", [20, 40, 100, 400])
def test_which_system_is_better_takes_five_pairs_that_are_no_ties(n: int, size: float) -> None:
    for untied in range(6):
        people = np.r_[np.full(untied, size), np.zeros(n - untied)]
        estimate = corrected_difference(people, people, np.r_[np.full(60, size), np.zeros(240)])
        assert (estimate.low > 0.0) == (untied == 5)
        assert ("fewer than 5 labelled pairs differ" in estimate.method) == (untied < 5)
        assert estimate.high > 0.0


@pytest.mark.parametrize("worse", range(5))
@pytest.mark.parametrize("better", range(5))
@pytest.mark.parametrize("n", [20, 40, 100])
def test_few_labels_on_a_side_leave_as_much_open_as_they_do_alone(n: int, better: int, worse: int) -> None:
    people = np.r_[np.full(worse, -1.0), np.full(better, 1.0), np.zeros(n - better - worse)]
    below, above = (
        scipy_stats.binomtest(k, n).proportion_ci(confidence_level=0.95, method="exact").high for k in (worse, better)
    )
    blind = RNG.choice([-1.0, 0.0, 1.0], 300)
    for judge, rest in ((people, np.zeros(300)), (np.minimum(people, 0.0), blind), (np.zeros(n), blind)):
        estimate = corrected_difference(people, judge, rest)
        assert estimate.low <= better / n - below + 1e-9
        assert estimate.high >= above - worse / n - 1e-9


def changed_pairs(rng: np.random.Generator, worse: float, better: float, sees: float) -> tuple[np.ndarray, np.ndarray]:
    u = rng.random(400)
    people = np.where(u < worse, -1.0, np.where(u < worse + better, 1.0, 0.0))
    return people, np.where((people < 0.0) & (rng.random(400) < sees), -1.0, 0.0)


def rare_lows(rng: np.random.Generator, low: float, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Labels of 1 but for a few, of which the judge sees half."""
    dip = rng.random(600) < share
    return np.where(dip, low, 1.0), np.where(dip & (rng.random(600) < 0.5), 0.3, 0.97)


def far_scores(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A good judge on a twentieth of the scale says 0 of 1 in 100, whatever these are."""
    people = rng.beta(2.0, 2.0, 600)
    return people, np.where(rng.random(600) < 0.01, 0.0, 0.5 + 0.05 * people)


def by_items(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Shares of supported claims of 1 to 6, of which the judge takes some for supported that are not."""
    shares = []
    for claims in rng.integers(1, 7, 150):
        true = rng.random(claims) < rng.beta(4, 1)
        shares.append((true.mean(), (true | (rng.random(claims) < 0.4)).mean()))
    return tuple(np.array(shares).T)


@pytest.mark.parametrize(
    ("draw", "of", "labels", "truth", "least"),
    [
        (changed_pairs, (0.03, 0.03, 1.0), 40, 0.0, 195),  # sure and wrong 2.5 % at most; by plain PPI++ it is 12 to 16
        (changed_pairs, (0.05, 0.05, 1.0), 40, 0.0, 195),
        (changed_pairs, (0.06, 0.0, 0.5), 40, -0.06, 186),
        (rare_lows, (0.2, 0.02), 60, 0.984, 186),
        (rare_lows, (0.2, 0.05), 60, 0.96, 186),
        (rare_lows, (0.7, 0.05), 60, 0.985, 186),
        (far_scores, (), 40, 0.5, 186),
        (by_items, (), 40, 0.8, 184),
    ],
)
def test_a_truth_that_is_known_is_held_in_200_draws(
    draw: Callable[..., tuple[np.ndarray, np.ndarray]], of: tuple[float, ...], labels: int, truth: float, least: int
) -> None:
    estimator = corrected_difference if draw is changed_pairs else corrected_mean
    rng, held = np.random.default_rng(11), 0
    for _ in range(200):
        people, judge = draw(rng, *of)
        estimate = estimator(people[:labels], judge[:labels], judge[labels:])
        held += estimate.low <= truth <= estimate.high
    assert held >= least


@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3), st.floats(-10.0, 10.0))
@settings(max_examples=150, deadline=None)
def test_the_judges_scale_makes_no_difference(seed: int, scale: float, start: float) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.beta(2.0, 1.0, 200)
    people = rng.choice([truth.round(), truth, truth.round(1), np.where(truth < 0.2, truth, 1.0)])
    judge = np.clip(people + rng.normal(0.0, rng.choice([0.0, 0.2, 0.6]), 200), 0.0, 1.0)
    judge = judge.round(int(rng.choice([0, 1, 6])))
    n = int(rng.integers(20, 60))
    for estimator in (corrected_mean, corrected_difference):
        plain = estimator(people[:n], judge[:n], judge[n:])
        moved = start + scale * judge
        again = estimator(people[:n], moved[:n], moved[n:])
        assert numbers(again) == pytest.approx(numbers(plain), abs=1e-6)
        assert (again.method, again.labels_worth) == (plain.method, pytest.approx(plain.labels_worth, rel=1e-4))


def test_so_many_more_labels_halve_the_interval() -> None:
    rng = np.random.default_rng(3)
    people = rng.beta(2.0, 2.0, 20_000)
    judge = np.clip(people + rng.normal(0.0, 0.3, 20_000), 0.0, 1.0)
    few = corrected_mean(people[:60], judge[:60], judge[60:])
    n = 60 + few.labels_to_halve
    many = corrected_mean(people[:n], judge[:n], judge[n:])
    assert (many.high - many.low) / (few.high - few.low) == pytest.approx(0.5, abs=0.1)
    assert corrected_mean(YES_NO, np.zeros(40), []).labels_to_halve == 120
    assert corrected_mean(people[:60], people[:60], people[60:90]).labels_to_halve is None


PROBLEMS = {
    "19 labels": ({"people": YES_NO[:19], "judge": VERDICTS[:19]}, "people: 19 labels; a corrected mean needs 20"),
    "none": ({"people": [], "judge": []}, "people: 0 labels"),
    "above 1": ({"people": np.r_[YES_NO[:39], 1.5]}, "people: 1.5 is not from 0 to 1"),
    "below 0": ({"people": np.r_[YES_NO[:39], -0.1]}, "people: -0.1 is not from 0 to 1"),
    "nan": ({"people": np.r_[YES_NO[:39], math.nan]}, "people: pass one finite number"),
    "words": ({"judge": ["yes"] * 40}, "judge: is not an array of numbers"),
    "table": ({"judge_rest": np.zeros((4, 4))}, "judge_rest: pass one finite number"),
    "lengths": ({"judge": VERDICTS[:30]}, "judge: has 30 values for 40 samples"),
    "level": ({"level": 1.0}, "level: 1 is not between 0 and 1"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_bad_input_is_named(name: str) -> None:
    changed, message = PROBLEMS[name]
    arguments = {"people": YES_NO, "judge": VERDICTS, "judge_rest": OTHER_VERDICTS, **changed}
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        corrected_mean(**arguments)
    with pytest.raises(ValueError, match="people: -1.5 is not from -1 to 1"):
        corrected_difference(np.full(20, -1.5), np.zeros(20), [])


@pytest.mark.parametrize("estimator", [corrected_mean, corrected_difference])
def test_without_scipy_the_extra_is_named(
    estimator: Callable[..., CorrectedEstimate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(ImportError, match=r'a corrected mean needs scipy: pip install "ragstone\[labels\]"'):
        estimator(YES_NO, VERDICTS, OTHER_VERDICTS)


@example(715297)  # all people give 0.3, and rounding leaves a spread
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_an_interval_is_within_the_scale_and_holds_its_mean(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def scores(n: int) -> np.ndarray:
        return rng.choice([rng.choice([0.0, 0.5, 1.0], n), rng.random(n), np.full(n, rng.choice([0.0, 0.3, 1.0]))])

    n, m = int(rng.integers(20, 40)), int(rng.integers(0, 60))
    people, judge, rest = scores(n), scores(n), scores(m)
    estimate = corrected_mean(people, judge, rest)
    assert 0.0 <= estimate.low <= estimate.mean <= estimate.high <= 1.0
    assert estimate.labels_worth > 0.0
    assert {type(each) for each in (*numbers(estimate), estimate.labels_worth)} == {float}
    order = rng.permutation(n)
    again = corrected_mean(people[order], judge[order], rest[::-1])
    assert numbers(again) == pytest.approx(numbers(estimate), abs=1e-6)


@pytest.mark.parametrize("people", [YES_NO, GRADED])
@pytest.mark.parametrize("judge", [VERDICTS, SCORES])
def test_groups_of_one_change_nothing_and_copies_say_no_more_than_one(people: np.ndarray, judge: np.ndarray) -> None:
    rest = OTHER_VERDICTS if judge is VERDICTS else OTHER_SCORES
    once = corrected_mean(people, judge, rest)
    assert corrected_mean(people, judge, rest, group=[*range(439), None]) == once
    five = [np.repeat(each, 5) for each in (people, judge, rest)]
    grouped = corrected_mean(*five, group=np.repeat(range(440), 5).tolist())
    assert grouped.method.endswith(", by 40 groups")
    assert grouped.high - grouped.low > 0.9 * (once.high - once.low)
    assert grouped.high - grouped.low > 1.7 * np.subtract(*numbers(corrected_mean(*five))[:0:-1])
    difference = corrected_difference(*five, group=np.repeat(range(440), 5).tolist())
    assert difference.high - difference.low > 0.9 * np.subtract(
        *numbers(corrected_difference(people, judge, rest))[:0:-1]
    )


def test_labels_that_are_alike_hide_what_an_unseen_group_may_hold() -> None:
    few = corrected_mean([1.0] * 60, [1.0] * 60, [1.0] * 60, group=[row % 12 for row in range(120)])
    assert few.low <= 0.025 ** (1 / 12) + 1e-9
    assert corrected_mean([1.0] * 60, [1.0] * 60, [1.0] * 60).low > 0.9


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ([1] * 59, "group: has 59 values for 60 samples"),
        ([row % 4 for row in range(60)], "group: 4 have labels; an interval needs 5 or more"),
    ],
)
def test_groups_that_say_too_little_are_refused(group: list[int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        corrected_mean(GRADED, SCORES, SCORES[:20], group=group)
