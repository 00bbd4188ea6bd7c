"""What someone who writes a metric, a judge or an embedder of her own is told when it is wrong."""

import os
import threading

import pytest

from ragstone import BaseLLM, LLMReply, LLMRequest, Metric, ResponseRelevancy, Sample, SummarizationScore
from ragstone.asking import ask
from ragstone.testing import FakeEmbedder, FakeLLM

SAMPLE = Sample(response="Yes.")
REQUEST = LLMRequest("demo", "", "", {})


class Plain(Metric):
    name, version, required_fields = "plain", "1", ("response",)
    value = 0.5

    def _flow(self, sample):
        yield from ask(REQUEST, lambda reply: reply.text)
        return self._score(self.value, "So.")


def yes() -> FakeLLM:
    return FakeLLM(lambda request: "yes")


def test_a_metric_of_ones_own_scores():
    assert Plain(llm=yes(), threshold=0.5).score(SAMPLE).passed


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"required_fields": "response"}, "required_fields"),
        ({"required_fields": ("answer",)}, "required_fields"),
    ],
)
def test_facts_are_checked_when_it_is_made(attributes, message):
    with pytest.raises(TypeError, match=message):
        type("Wrong", (Plain,), attributes)(llm=yes())


@pytest.mark.parametrize("missing", ["name", "version"])
def test_a_fact_is_missing(missing):
    facts = {"name": "own", "version": "1", "required_fields": ("response",), "_flow": Plain._flow}
    del facts[missing]
    with pytest.raises(TypeError, match=f"needs the class attribute {missing}"):
        type("Own", (Metric,), facts)(llm=yes())


@pytest.mark.parametrize("value", [5.0, -0.1, float("nan"), float("inf")])
def test_a_value_outside_the_bounds_is_no_score(value):
    with pytest.raises(ValueError, match="plain: the value .* is outside the metric's bounds 0.0 to 1.0"):
        type("Wrong", (Plain,), {"value": value})(llm=yes()).score(SAMPLE)


def flow_that_is_no_generator(self, sample):
    return self._score(0.5, "So.")


def flow_that_returns_nothing(self, sample):
    yield from ask(REQUEST, lambda reply: reply.text)


def flow_that_yields_a_bare_request(self, sample):
    yield REQUEST


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (flow_that_is_no_generator, "_flow must be a generator"),
        (flow_that_returns_nothing, "must return self._score"),
        (flow_that_yields_a_bare_request, "must yield a tuple of requests, not LLMRequest"),
    ],
)
def test_a_flow_of_the_wrong_form(flow, message):
    with pytest.raises(TypeError, match=message):
        type("Wrong", (Plain,), {"_flow": flow})(llm=yes()).score(SAMPLE)


class OnlyGenerate:
    model = "half"

    def generate(self, request):
        return LLMReply("yes")


def test_what_a_judge_lacks_is_named():
    with pytest.raises(TypeError, match=r"llm: OnlyGenerate has no asking, agenerate; .*BaseLLM"):
        SummarizationScore(llm=OnlyGenerate())
    with pytest.raises(TypeError, match=r"llm: is the class FakeLLM, not an object of it: write FakeLLM\(...\)"):
        SummarizationScore(llm=FakeLLM)
    with pytest.raises(TypeError, match=r"embedder: OnlyGenerate has no embed, aembed; .*BaseEmbedder"):
        ResponseRelevancy(llm=yes(), embedder=OnlyGenerate())
    with pytest.raises(ValueError, match="llm.asking: 'one-by-one' is not one of"):
        SummarizationScore(llm=FakeLLM(lambda request: "yes", asking="one-by-one"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": "0.5"}, "threshold: '0.5' is not a number"),
        ({"threshold": True}, "threshold: True is not a number"),
        ({"coeff": None}, "coeff: None is not a number"),
        ({"length_penalty": "no"}, "length_penalty: 'no' is not True or False"),
    ],
)
def test_options_are_checked_when_it_is_made(options, message):
    with pytest.raises(ValueError, match=message):
        SummarizationScore(llm=yes(), **options)


def test_the_reason_says_where_the_number_is_from():
    def reply(request):
        if request.choices:
            return LLMReply("refused", probabilities={"refused": 0.75, "answered": 0.25})
        return {"questions": ["Why?"]}

    llm = FakeLLM(reply, asking="one_by_one")
    sample = Sample(user_input="Why?", response="I cannot say.")
    count, expected = (
        ResponseRelevancy(llm=llm, embedder=FakeEmbedder(), strictness=1, scoring=scoring).score(sample)
        for scoring in ("count", "expected")
    )
    assert (count.value, count.reason.endswith("which makes the score 0.")) == (0.0, True)
    assert expected.value == pytest.approx(0.25)
    assert "makes the score 0" not in expected.reason
    assert expected.reason.endswith("By the judge's probabilities: 0.25.")


def test_a_failed_request_does_not_wait_for_its_siblings():
    let_go = threading.Event()

    class TwoAtOnce(Plain):
        def _flow(self, sample):
            yield (LLMRequest("slow", "", "", {}), LLMRequest("broken", "", "", {}))

    def reply(request):
        if request.task == "broken":
            return ConnectionError("down")
        let_go.wait(30)
        return "yes"

    try:
        with pytest.raises(ConnectionError):
            TwoAtOnce(llm=FakeLLM(reply)).score(SAMPLE)  # would hang here for 30 s
        assert not let_go.is_set()
    finally:
        let_go.set()


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
