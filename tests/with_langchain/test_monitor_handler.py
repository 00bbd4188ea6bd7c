"""The handler's rules: what is no sample, what is left out, and that the app never feels it."""

import asyncio
import copy
import gc
import logging
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
import uuid

import pytest
from langchain_classic.chains import RetrievalQA
from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler, CallbackManager
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableConfig, RunnableLambda, RunnablePassthrough, chain
from langchain_core.tools import tool
from langchain_core.tracers.context import _configure_hooks

from ragstone import LLMRequest, Sample
from ragstone_langchain import LangChainLLM, MonitorHandler, open_runs

from .monitored import (
    ANSWER,
    FIRST,
    FOUND,
    PROMPT,
    QUESTION,
    SECOND,
    Noting,
    Searching,
    joined,
    parts,
    says,
)
from .test_unseen import Listener

pytestmark = pytest.mark.usefixtures("offline")
WHOLE = (QUESTION, FOUND, ANSWER)
RAG = {"context": Searching() | joined, "question": RunnablePassthrough()} | PROMPT | says(ANSWER) | StrOutputParser()
WORD = LLMRequest("demo.ask", "", "Is it?", {}, choices=("yes", "no"))


@pytest.fixture
def monitor():
    return Noting()


def heard(monitor, **options):
    return {"callbacks": [MonitorHandler(monitor, **options)]}


def noted(monitor):
    return [parts(sample) for sample in monitor.samples], dict(monitor.skipped), monitor.errors


# --- streams that are not read to their end --------------------------------------------------------------------------


@pytest.mark.parametrize("read", [1, 2, 3])
@pytest.mark.parametrize("end", ["close", "forget", "raise"])
@pytest.mark.parametrize("parser", [True, False])
def test_a_stream_that_is_closed_early_is_abandoned(monitor, read, end, parser) -> None:
    handler = MonitorHandler(monitor)
    given = {"context": Searching() | joined, "question": RunnablePassthrough()}
    runnable = RAG if parser else given | PROMPT | says(ANSWER)
    stream = runnable.stream(QUESTION, {"callbacks": [handler]})
    for _ in range(read):
        next(stream)
    if end == "close":
        stream.close()
    elif end == "raise":
        with pytest.raises(ConnectionError):
            stream.throw(ConnectionError("the client has gone"))
    del stream
    gc.collect()
    if end == "raise":
        assert noted(monitor)[1:] == ({}, [])
        assert monitor.only.metadata["error"] == "ConnectionError: the client has gone"
        assert monitor.only.response is None
    else:
        assert noted(monitor) == ([], {"abandoned": 1}, [])
    assert len(handler._recorder.runs) == 0


@pytest.mark.parametrize("close", [True, False])
def test_an_async_stream_that_is_closed_early_is_cancelled(monitor, close) -> None:
    handler = MonitorHandler(monitor)

    async def read():
        stream = RAG.astream(QUESTION, {"callbacks": [handler]})
        await stream.__anext__()
        if close:
            await stream.aclose()
        del stream
        gc.collect()
        await asyncio.sleep(0.01)

    asyncio.run(read())
    assert noted(monitor) == ([], {"cancelled": 1}, [])
    assert len(handler._recorder.runs) == 0


def test_a_run_that_is_cancelled(monitor) -> None:
    async def slow(_):
        await asyncio.sleep(60)

    async def run():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for((Searching() | RunnableLambda(slow)).ainvoke(QUESTION, heard(monitor)), 0.05)

    asyncio.run(run())
    assert noted(monitor) == ([], {"cancelled": 1}, [])


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_the_process_goes_through_and_is_no_sample(monitor, error) -> None:
    def stop(_):
        raise error

    with pytest.raises(error):
        RunnableLambda(stop).invoke(QUESTION, heard(monitor))
    assert noted(monitor) == ([], {"cancelled": 1}, [])


