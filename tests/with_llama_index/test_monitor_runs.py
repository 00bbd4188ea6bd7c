"""Each outermost run of an app is one sample: what engines, agents, workflows and chats are asked, find and answer."""

import asyncio

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    CustomQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation.dispatcher import instrument_tags

from ragstone import ContextRelevancy, ResponseRelevancy
from ragstone.live import CallableSink, Monitor
from ragstone.testing import FakeEmbedder
from ragstone_llama_index import LlamaIndexLLM, MetricEvaluator, instrument, uninstrument

from .models import Chatting, truth
from .monitored import (
    ANSWER,
    TEXTS,
    Calling,
    Speaking,
    as_json,
    engine,
    in_threads,
    kept_by_handlers,
    memory,
    retriever,
    settled,
)  # fmt: skip

# LlamaIndex' agents look at all attributes of themselves for steps, pydantic's deprecated ones among them, and ask
# their workflow what it no longer wants to be asked. Its thread ends so where a chat's stream breaks.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pydantic.PydanticDeprecatedSince20",
    "ignore::pydantic.PydanticDeprecatedSince211",
    "ignore:is_running called from within a step:DeprecationWarning",
    "ignore::pytest.PytestUnhandledThreadExceptionWarning",
)
DONE = ("Who?", TEXTS, ANSWER)

# -------------------------------------------------------------------------------- query engines


def query(app, question="Who?"):
    return app.query(question)


def aquery(app, question="Who?"):
    return asyncio.run(app.aquery(QueryBundle(question)))


class Second(BaseNodePostprocessor):
    """Leaves the second of the nodes, rewritten."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        return [NodeWithScore(node=TextNode(text=f"reranked: {nodes[1].text}"), score=1.0)]


class Reranking(CustomQueryEngine):
    """Gives its synthesizer one node at a time, and not all that it retrieved; its answer names none."""

    retriever: BaseRetriever
    llm: Speaking

    def custom_query(self, query_str):
        synthesizer = get_response_synthesizer(llm=self.llm)
        nodes = [self.retriever.retrieve(query_str) for _ in range(2)]
        return " ".join(str(synthesizer.synthesize(query_str, nodes[i][i : i + 1])) for i in range(2))


def tool(app, name):
    return QueryEngineTool.from_defaults(app, name=name, description=name)


def router():
    tools = [tool(engine("one", texts=TEXTS[:1]), "one"), tool(engine("two", texts=TEXTS[1:]), "two")]
    choice = Speaking(as_json([{"choice": 2, "reason": "so"}]))
    return RouterQueryEngine(LLMSingleSelector.from_defaults(llm=choice), tools, llm=choice)


ENGINES = {
    "plain": (engine, DONE),
    "reranked": (lambda: engine(node_postprocessors=[Second()]), ("Who?", (f"reranked: {TEXTS[1]}",), ANSWER)),
    "router": (router, ("Who?", TEXTS[1:], "two")),
    "HyDE": (lambda: TransformQueryEngine(engine(), HyDEQueryTransform(llm=Speaking("An invented passage."))), DONE),
}


@pytest.mark.parametrize("name", ENGINES)
def test_a_query(notes, name):
    make, sample = ENGINES[name]
    for ask in (query, aquery):
        assert str(ask(make())) == sample[2]
    assert notes.told == [sample] * 2
    assert len({one.id for one in notes.samples}) == 2
    kind = type(make()).__name__
    names = [one.metadata["name"] for one in notes.samples]
    assert names in ([f"{kind}.query", f"{kind}.aquery"], ["query", "query"])


@pytest.mark.parametrize("ask", [query, aquery])
def test_the_contexts_of_an_own_engine_are_what_its_synthesizer_was_given(notes, ask):
    ask(Reranking(retriever=retriever((*TEXTS, "Thrown away.")), llm=Speaking()))
    assert notes.told == [("Who?", TEXTS, f"{ANSWER} {ANSWER}")]


def asking_subs(*tools, use_async=False):
    """An engine that asks two questions, of the first and the last of the tools."""
    asked = zip(("Who wrote Emma?", "Who Dune?"), (tools[0], tools[-1]), strict=True)
    subs = [{"sub_question": question, "tool_name": one.metadata.name} for question, one in asked]
    generator = LLMQuestionGenerator.from_defaults(llm=Speaking(as_json(subs)))
    return SubQuestionQueryEngine.from_defaults(
        tools, llm=Speaking(), question_gen=generator, use_async=use_async, verbose=False
    )


@pytest.mark.parametrize("use_async", [False, True])
def test_sub_questions_are_one_sample_and_one_that_fails_is_no_failure_of_the_whole(notes, use_async):
    second = tool(engine("Herbert.", texts=TEXTS[1:]), "b")
    for first in (engine("Austen.", texts=TEXTS[:1]), engine(ValueError("down"))):
        query(asking_subs(tool(first, "a"), second, use_async=use_async))
    assert [one.metadata.get("error") for one in notes.samples] == [None, None]
    assert [(one.user_input, one.response) for one in notes.samples] == [("Who?", ANSWER)] * 2
    contexts = notes.samples[0].retrieved_contexts
    assert contexts == TEXTS  # a source of each, and not the two pairs of question and answer


def test_what_fails_is_a_sample_with_its_error_and_what_was_retrieved(notes):
    for ask in (query, aquery):
        with pytest.raises(ConnectionError):
            ask(engine(ConnectionError("rate limit " + "x" * 500)))
    assert notes.told == [("Who?", TEXTS, None)] * 2
    assert notes.samples[0].metadata["error"] == "ConnectionError: rate limit " + "x" * 188 + "…"


def test_what_was_called_off_is_no_sample(notes):
    for error in (KeyboardInterrupt(), SystemExit()):
        with pytest.raises(type(error)):
            query(engine(error))
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(asyncio.wait_for(engine(pause=60).aquery("Who?"), 0.2))
    assert notes.told == []
    assert notes.skipped == {"cancelled": 3}


def test_queries_at_the_same_time(notes):
    """Callbacks' traces overwrite each other then; ids of events do not."""
    apps = [engine(f"Answer {i}.", texts=[f"Text {i}."], pause=0.002) for i in range(8)]

    async def main():
        await asyncio.gather(*(app.aquery(f"Question {i}?") for i, app in enumerate(apps)))

    asyncio.run(main())
    in_threads(*(lambda i=i: [apps[i].query(f"Question {i}?") for _ in range(5)] for i in range(8)))
    assert sorted(notes.told) == sorted(
        (f"Question {i}?", (f"Text {i}.",), f"Answer {i}.") for i in range(8) for _ in range(6)
    )
    assert len({one.id for one in notes.samples}) == 48


