"""Agents and graphs as public code has them: what makes one, what it is asked, what it read and said."""

import operator
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import pytest

pytest.importorskip("langgraph.graph")
pytest.importorskip("langchain.agents")

from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import AgentMiddleware, dynamic_prompt
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import create_retriever_tool, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Send
from pydantic import BaseModel

from .monitored import FIRST, FOUND, QUESTION, SECOND, THIRD, Searching, joined, says
from .public_chains import DRAFT, FOURTH, READ, SAID, called

ASKED = {"messages": [("user", QUESTION)]}
DOCUMENTS = [Document(text) for text in FOUND]
WITHOUT = (QUESTION, (), SAID)
AGENTS: dict[str, tuple[Any, ...]] = {}


def public(
    expected: tuple[Any, ...] = READ, asked: Any = ASKED, **options: Any
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Add the maker of an agent or a graph to the table, under its name as words."""

    def add(make: Callable[[], Any]) -> Callable[[], Any]:
        AGENTS[make.__name__.replace("_", " ")] = make, options, asked, expected
        return make

    return add


def graph(state: Any, **nodes: Any) -> Any:
    """A graph of nodes one after another."""
    return StateGraph(state).add_sequence([*nodes.items()]).add_edge(START, next(iter(nodes))).compile()


def loop(*tools: Any, says_first: Any, **options: Any) -> Any:
    """A model and its tools, as agents were written before there was `create_agent`."""
    model = says(*says_first, SAID)
    steps = StateGraph(MessagesState).add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    steps.add_node("tools", ToolNode([*tools], **options)).add_edge(START, "agent").add_edge("tools", "agent")
    return steps.add_conditional_edges("agent", tools_condition).compile()


def rag_tool(find: Any) -> Any:
    @tool
    def rag_tool(query: str) -> dict[str, Any]:
        """Search the file."""
        texts = find(query)
        return {"query": query, "context": texts, "metadata": [{} for _ in texts], "source_file": "emma.pdf"}

    return rag_tool


@public()
def a_tool_s_mapping_of_what_a_retriever_found() -> Any:
    def find(query: str) -> list[str]:
        return [document.page_content for document in Searching().invoke(query)]

    return loop(rag_tool(find), says_first=[called("rag_tool", query="Emma")])


@public(retriever_tools=["rag_tool"])
def a_named_tool_s_mapping() -> Any:
    return loop(rag_tool(lambda _: [*FOUND]), says_first=[called("rag_tool", query="Emma")])


# A limit: what a tool says may be anything; `retriever_tools` names those that retrieve.
@public(expected=WITHOUT)
def a_tool_s_mapping_that_nobody_named() -> Any:
    return loop(rag_tool(lambda _: [*FOUND]), says_first=[called("rag_tool", query="Emma")])


# A limit: a search in middleware that is no retriever is in no run.
@public(expected=WITHOUT)
def a_store_in_a_dynamic_prompt() -> Any:
    return create_agent(says(SAID), tools=[], middleware=[dynamic_prompt(lambda _: "\n".join(FOUND))])


@public()
def a_retriever_in_a_dynamic_prompt() -> Any:
    def prompt(request: Any) -> str:
        return joined(Searching(texts=(*FOUND, THIRD)).invoke(request.state["messages"][-1].text)[:2])

    return create_agent(says(SAID), tools=[], middleware=[dynamic_prompt(prompt)])


class WithContext(AgentState):
    context: list[Document]


class Augments(AgentMiddleware[WithContext]):
    """Writes what it found behind the question."""

    state_schema = WithContext

    def before_model(self, state: Any, runtime: Any = None) -> dict[str, Any]:
        last = state["messages"][-1]
        content = f"{last.text}\n\nUse this:\n{joined(DOCUMENTS)}"
        return {"messages": [last.model_copy(update={"content": content})], "context": DOCUMENTS}


@public()
def middleware_that_writes_behind_the_question() -> Any:
    return create_agent(says(SAID), tools=[], middleware=[Augments()])


class Grade(BaseModel):
    """Grade a document."""

    score: str


@public()
def a_search_that_was_off_and_a_question_written_anew() -> Any:
    found = iter([(THIRD, FOURTH), FOUND])

    @tool
    def search(query: str) -> str:
        """Search."""
        return joined(Searching(texts=next(found)).invoke(query))

    asks, grader = (
        says(called("search", query="novel, author")),
        says(called("Grade", score="no"), called("Grade", score="yes")),
    )
    grades = grader.with_structured_output(Grade)

    def grade(state: Any) -> Literal["answer", "rewrite"]:
        asked = f"{state['messages'][-1].text} {QUESTION}"
        return "answer" if grades.invoke(asked).score == "yes" else "rewrite"

    def answer(state: Any) -> dict[str, Any]:
        return {"messages": [says(SAID).invoke(f"{QUESTION}\n{state['messages'][-1].text}")]}

    steps = StateGraph(MessagesState).add_node("ask", lambda state: {"messages": [asks.invoke(state["messages"])]})
    steps.add_node("retrieve", ToolNode([search])).add_node("answer", answer)
    steps.add_node("rewrite", lambda _: {"messages": [HumanMessage("Who is the author of Emma?")]})
    steps.add_edge(START, "ask").add_edge("ask", "retrieve").add_edge("rewrite", "ask")
    return steps.add_conditional_edges("retrieve", grade).add_edge("answer", END).compile()


@public(expected=(QUESTION, (THIRD,), SAID))
def a_tool_that_failed_after_its_search() -> Any:
    @tool
    def first(query: str) -> str:
        """Search, and fail."""
        Searching().invoke(query)
        raise ValueError

    @tool
    def second(query: str) -> str:
        """Search."""
        return joined(Searching(texts=(THIRD,)).invoke(query))

    said = [called("first", query="x"), called("second", query="x")]
    return loop(first, second, says_first=said, handle_tool_errors=True)


@public()
def a_table_beside_a_search() -> Any:
    @tool
    def sql_db_query(query: str) -> str:
        """Run SQL."""
        return "[('Emma', 1815)]"

    said = [called("search", query="Emma"), called("sql_db_query", query="SELECT 1")]
    return loop(create_retriever_tool(Searching(), "search", "Search."), sql_db_query, says_first=said)


class Reported(MessagesState):
    next: str


# A limit: the last message is a human's by its kind, so that nothing says that it is the answer.
@public(expected="no_answer")
def a_supervisor_whose_worker_reports_as_a_human() -> Any:
    worker = create_agent(
        says(called("search", query="Emma"), SAID), [create_retriever_tool(Searching(), "search", "Search.")]
    )
    choices = iter(["worker", END])

    def supervisor(_: Any) -> Command[Literal["worker", "__end__"]]:
        to = next(choices)
        return Command(goto=to, update={"next": to})

    def work(state: Any) -> Command[Literal["supervisor"]]:
        report = HumanMessage(worker.invoke(state)["messages"][-1].text, name="worker")
        return Command(update={"messages": [report]}, goto="supervisor")

    steps = StateGraph(Reported).add_node("supervisor", supervisor).add_node("worker", work)
    return steps.add_edge(START, "supervisor").compile()


class SummedUp(MessagesState):
    summary: str


@public(expected=(QUESTION, FOUND, SAID))
def a_chat_that_sums_itself_up() -> Any:
    def talk(state: Any) -> dict[str, Any]:
        return {"messages": [says(SAID).invoke([SystemMessage(joined(Searching().invoke("x"))), *state["messages"]])]}

    def sum_up(state: Any) -> dict[str, Any]:
        return {"summary": says("The user asks about novels.").invoke(state["messages"]).text}

    return graph(SummedUp, talk=talk, sum_up=sum_up)


@public()
def a_draft_a_critique_and_a_revision() -> Any:
    def draft(state: Any) -> dict[str, Any]:
        found = Searching(texts=(*FOUND, THIRD)).invoke("Emma")[:2]
        return {"messages": [says(DRAFT).invoke(f"{joined(found)}\n{QUESTION}")]}

    def critic(state: Any) -> dict[str, Any]:
        return {"messages": [HumanMessage(says("Look at the passages again.").invoke(state["messages"]).text)]}

    return graph(
        MessagesState, draft=draft, critic=critic, revise=lambda s: {"messages": [says(SAID).invoke(s["messages"])]}
    )


class Corrective(TypedDict, total=False):
    question: str
    documents: Any
    generation: str
    grade: Any
    guardrail: Any


PLAIN = {"question": QUESTION}


def generates(state: Any) -> dict[str, str]:
    return {"generation": says(SAID).invoke(f"{state['documents']}\n{state['question']}").text}


@public(expected=(QUESTION, (FIRST, THIRD), SAID), asked=PLAIN)
def graded_documents_and_a_web_search_s() -> Any:
    def grade(state: Any) -> dict[str, Any]:
        marks = says("yes", "no")
        return {
            "documents": [d for d in state["documents"] if marks.invoke(f"Relevant? {d.page_content}").text == "yes"]
        }

    def search_web(state: Any) -> dict[str, Any]:
        return {"documents": [*state["documents"], Document(THIRD)], "question": "Who is the author of Emma?"}

    return graph(
        Corrective,
        retrieve=lambda s: {"documents": Searching().invoke(s["question"])},
        grade=grade,
        web=search_web,
        write=generates,
    )


@public(expected=(QUESTION, (THIRD,), SAID), asked=PLAIN)
def one_document_that_is_no_list() -> Any:
    return graph(Corrective, web=lambda _: {"documents": Document(THIRD)}, write=generates)


@public(asked=PLAIN)
def marks_of_graders_in_the_state() -> Any:
    def check(state: Any) -> dict[str, Any]:
        marks = says(called("Grade", score="yes")).with_structured_output(Grade)
        return {"grade": marks.invoke(f"{state['documents']} {state['generation']}"), "guardrail": {"output": "passed"}}

    return graph(Corrective, retrieve=lambda _: {"documents": DOCUMENTS}, write=generates, check=check)


@public(expected="no_answer", asked=PLAIN)
def a_guard_s_result_and_no_answer() -> Any:
    return graph(Corrective, guard=lambda _: {"documents": DOCUMENTS, "guardrail": {"result": "blocked"}})


@public(asked={**PLAIN, "documents": [], "generation": ""})
def a_state_that_began_with_every_name() -> Any:
    return graph(Corrective, retrieve=lambda _: {"documents": DOCUMENTS}, write=generates)


class Parts(TypedDict, total=False):
    question: str
    answers: Annotated[list[str], operator.add]
    answer: str


@public(asked=PLAIN)
def parts_of_a_question_side_by_side() -> Any:
    def one(state: Any) -> dict[str, Any]:
        found = Searching(texts=(state["text"], THIRD)).invoke("x")[:1]
        return {"answers": [says(f"One passage has it so: {state['text'][::-1]}").invoke(joined(found)).text]}

    def write(state: Any) -> dict[str, Any]:
        return {"answer": says(SAID).invoke("\n".join(sorted(state["answers"]))).text}

    steps = StateGraph(Parts).add_node("one", one).add_node("write", write).add_edge("one", "write")
    return steps.add_conditional_edges(START, lambda _: [Send("one", {"text": t}) for t in FOUND], ["one"]).compile()


class FanIn(TypedDict, total=False):
    question: str
    context: Annotated[list[str], operator.add]
    answer: Any


@public(expected=(QUESTION, (f"<doc>{FIRST}</doc>", f"<doc>{SECOND}</doc>"), SAID), asked=PLAIN)
def texts_of_two_searches_and_a_message_as_answer() -> Any:
    steps = StateGraph(FanIn).add_node("answer", lambda s: {"answer": says(SAID).invoke(f"{s['context']}")})
    for name, text in (("a", FIRST), ("b", SECOND)):
        steps.add_node(name, lambda _, text=text: {"context": [f"<doc>{text}</doc>"]})
        steps.add_edge(START, name).add_edge(name, "answer")
    return steps.compile()


class Researched(MessagesState):
    research_brief: str
    notes: list[str]
    final_report: str


@public()
def notes_that_a_model_compressed_and_a_report() -> Any:
    def research(_: Any) -> dict[str, Any]:
        notes = says("Notes: one of them wrote it, the other is a date.").invoke(joined(Searching().invoke("x"))).text
        return {"research_brief": "Find out who wrote it.", "notes": [notes]}

    def report(state: Any) -> dict[str, Any]:
        return {"final_report": SAID, "messages": [says(SAID).invoke(f"{state['notes']}")]}

    return graph(Researched, research=research, report=report)


@public(asked={**PLAIN, "documents": ["handbook.pdf"]})
def names_of_files_in_the_inputs() -> Any:
    return graph(Corrective, write=lambda s: {"generation": says(SAID).invoke(joined(Searching().invoke("x"))).text})
