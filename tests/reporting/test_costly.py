"""Which verdicts lower a score: the mapping against what the metrics really say and count."""

import pytest

from ragstone import AlignmentCoverage, ContextRelevancy, ResponseRelevancy, Sample, Score, SummarizationScore, Verdict
from ragstone.reporting.live.costly import WORDS, bounds_of, costs
from ragstone.testing import FakeEmbedder, FakeLLM

from .data import CONTEXTS, Chance

SAMPLE = Sample(
    user_input="Who wrote Emma? It is long. It is old.", retrieved_contexts=CONTEXTS, response="Jane Austen."
)


def scores(n=60, **options):
    """Scores of every metric with words drawn by chance."""
    chance = Chance(11, good=0.4)

    def judge(request):
        said = chance._fill(request.schema)
        return {"sentences": ["It is not there."]} if "copies" in request.task else said

    llm = FakeLLM(judge)
    metrics = [
        SummarizationScore(llm=llm, length_penalty=False),
        AlignmentCoverage(llm=llm, **options),
        ResponseRelevancy(llm=llm, embedder=FakeEmbedder(), parts=True),
        ContextRelevancy(llm=llm),
        ContextRelevancy(llm=llm, selection="verbatim"),
    ]
    for _ in range(n):
        for metric in metrics:
            outcome = metric.score(SAMPLE)
            if isinstance(outcome, Score):
                yield outcome


def score_of(metric, verdicts, **parts):
    return Score(metric=metric, value=0.5, reason="Why.", breakdown=parts, verdicts=verdicts, version="1")


def test_every_word_of_every_metric_is_known():
    words = {(s.metric, v.kind, v.verdict) for s in scores() for v in s.verdicts}
    assert words == {(*key, word) for key, words in WORDS.items() for word in words}
    assert None not in [cost for s in scores(n=5) for cost in costs(s)]


@pytest.mark.parametrize("rule", ["both_yes", "agreement"])
def test_what_costs_is_what_is_missing_from_the_score(rule):
    for score in scores(coverage_rule=rule):
        judged = list(zip(score.verdicts, costs(score), strict=True))

        def share(kind, judged=judged, counts=lambda v: True):
            of = [cost for verdict, cost in judged if verdict.kind == kind and counts(verdict)]
            return of.count(False) / len(of)

        if score.metric == "summarization_score":
            assert share("question") == pytest.approx(score.value)
        elif score.metric == "context_relevancy" and "unmatched" not in score.breakdown:
            assert share("sentence") == pytest.approx(score.value)
        elif score.metric == "alignment_coverage":
            assert share("claim") == pytest.approx(score.breakdown["alignment"])
            asked = {v.id for v in score.verdicts if v.kind == "source_answer" and v.verdict == "yes"}
            counts = (lambda v, asked=asked: v.id in asked) if rule == "both_yes" else (lambda v: True)
            assert share("summary_answer", counts=counts) == pytest.approx(score.breakdown["coverage"])
        elif score.metric == "response_relevancy":
            full = all(cost is False for cost in costs(score))
            assert full == (score.value > 1 - 1e-5)


def test_a_question_costs_as_far_as_it_is_from_the_one_asked():
    verdicts = [Verdict(id=str(i), kind="question", text="", verdict="committal") for i in (1, 2)]
    assert costs(score_of("response_relevancy", verdicts, cosine_1=1.0, cosine_2=0.9)) == [False, True]


def test_a_metric_of_your_own():
    verdicts = [Verdict(id="1", kind="claim", text="", verdict="contradicted")]
    assert costs(score_of("mine", verdicts)) == [None]
    assert costs(score_of("alignment_coverage", [])) == []
    assert bounds_of("mine") is None
    assert bounds_of("response_relevancy") == (-1.0, 1.0)
