"""What becomes a sample: by a handler and by an evaluator alike, or the reason why it is none."""

import copy
import json
import re
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel, ConfigDict, Field

from ragstone import AlignmentCoverage, Sample, SummarizationScore
from ragstone.adapters.runs import Draft, Run, Skipped, Unreadable
from ragstone.fields.names import STRONG
from ragstone.testing import FakeLLM
from ragstone_langchain import MonitorHandler
from ragstone_langchain.arguments import Arguments
from ragstone_langchain.inside import Inside
from ragstone_langchain.read import Ended, ReadingOptions, sample_of_run

from ..support.judges import truth  # noqa: TID252
from ..support.noting import Noting  # noqa: TID252
from .monitored import ANSWER, FIRST, FOUND, QUESTION, SECOND, THIRD, WHOLE, Searching, parts
from .samples import NeedsAll, NeedsNothing

pytestmark = pytest.mark.usefixtures("offline")
DOCUMENTS = [Document(FIRST, metadata={"page": 1}), Document(SECOND)]
CITED = [Document(THIRD)]
CALL = {"name": "search", "args": {"query": "Emma"}, "id": "1", "type": "tool_call"}
SPOKEN = (QUESTION, (), ANSWER)


def noted(inputs: Any, outputs: Any, found: Any = (), **options: Any) -> Noting:
    """What a handler hands over of a chain that finds this and returns that."""
    monitor = Noting()
    app = RunnableLambda(lambda _: outputs if not found else Searching(texts=found).invoke("x") and outputs)
    app.invoke(inputs, {"callbacks": [MonitorHandler(monitor, **options)]})
    return monitor


def evaluated(inputs: Any, outputs: Any, found: Any = (), metric: Any = NeedsNothing, **options: Any) -> Sample:
    """The sample that an evaluator reads; `context` and `reference` are arguments of its, too."""
    inside = (Run("search", "retriever", output=list(found)),) if found else ()
    whole = inputs, outputs, options.pop("reference", None), options.pop("context", None)
    before = copy.deepcopy(whole)
    metric = metric(llm=FakeLLM(truth)) if isinstance(metric, type) else metric
    try:
        return Arguments(*whole, inside).sample(metric, ReadingOptions(**options))
    finally:
        assert whole == before, "nothing is changed"


def both(inputs: Any, outputs: Any, found: Any = (), **options: Any) -> tuple[Any, ...]:
    """Question, contexts and answer, read live and by an evaluator."""
    live, offline = noted(inputs, outputs, found, **options).only, evaluated(inputs, outputs, found, **options)
    assert (parts(live), live.history) == (parts(offline), offline.history)
    return parts(live)


class StateModel(BaseModel):
    model_config = ConfigDict(extra="allow")
    question: str
    old: str | None = Field(default=None, deprecated="a warning, and so an error here")


@dataclass
class State:
    question: str
    answer: str | None = None


@dataclass
class Packed:
    """As LangGraph's invoke(version="v2") packs a state."""

    value: object
    interrupts: tuple = ()


WITH_CONTEXTS = {"answer": ANSWER, "context": list(FOUND)}
QUESTIONS = {
    "message of blocks": HumanMessage([{"type": "text", "text": QUESTION}, {"type": "image", "url": "http://x/y"}]),
    "messages": [SystemMessage("Be terse."), HumanMessage("Hi."), AIMessage("Hello."), HumanMessage(QUESTION)],
    "a chat API's": [{"role": "developer", "content": "Be terse."}, {"role": "user", "content": QUESTION}],
    "blocks of responses": [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}],
    "text, then an image": [HumanMessage(QUESTION), HumanMessage([{"type": "image_url", "image_url": "u"}])],
    "prompt": ChatPromptValue(messages=[HumanMessage(QUESTION)]),
    "a pair": ("user", QUESTION),
    "what a model rewrote": AIMessage(QUESTION),
    "mapping of one pair": {"messages": ("user", QUESTION)},
    "LangSmith's of a graph": {"input": {"messages": [dumpd(HumanMessage(QUESTION))]}},
    "LangSmith's of a chat": {"messages": [{"type": "human", "data": {"content": QUESTION}}]},
    "pydantic state with a deprecated field": StateModel(question=QUESTION, old="x"),
    "an unknown mapping under one name": {"input": {"lang": "en", "n": 3}, "messages": [("user", QUESTION)]},
    "in one inner mapping": {"payload": {"question": QUESTION}, "user": "u"},
    "content under the name": {"input": {"content": QUESTION}},
    "a name that may mean it": {"topic": QUESTION, "x": "a"},
    "not by that beside messages": {"messages": [("user", QUESTION)], "topic": "billing"},
    **{name: {name: QUESTION, "lang": "en"} for name in STRONG["user_input"]},
}
NO_QUESTIONS = ({"file_path": "/x.pdf", "tenant": "t"}, {"a": {"question": QUESTION}, "b": {"question": "x"}}, 7)


