"""evaluate_query_engine: bounded calls, failures on their row, a report."""

import asyncio
import threading

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.base.response.schema import Response, StreamingResponse
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
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
    node = NodeWithScore(node=TextNode(text=text, metadata={"file": "a.txt"}))
    return Response(text, [node])


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


WAYS = pytest.mark.parametrize("way", [sync_way, async_way, notebook_way])


@WAYS
@pytest.mark.parametrize("model", [FakeLLM, Chatting, Completing])
def test_rows_in_order_and_a_summary_by_metric(way, model):
    llm = model(truth)
    judge = llm if isinstance(llm, FakeLLM) else LlamaIndexLLM(llm)
    report = way(Engine(answer=said), QUESTIONS, metrics(judge), metadata_mode=MetadataMode.NONE)
    assert [row.question for row in report.rows] == QUESTIONS
    assert [row.response for row in report.rows] == [said(question).response for question in QUESTIONS]
    assert [row.error for row in report.rows] == [None] * 6
    for row in report.rows:
        assert row.contexts == (row.response,)
        assert list(row.outcomes) == [metric.name for metric in metrics(judge)]
        assert all(isinstance(outcome, Score) for outcome in row.outcomes.values())
    context = report.summaries["context_relevancy"]
    assert (context.mean, context.scored, context.total, context.usage.llm_calls) == (1.0, 6, 6, 6)
    assert "context_relevancy: mean 1.000 (6 of 6)" in str(report).splitlines()


@WAYS
def test_a_real_engine(way):
    index = VectorStoreIndex([TextNode(text="It has word1 here.")], embed_model=MockEmbedding(embed_dim=2))
    report = way(index.as_query_engine(llm=MockLLM()), ["Which say word1?"], [ContextRelevancy(llm=FakeLLM(truth))])
    assert report.rows[0].outcomes["context_relevancy"].value == 1.0


@WAYS
def test_metadata_as_the_llm_saw_them_unless_said_otherwise(way):
    for mode, count in ((MetadataMode.LLM, 2), (MetadataMode.NONE, 1)):
        report = way(Engine(answer=said), QUESTIONS[:1], [ContextRelevancy(llm=FakeLLM(truth))], metadata_mode=mode)
        assert report.rows[0].contexts[0].count("a") >= 1
        assert len(report.rows[0].outcomes["context_relevancy"].verdicts) == count


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


@WAYS
def test_what_a_judge_raises_is_on_its_row_and_metric(way):
    def reply(request):
        failing = "word3" in request.user and request.task.startswith("context_relevancy")
        return TimeoutError("60 s") if failing else truth(request)

    report = way(Engine(answer=said), QUESTIONS, metrics(FakeLLM(reply)))
    assert report.rows[3].outcomes["context_relevancy"].reason == "timeout"
    assert report.rows[3].error is None
    assert isinstance(report.rows[3].outcomes["response_relevancy"], Score)
    assert report.summaries["context_relevancy"].scored == 5


@WAYS
def test_a_stream_that_breaks_off_is_scored_by_what_does_not_need_it(way):
    def broken(question):
        def tokens():
            yield "It has "
            raise ConnectionError("gone")

        return StreamingResponse(tokens(), said(question).source_nodes)

    report = way(Engine(answer=broken), QUESTIONS[:1], metrics(FakeLLM(truth)), metadata_mode=MetadataMode.NONE)
    (row,) = report.rows
    assert "broke off" in row.error
    assert {name for name, outcome in row.outcomes.items() if isinstance(outcome, Score)} == {"context_relevancy"}


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

    def end(self):
        with self.lock:
            self.now -= 1

    def generate(self, request, /):
        self.begin()
        self.enough.wait(timeout=30)  # until as many are under way as may be
        self.too_many.wait(timeout=0.01)
        self.end()
        return FakeLLM(truth).generate(request)

    async def agenerate(self, request, /):
        self.begin()
        while not self.enough.is_set():  # noqa: ASYNC110 - threads set it too
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        self.end()
        return FakeLLM(truth).generate(request)


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


