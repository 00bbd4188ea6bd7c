"""MetricEvaluator and the four named ones: the same outcome as core's, in LlamaIndex's form."""

import asyncio
import dataclasses
import importlib
import json
import pkgutil

import pytest
from llama_index.core import Settings
from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.schema import NodeWithScore, TextNode

import ragstone
import ragstone_llama_index
from ragstone import (
    AlignmentCoverage,
    ContextRelevancy,
    LLMReply,
    ResponseRelevancy,
    Score,
    SummarizationScore,
    Unscored,
)
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone_llama_index import (
    AlignmentCoverageEvaluator,
    ContextRelevancyEvaluator,
    LlamaIndexEmbedder,
    LlamaIndexLLM,
    MetricEvaluator,
    MetricResult,
    ResponseRelevancyEvaluator,
    SummarizationScoreEvaluator,
    named,
)

from ..support.keys import ERRORS, KEYS, OWN, leaked  # noqa: TID252
from .models import SAMPLE, Chatting, Completing, Placing, metrics, truth

INPUTS = {"query": SAMPLE.user_input, "response": SAMPLE.response, "contexts": list(SAMPLE.retrieved_contexts)}


def evaluate(evaluator, **inputs):
    return evaluator.evaluate(**inputs)


def aevaluate(evaluator, **inputs):
    return asyncio.run(evaluator.aevaluate(**inputs))


def inside_a_loop(evaluator, **inputs):
    async def notebook():
        return evaluator.evaluate(**inputs)

    return asyncio.run(notebook())


WAYS = [evaluate, aevaluate, inside_a_loop]
BOTH_WAYS = pytest.mark.parametrize("way", [evaluate, aevaluate])


def counted(request):
    """The truth, with the tokens that a provider would count."""
    said = truth(request)
    return LLMReply(said if isinstance(said, str) else json.dumps(said), input_tokens=11, output_tokens=3)


def timeless(outcome):
    return outcome.model_copy(update={"usage": outcome.usage.model_copy(update={"seconds": 0.0})})


