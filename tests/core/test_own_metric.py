"""What someone who makes a metric, or writes one, a judge or an embedder of her own, is told when it is wrong."""

import asyncio
import math
import os

import pytest

from ragstone import (
    AlignmentCoverage,
    BaseLLM,
    ContextRelevancy,
    LLMReply,
    LLMRequest,
    Metric,
    ResponseRelevancy,
    Sample,
    SummarizationScore,
)
from ragstone.judging import ask, embed
from ragstone.metrics.outcomes import ascore_safely, score_safely
from ragstone.testing import FakeEmbedder, FakeLLM

from .judges import step, truth

SAMPLE = Sample(response="Yes.")
REQUEST = LLMRequest("demo", "", "", {})


def yes() -> FakeLLM:
    return FakeLLM(lambda request: "yes")


class OnlyGenerate:
    model = "half"

    def generate(self, request):
        return LLMReply("yes")


@pytest.mark.parametrize(
    ("metric", "option", "value"),
    [
        (SummarizationScore, "coeff", 1.7),
        (SummarizationScore, "coeff", math.nan),
        (SummarizationScore, "length_penalty", "no"),
        (SummarizationScore, "questions", []),
        (SummarizationScore, "questions", "A?"),
        (SummarizationScore, "threshold", 1.5),
        (SummarizationScore, "asking", "nicely"),
        (SummarizationScore, "max_characters", 0),
        (SummarizationScore, "scoring", "best"),
        (SummarizationScore, "scoring", "expected"),  # which only asking one by one gives
        (SummarizationScore, "max_input_tokens", 0),
        (SummarizationScore, "llm", "gpt"),
        (AlignmentCoverage, "n_questions", 0),
        (AlignmentCoverage, "source", "response"),
        (AlignmentCoverage, "coverage_rule", "answerable"),
        (AlignmentCoverage, "assessment_questions", []),
        (AlignmentCoverage, "language", "xx"),
        (ContextRelevancy, "granularity", "word"),
        (ResponseRelevancy, "strictness", 0),
        (ResponseRelevancy, "sampling", "n"),
        (ResponseRelevancy, "noncommittal", "some"),
        (ResponseRelevancy, "threshold", -1.1),
    ],
)
def test_an_option_out_of_its_range_is_refused_by_name(metric, option, value):
    extra = {"embedder": FakeEmbedder()} if metric is ResponseRelevancy else {}
    with pytest.raises(ValueError, match=option):
        metric(**{"llm": yes(), **extra, option: value})


def test_what_a_judge_lacks_is_named():
    with pytest.raises(TypeError, match=r"llm: OnlyGenerate has no asking, agenerate; .*BaseLLM"):
        SummarizationScore(llm=OnlyGenerate())
    with pytest.raises(TypeError, match=r"llm: is the class FakeLLM; make an object: FakeLLM\(...\)"):
        SummarizationScore(llm=FakeLLM)
    with pytest.raises(TypeError, match=r"embedder: OnlyGenerate has no embed, aembed; .*BaseEmbedder"):
        ResponseRelevancy(llm=yes(), embedder=OnlyGenerate())
    with pytest.raises(ValueError, match="llm.asking: 'one-by-one' should be"):
        SummarizationScore(llm=FakeLLM(lambda request: "yes", asking="one-by-one"))


class Plain(Metric):
    name, version, required_fields = "plain", "1", ("response",)
    value = 0.5

    def _flow(self, sample):
        yield from ask(REQUEST, lambda reply: reply.text)
        return self._score(self.value, "So.")


def no_generator(self, sample):
    return self._score(0.5, "So.")


def returns_nothing(self, sample):
    yield from ask(REQUEST, lambda reply: reply.text)


def yields_a_bare_request(self, sample):
    yield REQUEST


def embeds_without_an_embedder(self, sample):
    yield from embed([sample.response])


