"""The handler on real chains: question, contexts and answer are found, however the chain is built and called."""

import asyncio
import copy
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from ragstone_langchain import MonitorHandler, contexts

from ..support.noting import Noting  # noqa: TID252
from .monitored import (
    ANSWER,
    FOUND,
    QUESTION,
    THIRD,
    WHOLE,
    Around,
    Searching,
    parts,
    rag,
    sample_of,
    says,
)
from .ways import abatch, ainvoke, astream, astream_events, batch, invoke, named, sampled, stream

pytestmark = pytest.mark.usefixtures("offline")


CITES = AIMessage(ANSWER, tool_calls=[{"name": "Cited", "args": {"ids": [1]}, "id": "1"}])


def passing(*texts):
    """A search by a step of its own, of which no event tells."""
    return RunnableLambda(lambda _: [Document(text) for text in texts])


def graded():
    """More is retrieved than stands in the outputs, and that is what counts."""
    found = RunnablePassthrough.assign(documents=(lambda asked: asked["question"]) | Searching(texts=(THIRD, *FOUND)))
    return found | RunnablePassthrough.assign(documents=lambda s: s["documents"][1:], answer=lambda _: ANSWER)


def raising(_):
    raise ValueError("down")


def naming(*texts):
    return RunnableLambda(lambda asked: [contexts([text]) for text in texts] and asked)


def failing(last=None):
    """A chain that fails after its search; or, with `last`, gets so far in a step of its own."""
    return rag(last or RunnableLambda(raising), search=Searching(texts=(THIRD,)))


def answers(_):
    return ANSWER


DOWN = Searching(error=ConnectionError("down"))
SHAPES = {
    "LCEL": (rag, WHOLE),
    "LCEL without parser": (lambda: rag(says(ANSWER)), WHOLE),
    "search and rerank in steps": (lambda: rag(search=passing(THIRD, *FOUND) | (lambda found: found[1:])), WHOLE),
    "an ensemble": (lambda: rag(search=Around(inner=[Searching(texts=(*FOUND, THIRD))], keep=2)), WHOLE),
    "answer that calls a tool, too": (lambda: rag(says(CITES)), WHOLE),
    "documents in the outputs": (graded, WHOLE, {"question": QUESTION}),
    "message in": (lambda: RunnableLambda(lambda message: message.content) | rag(), WHOLE, HumanMessage(QUESTION)),
    "unknown key in": (
        lambda: RunnableLambda(lambda asked: asked["frage"]) | rag(),
        (None, FOUND, ANSWER),
        {"frage": QUESTION},
    ),
    "nothing is named": (lambda: Searching() | (lambda _: contexts([])) | answers, (QUESTION, (), ANSWER)),
    "the first answers": (lambda: rag().with_fallbacks([failing()]), WHOLE),
    "the fallback answers": (lambda: failing().with_fallbacks([rag()]), WHOLE),
    "a fallback inside of a chain": (lambda: RunnablePassthrough() | failing().with_fallbacks([rag()]), WHOLE),
    "a fallback inside of the chain that fails": (
        lambda: failing(RunnableLambda(raising).with_fallbacks([RunnableLambda(raising)])).with_fallbacks([rag()]),
        WHOLE,
    ),
    "a fallback; steps pass documents on": (
        lambda: (passing(THIRD) | raising).with_fallbacks([rag(search=passing(*FOUND))]),
        WHOLE,
    ),
    "a fallback; a function names them": (
        lambda: (naming(THIRD) | raising).with_fallbacks([naming(*FOUND) | says(ANSWER)]),
        WHOLE,
    ),
    "a retriever's fallback": (lambda: rag(search=DOWN.with_fallbacks([Searching()])), WHOLE),
}
WAYS = [invoke, ainvoke, stream, astream, astream_events, batch, abatch]


@pytest.mark.parametrize(("shape", "way"), sampled(SHAPES, WAYS, 2), ids=named)
def test_every_shape_in_several_ways(shape, way) -> None:
    if sys.version_info < (3, 11) and ("fallback" in shape or "nam" in shape) and way.__name__[0] == "a":
        pytest.skip("Python 3.10 keeps the context from what is awaited")
    make, expected, *asked = SHAPES[shape]
    sample = sample_of(make(), *asked, way=way)
    assert (parts(sample), sample.metadata.get("error")) == (expected, None)


