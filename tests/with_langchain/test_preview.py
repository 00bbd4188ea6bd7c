"""`preview` on real chains, graphs and agents: what it reads, what it guesses, and that nothing else notices."""

import asyncio
from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph.graph")
pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from ragstone_langchain import MonitorHandler, apreview, contexts, preview

from ..support.noting import Noting  # noqa: TID252
from .monitored import ANSWER, FIRST, FOUND, QUESTION, Searching, parts, rag, sample_of, says

pytestmark = pytest.mark.usefixtures("offline")
ASKED = {"question": QUESTION}
DOCUMENTS = [Document(text) for text in FOUND]


def graph(*nodes, **options):
    """A graph of nodes in a row, whose state holds whatever they return."""
    names = {"question", "frage", "passages", "antwort", "answer", "response", "found", "findings", "messages", "route"}
    state = TypedDict("State", dict.fromkeys(sorted(names), Any), total=False)
    first = nodes[0].__name__
    return StateGraph(state).add_sequence(nodes).add_edge(START, first).compile(**options)


def giving(**entries):
    """A graph whose only node returns these."""

    def node(state):
        return entries

    return graph(node)


def by_hand(name):
    """A graph that searches a vector store by hand and keeps what it found to itself, but for contexts()."""
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    store.add_documents(DOCUMENTS)

    def generate(state):
        found = name(store.similarity_search(state["question"], k=2))
        return {"answer": says(ANSWER).invoke(str(found)).content}

    return graph(generate)


@pytest.mark.parametrize(
    ("app", "asked", "fields"),
    [
        (rag(), QUESTION, {}),
        (giving(found=DOCUMENTS, antwort=ANSWER), ASKED, {"retrieved_contexts": "found", "response": "antwort"}),
        (giving(findings={"belege": [*FOUND]}, answer=ANSWER), ASKED, {"retrieved_contexts": "findings.belege"}),
        (giving(passages=[{"chunk": text, "k": 1} for text in FOUND], answer=ANSWER, route="web"), ASKED, {}),
        (giving(passages=[*FOUND], answer=ANSWER), {"frage": QUESTION}, {"user_input": "frage"}),
    ],
)
def test_what_is_guessed_is_read_when_it_is_passed_on(app, asked, fields, capsys):
    seen = preview(app, asked)
    assert seen.fields == fields
    assert set(seen.missing) == set(fields)
    printed = capsys.readouterr().out
    assert all(f'"{field}": "{name}"' in printed for field, name in fields.items())
    again = preview(app, asked, fields=seen.fields)
    assert (again.missing, again.skipped, set(again.sample.retrieved_contexts)) == ((), None, set(FOUND))
    monitor = Noting()
    app.invoke(asked, {"callbacks": [MonitorHandler(monitor, fields=seen.fields)]})
    assert parts(monitor.only) == parts(again.sample)


@pytest.mark.parametrize(
    ("app", "missing", "lines"),
    [
        # Of several that may be meant none is chosen.
        (
            giving(found=DOCUMENTS, passages=DOCUMENTS[:1], answer="A draft.", response=ANSWER),
            ("response",),
            ["Which of these holds the answer?", 'fields={"response": "answer"}', 'fields={"response": "response"}'],
        ),
        # A search that LangChain does not see.
        (by_hand(lambda found: found), ("retrieved_contexts",), ["Where the app finds them:", "contexts(found)"]),
        # A conversation has texts, which are no contexts.
        (giving(found=[("user", "Hi"), ("ai", "Ho")], answer=ANSWER), ("retrieved_contexts",), ["not read: found"]),
        (by_hand(contexts), (), ["<-  contexts(...)", "2 texts: "]),
        (giving(answer=None), ("retrieved_contexts", "response"), ["no sample (no_answer)", "fields=lambda inputs, "]),
    ],
)
def test_what_cannot_be_told_is_not_chosen(app, missing, lines, capsys):
    seen = preview(app, ASKED)
    printed = capsys.readouterr().out
    assert (seen.missing, seen.fields) == (missing, {})
    assert [line for line in lines if line not in printed] == []


