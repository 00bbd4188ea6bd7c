"""A sample's score by a person's labels: of the whole, or by the metric's own formula on her answers to its items."""

import random

import pytest

from ragstone import AlignmentCoverage, ContextRelevancy, Criterion, Sample, Score, evaluate
from ragstone.identity import sample_digest
from ragstone.labels import LabelError
from ragstone.labels.label_file import Label, items_of, match_labels
from ragstone.metrics.names import make_metric
from ragstone.report import MetricInfo, Report
from ragstone.testing import FakeLLM

from .test_label_page import answering

SAMPLE = Sample(
    user_input="Who did, and when?",
    retrieved_contexts=["Ann did. In May. It rained.", "Bob was there."],
    response="Ann did it [1]. It was May [1][2]. Bob too.",
    reference="Ann did. In May.",
    id="q1",
)
MAKE = {
    "faithfulness": lambda **judged: make_metric("faithfulness", {}, **judged),
    "recall": lambda **judged: make_metric("context_recall", {}, **judged),
    "precision": lambda **judged: make_metric("context_precision", {}, **judged),
    "citations": lambda **judged: make_metric("citation_support", {}, **judged),
    "correctness": lambda **judged: make_metric("factual_correctness", {}, **judged),
    "completeness": lambda **judged: make_metric("response_completeness", {}, **judged),
    "sentences": ContextRelevancy,
    "chunks": lambda **judged: ContextRelevancy(granularity="chunk", **judged),
    "coverage": AlignmentCoverage,
    "agreement": lambda **judged: AlignmentCoverage(coverage_rule="agreement", **judged),
    "summary": lambda **judged: make_metric("summarization_score", {"coeff": 0.25}, **judged),
    "kept": lambda **judged: make_metric("summarization_score", {"length_penalty": False}, **judged),
    "criterion": lambda **judged: Criterion("kind", "Is it?", choices={"yes": 1, "so_so": 0.3, "no": 0}, **judged),
}


class Own(ContextRelevancy):
    name = "own"


def scored(metric, tmp_path):
    """Return the report of one sample, read from a results file, and its score."""
    evaluate([SAMPLE], [metric], progress=False).to_json(path := tmp_path / "results.jsonl")
    report = Report.load(path)
    return report, next(iter(report.results())).outcome


def label(report, **fields):
    record = next(iter(report.results()))
    base = {"id": "q1", "sample_digest": sample_digest(SAMPLE)}
    base |= {"metric": record.outcome.metric, "version": record.outcome.version, "judge": record.judge}
    return Label(**base | {"kind": "score", **fields})


def by_items(report, answer=lambda verdict: verdict.verdict, **more):
    record = next(iter(report.results()))
    (info,) = report.metrics
    for kind, item in items_of(record.outcome, info.items):
        yield label(report, kind=kind.kind, item=item.id, text=item.text, answer=answer(item), **more)


def matched(report, *labels):
    ((record,),) = match_labels("labels.jsonl", list(enumerate(labels, 1)), [report])
    return record


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
@pytest.mark.parametrize("name", MAKE)
def test_who_says_what_the_judge_says_gives_the_score_that_it_gives_by_count(name, asking, tmp_path):
    values = set()
    for seed in range(8):
        words = random.Random(seed)
        judge = FakeLLM(answering(lambda choices: words.choice([choices[0], *choices]), texts=3), asking=asking)  # noqa: B023
        report, score = scored(MAKE[name](llm=judge), tmp_path)
        if isinstance(score, Score):
            labelled = matched(report, *by_items(report))
            assert labelled.value == pytest.approx(score.breakdown.get("count", score.value))
            values.add(labelled.value)
    assert values - {0.0, 1.0}
    assert labelled.by_items
    of_text = ("sentences", "chunks", "precision", "citations", "criterion")
    of_judge = name not in of_text and (asking, name) not in (
        ("one_by_one", "faithfulness"),
        ("one_by_one", "recall"),
        ("one_by_one", "correctness"),
        ("one_by_one", "summary"),
        ("one_by_one", "kept"),
    )
    assert labelled.by_judges_items == of_judge


def faithful(tmp_path):
    return scored(make_metric("faithfulness", {}, FakeLLM(answering(lambda words: words[0]))), tmp_path)[0]


def test_the_whole_sample_counts_before_its_items(tmp_path):
    report = faithful(tmp_path)
    items = list(by_items(report, lambda _: "contradicted", missing=True))
    assert (matched(report, *items).value, matched(report, *items).missing) == (0.0, True)
    both = matched(report, *items, label(report, answer=0.25))
    assert (both.value, both.by_items, both.by_judges_items) == (0.25, False, False)


def test_skipped_unfinished_and_0_of_0_have_no_value(tmp_path):
    judge = FakeLLM(answering(lambda words: words[0]))
    report, _ = scored(AlignmentCoverage(llm=judge), tmp_path)
    items = list(by_items(report, lambda item: "no" if "answer" in item.kind else "supported"))
    assert matched(report, *items).value is None
    assert matched(report, *items[:-1]).value is None
    skipped = matched(report, label(report, skipped=True))
    assert (skipped.value, skipped.skipped) == (None, True)


def test_items_that_give_no_score_and_options_that_are_not_known(tmp_path):
    judge = FakeLLM(answering(lambda words: words[0]))
    report, _ = scored(Own(llm=judge), tmp_path)
    with pytest.raises(LabelError, match="own: labels of its items do not give its score; label with `one score`"):
        _ = matched(report, *by_items(report, lambda _: "relevant")).value
    report, _ = scored(AlignmentCoverage(llm=judge), tmp_path)
    infos = [MetricInfo(info.name, info.version, info.judge, items=info.items) for info in report.metrics]
    monitored = Report.of(report.results(), infos)
    with pytest.raises(LabelError, match="alignment_coverage: its score by items needs 'coverage_rule'"):
        _ = matched(monitored, *by_items(monitored)).value
