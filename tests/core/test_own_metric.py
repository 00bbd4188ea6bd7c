"""Metrics and judges of somebody's own: their forms are checked, and they work wherever ragstone's do."""

import asyncio
import importlib
import math
import os
import sys
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

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
from ragstone.metrics.names import make_metric, metric_class, metric_names
from ragstone.metrics.outcomes import ascore_safely, score_safely
from ragstone.testing import FakeDecisions, FakeEmbedder, FakeLLM, assert_score

from ..support.judges import AsyncLLM, step, truth  # noqa: TID252

SAMPLE = Sample(response="It is so.")
REQUEST = LLMRequest("plain.ask", "Answer.", "Is it so?", {})


def yes():
    return FakeLLM("yes")


class OnlyGenerate:
    model = "half"

    def generate(self, request, /):
        return LLMReply("yes")


@pytest.mark.parametrize(
    ("metric", "option", "value"),
    [
        (SummarizationScore, "coeff", 1.5),
        (SummarizationScore, "length_penalty", "no"),
        (SummarizationScore, "questions", [" "]),
        (SummarizationScore, "threshold", 2),
        (SummarizationScore, "asking", "each"),
        (SummarizationScore, "max_input_tokens", 0),
        (SummarizationScore, "llm", "gpt"),
        (AlignmentCoverage, "n_questions", 0),
        (AlignmentCoverage, "source", "response"),
        (AlignmentCoverage, "assessment_questions", []),
        (AlignmentCoverage, "language", "xx"),
        (ContextRelevancy, "granularity", "word"),
        (ResponseRelevancy, "noncommittal", "some"),
        (ResponseRelevancy, "threshold", -1.1),
    ],
)
def test_an_option_out_of_its_range_is_refused_by_name(metric, option, value):
    extra = {"embedder": FakeEmbedder()} if metric is ResponseRelevancy else {}
    with pytest.raises((ValueError, TypeError), match=option):
        metric(**{"llm": yes(), **extra, option: value})


def test_what_a_judge_lacks_is_named():
    with pytest.raises(TypeError, match=r"llm: OnlyGenerate has no asking, agenerate; .*BaseLLM"):
        SummarizationScore(llm=OnlyGenerate())
    with pytest.raises(TypeError, match=r"llm: is the class FakeLLM; make an object: FakeLLM\(...\)"):
        SummarizationScore(llm=FakeLLM)
    with pytest.raises(TypeError, match=r"embedder: OnlyGenerate has no embed, aembed; .*BaseEmbedder"):
        ResponseRelevancy(llm=yes(), embedder=OnlyGenerate())
    with pytest.raises(ValueError, match="llm.asking: 'one-by-one' should be"):
        SummarizationScore(llm=FakeLLM("yes", asking="one-by-one"))


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
    llm = AsyncLLM("yes")
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
        assert (outcome.reason, outcome.detail, outcome.usage.llm_calls) == (reason, detail, 5)


def named_judge():
    """A judge for `llm="module:function"` that embeds as well, as a server does."""
    judge, embedder = FakeLLM("yes", model="named"), FakeEmbedder(dim=4)
    judge.embed, judge.aembed = embedder.embed, embedder.aembed
    return judge


@pytest.mark.parametrize("name", metric_names())
def test_the_judge_may_stand_first_by_name_and_is_made_once(name):
    kind = metric_class(name)
    metric = kind(f"{__name__}:named_judge")
    assert metric.judge.model == "named"
    assert replace(metric, max_characters=9).judge is metric.judge
    assert kind(metric.judge) == metric


def test_a_field_of_ones_own_for_the_judge_takes_a_name_too():
    @dataclass(frozen=True, kw_only=True)
    class Polite(Metric):
        name: ClassVar[str] = "polite"
        version: ClassVar[str] = "1"
        required_fields: ClassVar[tuple[str, ...]] = ("response",)
        prompts: ClassVar[dict[str, str]] = {"polite": "Is it polite?"}
        llm: object = None

        def _flow(self, sample):
            request = self.choice("polite", {"response": sample.response}, "Answer yes or no.", ("yes", "no"))
            return self._score(float((yield from self.ask_choice(request)).choice == "yes"), "")

    assert Polite(llm=f"{__name__}:named_judge").score(Sample(response="Thanks.")).value == 1.0
    assert Polite().llm is None


def test_judge_and_embedder_may_be_named():
    named = f"{__name__}:named_judge"
    metric = ResponseRelevancy(llm=named)
    assert metric.judge.model == "named"
    assert metric.judge_embedder is not None
    assert ResponseRelevancy(llm=yes(), embedder=named).judge_embedder.model == "named"
    judge = named_judge()
    assert ResponseRelevancy(llm=judge).judge_embedder is judge
    assert ContextRelevancy(llm=named).judge_embedder is None
    for role, wrong in (("embedder", {"llm": yes()}), ("llm", {"llm": "nowhere:judge"})):
        with pytest.raises(ValueError, match=f"^{role}: "):
            ResponseRelevancy(**wrong)


# --- by the steps of CONTRIBUTING.md: one file ------------------------------------------------------------------------

