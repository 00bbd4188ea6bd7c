"""evaluate_query_engine: bounded calls, failures on their row, a report."""

import asyncio
import threading
import time

import pytest
from llama_index.core.base.response.schema import Response, StreamingResponse
from llama_index.core.evaluation import BatchEvalRunner
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode

from ragstone import AlignmentCoverage, ContextRelevancy, ResponseRelevancy, Score, SummarizationScore
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone_llama_index import (
    LlamaIndexLLM,
    MetricEvaluator,
    aevaluate_query_engine,
    evaluate_query_engine,
)

from ..support.waiting import soon  # noqa: TID252
from .models import Chatting, Completing, Placing, truth

QUESTIONS = [f"Which say word{i}?" for i in range(6)]


class Engine(CustomQueryEngine):
    """An app whose answers are given by a function of the question."""

    answer: object = None

    def custom_query(self, query_str):
        return self.answer(query_str)


def said(question):
    text = f"It has {question.split()[-1].rstrip('?')} here."
    return Response(text, [NodeWithScore(node=TextNode(text=text))])


def metrics(llm):
    return [
        SummarizationScore(llm=llm),
        AlignmentCoverage(llm=llm, source="retrieved_contexts", n_questions=1),
        ResponseRelevancy(llm=llm, embedder=FakeEmbedder()),
        ContextRelevancy(llm=llm),
    ]


def sync_way(*args, **kwargs):
    return evaluate_query_engine(*args, progress=False, **kwargs)


def async_way(*args, **kwargs):
    return asyncio.run(aevaluate_query_engine(*args, progress=False, **kwargs))


def notebook_way(*args, **kwargs):
    async def cell():
        return evaluate_query_engine(*args, progress=False, **kwargs)

    return asyncio.run(cell())


WAYS = pytest.mark.parametrize("way", [sync_way, async_way])


@pytest.mark.parametrize(
    ("way", "judge"),
    [
        (sync_way, FakeLLM(truth)),
        (async_way, LlamaIndexLLM(Chatting(truth))),
        (notebook_way, LlamaIndexLLM(Completing(truth))),
    ],
    ids=["sync", "async", "notebook"],
)
def test_rows_in_order_and_a_summary_by_metric(way, judge):
    own = metrics(judge)
    scored_by = [*own[:-1], MetricEvaluator(own[-1])]
    report = way(Engine(answer=said), QUESTIONS, scored_by)
    assert [row.question for row in report.rows] == QUESTIONS
    assert [row.response for row in report.rows] == [said(question).response for question in QUESTIONS]
    for row in report.rows:
        assert row.contexts == (row.response,)
        assert list(row.outcomes) == [metric.name for metric in own]
        assert all(isinstance(outcome, Score) for outcome in row.outcomes.values())
    context = report.summaries["context_relevancy"]
    assert (context.mean, context.scored, context.total, context.usage.llm_calls) == (1.0, 6, 6, 6)
    assert "context_relevancy: mean 1.000 (6 of 6)" in str(report).splitlines()
    assert [metric.llm for metric in own] == [judge] * 4  # left as they were


def failing(question):
    def tokens():
        yield "It has "
        raise ConnectionError("gone")

    if "word1" in question:
        return StreamingResponse(tokens(), said(question).source_nodes)
    if "word3" in question:
        raise ConnectionError("no index")
    return said(question)


@WAYS
def test_what_the_engine_raises_or_breaks_off_is_on_its_row(way):
    llm = FakeLLM(truth)
    report = way(Engine(answer=failing), QUESTIONS, metrics(llm))
    half, none = report.rows[1], report.rows[3]
    assert half.error == "its stream broke off (ConnectionError: gone)"
    assert [name for name, one in half.outcomes.items() if isinstance(one, Score)] == ["context_relevancy"]
    assert (none.response, none.contexts) == (None, ())
    assert none.error == "the query engine failed (ConnectionError: no index)"
    for outcome in none.outcomes.values():
        assert (outcome.reason, outcome.detail) == ("missing_input", f"response: {none.error}")
    assert not any("word3" in request.user for request in llm.requests)
    summary = report.summaries["response_relevancy"]
    assert (summary.scored, summary.total, dict(summary.failures)) == (4, 6, {"missing_input": 2})
    assert "(5 of 6; 1 missing_input)" in str(report)


class Watched:
    """A judge that knows how many calls were under way at most, and gives a fourth the time to come in."""

    model, asking = "watched", "together"

    def __init__(self):
        self.lock = threading.Lock()
        self.now = self.most = 0

    def begin(self):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def end(self, request):
        with self.lock:
            self.now -= 1
        return FakeLLM(truth).generate(request)

    def generate(self, request, /):
        self.begin()
        soon(lambda: self.most >= 3)
        time.sleep(0.01)
        return self.end(request)

    async def agenerate(self, request, /):
        self.begin()
        while self.most < 3:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        return self.end(request)


