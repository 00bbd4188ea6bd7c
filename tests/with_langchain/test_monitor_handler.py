"""The handler's rules: what is no sample, what is left out, and that the app never feels it."""

import asyncio
import copy
import gc
import logging
import os
import pickle
import threading
import uuid

import pytest
from langchain_core.callbacks import CallbackManager
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableConfig, RunnableLambda
from numpy import zeros

from ragstone import ContextRelevancy, LLMRequest, Sample, Score
from ragstone import open_runs as runs
from ragstone.live import CallableSink, Monitor, Queue
from ragstone_langchain import LangChainLLM, MonitorHandler

from ..support.noting import Noting  # noqa: TID252
from ..support.waiting import soon  # noqa: TID252
from .monitored import ANSWER, FIRST, FOUND, QUESTION, WHOLE, parts, rag
from .test_openai import in_loop, openai
from .ways import ainvoke, named, stream

pytestmark = pytest.mark.usefixtures("offline")
RAG = rag()
WORD = LLMRequest("demo.ask", "", "Is it?", {}, choices=("yes", "no"))


@pytest.fixture
def monitor():
    return Noting()


@pytest.fixture
def handler(monitor):
    """A handler, of which nothing is open in the end."""
    handler = MonitorHandler(monitor)
    yield handler
    assert len(handler.recorder.runs) == 0


def heard(monitor, **options):
    return {"callbacks": [MonitorHandler(monitor, **options)]}


def noted(monitor):
    return [parts(sample) for sample in monitor.samples], dict(monitor.skipped), monitor.errors


def failing(error):
    """A step that fails, behind a search."""

    def fail(_):
        raise error

    return rag(RunnableLambda(fail))


def begun(handler, inputs=QUESTION):
    """Begin a chain as LangChain does; the test ends it."""
    return CallbackManager(handlers=[handler], inheritable_handlers=[handler]).on_chain_start({}, inputs)


def searched(run, texts=()):
    run.get_child().on_retriever_start({}, "x").on_retriever_end([Document(text) for text in texts])


def test_a_stream_that_is_closed_early_is_abandoned_and_one_that_breaks_a_failed_run(monitor, handler) -> None:
    stream = RAG.stream(QUESTION, {"callbacks": [handler]})
    next(stream)
    stream.close()
    assert noted(monitor) == ([], {"abandoned": 1}, [])
    stream = RAG.stream(QUESTION, {"callbacks": [handler]})
    next(stream)
    with pytest.raises(ConnectionError):
        stream.throw(ConnectionError("the client has gone"))
    assert monitor.samples[0].metadata["error"] == "ConnectionError: the client has gone"
    assert monitor.samples[0].response is None


@pytest.mark.parametrize("close", [True, False])
def test_an_async_stream_that_is_closed_early_is_cancelled(monitor, handler, close) -> None:
    async def read():
        stream = RAG.astream(QUESTION, {"callbacks": [handler]})
        await stream.__anext__()
        if close:
            await stream.aclose()
        del stream
        gc.collect()
        await asyncio.to_thread(soon, monitor.skipped.total)

    asyncio.run(read())
    assert noted(monitor) == ([], {"cancelled": 1}, [])


def test_what_ends_the_process_goes_through_and_is_no_sample(monitor) -> None:
    for error in (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError):
        with pytest.raises(error):
            failing(error).invoke(QUESTION, heard(monitor))
    assert noted(monitor) == ([], {"cancelled": 3}, [])


@pytest.mark.parametrize("way", [ainvoke, stream], ids=named)
def test_a_run_that_fails_is_a_sample_with_what_it_had(monitor, handler, way) -> None:
    chain = failing(ValueError("x" * 300))
    for runnable, asked, had in ((chain, QUESTION, (QUESTION, FOUND, None)), (chain.last, 7, (None, (), None))):
        with pytest.raises(ValueError, match="xxx"):
            way(runnable, asked, {"callbacks": [handler]})
        sample = monitor.samples.pop()
        assert (parts(sample), sample.metadata["error"]) == (had, "ValueError: " + "x" * 199 + "…")
    assert noted(monitor) == ([], {}, [])


def test_an_error_of_the_monitor_s_never_reaches_the_app(caplog) -> None:
    class Broken(Noting):
        def submit(self, *_, **__):
            raise RuntimeError("broken")

        skip = submit

    monitor = Broken()
    with caplog.at_level(logging.WARNING):
        assert RAG.invoke(QUESTION, heard(monitor)) == ANSWER
        assert asyncio.run(RAG.ainvoke(QUESTION, heard(monitor))) == ANSWER
        stream = RAG.stream(QUESTION, heard(monitor))
        next(stream)
        stream.close()
    assert [str(error) for error in monitor.errors] == ["broken"] * 3
    assert caplog.records == [], "LangChain has noticed nothing either"


