"""evaluate_query_engine: bounded calls, failures that touch no other question, a report."""

import asyncio
import inspect
import json
import threading
import time
from types import SimpleNamespace

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.response.schema import Response, StreamingResponse
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.evaluation import BatchEvalRunner
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import root_dispatcher

from ragstone import AlignmentCoverage, ContextRelevancy, Limits, ResponseRelevancy, Score, SummarizationScore
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone_llama_index import (
    LlamaIndexLLM,
    MetricEvaluator,
    Reading,
    aevaluate_query_engine,
    contexts,
    evaluate_query_engine,
)
from ragstone_llama_index.asking import ask

from ..support.waiting import soon  # noqa: TID252
from .models import Chatting, Completing, Placing, truth
from .monitored import ANSWER, TEXTS, Answering, Calling, Speaking, engine, memory, retriever, settled

QUESTIONS = [f"Which say word{i}?" for i in range(6)]


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


def outcomes_of(report):
    """Each question's outcomes by metric, in order."""
    rows = {}
    for record in report.results():
        rows.setdefault(record.row, {})[record.outcome.metric] = record.outcome
    return list(rows.values())


def samples_of(report):
    """Each question's sample, in order."""
    return list({record.row: report.sample(record) for record in report.results()}.values())


def read_of(report):
    return [(sample.user_input, sample.retrieved_contexts, sample.response) for sample in samples_of(report)]


@pytest.mark.parametrize(
    ("way", "judge"),
    [
        (sync_way, FakeLLM(truth)),
        (async_way, LlamaIndexLLM(Chatting(truth))),
        (notebook_way, LlamaIndexLLM(Completing(truth))),
    ],
    ids=["sync", "async", "notebook"],
)
def test_outcomes_in_the_order_of_the_questions_with_their_samples(way, judge):
    own = metrics(judge)
    report = way(Answering(answer=said), QUESTIONS, [*own[:-1], MetricEvaluator(own[-1])])
    texts = [said(question).response for question in QUESTIONS]
    assert read_of(report) == [(question, (text,), text) for question, text in zip(QUESTIONS, texts, strict=True)]
    for outcomes in outcomes_of(report):
        assert list(outcomes) == [metric.name for metric in own]
        assert all(isinstance(outcome, Score) for outcome in outcomes.values())
    context = report.summary()["context_relevancy"]
    assert (context.mean, context.scored, context.total) == (1.0, 6, 6)


def failing(question):
    def tokens():
        yield "It has "
        raise ConnectionError("gone")

    if "word1" in question:
        return StreamingResponse(tokens(), said(question).source_nodes)
    if "word3" in question:
        raise ConnectionError("https://me:pw12@example.org refused")
    return said(question)


@WAYS
def test_what_cancels_itself_in_the_app_touches_no_other_question(way):
    def cancelled(question):
        if "word3" in question:
            raise asyncio.CancelledError
        return said(question)

    report = way(Answering(answer=cancelled), QUESTIONS, ["context_relevancy"], FakeLLM(truth))
    details = [getattr(row["context_relevancy"], "detail", "") for row in outcomes_of(report)]
    assert details == ["", "", "", "response: the answer could not be read (CancelledError: )", "", ""]


@WAYS
def test_what_the_engine_raises_or_breaks_off_touches_no_other_question(way):
    llm = FakeLLM(truth)
    report = way(Answering(answer=failing), QUESTIONS, metrics(llm))
    rows = outcomes_of(report)
    half, none = rows[1], rows[3]
    assert [name for name, one in half.items() if isinstance(one, Score)] == ["context_relevancy"]
    assert half["response_relevancy"].detail == "response: its stream broke off (ConnectionError: gone)"
    for outcome in none.values():
        error = "response: the query engine failed (ConnectionError: https://me:[hidden]@example.org refused)"
        assert (outcome.reason, outcome.detail) == ("missing_input", error)
    assert not any("word3" in request.user for request in llm.requests)
    summary = report.summary()["response_relevancy"]
    assert (summary.scored, summary.total, dict(summary.failures)) == (4, 6, {"missing_input": 2})
    (outcomes,) = outcomes_of(way(engine(ConnectionError("down")), ["Who?"], metrics(llm)))  # after its retrieval
    assert [name for name, outcome in outcomes.items() if isinstance(outcome, Score)] == ["context_relevancy"]


