"""`preview` on real engines, chat engines, agents and workflows: what it reads and guesses, and who notices nothing."""

import asyncio
from contextvars import Context

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.chat_engine import ContextChatEngine, SimpleChatEngine
from llama_index.core.tools import QueryEngineTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from ragstone_llama_index import apreview, contexts, instrument, preview, uninstrument

from ..support.noting import Noting  # noqa: TID252
from .monitored import ANSWER, TEXTS, Answering, Calling, Speaking, engine, kept_by_handlers, memory, retriever, run

DONE = ("Who?", TEXTS, ANSWER)


def parts(sample):
    return sample.user_input, tuple(sample.retrieved_contexts), sample.response


def chat(**options):
    return ContextChatEngine.from_defaults(retriever=retriever(), llm=Speaking(), memory=memory(), **options)


def agent():
    tool = QueryEngineTool.from_defaults(engine(), name="search", description="Looks it up.")
    return FunctionAgent(tools=[tool], llm=Calling(("search", {"input": "Who?"}), ANSWER))


class Ends(Workflow):
    """Ends with what it was made with."""

    def __init__(self, result):
        super().__init__()
        self.result = result

    @step
    async def answer(self, event: StartEvent) -> StopEvent:
        result = self.result() if callable(self.result) else self.result
        return StopEvent(result=result)


WHOLE = {
    "an engine": (engine, "Who?"),
    "an engine that streams": (lambda: engine(streaming=True), "Who?"),
    "a chat engine": (chat, "Who?"),
    "a function": (lambda: engine().query, "Who?"),
    "a chat's stream": (lambda: chat().stream_chat, "Who?"),
    "an agent": (agent, "Who?"),
    "a workflow, by name": (lambda: Ends({"answer": ANSWER, "nodes": retriever().retrieve("x")}), {"query": "Who?"}),
    "contexts that are named": (lambda: Answering(answer=lambda question: contexts([*TEXTS]) and ANSWER), "Who?"),
}


@pytest.mark.parametrize("case", WHOLE)
def test_an_app_that_is_read_needs_nothing(case, capsys):
    app, question = WHOLE[case]
    seen = preview(app(), question)
    assert (parts(seen.sample), seen.missing, seen.fields, seen.skipped) == (DONE, (), {}, None)
    printed = capsys.readouterr().out
    assert (printed.splitlines()[0].endswith(": a sample"), "paste" in printed, "not read" in printed) == (
        True,
        False,
        False,
    )
    assert kept_by_handlers() == 0


async def streamed(question):
    return await chat().astream_chat(question)


@pytest.mark.parametrize("app", [engine, lambda: engine(streaming=True), chat, agent, lambda: streamed])
def test_in_a_running_loop(app):
    async def main():
        return await apreview(app(), "Who?")

    assert parts(asyncio.run(main()).sample) == DONE


@pytest.mark.parametrize(
    ("result", "question", "fields"),
    [
        ({"antwort": ANSWER, "source_nodes": [*TEXTS]}, {"query": "Who?"}, {"response": "antwort"}),
        (
            {"reply_text": ANSWER, "fund": {"belege": retriever().retrieve("x")}},
            {"query": "Who?"},
            {"response": "reply_text", "retrieved_contexts": "fund.belege"},
        ),
        ({"answer": ANSWER, "nodes": [*TEXTS]}, {"frage": "Who?"}, {"user_input": "frage"}),
    ],
)
def test_what_is_guessed_is_read_when_it_is_passed_on(result, question, fields, capsys):
    app = Ends(result)
    seen = preview(app, question)
    assert (seen.fields, set(seen.missing)) == (fields, set(fields))
    printed = capsys.readouterr().out
    assert all(f'"{field}": "{name}"' in printed for field, name in fields.items())
    again = preview(app, question, fields=seen.fields)
    assert (parts(again.sample), again.missing) == (DONE, ())
    monitor = Noting()
    instrument(monitor, fields=seen.fields)
    run(app, **question)
    uninstrument(monitor)
    assert parts(monitor.only) == DONE


def test_of_several_answers_none_is_chosen_and_contexts_that_nobody_sees_are_to_be_named(capsys):
    seen = preview(Ends({"answer": "A draft.", "response": ANSWER}), {"query": "Who?"})
    assert (seen.missing, seen.fields) == (("retrieved_contexts", "response"), {})
    printed = capsys.readouterr().out
    for line in ('fields={"response": "answer"}', 'fields={"response": "response"}', "contexts(found)"):
        assert line in printed


def test_traffic_that_goes_on_meanwhile_is_none_of_it():
    def app(question):
        Context().run(engine().query, "Another user?")
        return engine().query(question)

    monitor = Noting()
    instrument(monitor)
    seen = preview(app, "Who?")
    uninstrument(monitor)
    assert ([parts(run.sample) for run in seen.runs], monitor.told) == ([DONE], [("Another user?", TEXTS, ANSWER)])


def test_no_monitor_counts_it_and_one_that_is_installed_goes_on():
    monitor = Noting()
    instrument(monitor)
    preview(engine(), "Who?")
    preview(agent(), "Who?")
    engine().query("Who?")
    uninstrument(monitor)
    assert (monitor.told, monitor.skipped, monitor.errors) == ([DONE], {"own_run": 2}, [])


def test_what_the_app_raises_comes_through_and_what_is_no_run_is_said(capsys):
    def failing(question):
        raise ValueError("down")

    with pytest.raises(ValueError, match="down"):
        preview(Answering(answer=failing), "Who?")
    assert "it failed (ValueError: down)" in capsys.readouterr().out
    nothing = preview(lambda question: None, "Who?")
    assert (nothing.skipped, capsys.readouterr().out[:9]) == ("no_run", "No engine")
    twice = preview(lambda question: [engine().query(question), chat().chat(question)], "Who?")
    assert [parts(each.sample) for each in twice.runs] == [DONE, DONE]
    assert preview(lambda question: Speaking().complete(question), "Who?").skipped == "only_model"
    with pytest.raises(TypeError, match="app: str has no query, aquery"):
        preview("app", "Who?")


def test_what_is_no_sample_is_one_run_with_its_reason(capsys):
    def leaving(question):
        return next(iter(engine(streaming=True).query(question).response_gen)) and None

    def failing(asked, returned):
        raise KeyError("told")

    left, failed = preview(leaving, "Who?"), preview(engine(), "Who?", fields=failing)
    assert [(len(each.runs), each.skipped) for each in (left, failed)] == [(1, "abandoned"), (1, "fields_failed")]
    assert "the function raised KeyError: 'told'" in capsys.readouterr().out


def test_in_a_running_loop_a_workflow_is_awaited():
    async def main():
        with pytest.raises(RuntimeError, match="await apreview"):
            preview(agent(), "Who?")
        return preview(SimpleChatEngine.from_defaults(llm=Speaking(), memory=memory()), "Who?")

    assert asyncio.run(main()).missing == ("retrieved_contexts",)
