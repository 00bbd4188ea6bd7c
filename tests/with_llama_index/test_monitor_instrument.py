"""Putting the handler in place and taking it away; it never leaks, never breaks the app and never mixes runs up."""

import asyncio
import copy
import inspect
import os
import pickle
import signal
import threading

import pytest
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.dispatcher import instrument_tags
from llama_index_instrumentation.span import active_span_id
from llama_index_instrumentation.span_handlers import SimpleSpanHandler

from ragstone_llama_index import JUDGE_TAG, MonitorCallbackHandler, instrument, uninstrument
from ragstone_llama_index import runs as runs_module
from ragstone_llama_index.recorder import Recorder
from ragstone_llama_index.runs import Asked

from .monitored import ANSWER, TEXTS, Notes, Speaking, engine, in_threads, kept_by_handlers, recorder_of

DONE = ("Who?", TEXTS, ANSWER)


@pytest.fixture
def notes():
    return Notes()


def handlers():
    return [id(one) for one in root_dispatcher.span_handlers]


def test_the_same_monitor_twice_is_once(notes):
    before = handlers()
    instrument(notes)
    in_threads(*[lambda: instrument(notes)] * 16)
    assert len(handlers()) == len(before) + 1
    engine().query("Who?")
    assert notes.told == [DONE]


def test_what_is_refused(notes):
    before = handlers()
    with pytest.raises(TypeError, match="where: is str; "):
        instrument(notes, where="RetrieverQueryEngine")
    for wrong in (None, "monitor", object()):
        for call in (instrument, MonitorCallbackHandler):
            with pytest.raises(TypeError, match="monitor: is .*; pass a ragstone.Monitor"):
                call(wrong)
    assert handlers() == before


def test_copies_of_handlers_are_at_work_on_the_same_runs(notes):
    """Apps are copied, at times with all that they hold, and sent to other processes."""
    instrument(notes)
    handler = MonitorCallbackHandler(notes, metadata_mode="llm")
    for one in (root_dispatcher.span_handlers[0], handler):
        assert recorder_of(copy.deepcopy(one)) is recorder_of(one)
    there = recorder_of(pickle.loads(pickle.dumps(handler)))
    assert there is not recorder_of(handler)
    assert there.monitor is not notes
    assert there.mode == "llm"


def test_taking_it_away_leaves_others_in_place(notes):
    theirs = [SimpleSpanHandler(), SimpleSpanHandler()]  # equal by their fields
    root_dispatcher.add_span_handler(theirs[0])
    before = handlers()
    instrument(notes)
    root_dispatcher.add_span_handler(theirs[1])
    uninstrument(Notes())
    uninstrument(notes)
    uninstrument(notes)
    assert handlers() == [*before, id(theirs[1])]
    instrument(notes)
    instrument(Notes())
    uninstrument()
    assert handlers() == [*before, id(theirs[1])]
    engine().query("Who?")
    assert notes.told == []


def test_a_stream_that_is_read_after_it_was_taken_away(notes):
    instrument(notes)
    response = engine(streaming=True).query("Who?")
    uninstrument(notes)
    assert "".join(response.response_gen) == ANSWER
    assert notes.told == [DONE]


class Outer(CustomQueryEngine):
    inner: object

    def custom_query(self, query_str):
        return str(self.inner.query("Inner?"))


def test_where_chooses_what_is_scored_with_all_beneath_it(notes):
    asked = []

    def where(instance, name):
        asked.append((type(instance).__name__, name))
        return name == "RetrieverQueryEngine.query"

    instrument(notes, where=where)
    inner = engine()
    Outer(inner=inner).query("Outer?")
    assert notes.told == []
    inner.query("Who?")
    assert notes.told == [DONE]
    assert asked == [("Outer", "Outer.query"), ("RetrieverQueryEngine", "RetrieverQueryEngine.query")]
    instrument(notes)  # all, from now on
    Outer(inner=inner).query("Outer?")
    assert [one.user_input for one in notes.samples] == ["Who?", "Outer?"]
    assert kept_by_handlers() == 0