# --- errors of the app's ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream"])
def test_a_run_that_fails_is_a_sample_with_what_it_had(monitor, way) -> None:
    def fail(_):
        raise ValueError("down")

    runnable = {"context": Searching() | joined, "question": RunnablePassthrough()} | PROMPT | RunnableLambda(fail)
    ways = {
        "invoke": lambda: runnable.invoke(QUESTION, heard(monitor)),
        "ainvoke": lambda: asyncio.run(runnable.ainvoke(QUESTION, heard(monitor))),
        "stream": lambda: list(runnable.stream(QUESTION, heard(monitor))),
    }
    with pytest.raises(ValueError, match="down"):
        ways[way]()
    assert parts(monitor.only) == (QUESTION, FOUND, None)
    assert monitor.only.metadata["error"] == "ValueError: down"


def test_an_error_that_cannot_be_worded_is_a_sample_and_the_app_s_own_error_goes_on(monitor) -> None:
    class OddError(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    def fail(_):
        raise OddError

    with pytest.raises(OddError):
        RunnableLambda(fail).invoke(QUESTION, heard(monitor))
    assert monitor.errors == []
    assert monitor.only.metadata["error"] == "OddError: (it cannot say what it is: RuntimeError)"


def test_a_retriever_that_fails_and_is_replaced(monitor) -> None:
    class Down(Searching):
        def _get_relevant_documents(self, query, *, run_manager):
            raise ConnectionError("down")

    retriever = Down().with_fallbacks([Searching()])
    ({"context": retriever | joined, "question": RunnablePassthrough()} | PROMPT | says(ANSWER)).invoke(
        QUESTION, heard(monitor)
    )
    assert parts(monitor.only) == WHOLE


def test_a_step_that_is_tried_again_is_one_sample(monitor) -> None:
    tries = iter([ValueError("once"), None])

    def flaky(text):
        error = next(tries)
        if error:
            raise error
        return ANSWER

    RunnableLambda(flaky).with_retry(wait_exponential_jitter=False).invoke(QUESTION, heard(monitor))
    assert parts(monitor.only) == (QUESTION, (), ANSWER)


# --- errors of our own -----------------------------------------------------------------------------------------------


class Broken(Noting):
    def submit(self, sample):
        raise RuntimeError("broken")

    def skip(self, reason):
        raise RuntimeError("broken")


def test_an_error_of_the_monitor_s_never_reaches_the_app(caplog) -> None:
    monitor = Broken()
    with caplog.at_level(logging.WARNING):
        assert RAG.invoke(QUESTION, heard(monitor)) == ANSWER
        assert asyncio.run(RAG.ainvoke(QUESTION, heard(monitor))) == ANSWER
        stream = RAG.stream(QUESTION, heard(monitor))
        next(stream)
        stream.close()
    assert [str(error) for error in monitor.errors] == ["broken"] * 3
    assert caplog.records == [], "LangChain has noticed nothing either"


@pytest.mark.parametrize("option", ["extract", "where"])
def test_an_error_of_the_user_s_function_is_counted_once_and_there_is_no_sample(monitor, option) -> None:
    def function(*args):
        raise LookupError(option)

    assert RAG.invoke(QUESTION, heard(monitor, **{option: function})) == ANSWER
    assert monitor.samples == []
    assert [str(error) for error in monitor.errors] == [option]


def test_what_ends_the_process_is_not_swallowed(monitor) -> None:
    def stop(*args):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RAG.invoke(QUESTION, heard(monitor, extract=stop))


class Hostile:
    """Fails whatever it is asked."""

    def __getattribute__(self, name):
        if name == "__class__":  # LangChain looks at it itself
            return Hostile
        raise RuntimeError("hostile")

    def __eq__(self, other):
        raise RuntimeError("hostile")

    def __bool__(self):
        raise RuntimeError("hostile")

    __hash__ = None


@pytest.mark.parametrize("where", ["inputs", "outputs", "nested", "metadata"])
def test_objects_that_fail_when_they_are_looked_into(monitor, where) -> None:
    hostile = Hostile()
    config = heard(monitor)
    if where == "metadata":
        config["metadata"] = {"hostile": hostile}
    given = {"inputs": hostile, "nested": {"question": hostile, "x": hostile}}.get(where, QUESTION)
    returned = (
        hostile if where == "outputs" else {"answer": hostile, "context": [hostile]} if where == "nested" else ANSWER
    )
    assert RunnableLambda(lambda _: returned).invoke(given, config) is returned
    assert len(monitor.samples) + len(monitor.errors) + monitor.skipped.total() >= 1
    assert len(config["callbacks"][0]._recorder.runs) == 0


def test_a_retriever_that_returns_no_documents(monitor) -> None:
    class Odd(Searching):
        def _get_relevant_documents(self, query, *, run_manager):
            return [7]

    assert (Odd() | (lambda _: ANSWER)).invoke(QUESTION, heard(monitor)) == ANSWER
    assert [parts(sample) for sample in monitor.samples] == [(QUESTION, (), ANSWER)]
    assert [str(error) for error in monitor.errors] == ["a retriever's result[0] is int, not text or a Document"]


def test_a_run_in_which_nothing_is_found(monitor) -> None:
    RunnableLambda(lambda number: number + 1).invoke(7, heard(monitor))
    assert noted(monitor) == ([], {"nothing_found": 1}, [])


def test_numbers_and_arrays_are_nobody_s_question(monitor) -> None:
    numpy = pytest.importorskip("numpy")
    RunnableLambda(lambda _: ANSWER).invoke({"input": numpy.zeros(3)}, heard(monitor))
    RunnableLambda(lambda _: ANSWER).invoke(numpy.zeros(3), heard(monitor))
    assert noted(monitor) == ([(None, (), ANSWER)] * 2, {}, [])


def test_an_empty_question_is_an_empty_question(monitor) -> None:
    RunnableLambda(lambda _: ANSWER).invoke({"question": ""}, heard(monitor))
    assert parts(monitor.only) == ("", (), ANSWER)


# --- extract and where -----------------------------------------------------------------------------------------------


def test_extract_gets_inputs_outputs_and_texts(monitor) -> None:
    got = []

    def extract(inputs, outputs, documents):
        got.append((inputs, outputs, documents))
        return Sample(user_input="mine", metadata={"mine": 1, "name": "mine"})

    RAG.invoke(QUESTION, {**heard(monitor, extract=extract), "run_name": "rag"})
    list(RAG.stream(QUESTION, heard(monitor, extract=extract)))
    assert got == [(QUESTION, ANSWER, FOUND)] * 2
    first = monitor.samples[0]
    assert parts(first) == ("mine", (), None)
    assert first.metadata == {"name": "mine", "tags": [], "mine": 1}
    assert uuid.UUID(first.id)


def test_extract_may_return_a_mapping_of_messages_and_documents(monitor) -> None:
    def extract(inputs, outputs, documents):
        return {"user_input": ("user", inputs), "retrieved_contexts": documents, "response": outputs, "id": "mine"}

    RAG.invoke(QUESTION, heard(monitor, extract=extract))
    assert parts(monitor.only) == WHOLE
    assert monitor.only.id == "mine"


def test_extract_may_decline(monitor) -> None:
    RAG.invoke(QUESTION, heard(monitor, extract=lambda *_: None))
    assert noted(monitor) == ([], {"declined": 1}, [])


def test_extract_is_told_of_a_run_that_failed_by_outputs_that_are_none(monitor) -> None:
    def fail(_):
        raise ValueError("down")

    def extract(inputs, outputs, documents):
        return {"user_input": inputs, "response": outputs}

    with pytest.raises(ValueError, match="down"):
        RunnableLambda(fail).invoke(QUESTION, heard(monitor, extract=extract))
    assert parts(monitor.only) == (QUESTION, (), None)
    assert monitor.only.metadata["error"] == "ValueError: down"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (7, "extract: the function returned int; return a Sample, a mapping of its fields or None"),
        ({"question": "?"}, "extract: the function's 'question': Extra inputs"),
        ({"user_input": 7}, "extract: the function's 'user_input' is int, not text"),
    ],
)
def test_what_extract_returns_is_checked(monitor, made, said) -> None:
    RAG.invoke(QUESTION, heard(monitor, extract=lambda *_: made))
    assert monitor.samples == []
    assert str(monitor.errors[0]).startswith(said)