@pytest.mark.parametrize(
    ("attributes", "error", "message"),
    [
        ({"required_fields": ("answer",)}, ValueError, "required_fields"),
        ({"value": 5.0}, ValueError, "plain: the value .* is outside the metric's bounds 0.0 to 1.0"),
        ({"value": math.nan}, ValueError, "outside the metric's bounds"),
        ({"_flow": no_generator}, TypeError, "_flow must be a generator"),
        ({"_flow": returns_nothing}, TypeError, "must return self._score"),
        ({"_flow": yields_a_bare_request}, TypeError, "must yield a tuple of requests, not LLMRequest"),
        ({"_flow": embeds_without_an_embedder}, TypeError, "name an embedder"),
    ],
    ids=range(7),
)
def test_a_metric_of_the_wrong_form(attributes, error, message):
    with pytest.raises(error, match=message):
        type("Wrong", (Plain,), attributes)(llm=yes()).score(SAMPLE)


def test_an_adapter_that_returns_no_reply_is_named():
    wrong = type("Wrong", (BaseLLM,), {"model": "wrong", "generate": lambda self, request, /: "yes"})
    metric = Plain(llm=wrong())
    for score in (metric.score, lambda sample: asyncio.run(metric.ascore(sample))):
        with pytest.raises(TypeError, match="Wrong: .*LLMReply, not str"):
            score(SAMPLE)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_half_a_judge_works_on_in_a_forked_process():
    class Later(BaseLLM):
        model = "later"

        async def agenerate(self, request, /):
            return LLMReply("yes")

    llm = Later()
    assert llm.generate(REQUEST).text == "yes"
    child = os.fork()
    if child == 0:
        os._exit(0 if llm.generate(REQUEST).text == "yes" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    ("error", "reason", "detail"),
    [
        (ConnectionError("refused"), "judge_error", "ConnectionError: refused"),
        (TimeoutError("no reply in 5 s"), "timeout", "TimeoutError: no reply in 5 s"),
        (ValueError("x" * 9_999), "judge_error", "ValueError: " + "x" * 499 + "…"),
    ],
    ids=["error", "timeout", "long"],
)
def test_what_a_judge_raises_becomes_an_outcome_that_knows_what_was_spent(error, reason, detail):
    def second_round_fails(request):
        return truth(request) if step(request) in ("claims", "questions") else error

    sample = Sample(user_input="It is so.", response="It is so.")
    metric = AlignmentCoverage(llm=FakeLLM(second_round_fails))
    for outcome in (score_safely(metric, sample), asyncio.run(ascore_safely(metric, sample))):
        assert (outcome.reason, outcome.detail) == (reason, detail)
        assert outcome.usage.llm_calls == 5
    good = AlignmentCoverage(llm=FakeLLM(truth))
    assert score_safely(good, sample).value == asyncio.run(ascore_safely(good, sample)).value == 1.0


class NamedJudge(FakeLLM):
    """A judge for `llm="module:function"` that embeds as well, as a server does."""

    def __init__(self) -> None:
        super().__init__(lambda request: "yes")
        self.embed = FakeEmbedder(dim=4).embed
        self.aembed = FakeEmbedder(dim=4).aembed


def test_judge_and_embedder_may_be_named():
    named = f"{__name__}:NamedJudge"
    metric = ResponseRelevancy(llm=named)
    assert isinstance(metric.judge, NamedJudge)
    assert metric.judge_embedder is not None
    other = ResponseRelevancy(llm=yes(), embedder=named)
    assert isinstance(other.judge_embedder, NamedJudge)
    judge = NamedJudge()
    assert ResponseRelevancy(llm=judge).judge_embedder is judge
    assert ContextRelevancy(llm=named).judge_embedder is None
    for role, wrong in (("embedder", {"llm": yes()}), ("llm", {"llm": "nowhere:judge"})):
        with pytest.raises(ValueError, match=f"^{role}: "):
            ResponseRelevancy(**wrong)
