"""A run of an agent, or of any workflow that was asked something, is one sample; what its tools do is part of it."""

import asyncio

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.tools import QueryEngineTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from .monitored import ANSWER, TEXTS, Calling, engine, memory, settled
from .test_monitor_engines import Second

# LlamaIndex' agents look at all attributes of themselves for steps, pydantic's deprecated ones among them, and ask
# their workflow what it no longer wants to be asked.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pydantic.PydanticDeprecatedSince20",
    "ignore::pydantic.PydanticDeprecatedSince211",
    "ignore:is_running called from within a step:DeprecationWarning",
)


CALL = ("books", {"input": "author of Emma"})


def engine_tool(answer="From the tool.", **options):
    return QueryEngineTool.from_defaults(engine(answer, **options), name="books", description="books")


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
def test_agents_that_work_together(notes, streaming):
    options = {"streaming": streaming, "description": "one"}
    one = agent(CALL, ("handoff", {"to_agent": "b", "reason": "so"}), name="a", can_handoff_to=["b"], **options)
    two = agent(CALL, ANSWER, tools=[engine_tool(node_postprocessors=[Second()])], name="b", **options)
    app = AgentWorkflow(agents=[one, two], root_agent="a")
    assert str(run(app, user_msg="Who wrote Emma?", memory=memory())) == ANSWER
    assert notes.told == [("Who wrote Emma?", (*TEXTS, f"reranked: {TEXTS[1]}"), ANSWER)]
    assert notes.samples[0].metadata["name"] == "AgentWorkflow.run"


def test_the_question_is_a_message_or_the_last_of_the_user_in_a_history(notes):
    run(agent(ANSWER), user_msg=ChatMessage("Who?"), memory=memory())
    history = [
        ChatMessage(role=MessageRole.USER, content="Before?"),
        ChatMessage(role=MessageRole.ASSISTANT, content="Yes."),
        ChatMessage(role=MessageRole.USER, content="Who?"),
        ChatMessage(role=MessageRole.SYSTEM, content="Be brief."),
    ]
    run(agent(ANSWER), chat_history=history, memory=memory())
    run(agent(ANSWER), chat_history=history[1:2], memory=memory())
    assert notes.told == [("Who?", (), ANSWER)] * 2
    assert notes.skipped == {"no_question": 1}


def test_a_tool_that_fails_is_the_agents_business_and_a_model_that_fails_is_an_error(notes):
    run(agent(CALL, ANSWER, tools=[engine_tool(ConnectionError("down"))]), user_msg="Who?", memory=memory())
    assert isinstance(run(agent(CALL, ConnectionError("down")), user_msg="Who?", memory=memory()), Exception)
    assert notes.told == [("Who?", TEXTS, ANSWER), ("Who?", TEXTS, None)]
    assert [one.metadata.get("error") for one in notes.samples] == [None, "ConnectionError: down"]


async def within():
    return str(await agent(CALL, ANSWER).run(user_msg="Within?", memory=memory()))


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
    assert notes.samples[0].metadata == {"name": "Flow.run", "tags": {}, **error}


def test_the_names_under_which_a_workflow_is_asked(notes):
    names = ("user_msg", "query", "question", "message", "input", "topic")
    for name in names:
        run(Flow(), gives=7, **{name: name})
    assert [one.user_input for one in notes.samples] == list(names)
    run(Flow(), gives=7, one="text", two="texts")
    assert notes.skipped == {"no_question": 1}


async def test_a_workflow_that_ends_with_a_stream(notes):
    response = await Flow().run(query="Who?", gives=lambda: engine(streaming=True).query("Within"))
    assert notes.told == []
    assert "".join(response.response_gen) == ANSWER
    assert notes.told == [("Who?", TEXTS, ANSWER)]


async def test_a_run_that_is_cancelled(notes):
    handler = Flow().run(query="Who?", gives=slow)
    await asyncio.sleep(0.05)
    await handler.cancel_run()
    await asyncio.gather(handler, return_exceptions=True)
    await settled()
    assert notes.told == []
    assert notes.skipped == {"cancelled": 1}


def slow():
    return asyncio.sleep(60)


async def test_runs_at_the_same_time_of_one_task_are_runs_of_their_own(notes):
    apps = [agent(CALL, f"Answer {i}.") for i in range(4)]
    handlers = [app.run(user_msg=f"Question {i}?", memory=memory()) for i, app in enumerate(apps)]
    assert str(await engine().aquery("Beside?")) == ANSWER
    assert [str(await handler) for handler in handlers] == [f"Answer {i}." for i in range(4)]
    await settled()
    expected = [(f"Question {i}?", TEXTS, f"Answer {i}.") for i in range(4)]
    assert sorted(notes.told) == [("Beside?", TEXTS, ANSWER), *expected]