@pytest.mark.parametrize("option", ["fields", "where"])
def test_an_error_of_the_user_s_function_is_counted_once_and_there_is_no_sample(monitor, option) -> None:
    def function(*args):
        raise LookupError(option)

    assert RAG.invoke(QUESTION, heard(monitor, **{option: function})) == ANSWER
    assert monitor.samples == []
    assert [str(error).rpartition(": ")[2] for error in monitor.errors] == [option]
    with pytest.raises(KeyboardInterrupt):  # what ends the process is not swallowed
        RAG.invoke(QUESTION, heard(monitor, **{option: lambda *_: failing(KeyboardInterrupt).invoke("x")}))


class Hostile:
    """Fails whatever it is asked."""

    def __getattribute__(self, name):
        if name == "__class__":  # LangChain looks at it itself
            return Hostile
        raise RuntimeError("hostile")

    __eq__ = __bool__ = lambda *_: 1 / 0
    __hash__ = None


@pytest.mark.parametrize("where", ["inputs", "outputs", "metadata"])
def test_objects_that_fail_when_they_are_looked_into(monitor, handler, where) -> None:
    hostile = Hostile()
    asked = {"question": hostile, "x": hostile} if where == "inputs" else QUESTION
    returned = {"answer": hostile, "context": [hostile]} if where == "outputs" else ANSWER
    config = {"callbacks": [handler], "metadata": {"hostile": hostile} if where == "metadata" else {}}
    assert RunnableLambda(lambda _: returned).invoke(asked, config) is returned
    assert len(monitor.samples) + len(monitor.errors) + monitor.skipped.total() >= 1


@pytest.mark.parametrize(
    ("asked", "answered", "samples"),
    [
        (zeros(3), ANSWER, [(None, (), ANSWER)]),
        ({"question": ""}, ANSWER, [("", (), ANSWER)]),
        ("NUL \x00", "half \ud83d", [("NUL \x00", (), "half \ufffd")]),
        (7, 8, []),
    ],
    ids=["an array", "an empty question", "what no encoding can carry", "nothing is found"],
)
def test_odd_inputs_and_outputs(monitor, asked, answered, samples) -> None:
    RunnableLambda(lambda _: answered).invoke(asked, heard(monitor))
    assert noted(monitor) == (samples, {} if samples else {"nothing_found": 1}, [])


def test_a_function_gets_inputs_and_outputs_and_says_what_the_fields_or_the_sample_are(monitor) -> None:
    got = []

    def fields(inputs, outputs):
        got.append((inputs, outputs))
        mine = {"user_input": ("user", "mine"), "response": outputs, "id": "mine"}
        return mine if outputs is None else Sample(user_input="mine", metadata={"mine": 1, "name": "mine"})

    RAG.invoke(QUESTION, {**heard(monitor, fields=fields), "run_name": "rag"})
    with pytest.raises(ValueError, match="down"):
        failing(ValueError("down")).invoke(QUESTION, heard(monitor, fields=fields))
    assert got == [(QUESTION, ANSWER), (QUESTION, None)]
    first, failed = monitor.samples
    assert (parts(first), first.metadata) == (
        ("mine", (), None),
        {"name": "mine", "tags": [], "mine": 1, "run_id": first.id},
    )
    assert uuid.UUID(first.id)
    assert (parts(failed), failed.id) == (("mine", FOUND, None), "mine"), "what it does not say is read as always"
    assert failed.metadata["error"] == "ValueError: down"


def test_a_function_may_decline_and_else_what_it_returns_is_checked(monitor) -> None:
    for made in (None, 7, {"user_input": 7}):
        RAG.invoke(QUESTION, heard(monitor, fields=lambda *_, made=made: made))
    assert (monitor.samples, dict(monitor.skipped)) == ([], {"declined": 1, "fields_failed": 2})
    returned, field = map(str, monitor.errors)
    assert returned.startswith("fields: the function returned int; return a Sample")
    assert field.startswith("fields: the function's 'user_input' is int")


def test_a_mapping_says_under_which_names_fields_are_and_without_them_there_is_no_answer(monitor) -> None:
    app = RunnableLambda(lambda _: {"data": {"text": ANSWER, "n": 1}, "final_text": ANSWER})
    for key in ("data.text", "final_text"):
        app.invoke({"frage": QUESTION}, heard(monitor, fields={"user_input": "frage", "response": key}))
        assert parts(monitor.samples.pop()) == (QUESTION, (), ANSWER)
    for asked in (QUESTION, {"question": QUESTION}):
        app.invoke(asked, heard(monitor))
        app.invoke(asked, heard(monitor, fields={"response": "draft"}))
    assert noted(monitor) == ([], {"no_answer": 4}, [])
    assert monitor.names == [("data", "final_text")] * 4
    assert monitor.advice["no_answer"] == 'Name it: MonitorHandler(monitor, fields={"response": "NAME"})'


