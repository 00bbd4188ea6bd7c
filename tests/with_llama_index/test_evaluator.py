"""MetricEvaluator and the four named ones: the same outcome as core's, in LlamaIndex's form."""

import asyncio
import dataclasses
import json

import pytest
from llama_index.core import Settings
from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.schema import NodeWithScore, TextNode

import ragstone
from ragstone import (
    AlignmentCoverage,
    ContextRelevancy,
    LLMReply,
    ResponseRelevancy,
    Sample,
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


WAYS = pytest.mark.parametrize("way", [evaluate, aevaluate, inside_a_loop])


def counted(request):
    """The truth, with the tokens that a provider would count."""
    said = truth(request)
    return LLMReply(said if isinstance(said, str) else json.dumps(said), input_tokens=11, output_tokens=3)


def timeless(outcome):
    return outcome.model_copy(update={"usage": outcome.usage.model_copy(update={"seconds": 0.0})})


@pytest.mark.parametrize("asking", ["together", "one_by_one"])
@pytest.mark.parametrize("number", range(len(metrics(counted))))
@pytest.mark.parametrize("model", [Chatting, Completing])
@WAYS
def test_one_sample_one_outcome(number, asking, model, way):
    """Through core, through the evaluator, and with a LlamaIndex model as the judge: the same, tokens included."""
    import dataclasses

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
    result = MetricEvaluator(metrics(counted)[1]).evaluate(**INPUTS)
    assert isinstance(result, EvaluationResult)
    assert MetricResult.model_validate_json(result.model_dump_json()) == result


NAMED = {
    "summarization_score": (SummarizationScoreEvaluator, {"questions": ["Is it so?"]}),
    "alignment_coverage": (AlignmentCoverageEvaluator, {"n_questions": 2, "threshold": None}),
    "response_relevancy": (ResponseRelevancyEvaluator, {"strictness": 2, "noncommittal": "any"}),
    "context_relevancy": (ContextRelevancyEvaluator, {"granularity": "chunk", "threshold": 0.4}),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_evaluators_take_models_and_the_metrics_options(name):
    kind, options = NAMED[name]
    Settings.llm, Settings.embed_model = Chatting(truth, name="of Settings"), Placing()
    for llm, model in ((None, "of Settings"), (Completing(truth), "completing"), (FakeLLM(truth), "fake")):
        evaluator = kind(llm, **options)
        assert isinstance(evaluator, BaseEvaluator)
        assert evaluator.metric.name == name
        assert evaluator.metric.llm.model == model
        assert {option: getattr(evaluator.metric, option) for option in options} == {
            option: tuple(value) if isinstance(value, list) else value for option, value in options.items()
        }
    assert kind().evaluate(**INPUTS).score is not None


def test_an_evaluator_may_be_made_before_settings_are_set():
    evaluators = [kind() for kind, _ in NAMED.values()]
    Settings.llm, Settings.embed_model = Chatting(truth), Placing()
    assert [evaluator.evaluate(**INPUTS).unscored for evaluator in evaluators] == [None] * 4


def test_embedders_of_both_kinds():
    for embed_model, name in ((Placing(), "placing"), (FakeEmbedder(), "fake-8"), (None, "Settings.embed_model")):
        assert ResponseRelevancyEvaluator(FakeLLM(truth), embed_model).metric.embedder.model == name


def test_alignment_is_with_the_contexts_unless_said_otherwise():
    assert AlignmentCoverageEvaluator(FakeLLM(truth)).metric.source == "retrieved_contexts"
    assert AlignmentCoverageEvaluator(FakeLLM(truth), source="user_input").metric.source == "user_input"


@pytest.mark.parametrize(("threshold", "passing"), [(None, None), (0.0, True), (1.0, False)])
@WAYS
def test_passing_is_by_the_metrics_threshold(threshold, passing, way):
    assert way(ContextRelevancyEvaluator(FakeLLM(truth), threshold=threshold), **INPUTS).passing is passing


# --- what cannot be scored -------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ConnectionError("refused"), TimeoutError("no"), RuntimeError("x"), KeyError("y")])
@WAYS
def test_a_judge_that_fails_is_an_invalid_result(error, way):
    result = way(ContextRelevancyEvaluator(Chatting(lambda request: error)), **INPUTS)
    reason = "timeout" if isinstance(error, TimeoutError) else "judge_error"
    assert (result.invalid_result, result.score, result.passing, result.unscored) == (True, None, None, reason)
    assert result.invalid_reason.startswith(f"{reason}: {type(error).__name__}: ")
    assert result.usage.llm_calls == 1
    assert isinstance(result.outcome, Unscored)


@WAYS
def test_a_reply_that_cannot_be_used_is_an_invalid_result(way):
    result = way(ContextRelevancyEvaluator(Completing(lambda request: "pardon?")), **INPUTS)
    assert result.unscored == "judge_unparseable"
    assert result.usage.llm_calls == 2


@WAYS
def test_no_model_anywhere_is_an_invalid_result_that_says_so(way, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "llama_index.llms.openai", None)
    assert "set llama_index.core.Settings.llm" in way(ContextRelevancyEvaluator(), **INPUTS).invalid_reason


@pytest.mark.parametrize(
    ("empty", "named"), [({"response": " "}, "response"), ({"contexts": []}, "retrieved_contexts")]
)
@WAYS
def test_an_empty_input_is_an_invalid_result_and_costs_nothing(empty, named, way):
    llm = FakeLLM(truth)
    result = way(AlignmentCoverageEvaluator(llm), **{**INPUTS, **empty})
    assert result.invalid_reason.startswith(f"empty_input: {named}: ")
    assert llm.requests == []


@pytest.mark.parametrize(
    ("metric", "argument"),
    [
        (ContextRelevancy(llm=FakeLLM(truth)), "query"),
        (ContextRelevancy(llm=FakeLLM(truth)), "contexts"),
        (AlignmentCoverage(llm=FakeLLM(truth)), "response"),
    ],
)
@WAYS
def test_a_missing_input_raises_with_its_name_here(metric, argument, way):
    with pytest.raises(ValueError, match=f"^{argument}: is missing; {metric.name} needs it"):
        way(MetricEvaluator(metric), **{**INPUTS, argument: None})


@WAYS
def test_an_input_that_the_metric_does_not_need_may_be_missing(way):
    assert way(ContextRelevancyEvaluator(FakeLLM(truth)), **{**INPUTS, "response": None}).score is not None


@WAYS
def test_an_input_of_the_wrong_type_is_refused_with_its_name(way):
    with pytest.raises(ValueError, match=r"^contexts: is one str; pass a list of texts, one per retrieved context$"):
        way(ContextRelevancyEvaluator(FakeLLM(truth)), **{**INPUTS, "contexts": "one text"})


def test_what_is_no_metric_is_refused():
    for wrong in (ContextRelevancy, "context_relevancy", None):
        with pytest.raises(TypeError, match="metric"):
            MetricEvaluator(wrong)


@WAYS
def test_arguments_that_llamaindex_gives_all_evaluators_are_not_ours(way):
    assert way(ContextRelevancyEvaluator(FakeLLM(truth)), **INPUTS, reference="x", sleep_time_in_seconds=9).score


def test_none_of_our_exceptions_would_pass_for_nested_async():
    """LlamaIndex takes every RuntimeError for "Detected nested async"."""
    import importlib
    import pkgutil

    import ragstone_llama_index

    ours = [importlib.import_module(f"{package.__name__}.{module.name}") for package in (ragstone_llama_index,)
            for module in pkgutil.iter_modules(package.__path__)]  # fmt: skip
    kinds = [kind for module in ours for kind in vars(module).values() if isinstance(kind, type)]
    raised = [kind for kind in kinds if issubclass(kind, BaseException) and kind.__module__.startswith("ragstone")]
    assert [kind for kind in raised if issubclass(kind, RuntimeError)] == []


def test_an_evaluator_keeps_nothing_of_a_sample():
    evaluator = ContextRelevancyEvaluator(FakeLLM(truth))
    before = dict(vars(evaluator))
    evaluator.evaluate(**INPUTS)
    assert vars(evaluator) == before


def test_a_metric_of_ones_own():
    class Politeness(ragstone.Metric):
        name, version, required_fields = "politeness", "1", ("response",)

        def _flow(self, sample):
            answer = yield from self.ask_choice(
                self.choice("polite", "Polite?", {"response": sample.response}, "yes or no.", ("yes", "no"))
            )
            return self._score(float(answer.choice == "yes"), "Judged.")

    assert MetricEvaluator(Politeness(llm=FakeLLM(lambda request: "yes"))).evaluate(response="Thanks.").score == 1.0
    assert Sample(response="Thanks.").response


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ContextRelevancyEvaluator("gpt-5"), 'llm: str is no LlamaIndex LLM; pass .* such as OpenAI\\("gpt'),
        (
            lambda: ResponseRelevancyEvaluator(FakeLLM(truth), "ada"),
            "embed_model: str is no LlamaIndex embedding model",
        ),
        (lambda: MetricEvaluator(ContextRelevancy), "metric: is the class ContextRelevancy; pass a metric, such as"),
    ],
)
def test_what_is_no_model_and_no_metric_is_refused_in_llama_index_words(make, message):
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize("answer", [{"answer": 1}, 5])
def test_an_answer_that_is_no_text_is_a_result(answer):
    node = NodeWithScore(node=TextNode(text="It has word1 here."))
    response = Response(answer, [node])
    evaluator = ResponseRelevancyEvaluator(FakeLLM(truth), FakeEmbedder())
    for result in (
        evaluator.evaluate_response(query="Why?", response=response),
        asyncio.run(evaluator.aevaluate_response(query="Why?", response=response)),
    ):
        assert result.invalid_reason == f"missing_input: response: is {type(answer).__name__}, not text"


def test_the_named_ones_take_every_option_of_their_metric():
    made = {
        AlignmentCoverage: named.AlignmentOptions,
        ContextRelevancy: named.ContextOptions,
        ResponseRelevancy: named.ResponseOptions,
        SummarizationScore: named.SummarizationOptions,
    }
    for metric, options in made.items():
        given_first = {"llm", "embedder"} if metric is ResponseRelevancy else {"llm"}
        fields = {field.name for field in dataclasses.fields(metric)} - given_first
        assert set(options.__annotations__) | set(named.MetricOptions.__annotations__) == fields


class Keyed(Completing):
    api_key: str = OWN


def test_no_key_is_in_a_result():
    for key in KEYS:
        llm = LlamaIndexLLM(Keyed(reply=lambda *_, key=key: ConnectionError(ERRORS[key])))
        result = MetricEvaluator(ContextRelevancy(llm=llm)).evaluate(**INPUTS)
        assert "[hidden]" in (result.invalid_reason or "")
        assert leaked(result.model_dump_json()) == []
