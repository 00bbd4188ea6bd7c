"""The handler: in place and away, what fails in it, what the app says of a run, and streams that it listens to."""

import asyncio
import copy
import gc
import inspect
import sys
import tracemalloc
import weakref
from contextvars import copy_context

import pytest
from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.dispatcher import instrument_tags
from llama_index_instrumentation.span import active_span_id
from llama_index_instrumentation.span_handlers import SimpleSpanHandler

import ragstone
from ragstone import ContextRelevancy, ResponseRelevancy, Sample
from ragstone.adapters import open_runs as runs
from ragstone.live import CallableSink, Monitor
from ragstone.testing import FakeEmbedder, FakeLLM
from ragstone_llama_index import (
    LlamaIndexLLM,
    MetricEvaluator,
    aevaluate_query_engine,
    contexts,
    instrument,
    uninstrument,
)

from ..support.noting import Noting  # noqa: TID252
from .models import Chatting, truth
from .monitored import (
    ANSWER,
    TEXTS,
    Answering,
    Speaking,
    engine,
    in_threads,
    kept_by_handlers,
    memory,
    retriever,
    run,
)
from .test_shapes import Flow, Found, synthesizer

DONE = ("Who?", TEXTS, ANSWER)
WORDS = ["Jane", " Austen", " wrote", " it."]


def giving(returned):
    """An app that answers so."""
    return Answering(answer=lambda question: returned)


# -------------------------------------------------------------------------------- in place and away


def handlers():
    return [id(one) for one in root_dispatcher.span_handlers]


def test_the_same_monitor_twice_is_once(notes):
    before = handlers()
    in_threads(*[lambda: instrument(notes)] * 16)
    assert handlers() == before
    engine().query("Who?")
    assert notes.told == [DONE]


def test_what_is_refused():
    before = handlers()
    with pytest.raises(TypeError, match="where: is str; "):
        instrument(Noting(), where="RetrieverQueryEngine")
    with pytest.raises(TypeError, match="monitor: str has no submit; pass a ragstone.Monitor"):
        instrument("monitor")
    assert handlers() == before


def test_taking_it_away_leaves_others_in_place_and_a_begun_stream_is_told(notes):
    theirs = SimpleSpanHandler()
    root_dispatcher.add_span_handler(theirs)
    response = engine(streaming=True).query("Who?")
    for monitor in (Noting(), notes, notes):
        uninstrument(monitor)
    assert "".join(response.response_gen) == ANSWER
    before = handlers()
    assert id(theirs) in before
    instrument(notes)
    instrument(Noting())
    uninstrument()
    assert handlers() == before
    engine().query("Who?")
    assert notes.told == [DONE]


def test_copies_of_handlers_are_at_work_on_the_same_runs(notes):
    """Apps are copied, at times with all that they hold."""
    handler = root_dispatcher.span_handlers[0]
    assert copy.deepcopy(handler).recorder is handler.recorder


def test_where_chooses_what_is_scored_with_all_beneath_it(notes):
    inner = engine()

    def ask(question):
        with instrument_tags({}):
            return str(inner.query("Inner?"))

    instrument(notes, where=lambda instance, name: name == "RetrieverQueryEngine.query")
    Answering(answer=ask).query("Outer?")
    assert (notes.told, notes.skipped) == ([], {"excluded": 1})
    inner.query("Who?")
    instrument(notes)  # all, from now on
    Answering(answer=ask).query("Outer?")
    assert [one.user_input for one in notes.samples] == ["Who?", "Outer?"]


def test_a_query_under_way_is_scored_after_uninstrument(notes):
    def leave(question):
        uninstrument(notes)
        engine().query("Within?")
        return Response(ANSWER)

    Answering(answer=leave).query("Who?")
    engine().query("Not any more?")
    assert notes.told == [DONE]
    assert kept_by_handlers() == 0


def test_a_streamed_chat_is_scored_after_uninstrument(notes):
    app = ContextChatEngine.from_defaults(retriever(), llm=Speaking(pause=0.01), memory=memory())
    response = app.stream_chat("Who?")
    uninstrument(notes)
    assert "".join(response.response_gen) == ANSWER
    notes.wait(1)
    assert notes.told == [DONE]