def test_the_question() -> None:
    for form, inputs in QUESTIONS.items():
        assert both(inputs, WITH_CONTEXTS) == WHOLE, form
    for inputs in NO_QUESTIONS:
        assert both(inputs, WITH_CONTEXTS) == (None, FOUND, ANSWER)
    for outputs in ({"question": QUESTION, "answer": ANSWER}, {"messages": [("user", QUESTION), ("ai", ANSWER)]}):
        assert both({"lang": "en", "n": 2}, outputs) == SPOKEN, "it may be in the outputs"


def ai(*content: Any) -> AIMessage:
    return AIMessage([*content])


BLOCK = {"type": "text", "text": "First."}
ANSWERS = {
    "text": (ANSWER, ANSWER),
    "any message": (SystemMessage(ANSWER), ANSWER),
    "message of blocks": (ai({"type": "reasoning", "text": "Hm."}, {"type": "text", "text": "It "}, "is."), "It is."),
    "a message that calls a tool, too": ({"messages": [("ai", "Hm."), AIMessage(ANSWER, tool_calls=[CALL])]}, ANSWER),
    "before an empty message": ([HumanMessage(QUESTION), AIMessage(ANSWER), AIMessage("")], ANSWER),
    "LangGraph's invoke(version='v2')": (Packed({"answer": ANSWER, "n": 3}), ANSWER),
    "a graph's update": ({"agent": {"messages": [dumpd(AIMessage(ANSWER))]}}, ANSWER),
    "a name, beside messages": ({"answer": ANSWER, "messages": [HumanMessage("Hi."), AIMessage("Hello.")]}, ANSWER),
    "pydantic state with another field": (StateModel(question="x", answer=ANSWER), ANSWER),
    "dataclass state": (State("x", ANSWER), ANSWER),
    "in one inner mapping": ({"data": {"answer": ANSWER}, "error": None, 3: "three"}, ANSWER),
    "a mapping under the name": ({"answer": {"text": ANSWER, "sources": ["a.pdf"]}}, ANSWER),
    "an empty text": ({"answer": "", "error": "x"}, ""),
    "a message's content": (
        {"answer": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": ANSWER}]},
        ANSWER,
    ),
    "a refusal in blocks": (ai({"type": "refusal", "refusal": "No."}), "No."),
    "a refusal of a chat API": (AIMessage("", additional_kwargs={"refusal": "No."}), "No."),
    "blocks of responses": ([{"role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}], ANSWER),
    "paragraphs": (ai(BLOCK, {"type": "text", "text": "Second."}), "First.\n\nSecond."),
    "an open end": (ai({"type": "text", "text": "First. "}, {"type": "text", "text": "Second."}), "First. Second."),
    "a citation": (ai({"type": "text", "text": "It is blue"}, {"type": "text", "text": ". So."}), "It is blue. So."),
    "a cut word": (ai({"type": "text", "text": "Fir"}, {"type": "text", "text": "st."}), "First."),
    "thoughts": (ai({"type": "reasoning", "reasoning": "x"}, BLOCK, {"type": "thinking", "thinking": "x"}), "First."),
    "thoughts in the text": ({"answer": "Well. <think>Hm.</think> First.", "n": 1}, "Well. First."),
    "Mistral's": (AIMessage("[THINK]Hm.[/THINK]First."), "First."),
    "opened unseen": ("Hm, so?</think>\n\nFirst.", "First."),
    "a tag in words": ("Write `<think>` and `</think>`.", "Write `<think>` and `</think>`."),
    **{name: ({name: ANSWER, "lang": "en"}, ANSWER) for name in STRONG["response"]},
}
NO_ANSWER = {
    "None under the name": ({"answer": None, "confidence": "low"}, ("answer", "confidence")),
    "None, and messages": ({"answer": None, "messages": [AIMessage(ANSWER)]}, ("answer", "messages")),
    "a lone text": ({"documents": DOCUMENTS, "web_search": "Yes"}, ("documents", "web_search")),
    "in two inner mappings": ({"a": {"answer": ANSWER}, "b": {"answer": "x"}}, ("a", "b")),
    "a chat API's reply": ({"object": "chat.completion", "choices": [{}]}, ("choices", "object")),
    "a pydantic state": (StateModel(question=QUESTION, title="x"), ("old", "question", "title")),
    "documents": (DOCUMENTS, ()),
    "None": (None, ()),
}


def test_the_answer() -> None:
    for form, (outputs, answer) in ANSWERS.items():
        assert both(QUESTION, outputs, FOUND) == (QUESTION, FOUND, answer), form
    for form, (outputs, names) in NO_ANSWER.items():
        monitor = noted(QUESTION, outputs, FOUND)
        assert (monitor.samples, monitor.skipped, sum(monitor.names, ())) == ([], {"no_answer": 1}, names), form
        assert evaluated(QUESTION, outputs, FOUND).response is None, form


DIFFER = [
    ({"answer": "A draft.", "response": ANSWER}, ["response", "answer"]),
    ({"output": {"answer": "A draft."}, "data": {"answer": ANSWER}}, ["output.answer", "data.answer"]),
    ({"result": "3 rows", "output": ANSWER}, ["result", "output"]),
]


@pytest.mark.parametrize(("outputs", "names"), DIFFER)
def test_two_answers_that_differ_are_none_and_both_are_named(outputs, names) -> None:
    assert read(outputs, SEARCH) == Skipped("no_answer", tuple(names))
    with pytest.raises(Unreadable, match=re.escape(" and ".join(f"outputs[{name!r}]" for name in names) + " differ")):
        evaluated(QUESTION, outputs, context=CITED, metric=NeedsAll)


def test_two_questions_that_differ_are_none_and_so_are_contexts_whatever_was_searched() -> None:
    asked = {"question": QUESTION, "query": "the novelist of Emma"}
    assert both(asked, ANSWER, FOUND) == (None, FOUND, ANSWER)
    assert noted(asked, {"answer": ANSWER, "k": 3}).unread == [("question", "query", "k")]
    stated = {"answer": ANSWER, "documents": DOCUMENTS[:1], "chunks": [SECOND]}
    assert both(QUESTION, stated, FOUND) == (QUESTION, (), ANSWER)
    with pytest.raises(Unreadable, match=re.escape("outputs['documents'] and outputs['chunks'] differ")):
        evaluated(QUESTION, stated, metric=NeedsAll)


class Place(BaseModel):
    city: str
    people: int


class Cited(BaseModel):
    answer: str
    sources: list[int] = [1]


PLACE = '{"city": "Bath", "people": 1}'
STRUCTURED = [
    (Cited(answer=ANSWER), ANSWER),
    (Place(city="Bath", people=1), PLACE),
    ({"city": "Bath", "people": 1}, PLACE),
    (State(ANSWER, "x"), "x"),
    (ANSWER, ANSWER),
    ([Place(city="Bath", people=1)], f"[{PLACE}]"),
]


@pytest.mark.parametrize(("answer", "read"), STRUCTURED)
def test_a_structured_answer_is_read_as_a_person_would(answer, read) -> None:
    call = AIMessage("", tool_calls=[CALL])
    by_tool = [HumanMessage(QUESTION), call, ToolMessage("Returning.", tool_call_id="1")]
    by_provider = [HumanMessage(QUESTION), AIMessage('{"answer": "as JSON"}')]
    for messages in (by_tool, by_provider):
        state = {"messages": messages, "structured_response": answer}
        assert both({"messages": messages[:1]}, state) == (QUESTION, (), read)
    assert both(QUESTION, {"raw": call, "parsed": answer, "parsing_error": None})[2] == read
    texts = {"messages": [HumanMessage(QUESTION), AIMessage("In words.")], "structured_response": answer}
    assert both(QUESTION, texts)[2] == "In words.", "what was said last counts"
    if isinstance(answer, Place):
        assert both(QUESTION, answer)[2] == both(QUESTION, {"answer": answer, "n": 1})[2] == read


def test_the_pieces_of_a_stream_are_one_text_and_its_blocks_are_not() -> None:
    def said(*texts, **more):
        first, *others = [AIMessageChunk([{"type": "text", "text": text, **more}]) for text in texts]
        return sum(others, first)

    assert both(QUESTION, said("obj", ".", "Method"))[2] == "obj.Method"
    assert both(QUESTION, said("obj.", "Method", index=0))[2] == "obj.Method"
    assert both(QUESTION, said("First.", index=0) + said("Second.", index=1))[2] == "First.\n\nSecond."


# --- contexts --------------------------------------------------------------------------------------------------------

CONTEXTS = [
    (FIRST, SECOND),
    [FIRST, Document(SECOND)],
    [(Document(FIRST), 0.9), (Document(SECOND), 0)],
    dumpd(DOCUMENTS),
    {"output": {"documents": DOCUMENTS}},
    [{"text": FIRST, "score": 0.9}, {"content": SECOND, "score": 0.5}],
]
UNSTATED = [
    *({name: CITED} for name in ("citations", "related", "reference_contexts")),
    {"sources": ["a.pdf"]},
    {"debug": {"documents": CITED}},
    {"context": THIRD},  # what the prompt was given
]


def test_contexts_are_stated_under_a_usual_name_or_else_what_retrievers_returned() -> None:
    for context in CONTEXTS:
        assert parts(evaluated(QUESTION, ANSWER, context=context)) == WHOLE, context
        assert both(QUESTION, {"answer": ANSWER, "context": context}, [THIRD]) == WHOLE, context
        assert both({"question": QUESTION, "context": context}, ANSWER) == WHOLE, context
    for name in STRONG["retrieved_contexts"]:
        assert both(QUESTION, {"answer": ANSWER, name: DOCUMENTS}) == WHOLE, name
        assert both(QUESTION, {"answer": ANSWER, name: []}, FOUND) == SPOKEN, "also where nothing is left"
    assert both(QUESTION, {"data": {"answer": ANSWER, "documents": DOCUMENTS}, "k": 2}, [THIRD]) == WHOLE
    for output in UNSTATED:
        assert both(QUESTION, {"answer": ANSWER, **output}, FOUND) == WHOLE
    assert both(QUESTION, {"answer": ANSWER, **output}) == (QUESTION, (THIRD,), ANSWER), "a text, if nothing was found"
    for context in (FIRST, Document(FIRST), {"page_content": FIRST}, (Document(FIRST), 0.5)):  # one needs no list
        assert evaluated(QUESTION, ANSWER, context=context).retrieved_contexts == (FIRST,)
    assert "retrieved_contexts" not in evaluated(QUESTION, ANSWER).model_fields_set, "known from none"


def ended(kind: str, *texts: str, **more: Any) -> Run:
    return Run(object(), kind, output=[*texts] or None, open=False, **more)


def read(output: object, *inside: Run, inputs: object = QUESTION, reading: Any = (), **more: Any) -> Any:
    whole = Run("app", "chain", inputs=inputs, output=output, inside=[*inside], open=False, **more)
    draft = sample_of_run(Ended(whole, Inside().note(whole), ReadingOptions(*reading)), {})
    return parts(draft.sample) if isinstance(draft, Draft) else draft


SEARCH = ended("retriever", *FOUND)


def test_what_failed_or_was_chosen_from_is_no_context_and_what_the_app_names_replaces_all() -> None:
    failed = Run("step", "chain", error=OSError(), inside=[ended("retriever", THIRD)], open=False)
    chosen = Run("outer", "retriever", output=[*FOUND], inside=[ended("retriever", THIRD, *FOUND)], open=False)
    assert read(ANSWER, failed, chosen) == WHOLE
    assert read(ANSWER, chosen, ended("named", THIRD)) == (QUESTION, (THIRD,), ANSWER)
    passing = [ended("chain", THIRD, *FOUND), ended("chain", *FOUND)]
    assert read(ANSWER, *passing) == WHOLE, "a step that returns some of those before has chosen"
    assert read(ANSWER, *passing, ended("retriever", THIRD)) == (QUESTION, (THIRD,), ANSWER)


def agent_messages(*tool_messages: ToolMessage) -> list[Any]:
    """An agent's second turn; what the first one found is no longer to the point."""
    first = ToolMessage("found", tool_call_id="0", name="search", artifact=CITED)
    earlier = [SystemMessage("Be terse."), HumanMessage("Hi."), AIMessage("", tool_calls=[CALL]), first]
    asked = [AIMessage("Hello."), HumanMessage(QUESTION), AIMessage("", tool_calls=[CALL])]
    return [*earlier, *asked, *tool_messages, AIMessage(ANSWER)]


def tool_message(content: Any, artifact: Any = None, **more: Any) -> ToolMessage:
    return ToolMessage(content, artifact=artifact, **{"tool_call_id": "1", "name": "search", **more})


WEATHER = json.dumps({"temperature": 21})
SEARCHES = {
    "documents": ([tool_message("found", DOCUMENTS)], FOUND),
    "documents in a mapping": ([tool_message("found", {"documents": DOCUMENTS})], FOUND),
    "one document": ([tool_message("found", Document(FIRST))], (FIRST,)),
    "nothing": ([tool_message("No results.", [])], ()),
    "text": ([tool_message(FIRST)], (FIRST,)),
    "named by the call alone": ([tool_message(FIRST, name=None)], (FIRST,)),
    "JSON without hits": ([tool_message(WEATHER)], (WEATHER,)),
    "several, each text once": (
        [
            tool_message("found", DOCUMENTS),
            tool_message("more", [(Document(SECOND), 0.2), (Document(THIRD), 0.1)], tool_call_id="2"),
            tool_message("2 + 2 = 4", {"value": 4}, tool_call_id="3", name="calculator"),
        ],
        (*FOUND, THIRD),
    ),
}


def test_what_tools_found_in_the_last_turn_is_contexts() -> None:
    for what, (messages, texts) in SEARCHES.items():
        outputs = {"messages": agent_messages(*messages)}
        assert both({"messages": [("user", QUESTION)]}, outputs, retriever_tools=["search"]) == (
            QUESTION,
            texts,
            ANSWER,
        ), what
    messages = agent_messages(*SEARCHES["documents"][0])
    dumped = json.loads(json.dumps([message.model_dump() for message in messages]))
    for form in (messages, dumpd(messages), dumped):
        sample = evaluated(None, {"output": {"messages": form, "remaining_steps": 3}})
        assert parts(sample) == WHOLE
        assert [turn.content for turn in evaluated(None, form).history] == ["Hi.", "Hello."]


# --- conversations ---------------------------------------------------------------------------------------------------

EARLIER = [("user", "Who was Austen?"), ("assistant", "A writer.")]
MESSAGES = [SystemMessage("Be terse."), HumanMessage("Who was Austen?"), AIMessage("A writer.")]
TOOL = [AIMessage("", tool_calls=[CALL]), ToolMessage("found", tool_call_id="1")]
MEMORIES = {
    "messages": {"messages": [*MESSAGES, HumanMessage(QUESTION)]},
    "messages with tools between": {"messages": [MESSAGES[1], *TOOL, MESSAGES[2], ("user", QUESTION)]},
    "pairs": [("human", "Who was Austen?"), ("ai", "A writer."), ("human", QUESTION)],
    "chat_history": {"question": QUESTION, "chat_history": MESSAGES},
    "a chat API's": {"input": QUESTION, "history": [{"role": r, "content": c} for r, c in EARLIER]},
    "pairs of question and answer": {"question": QUESTION, "chat_history": [("Who was Austen?", "A writer.")]},
    "the question is in it": {"input": QUESTION, "chat_history": [*MESSAGES, HumanMessage(QUESTION)]},
    "the answer, too": {"input": QUESTION, "chat_history": [*MESSAGES, ("user", QUESTION), ("ai", ANSWER)]},
    "messages beside a question": {"question": QUESTION, "messages": MESSAGES},
}


@pytest.mark.parametrize("shape", MEMORIES)
def test_earlier_turns_are_the_history(shape) -> None:
    assert both(MEMORIES[shape], ANSWER) == SPOKEN
    assert [(turn.role, turn.content) for turn in evaluated(MEMORIES[shape], ANSWER).history] == EARLIER


def test_earlier_turns_are_in_the_outputs_too_where_a_thread_is_remembered() -> None:
    state = {"messages": [*MESSAGES, HumanMessage(QUESTION), AIMessage(ANSWER)]}
    memory = {"answer": ANSWER, "chat_history": [*MESSAGES, ("user", QUESTION), ("ai", "<p>She did.</p>")]}
    for outputs in (state, Packed(state), state["messages"], memory):
        sample = noted(QUESTION, outputs).only
        assert (parts(sample), [turn.content for turn in sample.history]) == (SPOKEN, [said for _, said in EARLIER])


def test_no_turn_is_earlier() -> None:
    for asked in (QUESTION, {"question": QUESTION, "chat_history": []}, {"messages": [("user", QUESTION)]}):
        assert noted(asked, {"messages": [("user", QUESTION), ("ai", ANSWER)]}).only.history == ()
    text = "Human: Who was Austen?\nAI: A writer."
    assert noted(QUESTION, {"question": QUESTION, "history": text, "answer": ANSWER}).only.history == ()


# --- how a run ended ---------------------------------------------------------------------------------------------------


def test_how_a_run_ended_says_whether_it_is_a_sample() -> None:
    assert read(None, SEARCH, error=OSError("down")) == (QUESTION, FOUND, None)
    assert read({"added": 3}, SEARCH, inputs={"file_path": "x"}) == Skipped("no_question", ("file_path",))
    assert read(3, inputs=7) == Skipped("nothing_found")
    asked, answered = [HumanMessage(QUESTION), HumanMessage("Who else?")], [AIMessage(ANSWER), AIMessage("Nobody.")]
    assert read(answered, SEARCH, inputs=asked) == Skipped("no_question"), "of many at once none is the question"
    by_tool = {"messages": [HumanMessage(QUESTION), ToolMessage("4", tool_call_id="1")]}
    assert read(by_tool) == (QUESTION, (), "4"), "a tool may return directly"
    assert read(by_tool, metadata={"thread_id": "7"}) == Skipped("interrupted"), "or the agent may go on"
    found = {"messages": [HumanMessage(QUESTION), ToolMessage("\n".join(FOUND), tool_call_id="1")]}
    assert read(found, SEARCH) == Skipped("no_answer", ("messages",)), "what was retrieved is no answer"


# --- fields= -----------------------------------------------------------------------------------------------------------

NAMED = {"user_input": "q", "response": "draft", "retrieved_contexts": "found"}
NAMED_RUNS = [
    ({"q": QUESTION, "k": 2, "found": DOCUMENTS}, {"draft": AIMessage(ANSWER), "n": 1}),
    ({"q": None}, {"q": [("user", QUESTION)], "draft": ANSWER, "found": DOCUMENTS, "answer": "no"}),
    ({"q": QUESTION, "draft": "in inputs"}, {"output": {"draft": ANSWER, "found": DOCUMENTS}}),
]


def test_a_mapping_says_where_the_fields_are() -> None:
    for inputs, outputs in NAMED_RUNS:
        assert both(inputs, outputs, fields=NAMED) == WHOLE
    assert both(QUESTION, {"data": {"text": ANSWER}, "n": 1}, fields={"response": "data.text"}) == SPOKEN
    everywhere = {
        "fields": dict.fromkeys(("user_input", "response", "reference"), "text"),
        "reference": {"text": FIRST},
    }
    sample = evaluated({"text": QUESTION}, {"text": ANSWER}, **everywhere)
    assert (*parts(sample), sample.reference) == (*SPOKEN, FIRST), "each in its own place first"
    named = [{"user_input": "text", "response": "text"}]
    assert read({"x": ANSWER}, inputs={"text": QUESTION}, reading=named) == Skipped("no_answer", ("x",), "x")
    assert read(None, inputs={"text": QUESTION}, reading=named, error=OSError("down")) == (QUESTION, (), None)


def test_a_function_says_what_the_fields_are() -> None:
    called = []

    def fields(inputs, outputs):
        called.append((inputs, outputs))
        return {"user_input": HumanMessage(QUESTION), "retrieved_contexts": DOCUMENTS, "response": ANSWER, "id": None}

    assert both({"a": 1}, 2, fields=fields) == WHOLE
    assert called == [({"a": 1}, 2)] * 2
    told = {"fields": lambda _, outputs: {"response": outputs["told"]}}  # what it does not say is read as always
    assert both(QUESTION, {"told": ANSWER}, FOUND, **told) == WHOLE
    whole = {"fields": lambda *_: Sample(id="7", response=ANSWER)}
    assert evaluated(1, 2, **whole) == Sample(id="7", response=ANSWER)
    live = noted(1, 2, **whole).only
    assert (live.id, parts(live)) == ("7", (None, (), ANSWER))
    assert read(2, reading=[lambda *_: None]) == Skipped("declined")


# --- what is no field ------------------------------------------------------------------------------------------------

CHOSEN = AlignmentCoverage(llm=FakeLLM(truth), source="retrieved_contexts")
TOOL_SAID = {"messages": [("user", QUESTION), tool_message(FIRST), ("ai", ANSWER)]}
TOOL_PARTLY = {"messages": [("user", QUESTION), tool_message("x", [*DOCUMENTS[:1], {"score": 1}]), ("ai", ANSWER)]}
TOOL_FAILED = {"messages": [("user", QUESTION), tool_message("Timeout", status="error"), ("ai", ANSWER)]}
# What is handed over (inputs, outputs, contexts), how it is read, and what is said.
REFUSED = [
    (None, ANSWER, CITED, {}, "user_input: is not in inputs (None) or outputs (str)"),
    ({"lang": "en", "n": 2}, ANSWER, CITED, {}, "user_input: is not in inputs (dict with 'lang', 'n')"),
    (QUESTION, {"html": ANSWER, "draft": ANSWER}, CITED, {}, "response: is not in outputs (dict with"),
    (QUESTION, {"prompt": QUESTION, "n": 1}, CITED, {}, "response: is not in outputs (dict with"),
    (None, State(QUESTION), CITED, {}, "response: outputs['answer'] is None, not text"),
    (None, agent_messages()[:-1], CITED, {}, "response: is not in outputs (list)"),
    (None, [("ai", "Hello."), ("user", QUESTION)], CITED, {}, "response: is not in outputs (list)"),
    (QUESTION, {"answer": AIMessage("", tool_calls=[CALL])}, CITED, {}, "response: outputs['answer'] is AIMessage, not text"),
    (QUESTION, {"output": 3.5}, CITED, {}, "response: is not in outputs (dict with 'output')"),
    (QUESTION, ANSWER, None, {}, "retrieved_contexts: is not in context (None)"),
    (QUESTION, ANSWER, 7, {}, "retrieved_contexts: context is int, not text or a document"),
    (QUESTION, ANSWER, [FIRST, None], {}, "retrieved_contexts: context[1] is None, not text or a document"),
    (QUESTION, {"docs": [{"page_content": 7}], "answer": "x"}, None, {}, "retrieved_contexts: outputs['docs'][0] is "),
    (QUESTION, TOOL_SAID, None, {"retriever_tools": ["other"]}, "retrieved_contexts: is not in context (None)"),
    (QUESTION, TOOL_FAILED, None, {"retriever_tools": ["search"]}, "retrieved_contexts: is not in "),
    (QUESTION, TOOL_PARTLY, None, {}, "retrieved_contexts: a tool's artifact[1] is dict with 'score', not text"),
    (QUESTION, ANSWER, None, {"metric": CHOSEN}, "retrieved_contexts: is not in "),
    (QUESTION, {"x": 1}, CITED, {"fields": {"response": "draft"}}, "response: fields= names the key 'draft', which"),
    (QUESTION, {"draft": [1]}, CITED, {"fields": {"response": "draft"}}, "response: outputs['draft'] is list, "),
    (QUESTION, {"draft": {"x": 1}}, CITED, {"fields": {"response": "draft"}}, "response: outputs['draft'] is dict with"),
    (QUESTION, ANSWER, None, {"fields": lambda *_: {}["x"]}, "fields: the function raised KeyError: 'x'"),
    (QUESTION, ANSWER, None, {"fields": lambda *_: None}, "fields: the function returned None; return a Sample"),
    (QUESTION, ANSWER, None, {"fields": lambda *_: 7}, "fields: the function returned int; return a Sample"),
    (QUESTION, ANSWER, None, {"fields": lambda *_: {"response": 7}}, "fields: the function's 'response' is int"),
    (QUESTION, ANSWER, None, {"fields": lambda *_: {"question": 7}}, "fields: the function's question: write user_input"),
]  # fmt: skip


@pytest.mark.parametrize(("inputs", "outputs", "context", "options", "said"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_field_is_named_with_its_place_and_the_way_out(inputs, outputs, context, options, said):
    with pytest.raises(Unreadable) as error:
        evaluated(inputs, outputs, **{"context": context, "metric": NeedsAll, **options})
    assert str(error.value).startswith(said)
    way_out = r"; pass .*; or name its key with fields=\{'\w+': KEY\}$"
    assert said.startswith("fields: ") or re.search(way_out, str(error.value))


@pytest.mark.parametrize(
    ("inputs", "context"),
    [(FIRST, None), ({"original": [Document(FIRST)], "style": "terse"}, None), (None, [Document(FIRST)])],
)
def test_a_summarys_original_is_taken_from_where_it_stands(inputs, context):
    for outputs in (ANSWER, {"summary": ANSWER}):
        in_contexts = evaluated(inputs, outputs, context=context, metric=SummarizationScore)
        assert (in_contexts.retrieved_contexts, in_contexts.response) == ((FIRST,), ANSWER)
        assert evaluated(inputs, outputs, context=context, metric=AlignmentCoverage).user_input == FIRST


def test_an_original_goes_before_the_instruction_but_not_before_its_own_name():
    inputs = {"input": "Summarise.", "text": FIRST}
    for source in ("user_input", "retrieved_contexts"):  # also where the user chose the source
        assert evaluated(inputs, ANSWER, metric=AlignmentCoverage(llm=FakeLLM(truth), source=source)).texts(source) == (
            FIRST,
        )
    assert evaluated(inputs | {"user_input": SECOND}, ANSWER, metric=AlignmentCoverage).user_input == SECOND
    in_contexts = evaluated(inputs, ANSWER, metric=SummarizationScore)
    assert (in_contexts.user_input, in_contexts.retrieved_contexts) == ("Summarise.", (FIRST,))
    joined = evaluated("  ", ANSWER, context=DOCUMENTS, metric=AlignmentCoverage)  # as the metric joins them
    assert joined.user_input == f"{FIRST}\n{SECOND}"


def test_nesting_without_end_ends():
    loop = {}
    loop["output"] = loop
    several = {"answer": None, "n": 1}
    several["response"] = several
    for value in (loop, several):
        with pytest.raises(Unreadable):
            Arguments(value, value, None, value).sample(NeedsAll(llm=FakeLLM(truth)), ReadingOptions())


ROLES = ["user", "ai", "tool", "assistant", "constructor", "search", "HumanMessage"]
TEXTS = st.integers(0, 99).map("<{}>".format) | st.sampled_from(ROLES)
NAMES = "question input answer output context documents messages text draft value type role content name artifact lc"
KEYS = st.sampled_from([*NAMES.split(), "id", "kwargs", "data", "page_content", "interrupts"])
KEPT = st.builds(lambda text: ToolMessage(text, tool_call_id="1", name="search", artifact=text), TEXTS)
OBJECTS = st.builds(HumanMessage, TEXTS) | st.builds(AIMessage, TEXTS) | st.builds(Document, TEXTS) | KEPT
VALUES = st.recursive(
    st.none() | st.booleans() | st.just(1) | st.binary(max_size=2) | TEXTS | OBJECTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.just(3), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(
    inputs=VALUES,
    outputs=VALUES,
    context=st.none() | VALUES,
    metric=st.sampled_from([NeedsAll, NeedsNothing, SummarizationScore, AlignmentCoverage]),
    fields=st.none() | st.dictionaries(st.sampled_from(["user_input", "retrieved_contexts", "response"]), KEYS),
)
def test_whatever_is_handed_over_gives_a_sample_of_its_own_texts_or_says_why_not(
    inputs, outputs, context, metric, fields
):
    before = repr((inputs, outputs, context))
    try:
        arguments = Arguments(inputs, outputs, None, context)
        sample = arguments.sample(metric(llm=FakeLLM(truth)), ReadingOptions(fields, {"search"}))
    except Unreadable as reason:
        named = re.match("user_input|retrieved_contexts|response|the app returned nothing", str(reason))
    else:
        named = True
        own = "|".join(re.findall(r"<\d+>|" + "|".join(ROLES), before)) or "nothing"
        for field in ("user_input", "retrieved_contexts", "response"):
            for text in sample.texts(field):  # blocks of one message, and an original's pieces, are joined
                assert re.fullmatch(f"(?:{own}|\n)*", text), text
    assert named
    assert repr((inputs, outputs, context)) == before