@WAYS
def test_the_metrics_are_left_as_they_were(way):
    llm = FakeLLM(truth)
    given = metrics(llm)
    way(Engine(answer=said), QUESTIONS[:1], given)
    assert [metric.llm for metric in given] == [llm] * 4


@WAYS
def test_metrics_of_one_name_want_names_of_their_own(way):
    two = [ContextRelevancy(llm=FakeLLM(truth)), ContextRelevancy(llm=FakeLLM(truth), granularity="chunk")]
    with pytest.raises(ValueError, match="metrics: context_relevancy twice"):
        way(Engine(answer=said), QUESTIONS, two)
    report = way(Engine(answer=said), QUESTIONS, dict(zip(("sentence", "chunk"), two, strict=True)))
    assert list(report.summaries) == ["sentence", "chunk"]
    assert list(report.rows[0].outcomes) == ["sentence", "chunk"]


@WAYS
@pytest.mark.parametrize(("given", "said_"), [([], "metrics: is empty"), ({}, "metrics: is empty")])
def test_no_metrics_are_refused(way, given, said_):
    with pytest.raises(ValueError, match=said_):
        way(Engine(answer=said), QUESTIONS, given)


@WAYS
@pytest.mark.parametrize("wrong", [0, -1, 1.5, True])
def test_a_bound_below_one_is_refused(way, wrong):
    with pytest.raises(ValueError, match="max_concurrency"):
        way(Engine(answer=said), QUESTIONS, metrics(FakeLLM(truth)), max_concurrency=wrong)


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


def test_a_cancelled_evaluation_leaves_no_task_behind():
    judge = Watched()  # never sees three calls, so it never answers

    async def gives_up():
        task = asyncio.ensure_future(
            aevaluate_query_engine(Engine(answer=said), QUESTIONS[:1], [ContextRelevancy(llm=judge)], progress=False)
        )
        while judge.now == 0:  # noqa: ASYNC110
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [other for other in asyncio.all_tasks() if other is not asyncio.current_task()]

    assert asyncio.run(gives_up()) == []


@WAYS
@pytest.mark.parametrize("answer", [{"answer": 1}, 5, ["So."]])
def test_an_answer_that_is_no_text_is_on_its_row(way, answer):
    node = NodeWithScore(node=TextNode(text="It has word0 here."))
    engine = Engine(answer=lambda question: Response(answer, [node]) if "word1" in question else said(question))
    report = way(engine, QUESTIONS[:3], metrics(FakeLLM(truth)))
    assert [row.error for row in report.rows] == [None, f"is {type(answer).__name__}, not text", None]
    outcomes = report.rows[1].outcomes
    assert outcomes["response_relevancy"].reason == "missing_input"
    assert isinstance(outcomes["context_relevancy"], Score)


@WAYS
def test_evaluators_are_metrics_too(way):
    evaluators = [MetricEvaluator(metric) for metric in metrics(FakeLLM(truth))]
    plain = way(Engine(answer=said), QUESTIONS, metrics(FakeLLM(truth)))
    report = way(Engine(answer=said), QUESTIONS, evaluators)
    assert {n: s.mean for n, s in report.summaries.items()} == {n: s.mean for n, s in plain.summaries.items()}


@WAYS
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"engine": None}, "engine: NoneType has no query and aquery; pass a query engine"),
        ({"questions": "Why?"}, "questions: is str; pass a list of texts"),
        ({"questions": ["Why?", 3]}, r"questions\[1\]: is int, not text"),
        ({"questions": (question for question in QUESTIONS)}, "questions: is generator; pass a list"),
        ({"metrics": ContextRelevancy(llm=FakeLLM(truth))}, "metrics: is ContextRelevancy; pass a list of metrics"),
        ({"metrics": [ContextRelevancy]}, "metrics: ABCMeta is no metric; pass one such as"),
        ({"metrics": ["context_relevancy"]}, "metrics: str is no metric"),
    ],
)
def test_what_it_cannot_be_called_with_is_refused_at_once(way, change, message):
    given = {"engine": Engine(answer=said), "questions": QUESTIONS, "metrics": metrics(FakeLLM(truth))}
    with pytest.raises(TypeError, match=message):
        way(**{**given, **change})