@WAYS
def test_one_engine_failure_of_a_hundred_leaves_ninety_nine_in_order_and_questions_under_way_are_bounded(way):
    under_way, most, lock = [], [], threading.Lock()

    class Counting(Answering):
        def begin(self, question):
            with lock:
                under_way.append(question)
                most.append(len(under_way))

        def end(self, question):
            with lock:
                under_way.remove(question)
            if question == "word40?":
                raise ConnectionError("gone")
            return said(question)

        def custom_query(self, query_str):
            self.begin(query_str)
            soon(lambda: max(most) >= 3)
            time.sleep(0.1 if query_str == "word0?" else 0.001)  # others overtake the first
            return self.end(query_str)

        async def acustom_query(self, query_str):
            self.begin(query_str)
            await asyncio.sleep(0.1 if query_str == "word0?" else 0.001)
            return self.end(query_str)

    questions = [f"word{i}?" for i in range(100)]
    report = way(Counting(), questions, ["context_relevancy"], FakeLLM(truth), max_concurrency=3)
    assert max(most) == 3
    assert [sample.user_input for sample in samples_of(report)] == questions
    assert [i for i, row in enumerate(outcomes_of(report)) if not isinstance(row["context_relevancy"], Score)] == [40]


async def test_a_cancelled_evaluation_leaves_no_task_behind():
    begun = asyncio.Event()

    class Hanging(Answering):
        async def acustom_query(self, query_str):
            begun.set()
            await asyncio.sleep(60)

    task = asyncio.ensure_future(
        aevaluate_query_engine(Hanging(), QUESTIONS, ["context_relevancy"], FakeLLM(truth), progress=False)
    )
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_what_it_cannot_be_called_with_is_refused_before_the_app_is_asked():
    asked = []
    call = {"engine": Answering(answer=asked.append), "questions": QUESTIONS, "metrics": metrics(FakeLLM(truth))}
    two = [ContextRelevancy(llm=FakeLLM(truth)), ContextRelevancy(llm=FakeLLM(truth), granularity="chunk")]
    lacking = "context_recall, factual_correctness can never be scored: pass references="
    for change, error, message in (
        ({"metrics": two}, ValueError, "metrics: holds two of the name 'context_relevancy'"),
        ({"engine": None}, TypeError, "engine: NoneType has no query, aquery; pass a query engine"),
        ({"questions": "Why?"}, TypeError, "questions: is str; pass a list of texts"),
        ({"questions": ["Why?", 3]}, ValueError, r"questions\[1\]: 3 should be a valid string"),
        ({"questions": ["Why?"], "references": ["x", "y"]}, ValueError, "has 2, for 1 questions"),
        ({"metrics": "bleu"}, ValueError, "there is no metric 'bleu'"),
        ({"metrics": []}, ValueError, "metrics: is empty"),
        ({"max_concurrency": 0, "limits": Limits()}, ValueError, "max_concurrency: 0 should be"),
        ({"limits": 3}, TypeError, "limits: is int"),
        ({"metrics": "golden", "llm": FakeLLM(truth)}, ValueError, lacking),
    ):
        for way in (sync_way, async_way):
            with pytest.raises(error, match=message):
                way(**{**call, **change})
    assert asked == []


class Flow(Workflow):
    @step
    async def answer(self, ev: StartEvent) -> StopEvent:
        await retriever().aretrieve(ev.query)
        return StopEvent(result={"told": "No.", "answer": ANSWER})


class Asked(StartEvent):
    ticket: str


class Tickets(Workflow):
    @step
    async def answer(self, ev: Asked) -> StopEvent:
        return StopEvent(result={"data": {"told": f"{ev.ticket} {ANSWER}"}})


async def search(query: str) -> str:  # a plain one is called without its run's context before LlamaIndex 0.14.22
    """Search."""
    return str(await engine().aquery(query))


def streaming(question):
    return StreamingResponse(str(Speaking().complete(each)) for each in (question,))  # asked while it is read


async def by_hand(question):
    return str(await engine().aquery(question))


APPS = {
    "a text": (lambda: Answering(answer=lambda asked: str(len(retriever().retrieve(asked)))), TEXTS, "2"),
    "named": (lambda: Answering(answer=lambda asked: contexts(["Named."])[0]), ("Named.",), "Named."),
    "a stream": (lambda: engine(streaming=True), TEXTS, ANSWER),
    "a stream of its own": (lambda: Answering(answer=streaming), (), ANSWER),
    "a workflow": (Flow, TEXTS, ANSWER),
    "an agent": (lambda: FunctionAgent(tools=[search], llm=Calling(("search", {"query": "x"}), ANSWER)), TEXTS, ANSWER),
    "a function": (lambda: lambda question: str(engine().query(question)), TEXTS, ANSWER),
    "an async function": (lambda: by_hand, TEXTS, ANSWER),
    "a function around an async one": (lambda: lambda question: by_hand(question), TEXTS, ANSWER),
}


@pytest.mark.parametrize("way", [sync_way, async_way, notebook_way])
@pytest.mark.parametrize("name", APPS)
def test_apps_of_all_kinds_are_read_as_a_monitor_reads_them(notes, name, way):
    make, found, answer = APPS[name]
    handlers = list(root_dispatcher.span_handlers)
    report = way(make(), ["Who?"], ["context_relevancy"], FakeLLM(truth))
    assert list(map(id, root_dispatcher.span_handlers)) == list(map(id, handlers))
    assert read_of(report) == [("Who?", found, answer)]
    assert (notes.told, set(notes.skipped)) == ([], {"own_run"})  # the monitor beside it takes it for no traffic