def test_a_where_that_raises_is_counted_and_leaves_the_call_alone(notes):
    instrument(notes, where=lambda instance, name: 1 / 0)
    assert str(engine().query("Who?")) == ANSWER
    assert notes.told == []
    assert [(place, type(error)) for place, error in notes.errors] == [("llama_index", ZeroDivisionError)]
    assert kept_by_handlers() == 0


class Broken(TextNode):
    """A node whose text cannot be had a second time."""

    def get_content(self, metadata_mode=None):
        raise OSError("gone")


class Returning(CustomQueryEngine):
    nodes: list

    def custom_query(self, query_str):
        from llama_index.core.base.response.schema import Response

        return Response(ANSWER, source_nodes=self.nodes)


def test_what_fails_in_the_handler_is_counted_and_no_trouble_of_the_app(notes):
    instrument(notes)
    app = Returning(nodes=[NodeWithScore(node=Broken(text="x"))])
    assert str(app.query("Who?")) == ANSWER
    assert str(asyncio.run(app.aquery("Who?"))) == ANSWER
    assert [(place, type(error)) for place, error in notes.errors] == [("llama_index", OSError)] * 2
    assert notes.told == []
    assert kept_by_handlers() == 0


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def test_an_error_without_words(notes):
    Recorder(notes).failed(Asked("1", "Who?", {}), ["a", "b", "a"], MuteError())
    assert notes.told == [("Who?", ("a", "b"), None)]
    assert notes.samples[0].metadata == {"error": "MuteError: (it cannot say what it is: RuntimeError)"}


def test_judge_calls_are_known_by_their_tag_with_all_beneath_them(notes):
    instrument(notes)

    class Retagging(CustomQueryEngine):
        def custom_query(self, query_str):
            with instrument_tags({}):
                return str(engine().query("Inner?"))

    with instrument_tags({JUDGE_TAG: True}):
        Retagging().query("Outer?")
    assert notes.told == []
    assert kept_by_handlers() == 0


# -------------------------------------------------------------------------------- runs that never end


ENGINE = Returning.model_construct(nodes=[])
BOUND = inspect.signature(lambda str_or_query_bundle: None).bind("Who? " + "x" * 200)


def begin(handler, i):
    """Enter the spans of a query that never leaves them."""
    root = f"RetrieverQueryEngine.query-{i:036}"
    handler.span_enter(root, BOUND, ENGINE, None, {})
    handler.span_enter(f"RetrieverQueryEngine._query-{i:036}", BOUND, ENGINE, root, {})


def handler_of(notes):
    instrument(notes)
    return root_dispatcher.span_handlers[0]


def test_runs_that_never_end_are_forgotten_oldest_first(notes, monkeypatch):
    handler = handler_of(notes)
    monkeypatch.setattr(handler.recorder.runs._runs, "_most", 100)
    for i in range(100):
        begin(handler, i)
    assert notes.skipped == {}
    full = len(handler.recorder)
    for i in range(100, 1000):
        begin(handler, i)
    assert len(handler.recorder) == full
    assert notes.skipped == {"never_ended": 900}
    engine().query("Who?")
    assert notes.told == [DONE]
    handler.span_exit(f"RetrieverQueryEngine.query-{999:036}", BOUND, ENGINE, None)
    assert len(notes.told) == 2
    assert notes.errors == []
    assert runs_module.MOST_OPEN == 10_000


