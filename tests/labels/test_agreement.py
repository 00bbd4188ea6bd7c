"""How far two people agree: against references, at the edges, and from two files of labels."""

import json
import re

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from ragstone.labels import CalibrationError
from ragstone.labels.agreement import agreement, of_files, sensitivity_specificity, share_of

RNG = np.random.default_rng(7)
WORDS = [RNG.choice(["a", "b", "c"], 80, p=[0.6, 0.3, 0.1]).tolist() for _ in range(2)]
GRADES = [(RNG.integers(0, 5, 80) / 4).tolist() for _ in range(2)]
FLAGS = [RNG.integers(0, 2, 80).astype(float).tolist() for _ in range(2)]


@pytest.mark.parametrize(
    ("a", "b", "kappa"),
    [
        (*WORDS, cohen_kappa_score(*WORDS)),
        (*FLAGS, cohen_kappa_score(*FLAGS)),
        (*GRADES, cohen_kappa_score(*[[round(4 * x) for x in of] for of in GRADES], weights="quadratic")),
        (["yes", "no"], ["no", "yes"], -1.0),
    ],
)
def test_kappa_is_that_of_its_definition(a, b, kappa):
    both = agreement(a, b)
    assert both.items == len(a)
    assert both.share.mean == np.mean([x == y for x, y in zip(a, b, strict=True)])
    assert both.kappa.mean == pytest.approx(kappa, abs=1e-12)


def test_intervals_hold_the_truth_as_often_as_they_say():
    truth, misses = 0.8 * 0.5 - 0.2 * 0.5, {"kappa": 0, "share": 0}
    rng = np.random.default_rng(1)
    for _ in range(60):
        a = rng.integers(0, 2, 100)
        b = np.where(rng.random(100) < 0.8, a, 1 - a)
        both = agreement(a.tolist(), b.tolist())
        for name, true in (("kappa", 2 * truth), ("share", 0.8)):
            each = getattr(both, name)
            misses[name] += not each.low <= true <= each.high
    assert max(misses.values()) <= 9  # of 60: 3 are expected


def test_items_of_one_group_are_one_opinion():
    a, b = WORDS
    groups = [f"q{i // 10}" for i in range(80)]
    copied = agreement(a[:8] * 10, b[:8] * 10, [f"q{i % 8}" for i in range(80)])
    assert copied.share.low == pytest.approx(agreement(a[:8], b[:8]).share.low)
    alone, grouped = agreement(a, b), agreement(a, b, groups)
    assert alone.share.mean == grouped.share.mean
    assert alone.kappa.low != grouped.kappa.low


@pytest.mark.parametrize("words", [["yes"] * 5, [1.0] * 5, [0.25] * 5])
def test_where_all_is_one_value_nothing_beyond_chance_is_defined(words):
    both = agreement(words, words)
    assert (both.kappa, both.share.mean) == (None, 1.0)
    assert both.share.low == pytest.approx(0.025**0.2, abs=1e-4)


def test_fewer_than_two_items():
    assert agreement(["yes"], ["yes"]) == agreement([0.5], [0.25])
    assert agreement(["yes"], ["yes"]).share is None
    assert agreement([], []).items == 0
    with pytest.raises(ValueError, match="2 and 1 answers; give both answers to each item"):
        agreement(["yes", "no"], ["yes"])


def test_what_does_not_vary_has_no_interval():
    both = agreement(["yes", "no"] * 4, ["yes", "no"] * 4)
    assert (both.kappa.mean, both.kappa.low) == (1.0, None)
    nothing = share_of([False] * 4)
    assert (nothing.low, nothing.high) == (0.0, pytest.approx(1 - 0.025**0.25, abs=1e-4))
    assert share_of([]) is None


def test_sensitivity_and_specificity_are_of_yes_and_no_alone():
    people, judge = [1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 1]
    yes, no = sensitivity_specificity(people, judge)
    assert (yes.mean, yes.n, no.mean, no.n) == (0.75, 4, 0.5, 2)
    assert sensitivity_specificity(people, [0.9, *judge[1:]]) == (None, None)
    yes, no = sensitivity_specificity([1, 1], [1, 0])
    assert (yes.mean, no) == (0.5, None)


def line(i, answer, **more):
    kind = {"kind": "claim", "item": "1", "text": "A."} if isinstance(answer, str) else {"kind": "score"}
    return {"id": f"q{i}", "sample_digest": f"{i}", "metric": "m", "version": "1", "judge": "j",
            **kind, "answer": answer, **more}  # fmt: skip


def compared(tmp_path, a, b):
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path, lines in zip(paths, (a, b), strict=True):
        path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return of_files(*paths)


SKIPPED = {"skipped": True}


def test_from_two_files(tmp_path):
    a = [line(i, "yes" if i % 2 else "no") for i in range(8)] + [line(i, i % 3 / 2) for i in range(10, 16)]
    b = [line(i, "yes" if i % 4 else "no") for i in range(8)] + [line(i, i % 3 / 2) for i in range(10, 15)]
    kinds, notes = compared(
        tmp_path, [*a, line(20, None, **SKIPPED)], [*b, line(20, 0.5), line(21, 1, verdicts_shown=True)]
    )
    words, scores = kinds["m", "claim"], kinds["m", "score"]
    assert (words.items, words.share.mean) == (8, 0.75)
    assert (scores.items, scores.share.mean, round(scores.share.low, 3)) == (5, 1.0, 0.478)
    assert notes == ["1 sample(s) were skipped by one or both", "2 label(s) stand in one file alone"]
    kinds, notes = compared(tmp_path, a[:1], [{**a[0], "verdicts_shown": True}])
    assert (kinds["m", "claim"].items, kinds["m", "claim"].kappa) == (1, None)
    assert "made with the judge's verdicts in sight" in notes[0]


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([line(1, "yes")], [line(2, "yes")], "no item has a label in both"),
        ([line(1, "yes")], [line(1, 0.5)], "no item has a label in both"),
        ([line(1, None, **SKIPPED)], [line(1, 0.5)], "no item has a label in both"),
        ([line(1, 0.5)], [line(1, None, **SKIPPED)], "no item has a label in both"),
        ([line(1, "yes")], [line(1, "yes", metric="n")], "hold labels of m 1 by j, and of n 1 by j"),
        ([line(1, "yes")], [line(1, "yes", version="2")], "hold labels of m 1 by j, and of m 2 by j"),
        ([line(1, "yes")], [line(1, "yes", judge="k")], "and of m 1 by k; give labels of the same scores"),
        ([line(1, "yes")], [line(1, "yes", sample_digest="x")], "sample 'q1': its texts are others in the other file"),
        ([line(1, "yes")], [line(1, "yes", text="B.")], "sample 'q1': claim 1: its text is another"),
        ([line(1, "yes")] * 2, [line(1, "yes")], "line 2: sample 'q1': claim 1 has a label already"),
        ([line(1, 1.5)], [line(1, 1)], "a.jsonl: 1 label(s) cannot be used"),
        ([], [line(1, 1)], "a.jsonl: holds no label"),
        ([{"user_input": "no label"}], [line(1, 1)], "a.jsonl: holds no label"),
    ],
)
def test_what_cannot_be_compared_is_refused(tmp_path, a, b, message):
    with pytest.raises(CalibrationError, match=re.escape(message)):
        compared(tmp_path, a, b)


def test_both_answers_to_an_id_are_no_changed_texts(tmp_path):
    both = [line(1, "yes"), line(1, "no", sample_digest="b")]
    assert compared(tmp_path, both[:1], both)[0]
