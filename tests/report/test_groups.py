"""Groups: which rows are drawn together, what is kept of that, and what everything printed says of it."""

import dataclasses
import json
import re

import numpy as np
import pytest

from ragstone import Sample, evaluate
from ragstone.report import MetricInfo, Report, compare
from ragstone.report.checks import check_drops
from ragstone.report.statistics import GroupedMean, Mean, permutation_p
from ragstone.results.record import decode, encode, from_row, to_row
from ragstone.testing import FakeLLM, assert_not_worse

from ..support.command import command  # noqa: TID252
from .reports import data_of, records, words_of

KNOWN = MetricInfo("demo", "1", "judge", (0.0, 1.0))
HISTORY = [
    ("user", "q0"),
    ("assistant", "a0"),
    ("user", "q1"),
    ("assistant", "a1"),
    ("user", "q2"),
    ("assistant", "a2"),
]


def turn(n, *, answers="a", history=None):
    """The n-th turn of a conversation, with what was said before."""
    said = HISTORY[: 2 * n] if history is None else history
    turns = [{"role": role, "content": text} for role, text in said]
    return Sample(user_input=f"q{n}", response=f"{answers}{n}", history=turns)


def documents(n=20, each=5, sd=0.2, seed=3):
    """Scores and samples of n documents with some questions each, of which those on one document are alike."""
    rng = np.random.default_rng(seed)
    values = (0.6 + rng.normal(0, sd, (n, 1)) + rng.normal(0, 0.05, (n, each))).clip(0, 1).ravel()
    samples = [Sample(user_input="?", metadata={"doc": f"d{row // each}"}) for row in range(n * each)]
    return values.tolist(), samples


def grouped(values, samples, group="metadata.doc", **options):
    return Report.of(records(values, **options), [KNOWN], samples=samples, group=group)


def test_a_mean_of_groups_is_that_of_their_means_by_their_size():
    values, samples = documents()
    demo, alone = grouped(values, samples)["demo"], grouped(values, samples, None)["demo"]
    expected = Mean()
    for row in range(0, 100, 5):
        expected.add(float(np.mean(values[row : row + 5])), 5.0)
    ends = expected.estimate((0.0, 1.0))
    assert demo.interval == pytest.approx((ends.low, ends.high))
    assert (demo.mean, demo.scored, demo.groups) == (pytest.approx(alone.mean), 100, "20 docs")
    assert demo.high - demo.low > 1.5 * (alone.high - alone.low)


@pytest.mark.parametrize(
    ("samples", "groups"),
    [
        ([turn(0), turn(1), turn(2), Sample(user_input="q0", response="else")], "2 conversations"),
        ([turn(2), turn(0)], "1 conversation"),  # in any order
        ([turn(1, answers="b"), turn(2, answers="b")], ""),  # the history has another response
        ([turn(3, history=HISTORY[:2]), turn(4, history=HISTORY[:2])], ""),  # one history, and no row that it holds
        ([turn(0), turn(1, history=[HISTORY[1], HISTORY[0]])], ""),  # said in another order
        ([Sample(response="?", metadata={"thread_id": each}) for each in (7, 7, "8", None)], "3 conversations"),
        ([Sample(response="?", metadata={"session": "7"})] * 2, ""),
    ],
)
def test_without_group_rows_are_together_only_where_they_are_one_conversation(samples, groups, tmp_path):
    report = grouped([0.5] * len(samples), samples, None)
    report.to_json(tmp_path / "rows.jsonl")
    for each in (report, Report.load(tmp_path / "rows.jsonl")):
        assert each["demo"].groups == groups
        assert str(each).startswith(f"{len(samples)} rows{' of ' * bool(groups)}{groups}\n")


def test_fewer_than_five_groups_have_no_interval_and_say_so():
    values, samples = documents(4, 10)
    report = grouped(values, samples)
    assert report["demo"].interval is None
    assert "no interval: 4 docs, and fewer than 5 say too little of others" in str(report)
    assert "no interval: 4 docs" in words_of(report.html())
    assert grouped(*documents(5, 10))["demo"].interval is not None


def test_slices_and_the_line_over_time_draw_groups_too_but_a_group_is_a_slice_of_rows():
    values, samples = documents()
    samples = [
        each.model_copy(update={"metadata": {**each.metadata, "kind": "ab"[row < 50]}})
        for row, each in enumerate(samples)
    ]
    slices = {each["title"]: each["rows"] for each in data_of(grouped(values, samples).html())["slices"]}
    (_, [[_, _, low, high]]), _ = slices["kind"]
    (_, [[_, n, *ends]]), *_ = slices["doc"]
    assert high - low > 0.2
    assert n == 5
    assert None not in ends


def test_the_record_keeps_the_group(tmp_path):
    values, samples = documents(6, 2)
    (first, *_) = grouped(values, samples)
    assert first.group is None  # named for this report alone
    record = next(records([0.5], ids=["x"]))
    kept = type(record)(record.sample_id, record.outcome, "judge", group="doc=d1")
    assert decode(encode(kept)) == kept
    assert from_row(to_row(kept), 0).group == "doc=d1"
    report = Report.of([kept])
    assert json.loads(encode(kept))["group"] == "doc=d1"
    pytest.importorskip("pandas")
    assert report.to_pandas()["group"].tolist() == ["doc=d1"]