def test_where_chooses_the_topmost_run_for_which_it_says_yes(monitor) -> None:
    asked = []

    def where(name, tags, metadata):
        asked.append(name)
        return "rag" in tags

    inner = RAG.with_config(run_name="my_rag", tags=["rag"])
    app = RunnableLambda(lambda text: text.strip()) | inner | RunnableLambda(lambda text: {"html": f"<p>{text}</p>"})
    config = {**heard(monitor, where=where), "run_name": "app", "metadata": {"user": "7"}}
    app.invoke(f" {QUESTION} ", config)
    assert parts(monitor.only) == WHOLE
    assert (monitor.only.metadata["name"], monitor.only.metadata["user"]) == ("my_rag", "7")
    assert asked.index("app") < asked.index("my_rag")
    assert len(asked) == 4, "nothing inside of what was chosen is asked about"
    assert len(config["callbacks"][0]._recorder.runs) == 0


def test_where_may_find_several_below_one(monitor) -> None:
    app = {"a": RAG.with_config(run_name="a"), "b": RAG.with_config(run_name="b")} | RunnableLambda(str)
    app.invoke(QUESTION, heard(monitor, where=lambda name, tags, metadata: name in ("a", "b")))
    assert sorted(sample.metadata["name"] for sample in monitor.samples) == ["a", "b"]
    assert {parts(sample) for sample in monitor.samples} == {WHOLE}