def test_threads_tasks_and_batches_share_one_handler_and_nothing_is_mixed_up() -> None:
    monitor = Noting()
    handler = MonitorHandler(monitor)
    config = {"callbacks": [handler]}
    asked = [f"q{i}" for i in range(160)]

    class Echo(Searching):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document(f"about {query}"), Document(f"more about {query}")]

    shared = rag(lambda prompt: f"answer to {prompt.to_string().rpartition(' ')[2]}", search=Echo())

    async def tasks():
        await asyncio.gather(*(shared.ainvoke(q, config) for q in asked[:40]))
        await shared.abatch(asked[40:80], config)

    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(asyncio.run, tasks()), pool.submit(shared.batch, asked[80:120], config)]
        calls += [pool.submit(stream, shared, q, config) for q in asked[120:]]
        for call in calls:
            call.result()
    assert sorted(map(parts, monitor.samples)) == sorted(
        (q, (f"about {q}", f"more about {q}"), f"answer to {q}") for q in asked
    )
    assert len({sample.id for sample in monitor.samples}) == 160
    assert (len(handler.recorder.runs), monitor.errors, dict(monitor.skipped)) == (0, [], {})


def test_a_task_that_outlives_the_run_that_started_it_is_a_sample_by_itself() -> None:
    monitor = Noting()
    own = {"callbacks": [MonitorHandler(monitor)]}

    async def app():
        ended = asyncio.Event()

        async def later(asked):
            await ended.wait()
            await rag().ainvoke(asked, own)

        async def start(asked):
            return {"answer": ANSWER, "task": asyncio.create_task(later(asked))}

        started = await RunnableLambda(start).ainvoke(QUESTION, own)
        ended.set()
        await started["task"]

    asyncio.run(app())
    assert [parts(sample)[:2] for sample in monitor.samples] == [(QUESTION, ()), WHOLE[:2]]


def test_the_sample_s_id_is_the_run_s_and_its_metadata_the_run_s() -> None:
    run_id, user = uuid.uuid4(), uuid.uuid4()
    kept = {"thread_id": "7", "n": 3, "nested": {"a": [1, 2]}}
    odd = {"bad": object(), "nan": float("nan"), "deep": {"lock": threading.Lock()}}
    metadata = {**kept, **odd, "user": user, "name": "of the user", "error": "of the user"}
    sample = sample_of(rag(), run_id=run_id, run_name="rag", tags=["prod"], metadata=metadata)
    assert sample.id == str(run_id)
    named = {"bad": "<object>", "nan": "NaN", "deep": {"lock": "<lock>"}}
    known = {"user": str(user), "name": "rag", "tags": ["prod"], "run_id": str(run_id)}
    assert sample.metadata == kept | named | known


def test_a_run_id_that_is_text() -> None:
    """As LangServe passes it."""
    run_id = str(uuid.uuid4())
    sample = sample_of(rag(), run_id=run_id)
    assert (parts(sample), sample.id) == (WHOLE, run_id)


def test_later_changes_by_the_app_do_not_show_and_nothing_of_the_app_s_is_changed() -> None:
    documents = [Document(text) for text in FOUND]
    asked = {"question": QUESTION, "messages": [("user", "Hi."), ("user", "There.")]}
    before = copy.deepcopy(asked)

    class Keeping(Searching):
        def _get_relevant_documents(self, query, *, run_manager):
            return documents

    def change(found):
        assert (asked, found) == (before, [Document(text) for text in FOUND])
        asked["question"] = "changed"
        for document in documents:
            document.page_content = "changed"
        documents.clear()
        return ANSWER

    monitor = Noting()
    runnable = (lambda state: state["question"]) | Keeping() | change
    assert runnable.invoke(asked, {"callbacks": [MonitorHandler(monitor)]}) == ANSWER
    assert parts(monitor.only) == WHOLE
