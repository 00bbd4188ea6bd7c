"""Which of two systems people would find better, from a judge and the labels of some pairs."""

import random
from dataclasses import replace

import numpy as np
import pytest

from ragstone.labels import LabelError, corrected_comparison, corrected_difference, corrected_pairs
from ragstone.report import Report, compare
from ragstone.report.checks import check_drops
from ragstone.testing import assert_not_worse

from .population import label_of, labelled, made, write

FORTY = [f"q{i}" for i in range(0, 200, 5)]


def numbers(report):
    return {record.sample_id: record.outcome.value for record in report}


@pytest.fixture(scope="module")
def pair():
    """Two systems: people find b better, a judge who loves a's length finds a better. Texts differ."""
    draw = random.Random(3)
    a, truth_a = made(200, seed=1, judged=lambda truth, *_: 0.6 + 0.4 * truth, sample=lambda i: {"response": f"A {i}"})
    b, truth_b = made(200, seed=2, judged=lambda truth, *_: 0.4 + 0.4 * truth, sample=lambda i: {"response": f"B {i}"})
    truth_b = {i: max(value, float(draw.random() < 0.5)) for i, value in truth_b.items()}
    return a, truth_a, b, truth_b


def labels_of(pair, ids, **more):
    a, truth_a, b, truth_b = pair
    return [
        label_of(report, sample_id, truth[sample_id], **more)
        for sample_id in ids
        for report, truth in ((a, truth_a), (b, truth_b))
    ]


def test_the_difference_is_that_of_the_arrays(pair, tmp_path):
    a, truth_a, b, truth_b = pair
    found = corrected_comparison(a, b, write(tmp_path / "l", labels_of(pair, FORTY)))
    each = found.metrics["demo"]
    judge_a, judge_b = numbers(a), numbers(b)
    others = [i for i in judge_a if i not in FORTY]
    by_hand = corrected_difference(
        [truth_b[i] - truth_a[i] for i in FORTY],
        [judge_b[i] - judge_a[i] for i in FORTY],
        [judge_b[i] - judge_a[i] for i in others],
    )
    assert each.people.corrected == by_hand
    assert (each.people.labels, each.people.people.n) == (40, 40)
    assert each.people.people.mean == pytest.approx(np.mean([truth_b[i] - truth_a[i] for i in FORTY]))
    assert by_hand.low > 0
    assert each.better == "a"
    ends = f"{by_hand.mean:+.3f}, 95 % interval {by_hand.low:+.3f} – {by_hand.high:+.3f}"
    assert each.conclusion().startswith(f"people would say: b is better ({ends}); the judge says -0.")
    assert next(each.remarks()).startswith("40 labelled pairs and this judge are worth ")
    assert "40 labelled pairs would say" not in str(found)


def test_live_samples_of_several_rates_are_refused_on_either_side(pair, tmp_path):
    a, _, b, _ = pair
    file = write(tmp_path / "l", labels_of(pair, FORTY))
    mixed = [replace(each, rate=0.5 if each.row else 1.0) for each in b]
    b = Report.of(mixed, samples=[b.sample(each) for each in b])
    for both in ((a, b), (b, a)):
        with pytest.raises(LabelError, match="chosen at the rates 1, 0.5"):
            corrected_comparison(*both, file)


def test_labels_that_hardly_differ_name_no_better_system(tmp_path):
    """The judge finds b worse in 45 of 200 pairs, and people in 1 of 40."""
    a, _ = made(200, judged=lambda *_: 1.0, sample=lambda i: {"response": f"A {i}"})
    b, _ = made(200, judged=lambda _, i, draw: float(i > 0 and i % 5 < 4), sample=lambda i: {"response": f"B {i}"})
    truth_a = dict.fromkeys(numbers(a), 1.0)
    labels = labels_of((a, truth_a, b, truth_a | {"q0": 0.0}), FORTY)
    found = corrected_comparison(a, b, write(tmp_path / "l", labels))
    assert found.metrics["demo"].conclusion().startswith("people would say: no difference is shown (")
    text = next(found.metrics["demo"].remarks())
    assert "The judge adds nothing to the 40 labelled pairs; " in text
    assert "fewer than 5 labelled pairs differ" in text
    assert "worth" not in text
    (gate,) = check_drops(found, 0.02)
    assert gate.status == 3


def test_an_answer_that_both_gave_is_labelled_once(pair, tmp_path):
    a, truth_a, *_ = pair
    once = labelled(tmp_path / "l", a, truth_a, FORTY)
    b = Report.of(
        [replace(r, outcome=r.outcome.model_copy(update={"value": 0.5})) for r in a], samples=[a.sample(r) for r in a]
    )
    found = corrected_comparison(a, b, once).metrics["demo"]
    assert (found.people.labels, found.people.people.mean) == (40, 0.0)


def test_pairs_with_one_label_or_a_skipped_one_do_not_count(pair, tmp_path):
    labels = labels_of(pair, FORTY)
    labels[0] = labels[0].model_copy(update={"answer": None, "skipped": True})
    found = corrected_comparison(pair[0], pair[2], write(tmp_path / "l", labels[:-1]))
    people = found.metrics["demo"].people
    assert (people.labels, people.skipped) == (38, 1)
    assert people.notes == ("1 pair without scores by labels of both; left out.",)


def test_a_gate_goes_by_the_labels(pair, tmp_path):
    """The judge finds b worse; by people's labels it is not. Too few labels leave it open, whatever the judge says."""
    (by_judge,) = check_drops(compare(pair[0], pair[2]), 0.02)
    assert (by_judge.status, by_judge.sentence[:20]) == (1, "worse by this judge:")
    comparison = corrected_comparison(pair[0], pair[2], write(tmp_path / "l", labels_of(pair, FORTY)))
    (found,) = check_drops(comparison, 0.02)
    e = comparison.metrics["demo"].people.corrected
    assert found.status == 0
    assert found.sentence.startswith(f"not worse by people's labels: {e.mean:+.3f} (95 % interval {e.low:+.3f} – ")
    (few,) = check_drops(
        corrected_comparison(pair[0], pair[2], write(tmp_path / "l", labels_of(pair, FORTY[:19]))), 0.02
    )
    assert (few.status, few.sentence) == (3, "cannot tell: the labels give no corrected difference.")
    file = write(tmp_path / "l", labels_of(pair, FORTY))
    assert_not_worse(pair[0], pair[2], people=corrected_pairs(pair[0], pair[2], file))
    (other,) = check_drops(corrected_comparison(pair[2], pair[0], file), e.mean + 0.02)
    assert (other.status, "labelled pairs would do" in other.sentence) == (3, True)


def test_pairs_that_depend_on_each_other_are_drawn_together(pair, tmp_path):
    a, _, b, _ = pair
    path = write(tmp_path / "l", labels_of(pair, FORTY))
    docs = {i: {"metadata": {"doc": i // 10}} for i in range(200)}
    grouped = Report.of(a, samples=[a.sample(record).model_copy(update=docs[i]) for i, record in enumerate(a)])
    found, alone = (
        corrected_comparison(grouped, b, path, group=group).metrics["demo"] for group in ("metadata.doc", None)
    )
    assert (found.people.groups, found.differences.groups) == ("20 docs", "20 docs")
    assert found.people.corrected.high - found.people.corrected.low > 1.05 * (
        alone.people.corrected.high - alone.people.corrected.low
    )