def test_a_monitor_that_fails_is_no_trouble_of_the_app(notes):
    def submit(sample):
        raise MemoryError("full")

    notes.submit = submit
    assert str(query(engine())) == ANSWER
    assert "".join(query(engine(streaming=True)).response_gen) == ANSWER
    assert [type(error) for error in notes.errors] == [MemoryError] * 2
    notes.errors.clear()


def test_the_sample_has_its_own_id_and_the_apps_tags_and_does_not_change_afterwards(notes):
    with instrument_tags({"user": "ann", "turn": 3, "client": object(), "llamaindex.run_id": "x"}):
        query(engine())
    response = query(engine())
    response.source_nodes[0].node.set_content("changed")
    response.source_nodes.clear()
    response.response = "changed"
    assert notes.told == [DONE] * 2
    assert [one.metadata["tags"] for one in notes.samples] == [{"user": "ann", "turn": 3}, {}]
    assert [len(one.id) for one in notes.samples] == [36, 36]


@pytest.mark.parametrize("trace", [False, True])
def test_what_a_judge_does_is_no_sample(notes, trace):
    """Even where the judge's model is asked in the midst of a query, and itself looks like an app."""

    class Asking(Chatting):
        """A judge that asks an engine."""

        def _answered(self, *args):
            query(engine(), "Of the judge")
            return super()._answered(*args)

    metric = ContextRelevancy(llm=LlamaIndexLLM(Asking(truth), trace=trace))

    class Guarded(CustomQueryEngine):
        def custom_query(self, query_str):
            return str(MetricEvaluator(metric).evaluate(query=query_str, contexts=["It is."]).usage.llm_calls > 0)

    query(Guarded())
    assert notes.told == [("Who?", (), "True")]
    assert sum(notes.skipped.values()) == 0


def test_a_monitor_scores_an_app_and_none_of_its_judges_calls():
    outcomes = []
    judge = LlamaIndexLLM(Chatting(truth))
    metrics = [ContextRelevancy(llm=judge), ResponseRelevancy(llm=judge, embedder=FakeEmbedder(), strictness=1)]
    with Monitor(metrics, sinks=CallableSink(outcomes.extend)) as monitor:
        instrument(monitor)
        for _ in range(3):
            app = engine(texts=("It has word0 here. It has word1 here.", "It has word2 here."))
            asyncio.run(app.aquery("Which of them say word1?"))
        assert monitor.flush(30).done
        stats = monitor.stats()
        uninstrument(monitor)
    assert (stats.samples, stats.accepted, stats.scored, stats.errors) == (3, 6, 6, {})
    assert len({one.sample_id for one in outcomes}) == 3
    values = {one.outcome.metric: one.outcome.value for one in outcomes}
    assert values["context_relevancy"] == pytest.approx(1 / 3)
    assert kept_by_handlers() == 0