def test_where_may_choose_none(monitor) -> None:
    RAG.invoke(QUESTION, heard(monitor, where=lambda *_: False))
    assert noted(monitor) == ([], {}, [])


@pytest.mark.parametrize("name", ["extract", "where"])
def test_options_are_functions(monitor, name) -> None:
    with pytest.raises(TypeError, match=f"{name}: is str; pass a function"):
        MonitorHandler(monitor, **{name: "rag"})


@pytest.mark.parametrize(("given", "what"), [(None, "NoneType"), ([], "list"), (Noting, "the class Noting")])
def test_it_takes_monitors_only(given, what) -> None:
    with pytest.raises(TypeError, match=f"monitor: is {what}; pass a monitor, such as"):
        MonitorHandler(given)


def test_retriever_tools_are_several(monitor) -> None:
    with pytest.raises(TypeError, match="retriever_tools: is one text"):
        MonitorHandler(monitor, retriever_tools="search")


# --- where it is attached --------------------------------------------------------------------------------------------


def test_attached_inside_of_a_run_that_it_does_not_know(monitor) -> None:
    outer = RunnableLambda(lambda text: text) | RAG.with_config(callbacks=[MonitorHandler(monitor)])
    outer.invoke(QUESTION)
    assert parts(monitor.only) == WHOLE


def test_attached_to_a_classic_chain_itself(monitor) -> None:
    qa = RetrievalQA.from_chain_type(
        says(ANSWER), retriever=Searching(), callbacks=[MonitorHandler(monitor)], return_source_documents=True
    )
    qa.invoke({"query": QUESTION})
    assert parts(monitor.only) == WHOLE


def test_attached_to_a_model_as_well(monitor) -> None:
    handler = MonitorHandler(monitor)
    model = FakeListChatModel(responses=[ANSWER], callbacks=[handler])
    (PROMPT | model).invoke({"question": QUESTION, "context": FIRST}, {"callbacks": [handler]})
    assert parts(monitor.only) == (QUESTION, (FIRST,), ANSWER)
    model.invoke("by itself")
    assert len(monitor.samples) == 1


@pytest.mark.parametrize("times", [2, 3])
def test_attached_several_times_it_counts_once(monitor, times) -> None:
    handler = MonitorHandler(monitor)
    with handler.everywhere():
        RAG.with_config(callbacks=[handler]).invoke(QUESTION, {"callbacks": [handler] * times})
    assert parts(monitor.only) == WHOLE


def test_each_event_twice_is_one_run(monitor) -> None:
    asked = []
    handler = MonitorHandler(monitor, where=lambda *about: asked.append(about) is None)
    manager = CallbackManager(handlers=[handler, handler], inheritable_handlers=[handler, handler])
    root = manager.on_chain_start({}, QUESTION)
    search = root.get_child().on_retriever_start({}, QUESTION)
    search.on_retriever_end(Searching().invoke(QUESTION))
    root.on_chain_end(ANSWER)
    assert parts(monitor.only) == WHOLE
    assert len(asked) == 1
    assert len(handler._recorder.runs) == 0