def test_runs_that_are_too_old(notes, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(runs_module.time, "monotonic", lambda: now[0])
    handler = handler_of(notes)
    begin(handler, 1)
    now[0] += runs_module.LONGEST - 1
    begin(handler, 2)
    assert notes.skipped == {}
    now[0] += 2
    begin(handler, 3)
    assert notes.skipped == {"never_ended": 1}
    handler.span_exit(f"RetrieverQueryEngine._query-{1:036}", BOUND, ENGINE, None)  # ends after all
    handler.span_exit(f"RetrieverQueryEngine.query-{1:036}", BOUND, ENGINE, None)
    assert notes.told == []
    now[0] -= 5000  # a clock that goes back
    begin(handler, 4)
    assert notes.skipped == {"never_ended": 1}
    assert notes.errors == []


def test_a_run_that_ends_before_what_it_began(notes):
    """What is still under way beneath it belongs to it, and is forgotten when it ends."""
    handler = handler_of(notes)
    begin(handler, 1)
    handler.span_exit(f"RetrieverQueryEngine.query-{1:036}", BOUND, ENGINE, None)
    assert len(notes.told) == 1
    late = f"RetrieverQueryEngine.query-{2:036}"
    handler.span_enter(late, BOUND, ENGINE, f"RetrieverQueryEngine._query-{1:036}")
    handler.span_exit(late, BOUND, ENGINE, None)
    handler.span_exit(f"RetrieverQueryEngine._query-{1:036}", BOUND, ENGINE, None)
    assert len(notes.told) == 1
    assert kept_by_handlers() == 0


def test_spans_of_others_with_ids_of_their_own(notes):
    handler = handler_of(notes)
    for id_ in ("", "-", ".query", "RetrieverQueryEngine.query", "query-" + "0" * 36, "x" * 10_000):
        for parent in (None, "", id_, "unknown"):
            handler.span_enter(id_, BOUND, object(), parent, {})
            handler.span_exit(id_, BOUND, object(), "result")
            handler.span_drop(id_, BOUND, None, None)
            handler.span_drop(id_, BOUND, None, ValueError())
    assert (notes.told, notes.errors, len(handler.recorder)) == ([], [], 0)


def test_a_span_id_that_was_left_behind_in_the_context(notes):
    """LlamaIndex 0.13 leaves that of a run that is over."""
    instrument(notes)
    token = active_span_id.set("Flow.run-" + "0" * 36)
    try:
        engine().query("Who?")
    finally:
        active_span_id.reset(token)
    assert notes.told == [DONE]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_that_is_forked_while_another_thread_is_at_work(notes):
    recorder, app = handler_of(notes).recorder, engine()
    recorder.runs.begin("another thread's", None)
    held, free = threading.Event(), threading.Event()

    def hold():
        with recorder._lock, recorder.runs._lock:
            held.set()
            free.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # ends it, should it wait for a lock
        try:
            app.query("Who?")
            os._exit(0 if (notes.told, len(recorder)) == ([DONE], 0) else 1)
        finally:
            os._exit(2)
    free.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    app.query("Who?")
    assert (notes.told, len(recorder)) == ([DONE], 2)


# -------------------------------------------------------------------------------- OpenInference


@pytest.mark.parametrize("ours_first", [False, True])
def test_beside_openinference_both_hear_all(notes, openinference, ours_first):
    from opentelemetry.trace import get_current_span

    start, spans = openinference
    current = []
    submit = notes.submit
    notes.submit = lambda sample: (submit(sample), current.append(get_current_span().get_span_context().span_id))
    for step in [lambda: instrument(notes), start] if ours_first else [start, lambda: instrument(notes)]:
        step()
    engine().query("Who?")
    assert "".join(engine(streaming=True).query("Who?").response_gen) == ANSWER

    async def main():
        response = await engine(streaming=True).aquery("Who?")
        assert "".join([word async for word in response.async_response_gen()]) == ANSWER

    asyncio.run(main())
    left = engine(streaming=True).query("Who?").response_gen
    next(left)
    left.close()
    with pytest.raises(ConnectionError):
        engine(ConnectionError("down")).query("Who?")
    assert notes.told == [DONE] * 3 + [("Who?", TEXTS, None)]
    assert notes.skipped == {"abandoned": 1}
    assert notes.errors == []
    assert kept_by_handlers() == 0
    root_dispatcher.shutdown()  # theirs are exported
    names = [span.name for span in spans()]
    assert names.count("RetrieverQueryEngine.query") == 4
    assert names.count("RetrieverQueryEngine.aquery") == 1
    # What a sink notes as the sample's origin is the span of the very call.
    calls = [span for span in spans() if span.name in ("RetrieverQueryEngine.query", "RetrieverQueryEngine.aquery")]
    assert set(current) < {span.context.span_id for span in calls}
    assert len(set(current)) == 4
    before = len(notes.samples)
    uninstrument(notes)
    Speaking().complete("Still heard by them?")
    engine().query("Who?")
    assert len(notes.samples) == before
    assert [span.name for span in spans()].count("RetrieverQueryEngine.query") == 5