# -------------------------------------------------------------------------------- agents and workflows

CALL = ("books", {"input": "author of Emma"})


def agent(*turns, answer="From the tool.", name="Agent", streaming=False, can_handoff_to=None, **options):
    tools = [tool(engine(answer, **options), "books")]
    fields = {"name": name, "description": name, "streaming": streaming, "can_handoff_to": can_handoff_to}
    return FunctionAgent(tools=tools, llm=Calling(*turns), **fields)


def run(app, *args, **asked):
    """Run an agent or a workflow to its end; return what it returned or raised."""

    async def main():
        try:
            return await app.run(*args, **asked)
        except Exception as error:
            return error
        finally:
            await settled()

    return asyncio.run(main())


@pytest.mark.parametrize("streaming", [False, True])
def test_agents_that_work_together(notes, streaming):
    handoff = ("handoff", {"to_agent": "b", "reason": "so"})
    one = agent(CALL, handoff, name="a", can_handoff_to=["b"], streaming=streaming)
    two = agent(CALL, ANSWER, name="b", streaming=streaming, node_postprocessors=[Second()])
    app = AgentWorkflow(agents=[one, two], root_agent="a")
    assert str(run(app, user_msg="Who wrote Emma?", memory=memory())) == ANSWER
    assert notes.told == [("Who wrote Emma?", (*TEXTS, f"reranked: {TEXTS[1]}"), ANSWER)]
    assert notes.samples[0].metadata["name"] == "AgentWorkflow.run"


def test_the_question_is_a_message_or_the_last_of_the_user_in_a_history(notes):
    run(agent(ANSWER), user_msg=ChatMessage("Who?"), memory=memory())
    roles = (MessageRole.USER, MessageRole.ASSISTANT, MessageRole.USER, MessageRole.SYSTEM)
    texts = ("Before?", "Yes.", "Who?", "Be brief.")
    history = [ChatMessage(role=role, content=text) for role, text in zip(roles, texts, strict=True)]
    run(agent(ANSWER), chat_history=history, memory=memory())
    run(agent(ANSWER), chat_history=history[1:2], memory=memory())
    assert notes.told == [("Who?", (), ANSWER)] * 2
    assert notes.skipped == {"no_question": 1}


def test_a_tool_that_fails_is_the_agents_business_and_a_model_that_fails_is_an_error(notes):
    run(agent(CALL, ANSWER, answer=ConnectionError("down")), user_msg="Who?", memory=memory())
    assert isinstance(run(agent(CALL, ConnectionError("down")), user_msg="Who?", memory=memory()), Exception)
    assert notes.told == [("Who?", TEXTS, ANSWER), ("Who?", TEXTS, None)]
    assert [one.metadata.get("error") for one in notes.samples] == [None, "ConnectionError: down"]


class Flow(Workflow):
    """Ends with what it is told to."""

    @step
    async def answer(self, ev: StartEvent) -> StopEvent:
        gives = ev.gives() if callable(ev.gives) else ev.gives
        if asyncio.iscoroutine(gives):
            gives = await gives
        if isinstance(gives, Exception):
            raise gives
        return StopEvent(result=gives)


async def within():
    return str(await agent(CALL, ANSWER).run(user_msg="Within?", memory=memory()))


@pytest.mark.parametrize(
    ("gives", "answer", "contexts"),
    [
        (ANSWER, ANSWER, ()),
        ({"answer": ANSWER, "pages": 3}, ANSWER, ()),
        (ChatResponse(message=ChatMessage(ANSWER)), ANSWER, ()),
        (lambda: {"response": engine().query("Within"), "seen": 1}, ANSWER, TEXTS),
        (within, ANSWER, TEXTS),
        (ValueError("broken"), None, ()),
    ],
)
def test_a_workflow_of_the_users_own(notes, gives, answer, contexts):
    run(Flow(), query="Who?", gives=gives)
    assert notes.told == [("Who?", contexts, answer)]
    error = {"error": "ValueError: broken"} if isinstance(gives, Exception) else {}
    metadata = dict(notes.samples[0].metadata)
    assert metadata.pop("run_id").startswith("Flow.run-")
    assert metadata == {"name": "Flow.run", "tags": {}, **error}


def test_the_names_under_which_a_workflow_is_asked(notes):
    names = ("user_msg", "query", "question", "message", "input", "query_str", "topic")
    for name in names:
        run(Flow(), gives=ANSWER, **{name: name})
    assert [one.user_input for one in notes.samples] == list(names)
    run(Flow(), gives=ANSWER, one="text", two="texts")
    assert notes.skipped == {"no_question": 1}


