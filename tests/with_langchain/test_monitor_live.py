"""The handler with the real monitor: from the chain to the sink, and with a judge that is the app's own model object."""

import asyncio
import uuid

import pytest
from langchain_core.output_parsers import StrOutputParser

from ragstone import ContextRelevancy, Score
from ragstone.monitor import Monitor
from ragstone.sinks import CallableSink
from ragstone.testing import FakeLLM
from ragstone_langchain import LangChainLLM, MonitorHandler

from .monitored import ANSWER, QUESTION, rag
from .test_openai import in_loop, openai

pytestmark = pytest.mark.usefixtures("offline")


def metric():
    return ContextRelevancy(llm=FakeLLM(lambda request: {"ids": [1]}))


def test_from_the_chain_to_the_sink_once_also_through_two_handlers() -> None:
    records, ids = [], [uuid.uuid4() for _ in range(20)]
    with Monitor(metric(), sinks=CallableSink(records.extend)) as monitor:
        handlers = [MonitorHandler(monitor), MonitorHandler(monitor)]
        for run_id in ids:
            rag().invoke(QUESTION, {"callbacks": handlers, "run_id": run_id})
    assert sorted(record.sample_id for record in records) == sorted(map(str, ids))
    assert {record.outcome.value for record in records} == {0.5}
    stats = monitor.stats()
    assert (stats.accepted, stats.scored, stats.duplicate, stats.skipped, stats.errors) == (40, 20, 20, {}, {})


def test_app_and_judge_share_one_model_object(openai_server) -> None:
    """The judge never uses it on a loop of its own, or calls of the app's would fail; nor is it ever scored."""
    judged, records = [], []

    def reply(body):
        judged.append("response_format" in body)
        return '{"ids": [1]}' if "response_format" in body else ANSWER

    model = openai(openai_server(reply))
    monitor = Monitor(ContextRelevancy(llm=LangChainLLM(model)), sinks=CallableSink(records.extend), workers=8)
    handler = MonitorHandler(monitor)
    app = rag(model, StrOutputParser())

    async def ask(n):
        answers = await asyncio.gather(*(app.ainvoke(f"{QUESTION} {i}", {"callbacks": [handler]}) for i in range(n)))
        assert answers == [ANSWER] * n

    async def serve():
        for _ in range(2):
            await ask(8)
            await asyncio.to_thread(monitor.flush, 60)
        await ask(32)  # and now the judge is at work while the app asks

    with monitor, handler.everywhere():  # which hears of the judge, too; given twice it counts once
        in_loop(serve())
        monitor.flush()  # closing would wait for 30 s only
    assert [type(record.outcome) for record in records] == [Score] * 48
    assert (judged.count(True), judged.count(False)) == (48, 48)
    stats = monitor.stats()
    assert (stats.accepted, stats.scored, stats.skipped, stats.errors) == (48, 48, {}, {})