def test_where_chooses_the_topmost_run_for_which_it_says_yes(monitor) -> None:
    asked = []

    def where(name, tags, metadata):
        asked.append(name)
        return "rag" in tags

    inner = RAG.with_config(run_name="my_rag", tags=["rag"])
    app = RunnableLambda(lambda text: text.strip()) | inner | RunnableLambda(lambda text: {"html": f"<p>{text}</p>"})
    app.invoke(f" {QUESTION} ", {**heard(monitor, where=where), "run_name": "app", "metadata": {"user": "7"}})
    assert parts(monitor.only) == WHOLE
    assert (monitor.only.metadata["name"], monitor.only.metadata["user"]) == ("my_rag", "7")
    assert len(asked) == 4, "nothing inside of what was chosen is asked about"


@pytest.mark.parametrize("option", ["fields", "where", "monitor", "retriever_tools"])
def test_what_it_does_not_take(option) -> None:
    with pytest.raises((TypeError, ValueError), match=f"{option}: "):
        MonitorHandler(**{"monitor": Noting(), option: "search"})


def test_attached_inside_of_a_run_several_times_and_everywhere_on_every_thread_until_that_ends(
    monitor, handler
) -> None:
    (RunnableLambda(lambda text: text) | RAG.with_config(callbacks=[handler])).invoke(QUESTION)
    with handler.everywhere():
        handler.everywhere()
        RAG.with_config(callbacks=[handler]).invoke(QUESTION, {"callbacks": [handler] * 2})
        thread = threading.Thread(target=RAG.invoke, args=(QUESTION,))
        thread.start()
        thread.join()
        asyncio.run(RAG.ainvoke(QUESTION))
    RAG.invoke(QUESTION)
    assert noted(monitor) == ([WHOLE] * 4, {}, [])


class Picklable:
    submit = skip = failed = advise = print


def test_a_pickled_handler_keeps_its_options_and_drops_what_is_open_and_a_copied_one_is_the_same() -> None:
    handler = MonitorHandler(Picklable(), retriever_tools=["search"])
    begun(handler)
    assert copy.deepcopy({"callbacks": [handler]})["callbacks"][0] is handler
    again = pickle.loads(pickle.dumps(handler))
    assert (len(handler.recorder.runs), len(again.recorder.runs)) == (1, 0)
    assert (type(again.monitor), again.recorder.reading.retriever_tools) == (Picklable, {"search"})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # that forking with threads may hang is what is tested
def test_a_fork_while_another_thread_is_inside(monitor) -> None:
    inside, done = threading.Event(), threading.Event()

    def where(name, tags, metadata):
        if "wait" in tags:
            inside.set()
            done.wait(60)
        return True

    handler = MonitorHandler(monitor, where=where)
    run = begun(handler)
    waiting = {"callbacks": [handler], "tags": ["wait"]}
    thread = threading.Thread(target=RAG.invoke, args=(QUESTION, waiting))
    thread.start()
    inside.wait(60)
    child = os.fork()
    if child == 0:
        try:
            RAG.invoke(QUESTION, {"callbacks": [handler]})
            os._exit(0 if parts(monitor.only) == WHOLE and len(handler.recorder.runs) == 0 else 2)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    done.set()
    thread.join()
    run.on_chain_end(ANSWER)
    assert os.waitstatus_to_exitcode(status) == 0
    assert ([parts(sample)[2] for sample in monitor.samples], len(handler.recorder.runs)) == ([ANSWER] * 2, 0)


@pytest.mark.parametrize("trace", [False, True])
def test_a_judge_is_never_a_sample(monitor, handler, trace) -> None:
    judge = LangChainLLM(FakeListChatModel(responses=["yes"], callbacks=[handler]).with_retry(), trace=trace)

    def ask(text):
        return judge.generate(WORD).text and ANSWER

    async def aask(text, config: RunnableConfig):
        return (await judge.agenerate(WORD)).text and ANSWER

    chain = RAG.with_config(tags=["ragstone:judge", "more"])  # a user's own judge, with a retriever in it
    with handler.everywhere():
        ask("")
        chain.invoke("judge this")
        assert noted(monitor) == ([], {}, [])
        RunnableLambda(ask, aask).invoke(QUESTION)
        asyncio.run(RunnableLambda(ask, aask).ainvoke(QUESTION))
        RunnableLambda(lambda _: chain.invoke("judge this") and ANSWER).invoke(QUESTION)
    assert noted(monitor) == ([(QUESTION, (), ANSWER)] * 3, {}, [])