def test_a_query_inside_of_a_run_that_has_ended_is_a_run_of_its_own(notes):
    left = []
    tool = FunctionTool.from_defaults(lambda: left.append(copy_context()), name="leave", description="Leave.")
    Answering(answer=lambda question: tool() and ANSWER).query("Who?")
    left[0].run(engine().query, "Later?")
    assert notes.told == [("Who?", (), ANSWER), ("Later?", TEXTS, ANSWER)]
    assert notes.samples[1].metadata["name"] == "RetrieverQueryEngine.query"


class Broken(TextNode):
    """A node whose text cannot be had."""

    def get_content(self, metadata_mode=None):
        raise OSError("gone")


def test_what_fails_in_the_handler_is_counted_and_no_trouble_of_the_app(notes):
    app = giving(Response(ANSWER, source_nodes=[NodeWithScore(node=Broken(text="x"))]))
    assert str(app.query("Who?")) == str(asyncio.run(app.aquery("Who?"))) == ANSWER
    instrument(notes, where=lambda instance, name: 1 / 0)
    assert str(engine().query("Who?")) == ANSWER
    assert [type(error) for error in notes.errors] == [OSError, OSError, ZeroDivisionError]
    assert (notes.told, notes.skipped) == ([], {"where_failed": 1})
    notes.errors.clear()


def test_a_monitor_that_fails_is_no_trouble_of_the_app(notes):
    def submit(sample):
        raise MemoryError("full")

    notes.submit = submit
    assert str(engine().query("Who?")) == ANSWER
    assert "".join(ask().response_gen) == ANSWER
    assert [type(error) for error in notes.errors] == [MemoryError] * 2
    notes.errors.clear()


def test_what_fails_is_a_sample_with_its_error_and_what_was_retrieved_and_what_was_called_off_is_none(notes):
    failing = engine(ConnectionError("rate limit " + "x" * 500))
    with pytest.raises(ConnectionError):
        failing.query("Who?")
    with pytest.raises(ConnectionError):
        asyncio.run(failing.aquery("Who?"))
    for error in (KeyboardInterrupt(), SystemExit()):
        with pytest.raises(type(error)):
            engine(error).query("Who?")
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(asyncio.wait_for(engine(pause=60).aquery("Who?"), 0.2))
    assert notes.told == [("Who?", TEXTS, None)] * 2
    assert notes.samples[0].metadata["error"] == "ConnectionError: rate limit " + "x" * 188 + "…"
    assert notes.skipped == {"cancelled": 3}


def test_runs_that_never_end_are_counted(notes):
    handler, app = root_dispatcher.span_handlers[0], giving(None)
    bound = inspect.signature(lambda str_or_query_bundle: None).bind("Who?")
    ids = [f"RetrieverQueryEngine.query-{i:036}" for i in range(runs.MOST_OPEN + 3)]
    for id_ in ids:
        handler.span_enter(id_, bound, app, None, {})
    for id_ in ids:
        handler.span_exit(id_, bound, app, Response(ANSWER))
    assert notes.skipped == {"never_ended": 3}
    assert len(notes.told) == runs.MOST_OPEN


def test_what_is_kept_of_ended_runs_is_no_more_than_2_mb(notes):
    handler, search = root_dispatcher.span_handlers[0], Found()
    bound = inspect.signature(lambda str_or_query_bundle: None).bind("Who?")

    def searches(question):
        above = active_span_id.get()
        for i in range(1_100):
            within, never = (f"{name}-{i:030}{question}" for name in ("Found.retrieve", "Books._answer"))
            handler.span_enter(within, bound, search, above, {})
            handler.span_enter(never, bound, None, within, {})  # a step that nobody awaits
            handler.span_exit(within, bound, search, [])

    tracemalloc.start()
    try:
        for i in range(10):
            Answering(answer=searches).query(f"Who {i}?")
        for i in range(300):
            search.retrieve(f"{i}" + "?" * 10_000)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert notes.skipped == {"no_answer": 10, "only_retrieval": 300}
    assert kept < 2_000_000


