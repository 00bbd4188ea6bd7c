"""evaluate_query_engine: bounded calls, failures on their row, a report."""

import asyncio
import threading

import pytest
from llama_index.core.base.response.schema import Response, StreamingResponse
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index_instrumentation.dispatcher import active_instrument_tags, instrument_tags

from ragstone import AlignmentCoverage, ContextRelevancy, ResponseRelevancy, Score, SummarizationScore
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone_llama_index import LlamaIndexLLM, MetricEvaluator, aevaluate_query_engine, evaluate_query_engine
from ragstone_llama_index.bounded import BoundedLLM, Slots

from .models import Chatting, Completing, truth

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
    scored_by = metrics(judge)
    report = way(Engine(answer=said), QUESTIONS, scored_by)
    assert [row.question for row in report.rows] == QUESTIONS
    assert [row.response for row in report.rows] == [said(question).response for question in QUESTIONS]
    assert [row.error for row in report.rows] == [None] * 6
    for row in report.rows:
        assert row.contexts == (row.response,)
        assert list(row.outcomes) == [metric.name for metric in scored_by]
        assert all(isinstance(outcome, Score) for outcome in row.outcomes.values())
    context = report.summaries["context_relevancy"]
    assert (context.mean, context.scored, context.total, context.usage.llm_calls) == (1.0, 6, 6, 6)
    assert "context_relevancy: mean 1.000 (6 of 6)" in str(report).splitlines()
    assert [metric.llm for metric in scored_by] == [judge] * 4  # left as they were


@WAYS
def test_what_the_engine_raises_is_on_its_row(way):
    def sometimes(question):
        if "word3" in question:
            raise ConnectionError("no index")
        return said(question)

    llm = FakeLLM(truth)
    report = way(Engine(answer=sometimes), QUESTIONS, metrics(llm))
    row = report.rows[3]
    assert (row.response, row.contexts) == (None, ())
    assert row.error == "the query engine failed (ConnectionError: no index)"
    for outcome in row.outcomes.values():
        assert (outcome.reason, outcome.detail) == ("missing_input", f"response: {row.error}")
    assert not any("word3" in request.user for request in llm.requests)
    for summary in report.summaries.values():
        assert (summary.scored, summary.total, dict(summary.failures)) == (5, 6, {"missing_input": 1})
        assert summary.examples["missing_input"].startswith("question 4: ")
    assert "(5 of 6; 1 missing_input)" in str(report)


def broken(question):
    def tokens():
        yield "It has "
        raise ConnectionError("gone")

    return StreamingResponse(tokens(), said(question).source_nodes)


@WAYS
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (broken, "its stream broke off (ConnectionError: gone)"),
        (lambda question: Response({"answer": 1}, said(question).source_nodes), "is dict, not text"),
    ],
    ids=["broken stream", "dict"],
)
def test_an_answer_without_text_is_scored_by_what_does_not_need_it(way, answer, error):
    engine = Engine(answer=lambda question: answer(question) if "word1" in question else said(question))
    report = way(engine, QUESTIONS[:3], metrics(FakeLLM(truth)))
    assert [row.error for row in report.rows] == [None, error, None]
    outcomes = report.rows[1].outcomes
    assert {name for name, outcome in outcomes.items() if isinstance(outcome, Score)} == {"context_relevancy"}
    assert outcomes["response_relevancy"].reason == "missing_input"


class Watched:
    """A judge that knows how many calls were under way at most, and gives a fourth the time to come in."""

    model, asking = "watched", "together"

    def __init__(self):
        self.lock = threading.Lock()
        self.now = self.most = 0
        self.enough, self.too_many = threading.Event(), threading.Event()

    def begin(self):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now == 3:
                self.enough.set()
            if self.now > 3:
                self.too_many.set()

    def end(self, request):
        with self.lock:
            self.now -= 1
        return FakeLLM(truth).generate(request)

    def generate(self, request, /):
        self.begin()
        self.enough.wait(timeout=30)  # until as many are under way as may be
        self.too_many.wait(timeout=0.01)
        return self.end(request)

    async def agenerate(self, request, /):
        self.begin()
        while not self.enough.is_set():  # noqa: ASYNC110 - threads set it too
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        return self.end(request)


