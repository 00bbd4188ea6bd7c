"""Scored by count or by the judge's probabilities: who decides, and what an outcome says of it."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from ragstone import Criterion, Faithfulness, LLMReply, Sample, Score, Verdict
from ragstone.batch.estimation import synthetic_reply
from ragstone.metrics.names import make_metric, metric_class, metric_names
from ragstone.testing import FakeEmbedder, FakeLLM

SAMPLE = Sample(
    user_input="Who wrote Emma, and when?",
    retrieved_contexts=["Jane Austen wrote Emma. It is long.", "Emma came out in 1815."],
    response="Jane Austen wrote it [1]. It came out in 1815 [2].",
    reference="It is by Jane Austen. It is from 1815.",
)
OF_SEVERAL = ".", ". Weighed by how sure the judge is of each, the score is {expected:.2f} (counted: {counted:.2f})."
SAID = {
    "response_completeness": ("1 of 1 parts of the question; the judge is over 99 % sure.",) * 2,
    "response_relevancy": (
        "to the user's question; the judge is over 99 % sure that it is answered.",
        "sure that it is answered: {counted:.2f} x 1.00 gives {expected:.2f}.",
    ),
}
EXPECTING = [name for name in metric_names() if metric_class(name).has_expected]


def graded(request):
    """Any reply of the asked form, the first choice three times as probable as all others."""
    if request.choices is None:
        return synthetic_reply(request)
    first, *others = request.choices
    return LLMReply(first, probabilities={first: 0.75, **dict.fromkeys(others, 0.25 / len(others))})


def grading(asking="one_by_one", *, declared=True, reply=graded):
    return FakeLLM(reply, asking=asking, gives_probabilities=declared)


def made(name, llm, **options):
    return make_metric(name, options, llm, FakeEmbedder())


@pytest.mark.parametrize("name", EXPECTING)
def test_the_judge_decides_and_the_outcome_says_how_it_was_scored(name):
    plain = type(made(name, grading())).version
    for llm in (grading("together"), grading(declared=False)):
        assert made(name, llm).version == plain
    counted, expected, auto = (
        made(name, grading(), scoring=scoring).score(SAMPLE) for scoring in ("count", "expected", "auto")
    )
    chosen = counted if name in ("context_relevancy", "context_precision") else expected
    assert (counted.version, expected.version, auto.version) == (plain, f"{plain}+expected", chosen.version)
    assert counted.breakdown == expected.breakdown == auto.breakdown
    assert counted.value == counted.breakdown["count"] != expected.value == expected.breakdown["expected"]
    assert auto.value == chosen.value
    of_count, of_shares = SAID.get(name, OF_SEVERAL)
    numbers = {"counted": counted.value, "expected": expected.value}
    assert counted.reason.endswith(of_count.format(**numbers))
    assert expected.reason.endswith(of_shares.format(**numbers))
    assert {"count", "expected"}.isdisjoint(made(name, grading("together")).score(SAMPLE).breakdown)


def test_how_a_metric_scores_goes_by_what_it_is_made_with():
    metric = Faithfulness(llm=grading())
    assert replace(metric, llm=grading("together")).version == Faithfulness.version
    assert replace(metric, asking="together").version == Faithfulness.version
    assert replace(metric).version == metric.version == f"{Faithfulness.version}+expected"
    other = replace(metric, instructions={"claims": "List what it says."})
    assert other.version.startswith(f"{Faithfulness.version}+")
    assert other.version.endswith("+expected")


@pytest.mark.parametrize("name", EXPECTING)
def test_a_reply_without_probabilities_is_no_score_by_count(name):
    """Nor is it one where the judge declares probabilities, which fitted weights and cuts build on."""

    def bare(request):
        return graded(request) if request.choices is None else request.choices[0]

    for scoring, version in (("expected", "+expected"), ("count", "")):
        metric = made(name, grading(reply=bare), scoring=scoring)
        outcome = metric.score(SAMPLE)
        assert (outcome.reason, outcome.version) == ("undefined", f"{type(metric).version}{version}")
        assert "gave no probabilities for" in outcome.detail
        assert outcome.detail.endswith("; it declares them"), "it is no matter of the option"
    counted = made(name, grading(declared=False, reply=bare)).score(SAMPLE)
    assert "expected" not in counted.breakdown, "a judge that declares none is counted"


def scaled(by):
    """A judge whose adapter returns three quarters and the rest, each as `by` makes it."""

    def reply(request):
        given = graded(request)
        changed = given.probabilities and {word: by(p) for word, p in given.probabilities.items()}
        return replace(given, probabilities=changed)

    return grading(reply=reply)


METRICS = [*(name for name in metric_names() if metric_class(name).needs_llm), "graded"]


def scored(name, llm):
    if name == "graded":
        return Criterion(name, "Is it polite?", choices=("good", "fair", "poor"), llm=llm).score(SAMPLE)
    return made(name, llm).score(SAMPLE)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    "by",
    [lambda p: p / 5, lambda p: 1e-320 * p, lambda p: 1e308 * p, lambda p: int(p * 10**30), np.float32, Fraction],
    ids=["small", "least", "largest", "counts", "float32", "fraction"],
)
def test_probabilities_are_brought_to_a_sum_of_1(name, by):
    expected, found = scored(name, grading()), scored(name, scaled(by))
    assert found.value == pytest.approx(expected.value, rel=1e-3)
    assert found.breakdown == pytest.approx(expected.breakdown, rel=1e-3)
    assert [verdict.probability or 0.0 for verdict in found.verdicts] == pytest.approx(
        [verdict.probability or 0.0 for verdict in expected.verdicts], rel=1e-3
    )


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    ("by", "said"),
    [
        (lambda p: -p, "not a finite number of at least 0"),
        (lambda p: math.log(p), "not a finite number of at least 0"),
        (lambda p: math.nan, "has nan"),
        (lambda p: math.inf, "has inf"),
        (lambda p: 10**5000, "has inf"),
        (lambda p: 0, "all are 0"),
        (lambda p: -0.0, "all are 0"),
        (lambda p: str(p), "has str, not a number"),
        (lambda p: None, "has NoneType, not a number"),
        (lambda p: True, "has bool, not a number"),
        (lambda p: np.True_, "bool, not a number"),
        (lambda p: [p], "has list, not a number"),
        (lambda p: 1j, "has complex, not a number"),
    ],
    ids=range(13),
)
def test_what_is_no_probability_is_an_adapters_fault_and_no_exception(name, by, said):
    outcome = scored(name, scaled(by))
    assert outcome.reason == "judge_unparseable"
    assert "the judge's adapter filled LLMReply.probabilities wrongly" in outcome.detail
    assert said in outcome.detail


@pytest.mark.parametrize(
    ("choices", "said"),
    [(("yes", "no"), "Is it polite? yes; the judge is 75 % sure."),
     (("good", "fair", "poor"), "Is it polite? good; the judge's shares: good 75 %, fair 12 %, poor 12 %.")],
)  # fmt: skip
def test_a_criterion_says_how_sure_the_judge_is(choices, said):
    assert Criterion("polite", "Is it polite?", choices=choices, llm=grading()).score(SAMPLE).reason == said


def test_rounding_does_not_pass_the_best_value():
    choices = {f"word{i}x": float(i > 0) for i in range(8)}
    given = dict(zip(choices, (0.0, 0.1, 0.7, 0.1, 0.3, 0.3, 0.2, 0.1), strict=True))
    llm = grading(reply=lambda request: LLMReply("word1x", probabilities=given))
    outcome = Criterion("polite", "Is it polite?", choices=choices, llm=llm).score(SAMPLE)
    assert outcome.value == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("kind", "word", "of_affirmative", "shown"),
    [
        ("question", "no_answer", 0.04, "no answer (96 % sure): "),
        ("question", "answer", 0.9, "answer (90 % sure): "),
        ("part", "no", 0.33, "no (67 % sure): "),
        ("context", "useless", 0.25, "useless (75 % sure): "),
        ("claim", "unsupported", 0.25, "unsupported (75 % sure): "),
        ("claim", "contradicted", 0.25, "contradicted: "),  # of three words
        ("source_answer", "no", 0.25, "no: "),
        ("claim", "supported", 1.0, "supported (over 99 % sure): "),
        ("claim", "supported", 0.004, "supported (under 1 % sure): "),
    ],
)
def test_the_probability_printed_is_of_the_word_printed(kind, word, of_affirmative, shown):
    verdict = Verdict(id="1", kind=kind, text="It.", verdict=word, probability=of_affirmative)
    assert f"{kind.replace('_', ' ')} 1: {shown}It." in str(
        Score(metric="m", value=0.5, reason="", version="1", verdicts=(verdict,))
    )