def test_queries_at_the_same_time(notes):
    apps = [engine(f"Answer {i}.", texts=[f"Text {i}."], pause=0.002) for i in range(8)]

    async def main():
        await asyncio.gather(*(app.aquery(f"Question {i}?") for i, app in enumerate(apps)))

    asyncio.run(main())
    in_threads(*(lambda i=i: [apps[i].query(f"Question {i}?") for _ in range(5)] for i in range(8)))
    assert sorted(notes.told) == sorted(
        (f"Question {i}?", (f"Text {i}.",), f"Answer {i}.") for i in range(8) for _ in range(6)
    )
    assert len({one.id for one in notes.samples}) == 48


async def read_async():
    """What async streams give, each read another way."""
    streams = [(await aask()).async_response_gen(), (await aask()).response_gen]
    app = ContextChatEngine.from_defaults(retriever(), llm=Speaking(), memory=memory())
    streams.append((await app.astream_chat("Who?")).async_response_gen())
    texts = [str(await (await aask()).get_response())]
    for stream in streams:
        texts.append("".join([word async for word in stream]))
    return texts


@pytest.mark.parametrize("ours_first", [False, True])
def test_beside_openinference_both_hear_all(openinference, ours_first):
    from opentelemetry.trace import get_current_span

    start, spans = openinference
    notes, current = Noting(), []
    submit = notes.submit
    notes.submit = lambda sample: (submit(sample), current.append(get_current_span().get_span_context().span_id))
    for begin in [lambda: instrument(notes), start] if ours_first else [start, lambda: instrument(notes)]:
        begin()
    engine().query("Who?")
    assert "".join(engine(streaming=True).query("Who?").response_gen) == ANSWER
    assert asyncio.run(read_async()) == [ANSWER] * 4
    notes.wait(6)
    with pytest.raises(ConnectionError):
        engine(ConnectionError("down")).query("Who?")
    uninstrument(notes)
    engine().query("Still heard by them?")
    assert notes.told == [DONE] * 6 + [("Who?", TEXTS, None)]
    root_dispatcher.shutdown()  # theirs are exported
    calls = [span.context.span_id for span in spans() if span.name == "RetrieverQueryEngine.query"]
    assert len(calls) == 4
    queries = {current[0], current[1], current[-1]}
    assert len(queries) == 3
    assert queries < set(calls), "a sample's origin is the span of the very call"


# -------------------------------------------------------------------------------- the judge


@pytest.mark.parametrize("trace", [False, True])
def test_what_a_judge_does_is_no_sample(notes, trace):
    """Even where the judge's model is asked in the midst of a query, and itself looks like an app."""

    class Asking(Chatting):
        """A judge that asks an engine."""

        def _answered(self, *args):
            engine().query("Of the judge")
            return super()._answered(*args)

    metric = ContextRelevancy(llm=LlamaIndexLLM(Asking(truth), trace=trace))

    def guarded(question):
        return str(MetricEvaluator(metric).evaluate(query=question, contexts=["It is."]).usage.llm_calls > 0)

    Answering(answer=guarded).query("Who?")
    assert (notes.told, notes.skipped) == ([("Who?", (), "True")], {})


def test_a_monitor_scores_an_app_and_none_of_its_judges_calls():
    outcomes = []
    judge = LlamaIndexLLM(Chatting(truth))
    metrics = [ContextRelevancy(llm=judge), ResponseRelevancy(llm=judge, embedder=FakeEmbedder(), strictness=1)]
    with Monitor(metrics, sinks=CallableSink(outcomes.extend)) as monitor:
        instrument(monitor)
        for _ in range(3):
            app = engine(texts=("It has word0 here. It has word1 here.", "It has word2 here."))
            asyncio.run(app.aquery("Which of them say word1?"))
        nodes = retriever().retrieve("Which say word1?")
        assert monitor.stats().skipped == {"only_retrieval": 1}
        synthesizer().synthesize("Which say word1?", nodes)
        assert monitor.flush(30).done
        stats = monitor.stats()
        uninstrument(monitor)
    assert (stats.samples, stats.accepted, stats.scored, stats.errors, stats.skipped) == (4, 8, 8, {}, {})
    assert len({one.sample_id for one in outcomes}) == 4
    values = [one.outcome.value for one in outcomes if one.outcome.metric == "context_relevancy"]
    assert sorted(values)[-3:] == pytest.approx([1 / 3] * 3)  # whichever ends first
    assert kept_by_handlers() == 0


