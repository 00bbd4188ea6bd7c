"""Our evaluators in LlamaIndex's BatchEvalRunner."""

import asyncio
import threading

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.evaluation import BatchEvalRunner
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, TextNode

from ragstone.testing import FakeLLM
from ragstone_llama_index import (
    AlignmentCoverageEvaluator,
    ContextRelevancyEvaluator,
    MetricResult,
    ResponseRelevancyEvaluator,
    SummarizationScoreEvaluator,
)

from .models import Chatting, Completing, Placing, fenced, truth

COUNT = 100
FAILING = 37


def evaluators(llm, embed_model=None):
    return {
        "summary": SummarizationScoreEvaluator(llm),
        "alignment": AlignmentCoverageEvaluator(llm, n_questions=1),
        "response": ResponseRelevancyEvaluator(llm, embed_model or Placing()),
        "context": ContextRelevancyEvaluator(llm),
    }


def inputs(count):
    return {
        "queries": [f"Which say word{i}?" for i in range(count)],
        "response_strs": [f"It has word{i} here." for i in range(count)],
        "contexts_list": [[f"It has word{i} here. More of it follows."] for i in range(count)],
    }


def fails_for_one(request):
    """A judge that is never there for one sample of many."""
    if f"word{FAILING} " in request.user or f"word{FAILING}?" in request.user:
        return ConnectionError("gone")
    return truth(request)


def sync_run(runner, **given):
    return runner.evaluate_response_strs(**given)


def async_run(runner, **given):
    return asyncio.run(runner.aevaluate_response_strs(**given))


def notebook_run(runner, **given):
    async def cell():
        return runner.evaluate_response_strs(**given)

    return asyncio.run(cell())


RUNS = pytest.mark.parametrize("run", [sync_run, async_run, notebook_run])
MODELS = pytest.mark.parametrize("model", [FakeLLM, Chatting, Completing])


@RUNS
@MODELS
def test_one_failing_sample_costs_the_others_nothing(run, model):
    llm = model(fails_for_one)
    results = run(BatchEvalRunner(evaluators(llm)), **inputs(COUNT))
    assert set(results) == {"summary", "alignment", "response", "context"}
    for of_metric in results.values():
        assert [result.response for result in of_metric] == inputs(COUNT)["response_strs"]  # in order
        assert all(isinstance(result, MetricResult) for result in of_metric)
        failed = of_metric.pop(FAILING)
        assert (failed.invalid_result, failed.score) == (True, None)
        assert failed.invalid_reason == "judge_error: ConnectionError: gone"
        assert [result.unscored for result in of_metric] == [None] * (COUNT - 1)


def test_a_failing_judge_is_not_asked_again():
    """LlamaIndex retries what is raised three times, with seconds in between."""
    llm = FakeLLM(fails_for_one)
    sync_run(BatchEvalRunner({"context": ContextRelevancyEvaluator(llm)}), **inputs(COUNT))
    of_failing = [request for request in llm.requests if fenced(request)[0]["question"] == f"Which say word{FAILING}?"]
    assert (len(llm.requests), len(of_failing)) == (COUNT, 1)


@RUNS
def test_the_same_evaluators_again_and_again(run):
    """A notebook: each run has an event loop of its own; the model's object is awaited from the first alone."""
    llm, embed_model = Chatting(truth), Placing()
    made = evaluators(llm, embed_model)
    for _ in range(3):
        results = run(BatchEvalRunner(made, workers=4), **inputs(3))
        assert {result.unscored for of_metric in results.values() for result in of_metric} == {None}
    assert len({loop for loop in llm.script.loops if loop is not None}) <= 1


def test_in_a_notebook_the_model_of_the_running_loop_is_not_awaited_from_the_runners():
    llm = Chatting(truth)

    async def notebook():
        made = {"context": ContextRelevancyEvaluator(llm)}  # in one cell
        BatchEvalRunner(made).evaluate_response_strs(**inputs(2))  # the runner's own loop, in a thread
        await BatchEvalRunner(made).aevaluate_response_strs(**inputs(2))
        return asyncio.get_running_loop()

    home = asyncio.run(notebook())
    assert {loop for loop in llm.script.loops if loop is not None} == {home}
    assert [half for half, _ in llm.script.halves] == ["sync", "sync", "async", "async"]


@pytest.mark.parametrize("run", [sync_run, async_run])
def test_calls_within_a_metric_go_out_side_by_side(run):
    """With one worker, the two calls of AlignmentCoverage's first round and the three of its second."""
    first, second = threading.Barrier(2, timeout=30), threading.Barrier(3, timeout=30)

    def reply(request):
        (first if request.task.endswith((".claims", ".questions")) else second).wait()
        return truth(request)

    runner = BatchEvalRunner({"alignment": AlignmentCoverageEvaluator(Completing(reply), n_questions=1)}, workers=1)
    assert run(runner, **inputs(1))["alignment"][0].score == 1.0


def test_missing_inputs_raise_as_llamaindexs_own_do(monkeypatch):
    async def at_once(seconds):
        """The runner waits for seconds before it tries again."""

    monkeypatch.setattr("asyncio.sleep", at_once)
    with pytest.raises(ValueError, match="^contexts: is missing"):
        async_run(BatchEvalRunner({"context": ContextRelevancyEvaluator(FakeLLM(truth))}), queries=["Why?"])


def nodes(text):
    return [NodeWithScore(node=TextNode(text=text))]


def responses(kind):
    made = []
    for i in range(3):
        text = f"It has word{i} here."
        if kind is Response:
            made.append(Response(text, nodes(text)))
        elif kind is StreamingResponse:
            made.append(StreamingResponse((f"{word} " for word in text.split()), nodes(text)))
        else:
            made.append(AsyncStreamingResponse(words(text), nodes(text)))
    return made


async def words(text):
    for word in text.split():
        yield f"{word} "


@pytest.mark.parametrize("kind", [Response, StreamingResponse, AsyncStreamingResponse])
def test_responses_of_all_kinds_shared_by_all_evaluators(kind):
    given = responses(kind)
    runner = BatchEvalRunner(evaluators(Chatting(truth)), workers=8)
    results = asyncio.run(runner.aevaluate_responses(queries=inputs(3)["queries"], responses=given))
    for of_metric in results.values():
        assert [result.response.strip() for result in of_metric] == inputs(3)["response_strs"]
        assert [result.unscored for result in of_metric] == [None] * 3


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("sync", [False, True])
def test_a_real_query_engine(streaming, sync):
    texts = [f"It has word{i} here." for i in range(3)]
    index = VectorStoreIndex([TextNode(text=text) for text in texts], embed_model=MockEmbedding(embed_dim=2))
    engine = index.as_query_engine(llm=MockLLM(), streaming=streaming, similarity_top_k=3)
    runner = BatchEvalRunner({"context": ContextRelevancyEvaluator(Chatting(truth))}, workers=4)
    queries = inputs(3)["queries"]
    if sync:
        results = runner.evaluate_queries(engine, queries=queries)
    else:
        results = asyncio.run(runner.aevaluate_queries(engine, queries=queries))
    assert [result.score for result in results["context"]] == [pytest.approx(1 / 3)] * 3
    assert [sorted(result.contexts) for result in results["context"]] == [texts] * 3