def test_inputs_that_are_not_there_yet_are_no_empty_question(monitor) -> None:
    """A chain that is streamed begins so, and one whose inputs never come ends so."""
    CallbackManager(handlers=[MonitorHandler(monitor)]).on_chain_start({}, {"input": ""}).on_chain_end(ANSWER)
    assert parts(monitor.only) == (None, (), ANSWER)


def test_two_handlers_on_one_monitor_submit_the_same_id(monitor) -> None:
    RAG.invoke(QUESTION, {"callbacks": [MonitorHandler(monitor), MonitorHandler(monitor)]})
    assert len(monitor.samples) == 2
    assert len({sample.id for sample in monitor.samples}) == 1


def test_everywhere_reaches_every_thread_and_ends(monitor) -> None:
    before = len(_configure_hooks)
    handler = MonitorHandler(monitor)
    with handler.everywhere():
        with handler.everywhere():
            assert len(_configure_hooks) == before + 1
        RAG.invoke(QUESTION)
        thread = threading.Thread(target=RAG.invoke, args=(QUESTION,))
        thread.start()
        thread.join()
        asyncio.run(RAG.ainvoke(QUESTION))
        assert len(monitor.samples) == 3
    RAG.invoke(QUESTION)
    assert noted(monitor) == ([WHOLE] * 3, {}, [])
    assert len(_configure_hooks) == before


def test_everywhere_may_last(monitor) -> None:
    lasting = MonitorHandler(monitor).everywhere()
    try:
        gc.collect()
        RAG.invoke(QUESTION)
        assert parts(monitor.only) == WHOLE
    finally:
        lasting.close()


def test_other_handlers_hear_what_they_heard_before(monitor) -> None:
    alone, beside = Listener(), Listener()
    RAG.invoke(QUESTION, {"callbacks": [alone]})
    RAG.invoke(QUESTION, {"callbacks": [MonitorHandler(monitor), beside]})
    assert sorted(beside.heard) == sorted(alone.heard), "in any order: two steps run side by side"


def test_a_handler_in_a_config_that_is_copied(monitor) -> None:
    handler = MonitorHandler(monitor)
    assert copy.deepcopy({"callbacks": [handler]})["callbacks"][0] is handler
    shallow = copy.copy(handler)
    RAG.invoke(QUESTION, {"callbacks": [shallow]})
    assert parts(monitor.only) == WHOLE


class Picklable:
    """A monitor of a module, so that it can be pickled."""

    def submit(self, sample):
        print(parts(sample))

    def skip(self, reason):
        print("skipped", reason)

    def failed(self, place, error):
        raise error


def test_a_pickled_handler_keeps_its_options_and_drops_what_is_open(capsys) -> None:
    handler = MonitorHandler(Picklable(), retriever_tools=["search"])
    CallbackManager(handlers=[handler]).on_chain_start({}, QUESTION)
    again = pickle.loads(pickle.dumps(handler))
    assert len(handler._recorder.runs) == 1
    assert len(again._recorder.runs) == 0
    assert again._options == handler._options
    RAG.invoke(QUESTION, {"callbacks": [again]})
    assert capsys.readouterr().out == f"{WHOLE}\n"


def test_a_monitor_that_cannot_be_pickled_says_so(monitor) -> None:
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(MonitorHandler(monitor))  # for its lock


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # that forking with threads may hang is what is tested
def test_a_fork_while_another_thread_is_inside(monitor) -> None:
    handler = MonitorHandler(monitor)
    CallbackManager(handlers=[handler]).on_chain_start({}, QUESTION)
    lock = handler._recorder.runs._lock
    held, done = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert len(handler._recorder.runs) == 1
            RAG.invoke(QUESTION, {"callbacks": [handler]})
            code = 0 if parts(monitor.only) == WHOLE and len(handler._recorder.runs) == 0 else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
    assert len(handler._recorder.runs) == 1, "the parent's are its own"