@pytest.mark.parametrize("streaming", [False, True])
def test_an_engine_that_found_nothing_has_not_answered(notes, streaming):
    answers = synthesizer(streaming=streaming)
    response = RetrieverQueryEngine(Found(), response_synthesizer=answers).query("Who?")
    if streaming:
        assert str(response) == "Empty Response"
    metric = MetricEvaluator("response_relevancy", FakeLLM(truth), FakeEmbedder())
    assert metric.evaluate_response("Who?", response).invalid_reason.startswith("empty_input: response: ")
    assert notes.told == [("Who?", (), "")]


# -------------------------------------------------------------------------------- what the app says of a run


def test_contexts_with_nothing_around_return_what_they_were_given_and_never_raise(notes):
    for found in ([], "one text", None, iter("ab"), {"a": 1}, [3]):
        assert contexts(found) is found
    with ragstone.trace_id("request"):
        assert contexts({"a": 1}) == {"a": 1}
    assert (notes.told, notes.errors) == ([], [])
    Answering(answer=lambda question: contexts({"a": 1}) and ANSWER).query("Who?")
    assert notes.told == [("Who?", (), ANSWER)]
    assert [str(error) for error in notes.errors] == ["contexts: has dict; pass nodes or texts"]
    notes.errors.clear()


def test_the_samples_of_a_block_have_its_id_and_the_contexts_named_before_them(notes):
    other = Noting()
    instrument(other)
    with ragstone.trace_id("request 7"):
        contexts(["Named outside."])
        engine().query("First?")
        retriever().retrieve("Nothing?")
        engine().query("Second?")
    engine().query("Third?")
    for monitor in (notes, other):
        assert [one.id for one in monitor.samples[:2]] == ["request 7", "request 7/2"]
        assert [one.retrieved_contexts for one in monitor.samples] == [("Named outside.",), TEXTS, TEXTS]
        assert monitor.samples[2].metadata["run_id"] == f"RetrieverQueryEngine.query-{monitor.samples[2].id}"


def test_tags_name_the_id_the_user_and_the_thread_and_a_sample_does_not_change_afterwards(notes):
    tags = {"ragstone_trace_id": "mine", "user_id": "ann", "thread_id": "t1", "team": "books"}
    with instrument_tags({**tags, "turn": 3, "client": object(), "llamaindex.run_id": "x"}):
        response = engine().query("Who?")
    response.source_nodes[0].node.set_content("changed")
    response.source_nodes.clear()
    response.response = "changed"
    (sample,) = notes.samples
    assert (notes.told, sample.id) == ([DONE], "mine")
    about = {key: sample.metadata[key] for key in ("tags", "user_id", "thread_id")}
    assert about == {"tags": {"team": "books", "turn": 3}, "user_id": "ann", "thread_id": "t1"}


class Ask(StartEvent):
    prompt: str
    tone: str = "kind"


class Done(StopEvent):
    words: object = None


class Own(Workflow):
    @step
    async def answer(self, ev: Ask) -> Done:
        engine().query("Within?")
        return Done(words=f"{ev.prompt} {ANSWER}")


def told_by(notes, fields, flow=Flow, **asked):
    instrument(notes, fields=fields)
    run(flow(), **(asked or {"query": "Who?", "gives": "3 files"}))
    return notes.told


def test_fields_by_name_and_by_a_function_of_what_was_asked_and_returned(notes):
    seen = []

    def fields(inputs, output):
        seen.append((inputs, type(output)))
        return {"response": output.words, "metadata": {"tone": inputs["tone"]}}

    assert told_by(notes, fields, Own, prompt="Who?") == [("Who?", TEXTS, f"Who? {ANSWER}")]
    assert seen == [({"prompt": "Who?", "tone": "kind"}, Done)]
    assert (notes.samples[0].metadata["tone"], notes.samples[0].metadata["name"]) == ("kind", "Own.run")
    named = {"response": "words", "user_input": "tone", "reference": "deep.er"}
    assert told_by(notes, named, Own, prompt="Who?")[1:] == [("kind", TEXTS, f"Who? {ANSWER}")]
    engine().query("Who?")  # has none of the names
    assert notes.told[2] == DONE


