"""Putting the handler in place and taking it away; it never leaks, never breaks the app and never mixes runs up."""

import asyncio
import copy
import inspect
import os
import signal
import threading

import pytest
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.dispatcher import instrument_tags
from llama_index_instrumentation.span import active_span_id
from llama_index_instrumentation.span_handlers import SimpleSpanHandler

from ragstone.monitor import run_tree
from ragstone_llama_index import JUDGE_TAG, MonitorCallbackHandler, instrument, uninstrument

from .monitored import ANSWER, TEXTS, Notes, engine, in_threads, kept_by_handlers, recorder_of

DONE = ("Who?", TEXTS, ANSWER)


@pytest.fixture
def notes():
    return Notes()


def handlers():
    return [id(one) for one in root_dispatcher.span_handlers]


def test_the_same_monitor_twice_is_once(notes):
    before = handlers()
    in_threads(*[lambda: instrument(notes)] * 16)
    assert len(handlers()) == len(before) + 1
    engine().query("Who?")
    assert notes.told == [DONE]


def test_what_is_refused(notes):
    before = handlers()
    with pytest.raises(TypeError, match="where: is str; "):
        instrument(notes, where="RetrieverQueryEngine")
    for call in (instrument, MonitorCallbackHandler):
        with pytest.raises(TypeError, match="monitor: is .*; pass a ragstone.Monitor"):
            call("monitor")
    assert handlers() == before


def test_taking_it_away_leaves_others_in_place_and_a_begun_stream_is_told(notes):
    theirs = SimpleSpanHandler()
    root_dispatcher.add_span_handler(theirs)
    before = handlers()
    instrument(notes)
    response = engine(streaming=True).query("Who?")
    uninstrument(Notes())
    uninstrument(notes)
    uninstrument(notes)
    assert "".join(response.response_gen) == ANSWER
    instrument(notes)
    instrument(Notes())
    uninstrument()
    assert handlers() == before
    engine().query("Who?")
    assert notes.told == [DONE]


def test_copies_of_handlers_are_at_work_on_the_same_runs(notes):
    """Apps are copied, at times with all that they hold."""
    instrument(notes)
    for one in (root_dispatcher.span_handlers[0], MonitorCallbackHandler(notes)):
        assert recorder_of(copy.deepcopy(one)) is recorder_of(one)


class Outer(CustomQueryEngine):
    inner: object

    def custom_query(self, query_str):
        with instrument_tags({}):
            return str(self.inner.query("Inner?"))


def test_where_chooses_what_is_scored_with_all_beneath_it(notes):
    instrument(notes, where=lambda instance, name: name == "RetrieverQueryEngine.query")
    inner = engine()
    Outer(inner=inner).query("Outer?")
    assert notes.told == []
    inner.query("Who?")
    instrument(notes)  # all, from now on
    Outer(inner=inner).query("Outer?")
    assert [one.user_input for one in notes.samples] == ["Who?", "Outer?"]
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
    app = Returning(nodes=[NodeWithScore(node=Broken(text="x"))])
    instrument(notes)
    assert str(app.query("Who?")) == str(asyncio.run(app.aquery("Who?"))) == ANSWER
    instrument(notes, where=lambda instance, name: 1 / 0)
    assert str(engine().query("Who?")) == ANSWER
    assert [type(error) for _, error in notes.errors] == [OSError, OSError, ZeroDivisionError]
    assert notes.told == []
    assert kept_by_handlers() == 0


ENGINE = Returning.model_construct(nodes=[])


def test_judge_calls_are_known_by_their_tag_with_all_beneath_them(notes):
    instrument(notes)
    with instrument_tags({JUDGE_TAG: True}):
        Outer(inner=engine()).query("Outer?")
    assert notes.told == []
    assert kept_by_handlers() == 0


BOUND = inspect.signature(lambda str_or_query_bundle: None).bind("Who? " + "x" * 200)


def begin(handler, i):
    """Enter the spans of a query that never leaves them."""
    root = f"RetrieverQueryEngine.query-{i:036}"
    handler.span_enter(root, BOUND, ENGINE, None, {})
    handler.span_enter(f"RetrieverQueryEngine._query-{i:036}", BOUND, ENGINE, root, {})


def handler_of(notes):
    instrument(notes)
    return root_dispatcher.span_handlers[0]


def test_runs_that_never_end_are_forgotten_by_number_and_age(notes, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(run_tree.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(run_tree, "MOST_OPEN", 100)
    handler = handler_of(notes)
    for i in range(100):
        begin(handler, i)
    full = len(handler.recorder.runs)
    for i in range(100, 300):
        begin(handler, i)
    assert len(handler.recorder.runs) == full
    assert notes.skipped == {"never_ended": 200}
    handler.span_exit(f"RetrieverQueryEngine.query-{299:036}", BOUND, ENGINE, None)
    now[0] += run_tree.TTL + 1
    begin(handler, 300)
    assert notes.skipped == {"never_ended": 299}
    handler.span_exit(f"RetrieverQueryEngine.query-{298:036}", BOUND, ENGINE, None)  # ends after all
    assert (len(notes.told), notes.errors) == (1, [])


def test_a_span_id_that_was_left_behind_in_the_context(notes):
    """LlamaIndex 0.13 leaves that of a run that is over."""
    instrument(notes)
    token = active_span_id.set("Flow.run-" + "0" * 36)
    engine().query("Who?")
    active_span_id.reset(token)
    assert notes.told == [DONE]


# -------------------------------------------------------------------------------- OpenInference


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_that_is_forked_while_another_thread_is_at_work(notes):
    recorder, app = handler_of(notes).recorder, engine()
    held, free = threading.Event(), threading.Event()

    def hold():
        with recorder.runs._lock:
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
            os._exit(0 if notes.told == [DONE] else 1)
        finally:
            os._exit(2)
    free.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


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
    with pytest.raises(ConnectionError):
        engine(ConnectionError("down")).query("Who?")
    uninstrument(notes)
    engine().query("Still heard by them?")
    assert notes.told == [DONE] * 2 + [("Who?", TEXTS, None)]
    assert (notes.errors, kept_by_handlers()) == ([], 0)
    root_dispatcher.shutdown()  # theirs are exported
    calls = [span.context.span_id for span in spans() if span.name == "RetrieverQueryEngine.query"]
    assert len(calls) == 4
    assert len(set(current)) == 3
    assert set(current) < set(calls), "a sample's origin is the span of the very call"