@pytest.mark.parametrize("name", APPS)
async def test_a_monitor_reads_them_alike(notes, name):
    make, found, answer = APPS[name]
    app = make()
    response = ask(app, "Who?", Reading(), awaited=isinstance(app, Workflow))
    response = await response if inspect.isawaitable(response) else response
    if isinstance(response, StreamingResponse):
        assert "".join(response.response_gen) == answer
    await settled()
    assert notes.told == [("Who?", found, answer)]


def test_a_function_that_wants_a_running_loop_is_to_be_async():
    app = lambda question: asyncio.get_running_loop()  # as an agent's `run`  # noqa: E731
    report = sync_way(app, ["Who?"], "response_completeness", FakeLLM(truth))
    assert "; pass an async function: async def app(question): return await " in report[0].outcome.detail


def test_the_fields_of_a_workflow_of_other_names():
    named = {"user_input": "ticket", "response": "data.told"}
    report = sync_way(Tickets(), ["Who?"], ["context_relevancy"], FakeLLM(truth), fields=named)
    assert read_of(report) == [("Who?", (), f"Who? {ANSWER}")]
    report = sync_way(Tickets(), ["Who?"], "response_completeness", FakeLLM(truth), fields={"user_input": "ticket"})
    way_out = "stands under no usual name (there were: 'data'); say where: fields={'response': 'NAME'}"
    assert (report[0].outcome.reason, report[0].outcome.detail) == ("missing_input", f"response: {way_out}")


def test_an_evaluation_says_under_which_names_contexts_may_stand():
    app = lambda question: {"answer": ANSWER, "findings": [{"text": TEXTS[0]}], "n": 1}  # noqa: E731
    report = sync_way(app, ["Who?"], ["context_relevancy"], FakeLLM(truth))
    assert "row 1 also has 'findings', 'n': fields={'retrieved_contexts': 'findings'}" in str(report)


@WAYS
def test_a_chat_engine_is_asked_in_turn_and_reset_before_each_conversation(way):
    app = ContextChatEngine.from_defaults(retriever(), llm=Speaking(), memory=memory())
    samples = samples_of(way(app, ["Who?", ["And when?", "And where?"]], ["context_relevancy"], FakeLLM(truth)))
    assert [sample.user_input for sample in samples] == ["Who?", "And when?", "And where?"]
    assert [[turn.content for turn in sample.history] for sample in samples] == [[], [], ["And when?", ANSWER]]


def recall(request):
    claim = {"evidence": [1], "verdict": "supported"}
    return {"claims": ["A."]} if "claims" in request.task else {"verdicts": {"1": claim}}


def test_references_of_a_list_or_a_data_set(tmp_path):
    saved = tmp_path / "rag_dataset.json"
    saved.write_text(json.dumps({"examples": [{"query": "Who?", "reference_answer": "She did."}]}, indent=1))
    unsaved = SimpleNamespace(examples=json.loads(saved.read_text())["examples"])
    for questions, references in ((["Who?"], ["She did."]), (str(saved), None), (saved, None), (unsaved, None)):
        report = sync_way(engine(), questions, ["context_recall"], FakeLLM(recall), references=references)
        assert [sample.reference for sample in samples_of(report)] == ["She did."]
        assert report.summary()["context_recall"].mean == 1.0
    report = sync_way(engine(), ["Who?", "When?"], "context_recall", FakeLLM(recall), references=["She did.", None])
    assert [getattr(row["context_recall"], "reason", "") for row in outcomes_of(report)][1] == "missing_input"


# -------------------------------------------------------------------------------- LlamaIndex' own runner

COUNT, FAILING = 12, 7
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
    made = {
        "alignment": MetricEvaluator("alignment_coverage", llm, n_questions=1),
        "response": MetricEvaluator("response_relevancy", llm, Placing()),
        "context": MetricEvaluator("context_relevancy", llm),
    }
    for _ in range(2):
        results = run(BatchEvalRunner(made))
        assert set(results) == set(made)
        for of_metric in results.values():
            assert [result.response for result in of_metric] == INPUTS["response_strs"]  # in order
            failed = of_metric.pop(FAILING)
            assert (failed.score, failed.invalid_reason) == (None, "judge_error: ConnectionError: gone")
            assert [result.unscored for result in of_metric] == [None] * (COUNT - 1)
    if model is FakeLLM:  # LlamaIndex retries what is raised three times, with seconds in between
        assert len([one for one in llm.requests if one.task.startswith("context_relevancy")]) == 2 * COUNT
    if model is Chatting:
        assert len({loop for loop in llm.script.loops if loop is not None}) <= 1