@WAYS
def test_calls_to_judges_are_bounded_over_all_metrics_and_rows(way):
    judge = Watched()
    report = way(Engine(answer=said), QUESTIONS, metrics(judge), max_concurrency=3)
    assert judge.most == 3
    assert {summary.scored for summary in report.summaries.values()} == {6}


def test_a_bounded_judge_is_the_judge_in_all_else():
    judge = LlamaIndexLLM(Chatting(truth), asking="one_by_one", max_input_tokens=77)
    bounded = BoundedLLM(judge, Slots(1))
    assert (bounded.model, bounded.asking, bounded.max_input_tokens) == ("chatting", "one_by_one", 77)
    assert BoundedLLM(FakeLLM(truth), Slots(1)).max_input_tokens is None


def test_metrics_of_one_name_want_names_of_their_own():
    two = [ContextRelevancy(llm=FakeLLM(truth)), ContextRelevancy(llm=FakeLLM(truth), granularity="chunk")]
    with pytest.raises(ValueError, match="metrics: context_relevancy twice"):
        sync_way(Engine(answer=said), QUESTIONS, two)
    report = sync_way(Engine(answer=said), QUESTIONS, dict(zip(("sentence", "chunk"), two, strict=True)))
    assert list(report.summaries) == list(report.rows[0].outcomes) == ["sentence", "chunk"]


def test_evaluators_are_metrics_too():
    plain = sync_way(Engine(answer=said), QUESTIONS[:2], metrics(FakeLLM(truth)))
    evaluators = [MetricEvaluator(metric) for metric in metrics(FakeLLM(truth))]
    report = sync_way(Engine(answer=said), QUESTIONS[:2], evaluators)
    assert {n: s.mean for n, s in report.summaries.items()} == {n: s.mean for n, s in plain.summaries.items()}


@WAYS
def test_no_questions_no_rows(way):
    report = way(Engine(answer=said), [], metrics(FakeLLM(truth)))
    assert report.rows == ()
    assert "context_relevancy: no score (0 of 0)" in str(report)


@WAYS
def test_the_apps_tags_are_on_its_own_queries(way):
    seen = []

    def watching(question):
        seen.append(dict(active_instrument_tags.get()))
        return said(question)

    with instrument_tags({"tenant": 7}):
        way(Engine(answer=watching), QUESTIONS[:2], [ContextRelevancy(llm=FakeLLM(truth))])
    assert seen == [{"tenant": 7}] * 2


def test_progress_is_shown_when_asked_for_and_on_a_terminal_only(capsys):
    one = (Engine(answer=said), QUESTIONS, [ContextRelevancy(llm=FakeLLM(truth))])
    evaluate_query_engine(*one)  # what pytest captures is no terminal
    asyncio.run(aevaluate_query_engine(*one))
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
    for change, error, message in (
        ({"engine": None}, TypeError, "engine: NoneType has no query and aquery; pass a query engine"),
        ({"questions": "Why?"}, TypeError, "questions: is str; pass a list of texts"),
        ({"questions": ["Why?", 3]}, TypeError, r"questions\[1\]: is int, not text"),
        ({"questions": iter(QUESTIONS)}, TypeError, "questions: is list_iterator; pass a list"),
        ({"metrics": ContextRelevancy(llm=FakeLLM(truth))}, TypeError, "metrics: is ContextRelevancy; pass a list of"),
        ({"metrics": [ContextRelevancy]}, TypeError, "metrics: ABCMeta is no metric; pass one such as"),
        ({"metrics": []}, ValueError, "metrics: is empty"),
        ({"metrics": {}}, ValueError, "metrics: is empty"),
        ({"max_concurrency": 0}, ValueError, "max_concurrency"),
        ({"max_concurrency": True}, ValueError, "max_concurrency"),
    ):
        for way in (sync_way, async_way):
            with pytest.raises(error, match=message):
                way(**{**call, **change})
