"""The sentence that stands first: what each thing that a page or a table shows says of itself."""

import pytest

from ragstone import Criterion, Sample, Verdict, evaluate
from ragstone.report import MetricInfo, Report, compare
from ragstone.results.record import Record
from ragstone.testing import FakeLLM

from .reports import records, report, scored

COSTS = [
    ("faithfulness", "claim", "unsupported", "the contexts do not support a claim of the answer"),
    ("context_recall", "claim", "not_in_source", "the contexts do not support a claim of the reference"),
    ("response_relevancy", "question", "no_answer", "the answer does not answer the question"),
    ("response_completeness", "part", "no", "the answer does not cover all that was asked"),
    ("context_relevancy", "sentence", "irrelevant", "the contexts hold text that the question does not need"),
    ("context_precision", "context", "useless", "useful contexts are missing or stand behind others"),
    ("citation_support", "sentence", "unsupported", "the cited contexts do not support a sentence of the answer"),
    ("citation_support", "citation", "needless", "a citation is not needed to support its sentence"),
    ("factual_correctness", "response_claim", "contradicted", "the reference does not support a claim of the answer"),
    ("factual_correctness", "reference_claim", "not_in_source", "the answer lacks a claim of the reference"),
    ("alignment_coverage", "claim", "unsupported", "the original does not support a claim of the summary"),
    ("alignment_coverage", "summary_answer", "no", "the summary and the original answer a question differently"),
    ("summarization_score", "question", "no", "the summary leaves out something that the source says"),
    ("retrieval_rank", "source", "missed", "a wanted source was not found"),
    ("retrieval_rank", "source", "irrelevant", "a source that was not wanted was found"),
    ("a_metric_of_yours", "step", "sloppy", "a verdict is “sloppy”"),
]


def with_verdict(kind, word, metric="demo", **metrics):
    """A report of three samples, of which one lost points by a verdict."""
    low = Verdict(id="1", kind=kind, text="", verdict=word, lowers_score=True)
    outcomes = [scored(0.25, metric, verdicts=[low, low]), scored(1.0, metric), scored(1.0, metric)]
    return Report.of([Record(f"q{i}", each, "judge", i) for i, each in enumerate(outcomes)], **metrics)


@pytest.mark.parametrize(("metric", "kind", "word", "costs"), COSTS)
def test_a_report_says_what_costs_points_in_the_metric_s_own_words(metric, kind, word, costs):
    assert with_verdict(kind, word, metric).conclusion() == f"{metric}: 0.750 on average. In 1 of 3 samples {costs}."


def test_a_criterion_is_named_by_its_question():
    polite = Criterion(
        "polite", "Is it polite?", choices=("good", "fair"), llm=FakeLLM({"evidence": [], "verdict": "fair"})
    )
    found = evaluate([Sample(user_input="Why?", response="Look it up.")], polite)
    assert found.conclusion() == "polite: 0.000 on average. In 1 of 1 sample “Is it polite?” is not answered “good”."


@pytest.mark.parametrize(
    ("bounds", "said"),
    [((0.0, 1.0), "other, the weakest metric: 0.500 on average."), (None, "demo: 0.750 on average."),
     ((0.0, 0.5), "demo, the weakest metric: 0.750 on average.")],
)  # fmt: skip
def test_the_weakest_metric_is_named_only_where_all_bounds_are_known(bounds, said):
    infos = [MetricInfo("demo", "1", "judge", (0.0, 1.0)), MetricInfo("other", "1", "judge", bounds)]
    given = [*records([0.75]), *records([0.5], metric="other")]
    assert Report.of(given, infos).conclusion() == said


@pytest.mark.parametrize(
    ("values", "said"),
    [([], "Nothing was scored."), ([None, None], "No sample has a score: the reasons are below."),
     ([0.5, 1.0], "demo: 0.750 on average.")],
)  # fmt: skip
def test_a_report_without_a_cause_says_what_it_has(values, said):
    assert report(values).conclusion() == said


LOWER = [MetricInfo("demo", "1", "judge", (0.0, 1.0), higher_is_better=False)]


@pytest.mark.parametrize(
    ("old", "new", "metrics", "said"),
    [
        ([0.25] * 20, [0.75] * 19 + [0.0], (), "new is better (old 0.250, new 0.713); 19 samples got better, 1 worse."),
        ([0.5] * 20, [0.25] * 20, (), "old is better (old 0.500, new 0.250); 0 samples got better, 20 worse."),
        ([0.5] * 20, [0.25] * 20, LOWER, "new is better (old 0.500, new 0.250); 20 samples got better, 0 worse."),
        ([0.5, 0.5], [0.0, 0.5], (), "no difference is shown (old 0.500, new 0.250); 0 samples got better, 1 worse."),
    ],
)
def test_a_comparison_says_for_each_metric_what_got_better_and_worse(old, new, metrics, said):
    found = compare(report(old, name="old", metrics=metrics), report(new, name="new.jsonl", metrics=metrics))
    assert found.conclusion() == f"demo: by this judge, {said}"
    assert found.conclusion() in str(found)


def test_systems_are_called_as_their_files_are(tmp_path):
    paths = [tmp_path / folder / "results.jsonl" for folder in ("old", "new")]
    for path, value in zip(paths, (0.25, 0.75), strict=True):
        path.parent.mkdir()
        report([value] * 20 + [None]).to_json(path)
    found = compare(*paths)
    assert found.short_names() == ("old/results", "new/results")
    assert (
        f"20 labelled pairs would say what people think: ragstone label {paths[0]} {paths[1]} --metric demo -n 20"
        in str(found)
    )
    assert "ragstone label" not in str(compare(report([0.5] * 19, name="old"), report([0.25] * 19, name="new")))
    long = [report([0.5], name=f"a-run-of-the-large-model-with-{each}-chunks") for each in ("ten", "five")]
    assert compare(*long).short_names() == ("a-run-of-the-l…with-ten-chunks", "a-run-of-the-l…ith-five-chunks")
    both = compare(report([0.5, None, None], name="old"), report([0.5, 0.5, None], name="new"))
    assert "demo: left out: 1 unscored in old alone, 1 unscored in both." in str(both)
