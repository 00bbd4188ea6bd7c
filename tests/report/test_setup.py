"""A set-up: which options and embedder tell scores apart, in every form that keeps them, and who keeps them apart."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from ragstone import (
    AlignmentCoverage,
    ContextPrecision,
    ContextRelevancy,
    Criterion,
    Faithfulness,
    Metric,
    Monitor,
    ResponseRelevancy,
    Sample,
    SummarizationScore,
    compare,
    evaluate,
)
from ragstone.identity import sample_digest
from ragstone.labels import LabelError, corrected
from ragstone.labels.drawing import draw_samples
from ragstone.labels.label_file import Label
from ragstone.live import Alert, SQLiteSink
from ragstone.live.alarms import alerts_in
from ragstone.metrics.setup import setup_of
from ragstone.report import NotComparableError, Report
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone.text import split_sentences

JUDGE = FakeLLM({"ids": [1]})
SAMPLES = [
    Sample(id=f"q{i}", user_input="Why?", retrieved_contexts=["Ann did it. It rained.", "Bob left. He ran."])
    for i in range(30)
]
OTHER = FakeLLM("", model="writer")


def other_splitter(text, language="en"):
    return split_sentences(text, language)


@dataclass(frozen=True, kw_only=True)
class Own(Metric):
    name, version, required_fields, needs_llm = "own", "1", ("response",), False
    neutral_options: ClassVar = Metric.neutral_options | {"colour"}
    least: int = 3
    colour: str = "red"

    def _flow(self, sample):
        return self._score(1.0 if len(sample.response) >= self.least else 0.0, "It is as long as it is.")
        yield


@pytest.mark.parametrize(
    ("metric", "setup"),
    [
        (ContextRelevancy(llm=JUDGE), ""),
        (ContextRelevancy(llm=JUDGE, granularity="chunk"), "granularity=chunk"),
        (ContextRelevancy(llm=JUDGE, max_input_tokens=900), "max_input_tokens=900"),
        (ContextRelevancy(llm=JUDGE, asking="together"), ""),
        (ContextRelevancy(llm=JUDGE, asking="one_by_one", language="de"), "asking=one_by_one, language=de"),
        (ContextRelevancy(llm=JUDGE, embedder=FakeEmbedder()), ""),  # which it does not ask
        (Faithfulness(llm=JUDGE, threshold=0.5, max_characters=9, reason=True), ""),
        (Faithfulness(llm=JUDGE, instructions={"verdicts": "Judge."}), ""),  # the version says so
        (Faithfulness(llm=JUDGE, writer=JUDGE), ""),
        (Faithfulness(llm=JUDGE, writer=OTHER, splitter=other_splitter), "splitter=other_splitter, writer=writer"),
        (SummarizationScore(llm=JUDGE, coeff=0, length_penalty=False), "coeff=0.0, length_penalty=false"),
        (AlignmentCoverage(llm=JUDGE, threshold=None, n_questions=5), ""),
        (SummarizationScore(llm=JUDGE, questions=["Is it, or not?"]), "questions=#d9c2f9c2"),
        (ContextPrecision(llm=JUDGE, against="response"), "against=response"),
        (ResponseRelevancy(llm=JUDGE, embedder=FakeEmbedder(8)), "embedder=fake-8"),
        (Criterion("polite", "Is it polite?", choices=("no", "yes"), llm=JUDGE), ""),  # the version says so
        (Own(), ""),
        (Own(least=4, colour="blue"), "least=4"),
    ],
)
def test_a_set_up_names_what_moves_the_score_and_is_no_default(metric, setup):
    assert setup_of(metric) == setup


def scored(*, out=None, **options):
    found = evaluate(SAMPLES, ContextRelevancy(llm=JUDGE, **options), progress=False)
    return found if out is None else (found.to_json(out), Report.load(out))[1]


def monitored(path, samples=SAMPLES, alerts=(), **options):
    with Monitor(ContextRelevancy(llm=JUDGE, **options), sinks=SQLiteSink(path), alerts=alerts) as monitor:
        for sample in samples:
            monitor.submit(sample)
    return Report.load(path)


def live(tmp_path, **options):
    return monitored(tmp_path / "-".join([*options.values(), "run.db"]), **options)


def from_file(tmp_path, **options):
    return scored(out=tmp_path / "-".join([*options.values(), "run.jsonl"]), **options)


@pytest.mark.parametrize("made", [lambda _, **options: scored(**options), from_file, live])
def test_two_set_ups_are_compared_only_where_that_is_wanted(made, tmp_path):
    chunks, sentences = made(tmp_path, granularity="chunk"), made(tmp_path)
    with pytest.raises(NotComparableError, match=r"context_relevancy: granularity: chunk, sentence \(in .*any_version"):
        compare(chunks, sentences)
    found = compare(chunks, sentences, any_version=True)
    assert "not a comparison of the systems alone, for the scores differ in granularity: chunk, sentence." in str(found)
    assert compare(sentences, sentences).metrics["context_relevancy"].ties == 30


def test_another_embedder_is_named_and_a_report_of_two_draws_from_neither():
    two = [
        evaluate(SAMPLES, ResponseRelevancy(llm=OTHER, embedder=FakeEmbedder(size)), progress=False) for size in (8, 16)
    ]
    with pytest.raises(NotComparableError, match="embedder: fake-8, fake-16"):
        compare(*two)
    runs = [scored(), scored(granularity="chunk")]
    both = Report.of([record for run in runs for record in run], samples=SAMPLES)
    with pytest.raises(
        LabelError, match="judge fake and of version 5, judge fake, granularity=chunk; score all by one"
    ):
        draw_samples(both)


def test_live_scores_of_two_set_ups_have_a_mean_each_and_are_dated(tmp_path):
    alert = Alert("context_relevancy", below=0.2)
    path = tmp_path / "ragstone.db"
    monitored(path, SAMPLES[:3], alert)
    found = monitored(path, SAMPLES[3:5], alert, granularity="chunk")
    one, other = found.summary().values()
    assert {(each.mean, each.scored) for each in (one, other)} == {(0.25, 3), (0.5, 2)}
    remarks = "\n".join(found.remarks())
    for each, setup in zip(found.metrics, ("", "granularity=chunk"), strict=True):
        assert each.setup == setup
    assert remarks.count(": of samples from 20") == 2
    assert "context_relevancy (version 5, judge fake, granularity=chunk)" in found.html()
    counted = [(by, samples) for _, by, _, samples, *_ in alerts_in(SQLiteSink(path).database)]
    assert counted == [("version 5, judge fake", 3), ("version 5, judge fake, granularity=chunk", 2)]


def test_frames_and_files_hold_the_set_up(tmp_path):
    found = from_file(tmp_path, granularity="chunk")
    assert set(found.to_pandas()["setup"]) == {"granularity=chunk"}
    assert found.to_pandas(wide=True)["context_relevancy"].count() == len(SAMPLES)
    assert found.metrics[0].settings["granularity"] == "chunk"
    assert found.figures()["metrics"]["context_relevancy"]["setup"] == "granularity=chunk"


def test_labels_correct_the_mean_of_each_set_up_alone(tmp_path):
    samples = [SAMPLES[0].model_copy(update={"id": str(i), "user_input": f"Why {i}?"}) for i in range(60)]
    halves = {"sentence": samples[:30], "chunk": samples[30:]}
    records = [
        replace(record, row=int(record.sample_id))
        for granularity, half in halves.items()
        for record in evaluate(half, ContextRelevancy(llm=JUDGE, granularity=granularity), progress=False)
    ]
    given = {"metric": "context_relevancy", "version": "5", "judge": "fake", "kind": "score", "answer": 0.5}
    labels = [Label(id=each.id, sample_digest=sample_digest(each), **given) for each in samples[:50]]
    path = tmp_path / "labels.jsonl"
    path.write_text("\n".join(label.model_dump_json() for label in labels))
    found = corrected(Report.of(records, samples=samples), path, drawn_at_random=True)
    assert [each.labels for each in found.values()] == [30, 20]
