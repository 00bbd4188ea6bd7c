"""The handler with the real monitor: from the chain to the sink, and with a judge that is the app's own model object."""

import asyncio
import pickle
import uuid

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from ragstone import ContextRelevancy, Score
from ragstone.monitor import Monitor
from ragstone.sinks import CallableSink, SQLiteSink
from ragstone.testing import FakeLLM
from ragstone_langchain import LangChainLLM, MonitorHandler

from .monitored import ANSWER, PROMPT, QUESTION, Searching, joined, says
from .test_openai import in_loop, openai

pytestmark = pytest.mark.usefixtures("offline")
GIVEN = {"context": Searching() | joined, "question": RunnablePassthrough()}
RAG = GIVEN | PROMPT | says(ANSWER) | StrOutputParser()


def metric(**options):
    return ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]}), **options)


def test_from_the_chain_to_the_sink() -> None:
    records, ids = [], [uuid.uuid4() for _ in range(20)]
    with Monitor(metric(), sinks=CallableSink(records.extend)) as monitor:
        handler = MonitorHandler(monitor)
        for run_id in ids:
            RAG.invoke(QUESTION, {"callbacks": [handler], "run_id": run_id})
    assert sorted(record.sample_id for record in records) == sorted(map(str, ids))
    assert {record.outcome.value for record in records} == {0.5}
    stats = monitor.stats()
    assert (stats.accepted, stats.scored, stats.duplicate, stats.skipped, stats.errors) == (20, 20, 0, {}, {})


def test_into_a_database(tmp_path) -> None:
    with Monitor(metric(), sinks=SQLiteSink(tmp_path / "live.db")) as monitor:
        asyncio.run(RAG.abatch([QUESTION] * 10, {"callbacks": [MonitorHandler(monitor)]}))
    assert monitor.stats().scored == 10


def test_two_handlers_on_one_monitor_are_scored_once() -> None:
    records = []
    with Monitor(metric(), sinks=CallableSink(records.extend)) as monitor:
        RAG.invoke(QUESTION, {"callbacks": [MonitorHandler(monitor), MonitorHandler(monitor)]})
    assert len(records) == 1
    assert (monitor.stats().scored, monitor.stats().duplicate) == (1, 1)


def test_what_gave_no_sample_is_in_the_stats() -> None:
    def fail(_):
        raise ValueError("down")

    with Monitor(metric(), sinks=CallableSink(print)) as monitor:
        config = {"callbacks": [MonitorHandler(monitor)]}
        stream = RAG.stream(QUESTION, config)
        next(stream)
        stream.close()
        RunnableLambda(lambda _: 7).invoke(7, config)
        RAG.invoke(QUESTION, {"callbacks": [MonitorHandler(monitor, where=fail)]})
    stats = monitor.stats()
    assert (stats.accepted, stats.skipped) == (0, {"abandoned": 1, "nothing_found": 1})
    assert stats.errors == {"langchain": 1}


def test_a_run_that_failed_is_scored_where_no_answer_is_needed() -> None:
    def fail(_):
        raise ValueError("down")

    records = []
    with Monitor(metric(), sinks=CallableSink(records.extend), sample_rate=0.0, always=["error"]) as monitor:
        with pytest.raises(ValueError, match="down"):
            (GIVEN | PROMPT | RunnableLambda(fail)).invoke(QUESTION, {"callbacks": [MonitorHandler(monitor)]})
        RAG.invoke(QUESTION, {"callbacks": [MonitorHandler(monitor)]})
    assert [type(record.outcome) for record in records] == [Score]
    assert (monitor.stats().scored, monitor.stats().not_sampled) == (1, 1)


def test_a_handler_is_as_picklable_as_its_monitor() -> None:
    with Monitor(metric(), sinks=CallableSink(print)) as monitor:
        try:
            pickle.dumps(monitor)
        except Exception as error:
            with pytest.raises(type(error)):
                pickle.dumps(MonitorHandler(monitor))


@pytest.mark.parametrize("everywhere", [False, True])
def test_app_and_judge_share_one_model_object(openai_server, everywhere) -> None:
    """The judge never uses it on a loop of its own, or calls of the app's would fail; nor is it ever scored."""
    judged, failed, records = [], [], []

    def reply(body):
        judged.append("response_format" in body)
        return '{"ids": [1]}' if "response_format" in body else ANSWER

    server = openai_server(reply)
    model = openai(server)
    monitor = Monitor(ContextRelevancy(llm=LangChainLLM(model)), sinks=CallableSink(records.extend), workers=8)
    handler = MonitorHandler(monitor)
    app = GIVEN | PROMPT | model | StrOutputParser()
    config = {} if everywhere else {"callbacks": [handler]}

    async def ask(i):
        try:
            assert await app.ainvoke(f"{QUESTION} {i}", config) == ANSWER
        except Exception as error:
            failed.append(error)

    async def serve():
        for _ in range(4):
            await asyncio.gather(*(ask(i) for i in range(16)))
            await asyncio.to_thread(monitor.flush, 60)
        # the judge is at work while the app asks
        await asyncio.gather(*(ask(i) for i in range(64)))

    with monitor:
        hook = handler.everywhere() if everywhere else None
        in_loop(serve())
        if hook:
            hook.close()
        monitor.flush()  # closing would wait for 30 s only
    assert failed == []
    assert [type(record.outcome) for record in records] == [Score] * 128
    assert (judged.count(True), judged.count(False)) == (128, 128)
    stats = monitor.stats()
    assert (stats.accepted, stats.scored, stats.skipped, stats.errors) == (128, 128, {}, {})
