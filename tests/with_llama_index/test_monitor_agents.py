"""A run of an agent, or of any workflow that was asked something, is one sample; what its tools do is part of it."""

import asyncio

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, MessageRole
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from ragstone_llama_index import instrument

from .monitored import ANSWER, TEXTS, Calling, Notes, engine, kept_by_handlers, memory, retriever, settled
from .test_monitor_engines import Second

# LlamaIndex' agents look at all attributes of themselves for steps, pydantic's deprecated ones among them, and ask
# their workflow what it no longer wants to be asked.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pydantic.PydanticDeprecatedSince20",
    "ignore::pydantic.PydanticDeprecatedSince211",
    "ignore:is_running called from within a step:DeprecationWarning",
)


def engine_tool(name="books", **options):
    return QueryEngineTool.from_defaults(engine("From the tool.", **options), name=name, description=name)


def lookup():
    async def look_up(query: str) -> str:
        """Look it up."""
        nodes = await retriever(TEXTS[:1]).aretrieve(query)
        return nodes[0].text

    return FunctionTool.from_defaults(async_fn=look_up)


CALL = ("books", {"input": "author of Emma"})


def agent(*turns, tools=None, **options):
    return FunctionAgent(tools=tools or [engine_tool()], llm=Calling(*turns), **options)


def run(app, **asked):
    """Run an agent to its end; return what it returned or raised."""

    async def main():
        try:
            return await app.run(**asked)
        except Exception as error:
            return error
        finally:
            await settled()

    return asyncio.run(main())


@pytest.mark.parametrize("streaming", [False, True])
def test_a_function_agent(notes, streaming):
    app = agent(CALL, ANSWER, streaming=streaming, initial_state={})
    assert str(run(app, user_msg="Who wrote Emma?", memory=memory())) == ANSWER
    assert notes.told == [("Who wrote Emma?", TEXTS, ANSWER)]
    assert notes.samples[0].metadata["name"] == "FunctionAgent.run"


def test_agents_that_work_together(notes):
    one = agent(CALL, ("handoff", {"to_agent": "b", "reason": "so"}), name="a", description="a", can_handoff_to=["b"])
    two = agent(ANSWER, name="b", description="b")
    app = AgentWorkflow(agents=[one, two], root_agent="a")
    assert str(run(app, user_msg="Who wrote Emma?", memory=memory())) == ANSWER
    assert notes.told == [("Who wrote Emma?", TEXTS, ANSWER)]
    assert notes.samples[0].metadata["name"] == "AgentWorkflow.run"


def test_the_union_of_tools_each_text_once_and_after_its_reranking(notes):
    tools = [lookup(), engine_tool(node_postprocessors=[Second()])]
    calls = [("look_up", {"query": "Emma"}), ("look_up", {"query": "again"}), CALL]
    run(agent(*calls, ANSWER, tools=tools), user_msg="Who?", memory=memory())
    assert notes.told == [("Who?", (TEXTS[0], f"reranked: {TEXTS[1]}"), ANSWER)]


def test_the_question_is_a_message_or_the_last_of_the_user_in_a_history(notes):
    run(agent(ANSWER), user_msg=ChatMessage("Who?"), memory=memory())
    history = [
        ChatMessage(role=MessageRole.USER, content="Before?"),
        ChatMessage(role=MessageRole.ASSISTANT, content="Yes."),
        ChatMessage(role=MessageRole.USER, content="Who?"),
        ChatMessage(role=MessageRole.SYSTEM, content="Be brief."),
    ]
    run(agent(ANSWER), chat_history=history, memory=memory())
    assert notes.told == [("Who?", (), ANSWER)] * 2
    run(agent(ANSWER), chat_history=history[1:2], memory=memory())
    assert len(notes.told) == 2
    assert notes.skipped == {"no_question": 1}


def test_a_tool_that_fails_is_the_agents_business(notes):
    broken = QueryEngineTool.from_defaults(engine(ConnectionError("down")), name="books", description="books")
    run(agent(CALL, ANSWER, tools=[broken]), user_msg="Who?", memory=memory())
    (sample,) = notes.samples
    assert (sample.user_input, sample.retrieved_contexts, sample.response) == ("Who?", TEXTS, ANSWER)
    assert "error" not in sample.metadata


def test_a_model_that_fails(notes):
    assert isinstance(run(agent(CALL, ConnectionError("down")), user_msg="Who?", memory=memory()), Exception)
    assert notes.told == [("Who?", TEXTS, None)]
    assert notes.samples[0].metadata["error"] == "ConnectionError: down"


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