def test_evaluate_keeps_what_group_names(truthful, tmp_path):
    rows = [{"question": f"q{row}", "contexts": ["Ann. Bob."], "metadata": {"doc": row // 2}} for row in range(12)]
    report = evaluate(rows, ["context_relevancy"], llm=truthful, progress=False, group="metadata.doc")
    assert [each.group for each in report][:3] == ["doc=0", "doc=0", "doc=1"]
    assert "12 rows of 6 docs" in str(report)
    assert report.figures()["metrics"]["context_relevancy"]["groups"] == "6 docs"
    report.to_json(tmp_path / "rows.jsonl")
    assert "12 rows of 6 docs" in str(Report.load(tmp_path / "rows.jsonl"))
    assert "12 samples of 6 docs" in words_of(Report.load(tmp_path / "rows.jsonl").html())
    assert "12 rows of 1 retrieved text\n" in str(Report.load(tmp_path / "rows.jsonl", group="retrieved_contexts"))


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("doc", "group: 'doc' is no field; write metadata.doc, or one of thread_id,"),
        ("metadata.dok", "group: no metadata.dok in the first 2 rows; they have metadata.doc, metadata.n"),
    ],
)
def test_a_group_that_no_row_has_is_refused_before_a_judge_is_asked(group, words, silent):
    rows = [{"question": "q", "contexts": ["Ann."], "metadata": {"doc": "a", "n": row}} for row in range(2)]
    with pytest.raises(ValueError, match=re.escape(words)):
        evaluate(rows, ["context_relevancy"], llm=silent, progress=False, group=group)
    with pytest.raises(ValueError, match="group: "):
        _ = grouped([0.5], [Sample(response="?", metadata={"doc": "a"})], group)["demo"]


@pytest.fixture
def truthful():
    return FakeLLM({"ids": [1]})


@pytest.fixture
def silent():
    return FakeLLM(lambda request: pytest.fail("was asked"))


def test_numbers_without_a_group_are_added_up_in_constant_memory():
    mean = GroupedMean()
    for row in range(1_000):
        mean.add(row / 1_000)
    assert mean.sums == {}
    assert mean.estimate((0.0, 1.0)) == mean.rows.estimate((0.0, 1.0))


def two_systems(shift=0.0, n=20, each=8, seed=1):
    """Scores of two systems on n documents: which is better on a document is mostly one thing for all its questions."""
    rng = np.random.default_rng(seed)
    base = np.full((n, each), 0.5)
    new = base + shift + rng.normal(0, 0.15, (n, 1)) + rng.normal(0, 0.05, (n, each))
    samples = [Sample(user_input="?", metadata={"doc": row // each}) for row in range(n * each)]
    return [grouped(values.clip(0, 1).ravel().tolist(), samples, None) for values in (base, new)]


@pytest.mark.parametrize("seed", range(6))
def test_two_systems_are_compared_by_the_groups_of_their_pairs(seed):
    a, b = two_systems(seed=seed)
    by_row, by_group = (compare(a, b, group=group).metrics["demo"] for group in (None, "metadata.doc"))
    differences = np.array([y.outcome.value - x.outcome.value for x, y in zip(a, b, strict=True)])
    assert by_group.permutation_p == permutation_p(differences.reshape(20, 8).sum(axis=1))
    assert by_group.difference == by_row.difference
    assert by_group.high - by_group.low > 1.5 * (by_row.high - by_row.low)
    assert by_group.better is None
    text = str(compare(a, b, group="metadata.doc"))
    assert "160 pairs of 20 docs" in text


def test_the_gate_draws_groups_and_asks_for_more_of_them():
    a, b = two_systems(-0.05)
    (by_row,), (by_group,) = (check_drops(compare(a, b, group=group), 0.02) for group in (None, "metadata.doc"))
    assert (by_row.status, by_group.status) == (1, 3)
    assert "; 160 samples of 20 docs), and a drop" in by_group.sentence
    assert re.search(r"About [\d,]+ docs would do", by_group.sentence)
    with pytest.raises(AssertionError, match="cannot tell"):
        assert_not_worse(a, b, allow_drop=0.02, group="metadata.doc")
    (few,) = check_drops(compare(*two_systems(n=4), group="metadata.doc"), 0.02)
    assert few.sentence == "cannot tell: 4 docs, and fewer than 5 say too little of others."


def test_pairs_are_grouped_by_what_either_run_says():
    values, samples = documents(20, 5)
    old, new = grouped(values, samples, None), grouped(values[::-1], samples)
    kept = Report.of(
        [
            dataclasses.replace(each, group=new.group_of(dataclasses.replace(each, sample=sample)))
            for each, sample in zip(new, samples, strict=True)
        ],
        [KNOWN],
    )
    for pair in ((old, kept), (kept, old)):
        assert compare(*pair).metrics["demo"].differences.groups == "20 docs"
    with pytest.raises(ValueError, match=r"group: no row has metadata.doc"):
        compare(kept, old, group="metadata.doc")


def test_commands_take_group(tmp_path):
    a, b = two_systems(-0.05)
    old, new = str(tmp_path / "old.jsonl"), str(tmp_path / "new.jsonl")
    a.to_json(old)
    b.to_json(new)
    found = command("compare", old, new, "--group", "metadata.doc", "--allow-drop", "0.02")
    assert (found.exit_code, "160 pairs of 20 docs" in found.output) == (3, True)
    assert command("compare", old, new, "--allow-drop", "0.02").exit_code == 1
    page = str(tmp_path / "page.html")
    found = command("report", old, "--group", "metadata.doc", "--out", page, "--json")
    assert (found.exit_code, json.loads(found.output)["metrics"]["demo"]["groups"]) == (0, "20 docs")
    found = command("report", old, "--group", "doc", "--out", page)
    assert (found.exit_code, "Error: --group: 'doc' is no field; write metadata.doc" in found.output) == (2, True)