# --- events as LangChain sends them, in an order that no chain makes on demand ---------------------------------------


def test_more_than_ten_thousand_open_runs_lose_the_quietest_alone(monitor) -> None:
    handler, beyond = MonitorHandler(monitor), 500
    roots = [begun(handler, {"question": f"{QUESTION} {i}"}) for i in range(runs.MOST_OPEN + beyond)]
    for root in roots:
        step = root.get_child().on_chain_start({}, "x")
        searched(step, FOUND)
        step.on_chain_end("x")
    assert dict(monitor.skipped) == {"never_ended": beyond}
    for root in roots:
        root.on_chain_end(ANSWER)
    assert len(monitor.samples) == runs.MOST_OPEN
    assert {parts(sample)[1:] for sample in monitor.samples} == {(FOUND, ANSWER)}
    assert noted(monitor)[1:] == ({"never_ended": beyond}, [])


def test_a_run_without_any_event_for_an_hour_is_given_up_and_its_late_end_is_nothing(
    monitor, handler, monkeypatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(runs.time, "monotonic", lambda: now[0])
    late = begun(handler)
    now[0] += 3_599
    fresh = begun(handler)
    assert dict(monitor.skipped) == {}
    now[0] += 2
    begun(handler).on_chain_error(ValueError("x"))
    assert dict(monitor.skipped) == {"never_ended": 1}
    late.get_child().on_chain_start({}, "late").on_chain_end("late")
    late.on_chain_end("late")
    fresh.on_chain_end(ANSWER)
    assert [parts(sample)[2] for sample in monitor.samples] == [None, ANSWER]


def test_a_loop_of_the_app_s_that_searches_for_ever_is_given_up(monitor, handler) -> None:
    root = begun(handler)
    for _ in range(10_010):
        searched(root)
    root.on_chain_end(ANSWER)
    assert noted(monitor) == ([], {"too_large": 1}, [])


def test_what_starts_late_is_part_of_a_run_that_is_open_and_else_of_none(monitor, handler) -> None:
    root = begun(handler)
    step = root.get_child().on_chain_start({}, "x")
    step.on_chain_end("x")
    searched(step, FOUND)  # by a task that goes on
    root.on_chain_end(ANSWER)
    for parent in (root, step):
        parent.get_child().on_chain_start({}, "late question").on_chain_end("late")
    assert parts(monitor.only) == WHOLE
    root = begun(handler)
    step = root.get_child().on_chain_start({}, "x")
    root.on_chain_end(ANSWER)
    step.on_chain_end("x")
    assert noted(monitor) == ([WHOLE], {"abandoned": 1}, []), "a run with parts still at work is not complete"


def test_ends_of_runs_that_began_before_the_handler_was_there(monitor, handler) -> None:
    for what, value in [("chain", ANSWER), ("retriever", []), ("tool", "x"), ("llm", None)]:
        getattr(handler, f"on_{what}_end")(value, run_id=uuid.uuid4())
        getattr(handler, f"on_{what}_error")(ValueError("x"), run_id=uuid.uuid4())
    assert noted(monitor) == ([], {}, [])


def test_what_a_retriever_s_own_tools_return(monitor, handler) -> None:
    root = begun(handler)
    search = root.get_child().on_retriever_start({}, "x")
    search.get_child().on_tool_start({"name": "index"}, "x").on_tool_end([Document(FIRST), Document("Another one.")])
    search.on_retriever_end([Document(FIRST)])
    root.on_chain_end(ANSWER)
    assert noted(monitor) == ([(QUESTION, (FIRST,), ANSWER)], {}, [])


# --- with the real monitor --------------------------------------------------------------------------------------------


def test_app_and_judge_share_one_model_object(openai_server) -> None:
    """The judge never uses it on a loop of its own, or calls of the app's would fail; nor is it ever scored."""
    judged, records = [], []

    def reply(body):
        judged.append("response_format" in body)
        return '{"ids": [1]}' if "response_format" in body else ANSWER

    server = openai_server(reply)
    model = openai(server)
    monitor = Monitor(
        ContextRelevancy(llm=LangChainLLM(model)), sinks=CallableSink(records.extend), queue=Queue(workers=8)
    )
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
        in_loop(server, serve())
        monitor.flush()  # closing would wait for 30 s only
    assert [type(record.outcome) for record in records] == [Score] * 48
    assert (judged.count(True), judged.count(False)) == (48, 48)
    stats = monitor.stats()
    assert (stats.accepted, stats.scored, stats.skipped, stats.errors) == (48, 48, {}, {})