POLITE = '''
from dataclasses import dataclass

from ragstone import Metric
from ragstone.judging import TEXT, distinct, listing, record
from ragstone.metrics.asking import ask_items
from ragstone.metrics.values import verdicts_of

_LIST = "List the requests that a response makes of its reader."
_ASK = "Decide whether requests are polite."


@dataclass(frozen=True, kw_only=True)
class Polite(Metric):
    """Share of a response's requests that are polite; higher is better."""

    name, version, required_fields = "polite", "1", ("response",)
    prompts = {"requests": _LIST, "polite": _ASK}

    at_most: int = 3

    def _flow(self, sample):
        requests = yield from self.ask_json(
            "requests", {"response": sample.response}, "List the requests.",
            record(requests=listing(TEXT, 1, self.at_most)), lambda value: distinct(value["requests"], "request"))
        answers = yield from ask_items(self, "polite", {"response": sample.response}, requests)
        polite = sum(answer.choice == "yes" for answer in answers)
        return self._score(polite / len(requests), f"{polite} of {len(requests)} are polite.",
                           verdicts=verdicts_of("request", requests, answers, "yes"))
'''
TWO = Sample(response="Please sit. Shut up.")


def reply(request):
    """A judge for either way of asking."""
    if request.task == "polite.requests":
        assert 'Reply with bare JSON: {"requests": [TEXT]}.' in request.user
        return {"requests": ["Please sit.", "Shut up."]}
    if request.choices:
        return "yes" if "<question" in request.user and "Please sit.\n</question" in request.user else "no"
    return {"answers": {"1": "yes", "2": "no"}}


def polite(question, texts):
    """A decision model, which writes none of the requests."""
    assert texts == {"response": TWO.response}
    return float("Please sit.\n</question" in question.instruction)


JUDGES = {
    "together": (FakeLLM(reply), 2),
    "one by one": (FakeLLM(reply, asking="one_by_one"), 3),
    "decisions": (FakeDecisions(polite), 2),
}


@pytest.mark.parametrize("way", JUDGES)
def test_it_is_named_as_the_others_are_and_scores_in_all_three_ways(tmp_path, monkeypatch, way):
    (tmp_path / "manners.py").write_text(POLITE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "manners", importlib.import_module("manners"))
    judge, calls = JUDGES[way]
    writer = FakeLLM(reply) if way == "decisions" else None
    outcome = make_metric("manners:Polite", {"at_most": 2}, judge, writer=writer).score(TWO)
    found = [("request", "yes", False), ("request", "no", True)]
    assert [(v.kind, v.verdict, v.lowers_score) for v in outcome.verdicts] == found
    assert (outcome.value, outcome.usage.llm_calls) == (0.5, calls)
    with pytest.raises(ValueError, match="has no option 'tone'; it has asking, at_most"):
        make_metric("manners:Polite", {"tone": 1}, judge)
    monkeypatch.delitem(sys.modules, "manners")


class Length(Metric):
    name, version, required_fields = "length", "1", ("response",)
    higher_is_better, needs_llm = False, False

    def _flow(self, sample):
        return self._score(len(sample.response) / 10, "")


def test_where_lower_is_better_a_threshold_is_the_greatest_value_that_passes():
    scores = [Length(threshold=0.5).score(Sample(response="x" * n)) for n in (4, 5, 6)]
    assert [score.passed for score in scores] == [True, True, False]
    assert (scores[0].usage.llm_calls, scores[0].usage.input_tokens) == (0, 0)
    assert asyncio.run(Length().ascore(Sample(response="x"))).value == 0.1
    assert assert_score({"response": "xx"}, Length(), at_least=0.5).value == 0.2
    with pytest.raises(AssertionError, match="length is 0.800, at most 0.5 is wanted"):
        assert_score({"response": "x" * 8}, Length(), at_least=0.5)


# --- instructions of one's own ----------------------------------------------------------------------------------------


class Asked(Plain):
    prompts = MappingProxyType({"ask": "Is it polite?"})
    examples = MappingProxyType({"ask": "\n\nExample: Thanks. Answer: yes"})

    def _flow(self, sample):
        answer = yield from self.ask_choice(self.choice("ask", {"response": sample.response}, "So?", ("yes", "no")))
        return self._score(float(answer.choice == "yes"), "So.")


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
def test_instructions_of_ones_own_stand_in_place_of_the_metrics_and_of_its_examples(asking):
    mine = 'Mine. {unknown} {} %s {{x}} {"a": 1}'
    llm = FakeLLM("yes", asking=asking)
    metrics = [Asked(llm=llm), Asked(llm=llm, instructions={"ask": mine}), Asked(llm=llm, instructions=Asked.prompts)]
    own, changed, same = (metric.score(SAMPLE) and llm.requests[-1] for metric in metrics)
    assert own == same
    assert metrics[0].version == metrics[2].version == Asked.version != metrics[1].version
    assert ("Example: " in own.system, "Example: " in changed.system) == (asking == "one_by_one", False)
    shown = [request.system + request.user for request in (own, changed)]
    assert [(text.count(mine), text.count("polite?")) for text in shown] == [(0, 1), (1, 0)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"verdicts": "V."}, "instructions: 'verdicts' is not a step; the steps are ask"),
        ({"ask": " "}, r"instructions\['ask'\]: ' ' is blank"),
        ({"ask": None}, r"instructions\['ask'\]: None should be a valid string"),
        ("Be strict.", "instructions: 'Be strict.' should be a valid dictionary"),
    ],
)
def test_wrong_instructions_are_refused_when_the_metric_is_made(given, message):
    with pytest.raises(ValueError, match=message):
        Asked(llm=yes(), instructions=given)