async def test_a_workflow_that_ends_with_a_stream(notes):
    response = await Flow().run(query="Who?", gives=lambda: engine(streaming=True).query("Within"))
    assert notes.told == []
    assert "".join(response.response_gen) == ANSWER
    assert notes.told == [DONE]


async def test_a_run_that_is_cancelled(notes):
    handler = Flow().run(query="Who?", gives=lambda: asyncio.sleep(60))
    await asyncio.sleep(0.05)
    await handler.cancel_run()
    await asyncio.gather(handler, return_exceptions=True)
    await settled()
    assert notes.told == []
    assert notes.skipped == {"cancelled": 1}


async def test_runs_at_the_same_time_of_one_task_are_runs_of_their_own(notes):
    apps = [agent(CALL, f"Answer {i}.") for i in range(4)]
    handlers = [app.run(user_msg=f"Question {i}?", memory=memory()) for i, app in enumerate(apps)]
    assert str(await engine().aquery("Beside?")) == ANSWER
    assert [str(await handler) for handler in handlers] == [f"Answer {i}." for i in range(4)]
    await settled()
    expected = [(f"Question {i}?", TEXTS, f"Answer {i}.") for i in range(4)]
    assert sorted(notes.told) == [("Beside?", TEXTS, ANSWER), *expected]


# -------------------------------------------------------------------------------- chats

HISTORY = [ChatMessage(role=MessageRole.USER, content="Emma?"), ChatMessage(role=MessageRole.ASSISTANT, content="Yes.")]
CHATS = [ContextChatEngine, CondensePlusContextChatEngine, CondenseQuestionChatEngine, SimpleChatEngine]
TWO_CHATS = pytest.mark.parametrize("kind", [ContextChatEngine, CondenseQuestionChatEngine])


def chat(kind, answer=ANSWER, pause=0.0):
    """The arguments of its turn, too."""
    llm = Speaking(lambda prompt: "condensed?" if "standalone question" in prompt.lower() else answer, pause)
    fields = {"llm": llm, "memory": memory()}
    if kind is SimpleChatEngine:
        app = kind.from_defaults(**fields)
    elif kind is CondenseQuestionChatEngine:
        app = kind.from_defaults(engine(llm.answer, pause=pause), **fields)
    else:
        app = kind.from_defaults(retriever(), **fields)
    return app, ("Who?", list(HISTORY))


@pytest.mark.parametrize("kind", CHATS)
async def test_a_turn_of_every_kind(notes, kind):
    app, turn = chat(kind)
    assert str(app.chat(*turn)) == ANSWER
    assert str(await app.achat(*turn)) == ANSWER
    assert "".join(app.stream_chat(*turn).response_gen) == ANSWER
    response = await app.astream_chat(*turn)
    assert "".join([word async for word in response.async_response_gen()]) == ANSWER
    if response.awrite_response_to_history_task is not None:
        await response.awrite_response_to_history_task
    notes.wait(4)
    assert notes.told == [("Who?", () if kind is SimpleChatEngine else TEXTS, ANSWER)] * 4
    names = {f"{kind.__name__}.{name}" for name in ("chat", "achat", "stream_chat", "astream_chat")}
    assert {one.metadata["name"] for one in notes.samples} == names


@TWO_CHATS
def test_a_streamed_turn_that_the_app_leaves(notes, kind):
    app, turn = chat(kind)
    response = app.stream_chat(*turn)
    stream = response.response_gen
    assert next(stream)
    stream.close()
    writing = response.is_writing_to_memory
    del stream, response
    notes.wait(1)
    assert (notes.told, notes.skipped) == (([DONE], {}) if writing else ([], {"abandoned": 1}))


@TWO_CHATS
def test_a_streamed_turn_that_breaks(notes, kind):
    app, turn = chat(kind, "Jane BREAK")
    response = app.stream_chat(*turn)
    with pytest.raises(ConnectionError):
        list(response.response_gen)
    notes.wait(1)
    assert notes.told == [("Who?", TEXTS, None)]
    assert notes.samples[0].metadata["error"] == "ConnectionError: the line broke"


@TWO_CHATS
async def test_an_async_streamed_turn_that_is_cancelled(notes, kind):
    app, turn = chat(kind, pause=0.05)
    response = await app.astream_chat(*turn)
    if response.awrite_response_to_history_task is not None:
        await asyncio.sleep(0.02)
        response.awrite_response_to_history_task.cancel()
        await asyncio.wait([response.awrite_response_to_history_task])
    else:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(response.aprint_response_stream(), 0.07)
    assert notes.told == []
    assert notes.skipped == {"cancelled": 1}
