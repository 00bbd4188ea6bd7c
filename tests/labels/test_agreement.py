"""How far two people agree: against references, at the edges, and from two files of labels."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.metrics import cohen_kappa_score

from ragstone import Sample, Score, Verdict
from ragstone.cli.main import cli
from ragstone.labels import CalibrationError
from ragstone.labels.agreement import agreement, of_files, sensitivity_specificity
from ragstone.metrics.base import ItemKind
from ragstone.report import MetricInfo, Report
from ragstone.results.record import Record

from .population import label_of, write

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


def test_sensitivity_and_specificity_are_of_yes_and_no_alone():
    people, judge = [1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 1]
    yes, no = sensitivity_specificity(people, judge)
    assert (yes.mean, yes.n, no.mean, no.n) == (0.75, 4, 0.5, 2)
    assert sensitivity_specificity(people, [0.9, *judge[1:]]) == (None, None)
    yes, no = sensitivity_specificity([1, 1], [1, 0])
    assert (yes.mean, no) == (0.5, None)


CLAIMS = [Verdict(id=i, kind="claim", text=f"{i}.", verdict="no") for i in ("1", "2")]
KINDS = (ItemKind("claim", "Is it?", ("yes", "no")),)


def results(n=24):
    """Return scores of n samples with two claims each."""
    score = Score(metric="m", value=0.5, reason="", version="1", verdicts=CLAIMS)
    records = [Record(f"q{i}", score, "j", i) for i in range(n)]
    samples = [Sample(response=f"R{i}.") for i in range(n)]
    return Report.of(records, [MetricInfo("m", "1", "j", items=KINDS)], samples=samples)


REPORT = results()


def line(i, answer, **more):
    item = {"kind": "claim", "item": "1", "text": "1."} if isinstance(answer, str) else {}
    return label_of(REPORT, f"q{i}", answer, **item, **more)


def compared(tmp_path, a, b, *reports):
    return of_files(write(tmp_path / "a.jsonl", a), write(tmp_path / "b.jsonl", b), reports or [REPORT])


def test_from_two_files(tmp_path):
    a = [line(i, "yes" if i % 2 else "no") for i in range(8)] + [line(i, i % 3 / 2) for i in range(10, 16)]
    b = [line(i, "yes" if i % 4 else "no") for i in range(8)] + [line(i, i % 3 / 2) for i in range(10, 15)]
    skipped = line(20, None, skipped=True)
    kinds, notes = compared(tmp_path, [*a, skipped], [*b, line(20, 0.5), line(21, 1.0, verdicts_shown=True)])
    words, scores = kinds["m", "claim"], kinds["m", "score"]
    assert (words.items, words.share.mean) == (8, 0.75)
    assert (scores.items, scores.share.mean, round(scores.share.low, 3)) == (5, 1.0, 0.478)
    assert notes == [
        "1 sample(s) were skipped by one or both",
        "2 label(s) stand in one file alone",
        "some labels were made with the judge's verdicts in sight: such labels agree too readily",
    ]
    kinds, _ = compared(tmp_path, a[:1], a[:1], REPORT, results(1))
    assert (kinds["m", "claim"].items, kinds["m", "claim"].kappa) == (1, None)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (line(1, "yes"), line(2, "yes"), "no item has a label in both"),
        (line(1, "yes"), line(1, 0.5), "no item has a label in both"),
        (line(1, 0.5), line(1, None, skipped=True), "no item has a label in both"),
        (line(1, "yes"), line(1, "yes", sample_digest="x"), "b.jsonl: 1 label(s) cannot be used"),
    ],
)
def test_what_cannot_be_compared_is_refused(tmp_path, a, b, message):
    with pytest.raises(CalibrationError, match=re.escape(message)):
        compared(tmp_path, [a], [b])


def test_the_command_prints_it_as_json_too(tmp_path):
    REPORT.to_json(tmp_path / "r.jsonl")
    a = write(tmp_path / "a.jsonl", [line(i, "yes" if i % 2 else "no") for i in range(8)])
    b = write(tmp_path / "b.jsonl", [line(i, "yes" if i % 4 else "no") for i in range(8)])
    given = ["--labels", str(a), "--labels", str(b), "--drawn-at-random", "--json"]
    done = CliRunner().invoke(cli, ["correct", str(tmp_path / "r.jsonl"), *given])
    people = json.loads(done.stdout)["two_people"]["m: claim"]
    assert (people["items"], people["same_answer"][0]) == (8, 0.75)