def test_an_agent_whose_tool_returns_text(capsys):
    @tool
    def search(query: str) -> str:
        """Look it up."""
        return FIRST

    call = {"name": "search", "args": {"query": QUESTION}, "id": "1"}
    agent = create_agent(says(AIMessage("", tool_calls=[call]), ANSWER), [search])
    asked = {"messages": [("user", QUESTION)]}
    assert preview(agent, asked).missing == ("retrieved_contexts",)
    seen = preview(agent, asked, retriever_tools={"search"})
    assert (parts(seen.sample), seen.missing) == ((QUESTION, (FIRST,), ANSWER), ())
    assert "response            <-  messages " in capsys.readouterr().out


def test_functions_streams_and_loops(capsys):
    chain = rag()

    async def app(question):
        return chain.astream(question)

    def asked_twice(question):
        return [chain.invoke(question), chain.invoke(question)]

    async def main():
        with pytest.raises(RuntimeError, match="await apreview"):
            preview(app, QUESTION)
        return [preview(chain, QUESTION), await apreview(chain, QUESTION), await apreview(app, QUESTION)]

    whole = (QUESTION, FOUND, ANSWER)
    seen = [*asyncio.run(main()), preview(app, QUESTION), preview(lambda question: chain.stream(question), QUESTION)]
    assert [parts(each.sample) for each in seen] == [whole] * 5
    capsys.readouterr()
    assert [parts(run.sample) for run in preview(asked_twice, QUESTION).runs] == [whole, whole]
    assert "Run 2 of 2, RunnableSequence: a sample\n" in capsys.readouterr().out
    nothing = preview(lambda question: None, QUESTION)
    assert (nothing.skipped, nothing.missing[0], capsys.readouterr().out[:8]) == ("no_run", "user_input", "No chain")


@pytest.mark.parametrize("error", [ValueError("the model is down"), KeyboardInterrupt()])
def test_what_the_app_raises_comes_through_below_what_was_read(error, capsys):
    def failing(state):
        raise error

    with pytest.raises(type(error)):
        preview(Searching() | RunnableLambda(failing), QUESTION)
    printed = capsys.readouterr().out
    assert ("it failed (ValueError: the model is down)" in printed) == isinstance(error, ValueError)
    assert ("no sample (cancelled)" in printed) == isinstance(error, KeyboardInterrupt)


def test_a_graph_that_waits_for_a_person_is_no_sample_yet(capsys):
    def ask(state):
        return {"answer": interrupt("Sure?")}

    app = graph(ask, checkpointer=InMemorySaver())
    seen = preview(app, ASKED, {"configurable": {"thread_id": "1"}})
    assert (seen.skipped, seen.fields) == ("interrupted", {})
    assert "waits for a person" in capsys.readouterr().out


def test_no_handler_of_a_monitor_counts_it_and_the_config_stays_the_app_s():
    began = []

    class Own(BaseCallbackHandler):
        def on_chain_start(self, *args: Any, **event: Any) -> None:
            began.append(event["name"])

    monitor, other = Noting(), Noting()
    config = {"callbacks": [Own(), MonitorHandler(other)], "tags": ["mine"]}
    with MonitorHandler(monitor).everywhere():
        seen = preview(rag().with_config(callbacks=[MonitorHandler(other)]), QUESTION, config)
        during = sample_of(rag())
        rag().invoke(QUESTION)
    assert (list(config), len(config["callbacks"]), began[0]) == (["callbacks", "tags"], 2, "RunnableSequence")
    assert (seen.sample.metadata["tags"], during.response) == (["mine"], ANSWER)
    assert (len(monitor.samples), other.samples, monitor.skipped + other.skipped) == (2, [], {})


def test_two_at_once_keep_apart():
    async def main():
        return await asyncio.gather(apreview(rag(), QUESTION), apreview(rag(says("Nobody.")), "Who?"))

    one, other = asyncio.run(main())
    assert ([len(each.runs) for each in (one, other)], one.sample.response) == ([1, 1], ANSWER)
    assert (other.sample.user_input, other.sample.response) == ("Who?", "Nobody.")


def test_what_is_no_app_is_said():
    with pytest.raises(TypeError, match="app: is str; pass a chain"):
        preview("app", QUESTION)
    with pytest.raises(TypeError, match="config: the app is a function"):
        preview(print, QUESTION, {})
    with pytest.raises(ValueError, match="fields"):
        preview(rag(), QUESTION, fields={"answer": "x"})