def test_what_the_function_may_return(notes):
    node = NodeWithScore(node=TextNode(text="A node."))
    given = Sample(user_input="Asked?", response="Said.", id="mine")
    for returned in ({"user_input": "Asked?", "retrieved_contexts": [node, "A text."], "response": "Said."}, given, {}):
        told_by(notes, lambda inputs, output, returned=returned: returned)
    told = [("Asked?", ("A node.", "A text."), "Said."), ("Asked?", (), "Said."), ("Who?", (), "3 files")]
    assert (notes.told, notes.samples[1].id) == (told, "mine")
    streams = []

    def stream(inputs, output):
        if output != "3 files":
            return {}
        streams.append(engine(streaming=True).query("Again?"))
        return {"response": streams[0]}

    assert told_by(notes, stream) == told
    assert "".join(streams[0].response_gen) == ANSWER
    assert DONE in notes.told


def test_what_the_function_declines_or_cannot_read_is_counted(notes):
    told_by(notes, lambda inputs, output: None)
    assert (notes.told, notes.skipped, notes.errors) == ([], {"declined": 1}, [])
    for wrong in (lambda *_: 1 / 0, lambda *_: 7, lambda *_: {"questoin": "Who?"}, lambda *_: {"user_input": 7}):
        told_by(notes, wrong)
    assert (notes.told, notes.skipped) == ([], {"declined": 1, "fields_failed": 4})
    assert [str(error) for error in notes.errors] == [
        "fields: the function raised ZeroDivisionError: division by zero",
        "fields: the function returned int; return a Sample or a mapping of its fields",
        "fields: the function's questoin: write user_input. A sample has user_input, "
        "retrieved_contexts, response, reference, reference_ids, retrieved_ids, history, id, metadata",
        "fields: the function's 'user_input' is int, not text",
    ]
    notes.errors.clear()
    with pytest.raises(ValueError, match="fields: 'response' should be a valid dictionary"):
        instrument(notes, fields="response")


# -------------------------------------------------------------------------------- streams


def ask(answer=ANSWER):
    return engine(answer, streaming=True).query("Who?")


async def aask(answer=ANSWER, pause=0.0):
    return await engine(answer, pause=pause, streaming=True).aquery("Who?")


def test_nothing_is_read_before_the_app_reads_and_nothing_told_before_the_end(notes):
    stream = ask().response_gen
    for word in WORDS:
        assert next(stream) == word
        assert notes.told == []
    assert list(stream) == []
    assert list(stream) == []
    assert notes.told == [DONE]


def test_a_stream_left_half_read_or_unread(notes):
    stream = ask().response_gen
    next(stream)
    stream.close()
    assert notes.skipped == {"abandoned": 1}
    other = ask().response_gen
    next(other)
    never = ask()
    assert kept_by_handlers() == 0
    gone = weakref.ref(never.response_gen)
    del other, never
    gc.collect()
    assert gone() is None
    assert notes.skipped == {"abandoned": 3}
    assert notes.told == []
    whole = ask().response_gen
    assert list(whole) == WORDS
    del whole
    gc.collect()
    assert (notes.skipped, notes.told) == ({"abandoned": 3}, [DONE])


def test_two_monitors_hear_the_same_stream(notes):
    other = Noting()
    instrument(other)
    assert list(ask().response_gen) == WORDS
    assert notes.told == other.told == [DONE]
    assert [one.id for one in notes.samples] == [one.id for one in other.samples]


class Closing:
    """A stream that is no generator, as a client's may be."""

    closed = 0

    def __iter__(self):
        return iter(WORDS)

    def close(self):
        self.closed += 1