@WAYS
def test_calls_to_judges_are_bounded_over_all_metrics_and_rows(way):
    judge = Watched()
    report = way(Engine(answer=said), QUESTIONS, metrics(judge), max_concurrency=3)
    assert judge.most == 3
    assert {summary.scored for summary in report.summaries.values()} == {6}


def test_progress_is_shown_when_asked_for_and_on_a_terminal_only(capsys):
    one = (Engine(answer=said), QUESTIONS, [ContextRelevancy(llm=FakeLLM(truth))])
    evaluate_query_engine(*one)  # what pytest captures is no terminal
    assert capsys.readouterr().err == ""
    evaluate_query_engine(*one, progress=True)
    assert "6/6" in capsys.readouterr().err


async def test_a_cancelled_evaluation_leaves_no_task_behind():
    judge = Watched()  # never sees three calls, so it never answers
    task = asyncio.ensure_future(
        aevaluate_query_engine(Engine(answer=said), QUESTIONS[:1], [ContextRelevancy(llm=judge)], progress=False)
    )
    while judge.now == 0:  # noqa: ASYNC110
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_what_it_cannot_be_called_with_is_refused_at_once():
    call = {"engine": Engine(answer=said), "questions": QUESTIONS, "metrics": metrics(FakeLLM(truth))}
    two = [ContextRelevancy(llm=FakeLLM(truth)), ContextRelevancy(llm=FakeLLM(truth), granularity="chunk")]
    report = sync_way(Engine(answer=said), QUESTIONS, dict(zip(("sentence", "chunk"), two, strict=True)))
    assert list(report.summaries) == list(report.rows[0].outcomes) == ["sentence", "chunk"]
    for change, error, message in (
        ({"metrics": two}, ValueError, "metrics: context_relevancy twice"),
        ({"engine": None}, TypeError, "engine: NoneType has no query and aquery; pass a query engine"),
        ({"questions": "Why?"}, TypeError, "questions: is str; pass a list of texts"),
        ({"metrics": ContextRelevancy(llm=FakeLLM(truth))}, TypeError, "metrics: is ContextRelevancy; pass a list of"),
        ({"metrics": []}, ValueError, "metrics: is empty"),
        ({"max_concurrency": 0}, ValueError, "max_concurrency"),
    ):
        for way in (sync_way, async_way):
            with pytest.raises(error, match=message):
                way(**{**call, **change})


COUNT, FAILING = 12, 7


def evaluators(llm):
    return {
        "alignment": MetricEvaluator("alignment_coverage", llm, n_questions=1),
        "response": MetricEvaluator("response_relevancy", llm, Placing()),
        "context": MetricEvaluator("context_relevancy", llm),
    }


INPUTS = {
    "queries": [f"Which say word{i}?" for i in range(COUNT)],
    "response_strs": [f"It has word{i} here." for i in range(COUNT)],
    "contexts_list": [[f"It has word{i} here. More of it follows."] for i in range(COUNT)],
}


def fails_for_one(request):
    """A judge that is never there for one sample of many."""
    if f"word{FAILING} " in request.user or f"word{FAILING}?" in request.user:
        return ConnectionError("gone")
    return truth(request)


def sync_run(runner):
    return runner.evaluate_response_strs(**INPUTS)


def async_run(runner):
    return asyncio.run(runner.aevaluate_response_strs(**INPUTS))


def notebook_run(runner):
    async def cell():
        return sync_run(runner)

    return asyncio.run(cell())


@pytest.mark.parametrize(
    ("run", "model"), [(sync_run, Completing), (async_run, Chatting), (notebook_run, Chatting), (async_run, FakeLLM)]
)
def test_one_failing_sample_costs_the_others_nothing_run_after_run(run, model):
    """Each run has an event loop of its own; the model's object is awaited from the first alone."""
    llm = model(fails_for_one)
    made = evaluators(llm)
    for _ in range(2):
        results = run(BatchEvalRunner(made))
        assert set(results) == {"alignment", "response", "context"}
        for of_metric in results.values():
            assert [result.response for result in of_metric] == INPUTS["response_strs"]  # in order
            failed = of_metric.pop(FAILING)
            assert (failed.score, failed.invalid_reason) == (None, "judge_error: ConnectionError: gone")
            assert [result.unscored for result in of_metric] == [None] * (COUNT - 1)
    if model is FakeLLM:  # LlamaIndex retries what is raised three times, with seconds in between
        assert len([one for one in llm.requests if one.task.startswith("context_relevancy")]) == 2 * COUNT
    if model is Chatting:
        assert len({loop for loop in llm.script.loops if loop is not None}) <= 1