def test_the_lock_may_be_taken_again_by_whoever_holds_it(monitor) -> None:
    """The garbage collector may close an abandoned stream while this very handler is at work."""
    handler = MonitorHandler(monitor)
    stream = RAG.stream(QUESTION, {"callbacks": [handler]})
    next(stream)
    with handler._recorder.runs._lock:
        stream.close()
    assert noted(monitor) == ([], {"abandoned": 1}, [])


# --- the judge -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trace", [False, True])
def test_a_judge_is_never_a_sample(monitor, trace) -> None:
    handler = MonitorHandler(monitor)
    judge = LangChainLLM(FakeListChatModel(responses=["yes"], callbacks=[handler]).with_retry(), trace=trace)

    def ask(text):
        assert judge.generate(WORD).text == "yes"
        return ANSWER

    async def aask(text, config: RunnableConfig):
        assert (await judge.agenerate(WORD)).text == "yes"
        return ANSWER

    with handler.everywhere():
        judge.generate(WORD)
        asyncio.run(judge.agenerate(WORD))
        assert noted(monitor) == ([], {}, [])
        assert len(handler._recorder.runs) == 0
        RunnableLambda(ask, aask).invoke(QUESTION)
        asyncio.run(RunnableLambda(ask, aask).ainvoke(QUESTION))
    assert noted(monitor) == ([(QUESTION, (), ANSWER)] * 2, {}, [])
    assert len(handler._recorder.runs) == 0


def test_what_runs_below_a_judge_is_buried_with_it(monitor) -> None:
    """A user's own judge may be a whole chain, with a retriever in it."""
    judge = RAG.with_config(tags=["ragstone:judge"])
    app = RunnableLambda(lambda text: judge.invoke("judge this") and ANSWER)
    app.invoke(QUESTION, heard(monitor))
    judge.invoke("judge this", heard(monitor))
    assert parts(monitor.only) == (QUESTION, (), ANSWER)


# --- runs that never end, and runs that end late ---------------------------------------------------------------------


def begun(handler, count=1):
    """Begin runs that never end, each with a step and a search in it."""
    manager = CallbackManager(handlers=[handler], inheritable_handlers=[handler])
    for i in range(count):
        root = manager.on_chain_start({}, {"question": f"{QUESTION} {i}" + "x" * 1000})
        step = root.get_child().on_chain_start({}, "x")
        found = step.get_child().on_retriever_start({}, "x")
        found.on_retriever_end([])
    return root


def test_memory_is_flat_over_ten_thousand_runs_that_never_end(monitor) -> None:
    handler = MonitorHandler(monitor)
    peaks = []
    begun(handler, 6_000)  # so that what ended lately is known of as many as ever
    tracemalloc.start()
    try:
        for _ in range(2):
            begun(handler, 10_000)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.reset_peak()
    finally:
        tracemalloc.stop()
    assert dict(monitor.skipped) == {"never_ended": 26_000 - open_runs.MAX_OPEN}
    assert len(handler._recorder.runs) == 2 * open_runs.MAX_OPEN
    assert max(peaks) < min(peaks) * 1.1, peaks
    assert RAG.invoke(QUESTION, {"callbacks": [handler]}) == ANSWER
    assert [parts(sample) for sample in monitor.samples] == [WHOLE]


@pytest.mark.parametrize("kind", ["model", "retriever", "tool", "judge"])
def test_runs_that_are_no_samples_and_never_end_are_given_up_too(monitor, kind) -> None:
    handler = MonitorHandler(monitor)
    manager = CallbackManager(handlers=[handler])
    for _ in range(open_runs.MAX_OPEN + 100):
        if kind == "model":
            manager.on_llm_start({}, ["x"])
        elif kind == "retriever":
            manager.on_retriever_start({}, "x")
        elif kind == "tool":
            manager.on_tool_start({}, "x")
        else:
            CallbackManager(handlers=[handler], tags=["ragstone:judge"]).on_chain_start({}, "x")
    assert len(handler._recorder.runs) == open_runs.MAX_OPEN
    assert noted(monitor) == ([], {}, []), "they were none"