@pytest.mark.parametrize(
    ("number", "asking", "model"),
    [
        (i, ("together", "one_by_one")[(i + i // 2) % 2], (Chatting, Completing)[i % 2])
        for i in range(len(metrics(counted)))
    ],
)
def test_one_sample_one_outcome(number, asking, model):
    """Through core, through the evaluator, and with a LlamaIndex model as the judge: the same, tokens included."""
    way = WAYS[number % 3]
    metric = metrics(counted, asking)[number]
    expected = metric.score(SAMPLE)
    assert isinstance(expected, Score)
    embedder = {"embedder": LlamaIndexEmbedder(Placing())} if isinstance(metric, ResponseRelevancy) else {}
    theirs = dataclasses.replace(metric, llm=LlamaIndexLLM(model(counted), asking=asking), **embedder)
    for scorer in (metric, theirs):
        result = way(MetricEvaluator(scorer), **INPUTS)
        assert timeless(result.outcome) == timeless(expected)
        assert (result.query, result.response, result.contexts) == tuple(INPUTS.values())
        assert (result.score, result.feedback, result.passing) == (expected.value, expected.reason, expected.passed)
        assert (result.breakdown, result.verdicts) == (expected.breakdown, expected.verdicts)
        assert (result.metric, result.version) == (metric.name, metric.version)
        assert (result.invalid_result, result.invalid_reason, result.unscored) == (False, None, None)


def test_results_are_evaluation_results_and_survive_json():
    evaluator = MetricEvaluator(metrics(counted)[1])
    before = dict(vars(evaluator))
    result = evaluator.evaluate(**INPUTS)
    assert isinstance(result, EvaluationResult)
    assert MetricResult.model_validate_json(result.model_dump_json()) == result
    assert vars(evaluator) == before  # nothing of a sample is kept


NAMED = {
    "summarization_score": (SummarizationScoreEvaluator, {"questions": ("Is it so?",)}),
    "alignment_coverage": (AlignmentCoverageEvaluator, {"n_questions": 2, "threshold": None}),
    "response_relevancy": (ResponseRelevancyEvaluator, {"strictness": 2, "noncommittal": "any"}),
    "context_relevancy": (ContextRelevancyEvaluator, {"granularity": "chunk", "threshold": 0.4}),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_evaluators_take_models_and_the_metrics_options(name):
    kind, options = NAMED[name]
    before = kind()  # made before Settings are set
    Settings.llm, Settings.embed_model = Chatting(truth, name="of Settings"), Placing()
    for llm, model in ((None, "of Settings"), (Completing(truth), "completing"), (FakeLLM(truth), "fake")):
        evaluator = kind(llm, **options)
        assert isinstance(evaluator, BaseEvaluator)
        assert (evaluator.metric.name, evaluator.metric.llm.model) == (name, model)
        assert {option: getattr(evaluator.metric, option) for option in options} == options
    assert before.evaluate(**INPUTS).unscored is None


def test_embedders_of_both_kinds():
    for embed_model, name in ((Placing(), "placing"), (FakeEmbedder(), "fake-8"), (None, "Settings.embed_model")):
        assert ResponseRelevancyEvaluator(FakeLLM(truth), embed_model).metric.embedder.model == name


def test_alignment_is_with_the_contexts_unless_said_otherwise():
    assert AlignmentCoverageEvaluator(FakeLLM(truth)).metric.source == "retrieved_contexts"
    assert AlignmentCoverageEvaluator(FakeLLM(truth), source="user_input").metric.source == "user_input"


def test_passing_is_by_the_metrics_threshold():
    for threshold, passing in ((None, None), (0.0, True), (1.0, False)):
        assert ContextRelevancyEvaluator(FakeLLM(truth), threshold=threshold).evaluate(**INPUTS).passing is passing


# --- what cannot be scored -------------------------------------------------------------------------------------


@BOTH_WAYS
def test_a_judge_that_fails_is_an_invalid_result(way):
    for error, reason in ((ConnectionError("refused"), "judge_error"), (TimeoutError("no"), "timeout")):
        result = way(ContextRelevancyEvaluator(Chatting(lambda request, error=error: error)), **INPUTS)
        assert (result.invalid_result, result.score, result.passing, result.unscored) == (True, None, None, reason)
        assert result.invalid_reason.startswith(f"{reason}: {type(error).__name__}: ")
        assert result.usage.llm_calls == 1
        assert isinstance(result.outcome, Unscored)


@BOTH_WAYS
def test_a_reply_that_cannot_be_used_is_an_invalid_result(way):
    result = way(ContextRelevancyEvaluator(Completing(lambda request: "pardon?")), **INPUTS)
    assert (result.unscored, result.usage.llm_calls) == ("judge_unparseable", 2)


def test_no_model_anywhere_is_an_invalid_result_that_says_so(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "llama_index.llms.openai", None)
    assert "set llama_index.core.Settings.llm" in ContextRelevancyEvaluator().evaluate(**INPUTS).invalid_reason


@BOTH_WAYS
def test_an_empty_input_is_an_invalid_result_and_costs_nothing(way):
    llm = FakeLLM(truth)
    for empty, field in (({"response": " "}, "response"), ({"contexts": []}, "retrieved_contexts")):
        result = way(AlignmentCoverageEvaluator(llm), **{**INPUTS, **empty})
        assert result.invalid_reason.startswith(f"empty_input: {field}: ")
    assert llm.requests == []


@BOTH_WAYS
def test_inputs_that_are_missing_or_of_the_wrong_type_raise_with_their_names_here(way):
    context, alignment = ContextRelevancyEvaluator(FakeLLM(truth)), AlignmentCoverageEvaluator(FakeLLM(truth))
    for evaluator, argument in ((context, "query"), (context, "contexts"), (alignment, "response")):
        with pytest.raises(ValueError, match=f"^{argument}: is missing; {evaluator.metric.name} needs it"):
            way(evaluator, **{**INPUTS, argument: None})
    with pytest.raises(ValueError, match=r"^contexts: is one str; pass a list of texts, one per retrieved context$"):
        way(context, **{**INPUTS, "contexts": "one text"})
    assert way(context, **{**INPUTS, "response": None}).score is not None  # it needs none
    assert way(context, **INPUTS, reference="x", sleep_time_in_seconds=9).score  # LlamaIndex gives them to all


def test_an_answer_that_is_no_text_is_a_result():
    response = Response({"answer": 1}, [NodeWithScore(node=TextNode(text="It has word1 here."))])
    evaluator = ResponseRelevancyEvaluator(FakeLLM(truth), FakeEmbedder())
    for result in (
        evaluator.evaluate_response(query="Why?", response=response),
        asyncio.run(evaluator.aevaluate_response(query="Why?", response=response)),
    ):
        assert result.invalid_reason == "missing_input: response: is dict, not text"


def test_none_of_our_exceptions_would_pass_for_nested_async():
    """LlamaIndex takes every RuntimeError for "Detected nested async"."""
    package = ragstone_llama_index
    ours = [importlib.import_module(f"{package.__name__}.{one.name}") for one in pkgutil.iter_modules(package.__path__)]
    kinds = [kind for module in ours for kind in vars(module).values() if isinstance(kind, type)]
    raised = [kind for kind in kinds if issubclass(kind, BaseException) and kind.__module__.startswith("ragstone")]
    assert [kind for kind in raised if issubclass(kind, RuntimeError)] == []


def test_a_metric_of_ones_own():
    class Politeness(ragstone.Metric):
        name, version, required_fields = "politeness", "1", ("response",)

        def _flow(self, sample):
            answer = yield from self.ask_choice(
                self.choice("polite", "Polite?", {"response": sample.response}, "yes or no.", ("yes", "no"))
            )
            return self._score(float(answer.choice == "yes"), "Judged.")

    assert MetricEvaluator(Politeness(llm=FakeLLM(lambda request: "yes"))).evaluate(response="Thanks.").score == 1.0


def test_what_is_no_model_and_no_metric_is_refused_in_llama_index_words():
    with pytest.raises(TypeError, match='llm: str is no LlamaIndex LLM; pass .* such as OpenAI\\("gpt'):
        ContextRelevancyEvaluator("gpt-5")
    with pytest.raises(TypeError, match="embed_model: str is no LlamaIndex embedding model"):
        ResponseRelevancyEvaluator(FakeLLM(truth), "ada")
    with pytest.raises(TypeError, match="metric: is the class ContextRelevancy; pass a metric, such as"):
        MetricEvaluator(ContextRelevancy)


def test_the_named_ones_take_every_option_of_their_metric():
    made = {
        AlignmentCoverage: named.AlignmentOptions,
        ContextRelevancy: named.ContextOptions,
        ResponseRelevancy: named.ResponseOptions,
        SummarizationScore: named.SummarizationOptions,
    }
    for metric, options in made.items():
        first = {"llm", "embedder"} if metric is ResponseRelevancy else {"llm"}
        fields = {field.name for field in dataclasses.fields(metric)} - first
        assert set(options.__annotations__) | set(named.MetricOptions.__annotations__) == fields


class Keyed(Completing):
    api_key: str = OWN


def test_no_key_is_in_a_result():
    for key in KEYS:
        llm = LlamaIndexLLM(Keyed(reply=lambda *_, key=key: ConnectionError(ERRORS[key])))
        result = MetricEvaluator(ContextRelevancy(llm=llm)).evaluate(**INPUTS)
        assert "[hidden]" in (result.invalid_reason or "")
        assert leaked(result.model_dump_json()) == []