@pytest.mark.parametrize(
    ("gives", "answer", "contexts"),
    [
        (ANSWER, ANSWER, ()),
        ({"answer": ANSWER, "pages": 3}, ANSWER, ()),
        ({"pages": 3}, None, ()),
        (None, None, ()),
        (ChatMessage(ANSWER), ANSWER, ()),
        (CompletionResponse(text=ANSWER), ANSWER, ()),
        (ChatResponse(message=ChatMessage(ANSWER)), ANSWER, ()),
        (lambda: {"response": engine().query("Within"), "seen": 1}, ANSWER, TEXTS),
        (lambda: str(engine().query("Within")), ANSWER, TEXTS),
        (lambda: engine().aquery("Within"), ANSWER, TEXTS),
    ],
)
def test_a_workflow_of_the_users_own(notes, gives, answer, contexts):
    run(Flow(), query="Who?", gives=gives)
    assert notes.told == [("Who?", contexts, answer)]
    assert notes.samples[0].metadata == {"name": "Flow.run", "tags": {}}


def test_the_names_under_which_a_workflow_is_asked(notes):
    for name in ("user_msg", "query", "question", "message", "input", "topic"):
        run(Flow(), gives=7, **{name: "Who?"})
    assert [one.user_input for one in notes.samples] == ["Who?"] * 6
    run(Flow(), gives=7)
    run(Flow(), gives=7, one="text", two="texts")
    assert len(notes.samples) == 6
    assert notes.skipped == {"no_question": 2}


class Asked(StartEvent):
    question: str
    most: int = 3


class Answered(StopEvent):
    answer: str
    pages: int = 3


class Typed(Workflow):
    @step
    async def answer(self, ev: Asked) -> Answered:
        return Answered(answer=ANSWER)


def test_a_workflow_with_events_of_its_own(notes):
    run(Typed(), question="Who?")
    run(Typed(), start_event=Asked(question="What?"))
    assert [one.user_input for one in notes.samples] == ["Who?", "What?"]
    # 0.13 tells a handler nothing of the end of such a workflow but that it came.
    assert {one.response for one in notes.samples} <= {ANSWER, None}


async def test_a_workflow_that_ends_with_a_stream(notes):
    response = await Flow().run(query="Who?", gives=lambda: engine(streaming=True).query("Within"))
    assert notes.told == []
    assert "".join(response.response_gen) == ANSWER
    assert notes.told == [("Who?", TEXTS, ANSWER)]


def test_a_workflow_that_fails(notes):
    assert isinstance(run(Flow(), query="Who?", gives=ValueError("broken")), Exception)
    assert notes.told == [("Who?", (), None)]
    assert notes.samples[0].metadata["error"] == "ValueError: broken"


def slow():
    return asyncio.sleep(60)


async def test_a_run_that_is_cancelled(notes):
    app = Flow()
    handler = app.run(query="Who?", gives=slow)
    await asyncio.sleep(0.05)
    await handler.cancel_run()
    with pytest.raises(Exception):  # noqa: B017, PT011 - which one is of no concern here
        await handler
    task = asyncio.ensure_future(wait_for(app.run(query="Who?", gives=slow)))
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await settled()
    assert notes.told == []
    assert notes.skipped == {"cancelled": 2}


async def wait_for(handler):
    return await handler


def test_a_run_that_takes_too_long(notes):
    """A failure of the app; in 0.13 it looks like one that was cancelled."""
    assert isinstance(run(Flow(timeout=0.1), query="Who?", gives=slow), Exception)
    if notes.samples:
        assert notes.samples[0].metadata["error"].startswith("WorkflowTimeoutError: ")
        assert len(notes.samples) == 1
    else:
        assert notes.skipped == {"cancelled": 1}


async def test_runs_at_the_same_time_of_one_task_are_runs_of_their_own(notes):
    apps = [agent(CALL, f"Answer {i}.") for i in range(4)]
    handlers = [app.run(user_msg=f"Question {i}?", memory=memory()) for i, app in enumerate(apps)]
    assert str(await engine().aquery("Beside?")) == ANSWER
    assert [str(await handler) for handler in handlers] == [f"Answer {i}." for i in range(4)]
    await settled()
    expected = [(f"Question {i}?", TEXTS, f"Answer {i}.") for i in range(4)]
    assert sorted(notes.told) == [("Beside?", TEXTS, ANSWER), *expected]


def test_a_workflow_within_a_workflow_is_part_of_it(notes):
    async def inner():
        return str(await agent(CALL, ANSWER).run(user_msg="Within?", memory=memory()))

    run(Flow(), query="Who?", gives=inner)
    assert notes.told == [("Who?", TEXTS, ANSWER)]


def test_a_loop_that_is_closed_in_the_middle_of_a_run():
    notes = Notes()
    instrument(notes)

    async def main():
        Flow().run(query="Who?", gives=slow)
        await asyncio.sleep(0.05)

    asyncio.run(main())
    assert (notes.told, notes.errors) == ([], [])
    if kept_by_handlers():  # in 0.13 nobody tells of such an end: the run grows old, and is forgotten then
        assert not notes.skipped
    else:
        assert notes.skipped == {"cancelled": 1}