def test_a_stream_of_another_kind_is_closed_when_the_app_closes_it(notes):
    left = Closing()
    stream = giving(StreamingResponse(left)).query("Who?").response_gen
    next(stream)
    stream.close()
    assert left.closed == 1
    assert list(giving(StreamingResponse(Closing())).query("Who?").response_gen) == WORDS
    assert notes.told == [("Who?", (), ANSWER)]


def test_a_stream_that_the_engine_itself_read(notes):
    read = StreamingResponse(iter(WORDS))
    assert str(read) == ANSWER
    assert giving(read).query("Who?") is read
    assert notes.told == [("Who?", (), ANSWER)]
    assert list(giving(StreamingResponse(iter([1, 2]))).query("Who?").response_gen) == [1, 2]
    assert (notes.skipped["no_answer"], notes.names) == (1, [("int",)])


async def awords():
    for word in WORDS:
        yield word


async def test_a_stream_that_the_engine_itself_read_in_part_is_no_answer(notes):
    half, all_of_it = StreamingResponse(word for word in WORDS), StreamingResponse(word for word in WORDS)
    kept, ahalf = AsyncStreamingResponse(awords()), AsyncStreamingResponse(awords())
    next(half.response_gen)
    assert list(all_of_it.response_gen) == WORDS
    reading = kept.async_response_gen()  # into the response's text
    await anext(reading)
    await anext(ahalf.response_gen)
    begun = [half, all_of_it, kept, *([ahalf] if sys.version_info >= (3, 12) else [])]
    for i, stream in enumerate(begun):
        evaluator = MetricEvaluator("response_relevancy", FakeLLM(truth), FakeEmbedder())
        result = evaluator.evaluate_response("Who?", stream)
        assert result.feedback.startswith("missing_input: response: its stream was read before")
        report = await aevaluate_query_engine(giving(stream), ["Who?"], [evaluator], progress=False)
        assert report[0].outcome.detail == result.feedback.removeprefix("missing_input: ")
        await giving(stream).aquery("Who?")
        assert (notes.told, notes.skipped) == ([], {"own_run": i + 1, "abandoned": i + 1})
    assert list(half.response_gen) == WORDS[1:]  # the app's, as it was
    await reading.aclose()
    await ahalf.response_gen.aclose()


def test_a_generator_is_no_answer_and_counts_once(notes):
    """Whether the app reads it or leaves it."""
    assert list(giving(word for word in WORDS).query("Who?")) == WORDS
    giving(word for word in WORDS).query("Who?")
    gc.collect()
    assert (notes.told, notes.skipped) == ([], {"no_answer": 2})


class Both:
    """A tracer's stream: read in either way."""

    def __init__(self):
        self.words = iter(WORDS)

    def __iter__(self):
        return self.words

    async def __aiter__(self):
        for word in self.words:
            yield word


async def test_an_async_stream_that_may_be_read_in_both_ways(notes):
    response = await giving(AsyncStreamingResponse(Both())).aquery("Who?")
    assert [word async for word in response.response_gen] == WORDS
    assert notes.told == [("Who?", (), ANSWER)]


async def test_an_async_stream(notes):
    stream = (await aask()).async_response_gen()
    for word in WORDS:
        assert await anext(stream) == word
        assert notes.told == []
    assert [word async for word in stream] == []
    assert (await (await aask()).get_response()).response == ANSWER
    assert notes.told == [DONE] * 2
    left = (await aask()).response_gen
    await anext(left)
    await left.aclose()
    assert notes.skipped == {"abandoned": 1}


async def test_a_stream_that_breaks_or_is_cancelled(notes):
    stream = ask("Jane Austen BREAK").response_gen
    assert [next(stream), next(stream)] == WORDS[:2]
    with pytest.raises(ConnectionError, match="the line broke"):
        next(stream)
    with pytest.raises(ConnectionError):
        await (await aask("Jane BREAK")).get_response()
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for((await aask(pause=0.05)).get_response(), 0.07)
    assert notes.told == [("Who?", TEXTS, None)] * 2
    assert [one.metadata["error"] for one in notes.samples] == ["ConnectionError: the line broke"] * 2
    assert notes.skipped == {"cancelled": 1}