def test_the_quietest_is_given_up_first(monitor, monkeypatch) -> None:
    monkeypatch.setattr(open_runs, "MAX_OPEN", 3)
    handler = MonitorHandler(monitor)
    manager = CallbackManager(handlers=[handler], inheritable_handlers=[handler])
    busy = manager.on_chain_start({}, QUESTION)
    begun(handler, 2)
    busy.get_child().on_chain_start({}, "x").on_chain_end("x")
    quiet = begun(handler, 2)
    assert dict(monitor.skipped) == {"never_ended": 2}
    busy.on_chain_end(ANSWER)
    assert parts(monitor.samples[0]) == (QUESTION, (), ANSWER)
    quiet.on_chain_end(ANSWER)
    assert dict(monitor.skipped) == {"never_ended": 2, "abandoned": 1}, "its step was open still"


def test_a_run_without_any_event_for_an_hour_is_given_up_and_its_late_end_is_nothing(monitor, monkeypatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(open_runs.time, "monotonic", lambda: now[0])
    handler = MonitorHandler(monitor)
    late = begun(handler)
    now[0] += open_runs.TTL - 1
    manager = CallbackManager(handlers=[handler], inheritable_handlers=[handler])
    fresh = manager.on_chain_start({}, QUESTION)
    assert dict(monitor.skipped) == {}
    now[0] += 2
    begun(handler).on_chain_error(ValueError("x"))
    assert dict(monitor.skipped) == {"never_ended": 1}
    late.get_child().on_chain_start({}, "late").on_chain_end("late")
    late.on_chain_end("late")
    fresh.on_chain_end(ANSWER)
    assert [parts(sample)[2] for sample in monitor.samples] == [None, ANSWER]
    assert len(handler._recorder.runs) == 0


def test_the_hour_begins_again_with_each_event(monitor, monkeypatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(open_runs.time, "monotonic", lambda: now[0])
    handler = MonitorHandler(monitor)
    root = CallbackManager(handlers=[handler], inheritable_handlers=[handler]).on_chain_start({}, QUESTION)
    for _ in range(3):
        now[0] += open_runs.TTL * 0.9
        step = root.get_child().on_chain_start({}, "x")
        now[0] += open_runs.TTL * 0.9
        step.on_chain_end("x")
        now[0] += open_runs.TTL * 0.9
        begun(handler).on_chain_error(ValueError("x"))
    root.on_chain_end(ANSWER)
    assert parts(monitor.samples[-1]) == (QUESTION, (), ANSWER)
    assert dict(monitor.skipped) == {}


def test_a_loop_of_the_app_s_that_searches_for_ever_is_given_up(monitor) -> None:
    handler = MonitorHandler(monitor)
    root = CallbackManager(handlers=[handler], inheritable_handlers=[handler]).on_chain_start({}, QUESTION)
    for _ in range(open_runs.MAX_FOUND + 10):
        root.get_child().on_retriever_start({}, "x").on_retriever_end([])
    assert dict(monitor.skipped) == {"never_ended": 1}
    root.on_chain_end(ANSWER)
    assert monitor.samples == []
    assert len(handler._recorder.runs) == 0


def test_what_a_finished_run_still_starts_is_no_sample(monitor) -> None:
    handler = MonitorHandler(monitor)
    root = CallbackManager(handlers=[handler], inheritable_handlers=[handler]).on_chain_start({}, QUESTION)
    step = root.get_child().on_chain_start({}, "x")
    step.on_chain_end("x")
    root.on_chain_end(ANSWER)
    for parent in (root, step):
        late = parent.get_child().on_chain_start({}, "late question")
        late.get_child().on_chain_start({}, "later question").on_chain_end("later")
        late.on_chain_end("late")
    assert parts(monitor.only) == (QUESTION, (), ANSWER)
    assert len(handler._recorder.runs) == 0


def test_a_task_that_outlives_its_step_belongs_to_the_run(monitor) -> None:
    async def start(text, config: RunnableConfig):
        return asyncio.create_task(Searching().ainvoke(text, config))

    async def wait(task):
        await task
        return ANSWER

    runnable = RunnableLambda(start) | RunnableLambda(wait)
    asyncio.run(runnable.ainvoke(QUESTION, heard(monitor)))
    assert parts(monitor.only) == WHOLE


def test_a_run_with_parts_still_at_work_is_not_complete(monitor) -> None:
    async def leave(text, config: RunnableConfig):
        tasks.append(asyncio.create_task(RunnableLambda(sleep).ainvoke(text, config)))
        await asyncio.sleep(0.01)
        return ANSWER

    async def sleep(text):
        await asyncio.sleep(0.05)

    tasks = []

    async def run():
        await RunnableLambda(leave).ainvoke(QUESTION, heard(monitor))
        await asyncio.gather(*tasks)

    asyncio.run(run())
    assert noted(monitor) == ([], {"abandoned": 1}, [])


def test_ends_of_runs_that_began_before_the_handler_was_there(monitor) -> None:
    handler = MonitorHandler(monitor)
    for name, value in [
        ("on_chain_end", ANSWER),
        ("on_chain_error", ValueError("x")),
        ("on_retriever_end", []),
        ("on_retriever_error", ValueError("x")),
        ("on_tool_end", "x"),
        ("on_tool_error", ValueError("x")),
        ("on_llm_end", None),
        ("on_llm_error", ValueError("x")),
    ]:
        getattr(handler, name)(value, run_id=uuid.uuid4())
    handler.on_custom_event("ragstone.contexts", [FIRST], run_id=uuid.uuid4())
    assert noted(monitor) == ([], {}, [])


def test_a_tool_that_is_called_by_itself_and_runs_a_chain(monitor) -> None:
    @tool
    def answer(question: str) -> str:
        """Answer."""
        return RAG.invoke(question)

    answer.invoke({"question": QUESTION}, heard(monitor))
    assert parts(monitor.only) == WHOLE


# --- how it is called ------------------------------------------------------------------------------------------------


def test_its_methods_run_on_the_app_s_own_thread(monitor) -> None:
    threads = set()

    class Watching(MonitorHandler):
        def on_chain_start(self, *args, **kwargs):
            threads.add(threading.current_thread())
            super().on_chain_start(*args, **kwargs)

    async def run():
        manager = AsyncCallbackManager(handlers=[Watching(monitor)])
        await (await manager.on_chain_start({}, QUESTION)).on_chain_end(ANSWER)

    asyncio.run(run())
    assert threads == {threading.main_thread()}
    assert parts(monitor.only) == (QUESTION, (), ANSWER)
    assert MonitorHandler.raise_error is False


def test_every_event_it_names_is_one_of_langchain_s() -> None:
    events = [name for name in vars(MonitorHandler) if name.startswith("on_")]
    assert len(events) == 14
    assert all(hasattr(BaseCallbackHandler, name) for name in events)


@chain
def nothing(_):
    return None


def test_a_chain_that_returns_nothing(monitor) -> None:
    nothing.invoke(QUESTION, heard(monitor))
    assert parts(monitor.only) == (QUESTION, (), None)


def test_texts_that_no_encoding_can_carry(monitor) -> None:
    RunnableLambda(lambda _: "half \ud83d").invoke("NUL \x00", heard(monitor))
    assert parts(monitor.only) == ("NUL \x00", (), "half \ufffd")


def test_importing_it_loads_neither_langchain_nor_langgraph() -> None:
    program = (
        "import sys; from ragstone_langchain import MonitorHandler;"
        "assert not {'langchain', 'langgraph', 'langsmith', 'langchain_core.runnables'} & set(sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=120)


def test_without_langchain_the_middleware_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['langchain'] = None\n"
        "try:\n    from ragstone_langchain import MonitorMiddleware\n"
        "except ImportError as error:\n    print(error)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, env=environment, timeout=120, capture_output=True
    )
    assert done.stdout.decode().strip() == "MonitorMiddleware needs langchain 1.x: pip install langchain"


def test_a_second_search_of_the_same_text_counts_once(monitor) -> None:
    runnable = RunnableLambda(lambda text: [Searching().invoke(text), Searching(texts=(SECOND, FIRST)).invoke(text)])
    (runnable | (lambda _: ANSWER)).invoke(QUESTION, heard(monitor))
    assert parts(monitor.only) == WHOLE
