"""Scored by count or by the judge's probabilities: who decides, and what an outcome says of it."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from ragstone import Faithfulness, LLMReply, Metric, Sample
from ragstone.batch.estimation import synthetic_reply
from ragstone.metrics.fitted import SUPPORTED
from ragstone.registry import make_metric, metric_names
from ragstone.testing import FakeEmbedder, FakeLLM

from .judges import mapped

SAMPLE = Sample(
    user_input="Who wrote Emma, and when?",
    retrieved_contexts=["Jane Austen wrote Emma. It is long.", "Emma came out in 1815."],
    response="Jane Austen wrote it. It came out in 1815.",
    reference="It is by Jane Austen. It is from 1815.",
)


def graded(request):
    """Any reply of the asked form, the first choice three times as probable as all others."""
    if request.choices is None:
        return synthetic_reply(request)
    first, *others = request.choices
    return LLMReply(first, probabilities={first: 0.75, **dict.fromkeys(others, 0.25 / len(others))})


def judge(asking="one_by_one", *, declared=True, reply=graded):
    return FakeLLM(reply, asking=asking, gives_probabilities=declared)


def made(name, llm, **options):
    return make_metric(name, options, llm, FakeEmbedder())


@pytest.mark.parametrize("name", metric_names())
def test_the_judge_decides_and_the_outcome_says_how_it_was_scored(name):
    plain = type(made(name, judge())).version
    for llm in (judge("together"), judge(declared=False)):
        assert made(name, llm).version == plain
    counted, expected, auto = (
        made(name, judge(), scoring=scoring).score(SAMPLE) for scoring in ("count", "expected", "auto")
    )
    chosen = counted if name == "context_relevancy" else expected
    assert (counted.version, expected.version, auto.version) == (plain, f"{plain}+expected", chosen.version)
    assert counted.breakdown == expected.breakdown == auto.breakdown
    assert counted.value == counted.breakdown["count"] != expected.value == expected.breakdown["expected"]
    assert auto.value == chosen.value
    by_count, by_judge = f"{counted.value:.2f} by count", f"{expected.value:.2f} by the judge's probabilities"
    assert counted.reason.endswith(f"The score is {by_count} ({by_judge}).")
    assert expected.reason.endswith(f"The score is {by_judge} ({by_count}).")
    assert {"count", "expected"}.isdisjoint(made(name, judge("together")).score(SAMPLE).breakdown)


def test_how_a_metric_scores_goes_by_what_it_is_made_with():
    metric = Faithfulness(llm=judge())
    assert replace(metric, llm=judge("together")).version == Faithfulness.version
    assert replace(metric, asking="together").version == Faithfulness.version
    assert replace(metric).version == metric.version == f"{Faithfulness.version}+expected"
    other = replace(metric, instructions={"claims": "List what it says."})
    assert other.version.startswith(f"{Faithfulness.version}+")
    assert other.version.endswith("+expected")


@pytest.mark.parametrize("name", metric_names())
def test_a_reply_without_probabilities_is_no_score_by_count(name):
    """Nor is it one where the judge declares probabilities, which fitted weights and cuts build on."""

    def bare(request):
        return graded(request) if request.choices is None else request.choices[0]

    for scoring, version in (("expected", "+expected"), ("count", "")):
        metric = made(name, judge(reply=bare), scoring=scoring)
        outcome = metric.score(SAMPLE)
        assert (outcome.reason, outcome.version) == ("undefined", f"{type(metric).version}{version}")
        assert "gave no probabilities for" in outcome.detail
        assert outcome.detail.endswith("; it declares them"), "it is no matter of the option"
    counted = made(name, judge(declared=False, reply=bare)).score(SAMPLE)
    assert "expected" not in counted.breakdown, "a judge that declares none is counted"


def test_passed_goes_by_the_value():
    counted, expected = (Faithfulness(llm=judge(), scoring=s, threshold=0.99).score(SAMPLE) for s in ("count", "auto"))
    assert (counted.value, counted.passed, expected.value, expected.passed) == (
        1.0,
        True,
        pytest.approx(mapped(SUPPORTED, 0.75)),
        False,
    )


class Polite(Metric):
    name, version, required_fields = "polite", "1", ("response",)
    prompts = MappingProxyType({"polite": "Is it polite?"})

    def _flow(self, sample):
        request = self.choice("polite", {"response": sample.response}, "Answer yes or no.", ("yes", "no"))
        answer = yield from self.ask_choice(request)
        return self._score(float(answer.choice == "yes"), "So it is.")


def test_a_metric_of_ones_own_without_an_expected_value_is_counted_by_any_judge():
    for llm in (judge(), judge(declared=False, reply=lambda request: "yes")):
        outcome = Polite(llm=llm).score(SAMPLE)
        assert (outcome.value, outcome.version, outcome.reason) == (1.0, "1", "So it is.")
    with pytest.raises(ValueError, match="scoring='expected': polite has no expected value"):
        Polite(llm=judge(), scoring="expected")
