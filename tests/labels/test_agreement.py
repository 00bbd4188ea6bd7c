"""How far two people agree: against references, at the edges, and from two files of labels."""

import json
from itertools import permutations

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.metrics import cohen_kappa_score

from ragstone.cli.main import cli
from ragstone.labels.agreement import agreement, sensitivity_specificity, share_of

RNG = np.random.default_rng(7)
WORDS = [RNG.choice(["a", "b", "c"], 80, p=[0.6, 0.3, 0.1]).tolist() for _ in range(2)]
GRADES = [(RNG.integers(0, 5, 80) / 4).tolist() for _ in range(2)]
FLAGS = [RNG.integers(0, 2, 80).astype(float).tolist() for _ in range(2)]


def alpha(a, b):
    """Krippendorff's alpha by its definition: the disagreement within items, and among all pairs of values."""

    def apart(x, y):
        return float(x != y) if isinstance(x, str) else (x - y) ** 2

    values = [*a, *b]
    expected = sum(apart(x, y) for x, y in permutations(values, 2)) / (len(values) * (len(values) - 1))
    return 1 - sum(map(apart, a, b)) / len(a) / expected


@pytest.mark.parametrize(
    ("a", "b", "kappa"),
    [
        (*WORDS, cohen_kappa_score(*WORDS)),
        (*FLAGS, cohen_kappa_score(*FLAGS)),
        (*GRADES, cohen_kappa_score(*[[round(4 * x) for x in of] for of in GRADES], weights="quadratic")),
        (["yes", "no"], ["no", "yes"], -1.0),
    ],
)
def test_kappa_and_alpha_are_those_of_their_definitions(a, b, kappa):
    both = agreement(a, b)
    assert both.items == len(a)
    assert both.share.mean == np.mean([x == y for x, y in zip(a, b, strict=True)])
    assert both.kappa.mean == pytest.approx(kappa, abs=1e-12)
    assert both.alpha.mean == pytest.approx(alpha(a, b), abs=1e-12)


def test_intervals_hold_the_truth_as_often_as_they_say():
    truth, misses = 0.8 * 0.5 - 0.2 * 0.5, {"kappa": 0, "alpha": 0, "share": 0}
    rng = np.random.default_rng(1)
    for _ in range(60):
        a = rng.integers(0, 2, 100)
        b = np.where(rng.random(100) < 0.8, a, 1 - a)
        both = agreement(a.tolist(), b.tolist())
        for name, true in (("kappa", 2 * truth), ("alpha", 2 * truth), ("share", 0.8)):
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
    assert alone.alpha.low != grouped.alpha.low


@pytest.mark.parametrize("words", [["yes"] * 5, [1.0] * 5, [0.25] * 5])
def test_where_all_is_one_value_nothing_beyond_chance_is_defined(words):
    both = agreement(words, words)
    assert (both.kappa, both.alpha, both.share.mean) == (None, None, 1.0)
    assert both.share.low == pytest.approx(0.025**0.2, abs=1e-4)


def test_fewer_than_two_items():
    assert agreement(["yes"], ["yes"]) == agreement([0.5], [0.25])
    assert agreement(["yes"], ["yes"]).share is None
    assert agreement([], []).items == 0
    with pytest.raises(ValueError, match="2 and 1 answers; give both answers to each item"):
        agreement(["yes", "no"], ["yes"])


def test_what_does_not_vary_has_no_interval():
    both = agreement(["yes", "no"] * 4, ["yes", "no"] * 4)
    assert (both.kappa.mean, both.kappa.low, both.alpha.mean, both.alpha.high) == (1.0, None, 1.0, None)
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
    return {"id": f"q{i}", "sample_digest": f"{i}", "response_digest": "r", "metric": "m", "version": "1", "judge": "j",
            **kind, "answer": answer, **more}  # fmt: skip


def compared(tmp_path, a, b):
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path, lines in zip(paths, (a, b), strict=True):
        path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return CliRunner().invoke(cli, ["agreement", *map(str, paths)])


SKIPPED = {"skipped": True}


def test_from_two_files(tmp_path):
    a = [line(i, "yes" if i % 2 else "no") for i in range(8)] + [line(i, i % 3 / 2) for i in range(10, 16)]
    b = [line(i, "yes" if i % 4 else "no") for i in range(8)] + [line(i, i % 3 / 2) for i in range(10, 15)]
    done = compared(tmp_path, [*a, line(20, None, **SKIPPED)], [*b, line(20, 0.5), line(21, 1, verdicts_shown=True)])
    assert done.exit_code == 0, done.output
    _, words, scores, *notes = done.stdout.splitlines()
    assert words.split()[:4] == ["m:", "claim", "8", "0.750"]
    assert scores.split()[:5] == ["m:", "score", "5", "1.000", "0.478"]
    assert notes == ["1 sample(s) were skipped by one or both", "2 label(s) stand in one file alone"]
    done = compared(tmp_path, a[:1], [{**a[0], "verdicts_shown": True}])
    assert done.stdout.splitlines()[1].split() == ["m:", "claim", "1", *["undefined", "–"] * 3]
    assert "made with the judge's verdicts in sight" in done.stdout


def test_the_answers_of_a_drawn_group_are_one_opinion(tmp_path):
    draw = {"chance": 0.5, "group": "c1", "group_field": "chat"}
    a = [line(i, "yes" if i % 2 else "no") for i in range(8)]
    b = [line(i, "yes" if i % 3 else "no") for i in range(8)]
    one_by_one = compared(tmp_path, a, b).stdout
    assert compared(tmp_path, [{**each, "draw": draw} for each in a], b).stdout != one_by_one


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
        ([{"user_input": "no label"}], [line(1, 1)], "line 1: "),
    ],
)
def test_what_cannot_be_compared_is_refused(tmp_path, a, b, message):
    done = compared(tmp_path, a, b)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


def test_both_answers_to_an_id_are_no_changed_texts(tmp_path):
    both = [line(1, "yes"), line(1, "no", sample_digest="b")]
    assert compared(tmp_path, both[:1], both).exit_code == 0
