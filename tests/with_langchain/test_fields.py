"""From every form in which LangChain hands things over to the one sample that is in it."""

import copy
import json
import pickle
import re
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
)
from langchain_core.prompt_values import ChatPromptValue
from pydantic import BaseModel, ConfigDict, Field

from ragstone import AlignmentCoverage, Sample, SummarizationScore
from ragstone.testing import FakeLLM
from ragstone_langchain.fields import Reading, read_sample
from ragstone_langchain.given import Given
from ragstone_langchain.places import USUAL_NAMES
from ragstone_langchain.values import Unreadable

from .samples import ANSWER, FIRST, QUESTION, SECOND, NeedsAll, NeedsNothing, judge


class Named(FakeLLM):
    """A judge that can be pickled."""

    def __init__(self):
        super().__init__(str)


WHOLE = Sample(user_input=QUESTION, retrieved_contexts=[FIRST, SECOND], response=ANSWER)
DOCUMENTS = [Document(FIRST, metadata={"page": 1}), Document(SECOND)]
CALL = {"name": "search", "args": {"query": "word1"}, "id": "1", "type": "tool_call"}


def read(inputs=None, outputs=None, reference_outputs=None, context=None, retrieved=None, metric=NeedsAll, **options):
    """Read a sample, and see to it that nothing was changed on the way."""
    whole = Given(inputs, outputs, reference_outputs, context, retrieved)
    before = copy.deepcopy(whole)
    metric = metric(llm=judge()) if isinstance(metric, type) else metric
    try:
        return read_sample(whole, Reading(metric, **options))
    finally:
        assert whole == before


def problem(*args, **kwargs):
    with pytest.raises(Unreadable) as error:
        read(*args, **kwargs)
    return str(error.value)


def agent_messages(tool_message=None):
    """An agent's second turn; what the first one found is no longer to the point."""
    return [
        SystemMessage("Be terse."),
        HumanMessage("Which say word9?"),
        AIMessage("", tool_calls=[CALL]),
        ToolMessage("It has word9 here.", tool_call_id="1", name="search", artifact=[Document("It has word9 here.")]),
        AIMessage("It has word9 here."),
        HumanMessage(QUESTION),
        AIMessage("Let me look.", tool_calls=[CALL]),
        tool_message or ToolMessage("found", tool_call_id="1", name="search", artifact=DOCUMENTS),
        AIMessage(ANSWER),
    ]


# --- the question and the answer ---------------------------------------------------------------------------------


class QuestionModel(BaseModel):
    question: str
    answer: str | None = None


class DeprecatedModel(BaseModel):
    model_config = ConfigDict(extra="allow")
    question: str
    old: str | None = Field(default=None, deprecated="a warning, and so an error here")


@dataclass
class QuestionState:
    question: str
    answer: str | None = None


@dataclass
class Packed:
    """As LangGraph's invoke(version="v2") packs a state."""

    value: object
    interrupts: tuple = ()


QUESTIONS = {
    "text": QUESTION,
    "message of blocks": HumanMessage([{"type": "text", "text": QUESTION}, {"type": "image", "url": "http://x/y"}]),
    "messages": [SystemMessage("Be terse."), HumanMessage("Hi."), AIMessage("Hello."), HumanMessage(QUESTION)],
    "a chat API's messages": [{"role": "developer", "content": "Be terse."}, {"role": "user", "content": QUESTION}],
    "prompt": ChatPromptValue(messages=[HumanMessage(QUESTION)]),
    "mapping of one pair": {"messages": ("user", QUESTION)},
    "LangSmith, a traced function of one text": {"topic": QUESTION},
    "LangSmith, a graph": {"input": {"messages": [dumpd(HumanMessage(QUESTION))]}},
    "pydantic state with a deprecated field": DeprecatedModel(question=QUESTION, old="x"),
    "its name is None first": {"user_input": None, "question": QUESTION},
    "a message under the name": {"question": AIMessage(QUESTION), "lang": "en"},
    "an unknown mapping under one name": {"input": {"lang": "en", "n": 3}, "messages": [("user", QUESTION)]},
}
ANSWERS = {
    "text": ANSWER,
    "chunk": AIMessageChunk(ANSWER),
    "message of blocks": AIMessage(
        [{"type": "reasoning", "text": "Hm."}, {"type": "text", "text": "It has "}, "word1 here."]
    ),
    "message that calls a tool, too": AIMessage(ANSWER, tool_calls=[CALL]),
    "last message calls a tool, too": {"messages": [("ai", "Hm."), AIMessage(ANSWER, tool_calls=[CALL])]},
    "a message before it calls a tool, too": [AIMessage("Hm.", tool_calls=[CALL]), ("ai", ANSWER)],
    "LangGraph's invoke(version='v2')": Packed({"answer": ANSWER, "n": 3}),
    "another role": ChatMessage(ANSWER, role="bot"),
    "LangSmith, a message": AIMessage(ANSWER).model_dump(),
    "a graph's update in messages": {"agent": {"messages": [dumpd(AIMessage(ANSWER))]}},
    "names win over messages": {"answer": ANSWER, "messages": [HumanMessage("Hi."), AIMessage("Hello.")]},
    "pydantic state with more fields than declared": DeprecatedModel(question="x", answer=ANSWER),
    "dataclass state": QuestionState("x", ANSWER),
    "alone beside None and what has no name": {"draft": ANSWER, "error": None, 3: "three"},
}


CONTEXTS = {
    "tuple": (FIRST, SECOND),
    "mixed": [FIRST, Document(SECOND)],
    "with scores": [(Document(FIRST), 0.9), (Document(SECOND), 0)],
    "serialised": dumpd(DOCUMENTS),
    "packed": {"output": {"documents": DOCUMENTS}},
    "an agent's messages": {"messages": agent_messages()},
    "a tool's message": ToolMessage("found", tool_call_id="1", artifact=DOCUMENTS),
}


def test_the_question_the_answer_and_the_contexts_are_read_from_every_form():
    for form, inputs in QUESTIONS.items():
        assert read(inputs, {"answer": ANSWER, "context": [FIRST, SECOND]}) == WHOLE, form
    for form, outputs in ANSWERS.items():
        assert read(QUESTION, outputs, context=DOCUMENTS) == WHOLE, form
    for form, context in CONTEXTS.items():
        assert read(QUESTION, ANSWER, context=context) == WHOLE, form
        assert read(QUESTION, {"answer": ANSWER, "context": context}) == WHOLE, form
        assert read({"question": QUESTION, "context": context}, ANSWER) == WHOLE, form


def test_each_usual_name_is_known():
    for name in USUAL_NAMES["user_input"]:
        assert read({name: QUESTION, "lang": "en"}, ANSWER, context=DOCUMENTS) == WHOLE, name
    for name in USUAL_NAMES["response"]:
        assert read(QUESTION, {name: ANSWER, "lang": "en"}, context=DOCUMENTS) == WHOLE, name
    for name in USUAL_NAMES["retrieved_contexts"]:
        assert read(QUESTION, {"answer": ANSWER, name: DOCUMENTS}) == WHOLE, name


def test_an_agents_state_has_everything_of_its_last_turn():
    for messages in (
        agent_messages(),
        dumpd(agent_messages()),
        [message_to_dict(message) for message in agent_messages()],
        json.loads(json.dumps([message.model_dump() for message in agent_messages()])),
    ):
        assert read({"messages": [("user", QUESTION)]}, {"messages": messages}) == WHOLE
        assert read(None, {"output": {"messages": messages, "remaining_steps": 3}}) == WHOLE
        assert read(None, messages, retriever_tools={"search"}) == WHOLE, "of a named tool with Documents these alone"


def test_contexts_come_from_the_call_then_the_outputs_then_the_retrievers_then_the_inputs():
    places = {
        "context": [FIRST],
        "outputs": {"answer": ANSWER, "docs": ["in outputs"]},
        "retrieved": [{"documents": [Document("by the retriever")]}],
        "inputs": {"question": QUESTION, "docs": ["in inputs"]},
    }
    assert read(**places).retrieved_contexts == (FIRST,)
    assert read(**places | {"context": None}).retrieved_contexts == ("in outputs",)
    places |= {"context": None, "outputs": ANSWER}
    assert read(**places).retrieved_contexts == ("by the retriever",)
    assert read(**places | {"retrieved": None}).retrieved_contexts == ("in inputs",)


def searched(*tool_messages):
    return [("user", QUESTION), AIMessage("", tool_calls=[CALL]), *tool_messages, ("ai", ANSWER)]


API_CALL = {"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
SEARCHES = {
    "one Document": (searched(ToolMessage("found", tool_call_id="1", artifact=Document(FIRST))), (FIRST,)),
    "nothing was found": (searched(ToolMessage("No results.", tool_call_id="1", name="search", artifact=[])), ()),
    "a named tool's text": (searched(ToolMessage(FIRST, tool_call_id="1", name="search")), (FIRST,)),
    "named by the call alone": (searched(ToolMessage(FIRST, tool_call_id="1")), (FIRST,)),
    "a chat API's messages": (
        [
            ("user", QUESTION),
            {"role": "assistant", "content": None, "tool_calls": [API_CALL]},
            {"role": "tool", "tool_call_id": "1", "content": FIRST},
            ("ai", ANSWER),
        ],
        (FIRST,),
    ),
    "several searches, each text once": (
        searched(
            ToolMessage("found", tool_call_id="1", artifact=DOCUMENTS),
            ToolMessage("more", tool_call_id="2", artifact=(Document(SECOND), {"score": 1}, (Document("more"), 0.1))),
            ToolMessage("2 + 2 = 4", tool_call_id="3", name="calculator", artifact={"value": 4}),
        ),
        (FIRST, SECOND, "more"),
    ),
}


def test_what_tools_found_is_contexts():
    for what, (messages, contexts) in SEARCHES.items():
        assert read(None, messages, retriever_tools={"search"}).retrieved_contexts == contexts, what


def test_other_places():
    for inputs in (None, {"lang": "en", "n": 2}, {"docs": [FIRST]}, {"messages": []}):  # the question is in the outputs
        assert read(inputs, {"question": QUESTION, "answer": ANSWER}, context=DOCUMENTS) == WHOLE
        assert read(inputs, {"messages": [("user", QUESTION), ("ai", ANSWER)]}, context=DOCUMENTS) == WHOLE
        assert read(inputs, {"output": {"input": QUESTION, "answer": ANSWER}}, context=DOCUMENTS) == WHOLE
    for context in (FIRST, Document(FIRST), {"page_content": FIRST}, (Document(FIRST), 0.5)):  # one needs no list
        assert read(QUESTION, ANSWER, context=context).retrieved_contexts == (FIRST,)
    for outputs in (DOCUMENTS, {"output": DOCUMENTS}, {"documents": DOCUMENTS}):  # a retriever's own
        assert read(QUESTION, outputs, metric=NeedsNothing) == WHOLE.model_copy(update={"response": None})
    # Nothing retrieved is known from not said.
    assert "retrieved_contexts" in read(QUESTION, {"answer": ANSWER, "context": []}).model_fields_set
    assert read(QUESTION, {"answer": ANSWER, "docs": []}, retrieved=[[Document(FIRST)]]).retrieved_contexts == ()


# --- what cannot be read -------------------------------------------------------------------------------------------


def refused(said, inputs=QUESTION, outputs=ANSWER, context=DOCUMENTS, **options):
    return inputs, outputs, context, options, said


NAMED = {"metric": NeedsNothing, "fields": {"response": "draft"}}
REFUSED = {
    "an answer alone is no question": refused("user_input: is not in inputs (None) or outputs (str)", None),
    "nor in messages": refused("user_input: is not in inputs (None) or outputs (list)", None, [("ai", ANSWER)]),
    "contexts alone are no question": refused("user_input: is not in inputs (dict with 'context')", {"context": FIRST}),
    "an original is none": refused("user_input: is not in inputs (dict with 'text', 'n')", {"text": FIRST, "n": 1}),
    "a question alone is no answer": refused("response: is not in outputs (dict with 'q", None, {"question": QUESTION}),
    "a state's question": refused("response: is not in outputs (Questi", None, QuestionModel(question=QUESTION)),
    "no answer after a tool": refused("response: is not in outputs (list)", None, searched()[:-1]),
    "no answer in the last turn": refused(
        "response: is not in outputs (list)", None, [("user", "Hi."), ("ai", "Hello."), ("user", QUESTION)]
    ),
    "a block's call": refused(
        "response: is not in outputs",
        None,
        [("user", QUESTION), {"role": "assistant", "content": [{"type": "tool_use", "name": "f"}]}],
    ),
    "an older call": refused(
        "response: is not in outputs",
        None,
        [("user", QUESTION), {"type": "ai", "content": " ", "additional_kwargs": {"tool_calls": [{"id": "1"}]}}],
    ),
    "a call under a name": refused(
        "response: outputs['answer'] is a message that only calls tools, not an answer; pass outputs as text, an AI ",
        QUESTION,
        {"answer": AIMessage("", tool_calls=[CALL])},
    ),
    "a number": refused("response: outputs['output'] is float, not text", QUESTION, {"output": 3.5}),
    "a Document": refused("response: outputs is Document, not text", QUESTION, Document("x")),
    "no contexts": refused(
        "retrieved_contexts: is not in context (None) or inputs (str) or outputs (dict with 'answer'",
        outputs={"answer": ANSWER, "reference_contexts": [FIRST]},
        context=None,
    ),
    "an original beside a question": refused(
        "retrieved_contexts: is not in context", {"question": QUESTION, "text": FIRST}, context=None
    ),
    "a number as context": refused("retrieved_contexts: context is int, not texts or Documents", context=7),
    "a mapping of none": refused("retrieved_contexts: context is dict with 'pages', not", context={"pages": 3}),
    "an empty mapping": refused("retrieved_contexts: context is an empty dict, not", context={}),
    "None among them": refused("retrieved_contexts: context[1] is None, not text or a Document", context=[FIRST, None]),
    "a message among them": refused("retrieved_contexts: context[0] is HumanMessage", context=[HumanMessage("Hi.")]),
    "a place inside": refused("retrieved_contexts: context['docs'][0] is int, not", context={"docs": [7]}),
    "a Document without text": refused(
        "retrieved_contexts: outputs['docs'][0]: its page_content is int, not text",
        outputs={"answer": ANSWER, "docs": [{"page_content": 7}]},
        context=None,
    ),
    "in an artifact": refused(
        "retrieved_contexts: ",
        outputs=searched(ToolMessage("", tool_call_id="1", artifact=[{"page_content": 7}])),
        context=None,
    ),
    "a tool that is not named": refused(
        "retrieved_contexts: is not in context (None)",
        outputs=searched(ToolMessage(FIRST, tool_call_id="1", name="search")),
        context=None,
        retriever_tools=["other"],
    ),
    "a tool's error": refused(
        "retrieved_contexts: is not in ",
        outputs=searched(ToolMessage("TimeoutError", tool_call_id="1", name="search", status="error")),
        context=None,
        retriever_tools=["search"],
    ),
    "a chosen source without contexts": refused(
        "retrieved_contexts: is not in ",
        context=None,
        metric=AlignmentCoverage(llm=judge(), source="retrieved_contexts"),
    ),
    "a chosen source without a question": refused(
        "user_input: is not in ", None, metric=AlignmentCoverage(llm=judge(), source="user_input")
    ),
    "a key that is nowhere": refused(
        "response: the key 'draft', which fields= names, is not in outputs (dict with 'x', 'n'), "
        "inputs (str), reference_outputs (None); pass ",
        outputs={"x": ANSWER, "n": 1},
        **NAMED,
    ),
    "and is not made up for": refused(
        "retrieved_contexts: the key 'pages'",
        FIRST,
        context=None,
        metric=SummarizationScore,
        fields={"retrieved_contexts": "pages"},
    ),
    "no text under a key": refused("response: outputs['draft'] is list, not text", outputs={"draft": [1, 2]}, **NAMED),
    "nothing with text under a key": refused(
        "response: outputs['draft'] is dict with 'lang', 'n', not text",
        outputs={"draft": {"lang": "en", "n": 1}},
        **NAMED,
    ),
    "a message without text": refused("response: is not in outputs", outputs={"role": "assistant", "content": 7}),
    "a message's own attribute": refused(
        "response: the key 'name', which fields= names, is not in outputs (",
        outputs=AIMessage(ANSWER, name="bot"),
        metric=NeedsNothing,
        fields={"response": "name"},
    ),
    "a function that fails": refused("fields: the function raised KeyError: 'x'", fields=lambda **_: {}["x"]),
    "that returns None": refused(
        "fields: the function returned None; return a Sample or a map", fields=lambda **_: None
    ),
    "no text": refused("fields: the function's 'response' is int, not text", fields=lambda **_: {"response": 7}),
    "no contexts from it": refused(
        "fields: the function's 'retrieved_contexts'[0] is int, not", fields=lambda **_: {"retrieved_contexts": [7]}
    ),
    "another field": refused(
        "fields: the function's 'question': Extra inputs are not permitted; a sample",
        fields=lambda **_: {"question": "x"},
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_field_is_named_with_its_place_and_the_way_out(what):
    inputs, outputs, context, options, said = REFUSED[what]
    whole = problem(inputs, outputs, context=context, **options)
    assert whole.startswith(said)
    assert said.startswith("fields: ") or re.search(r"; pass .*; or say where it is with fields=\{'\w+': KEY\}$", whole)


# --- summaries -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "context"),
    [
        (FIRST, None),
        ({"text": FIRST, "max_words": 20}, None),
        ({"original": [Document(FIRST)], "style": "terse"}, None),
        ([("user", FIRST)], None),
        (None, [Document(FIRST)]),
        ({"docs": [FIRST], "style": "terse"}, None),
    ],
)
def test_a_summarys_original_is_taken_from_where_it_stands(inputs, context):
    for outputs in (ANSWER, {"summary": ANSWER}):
        in_contexts = read(inputs, outputs, context=context, metric=SummarizationScore)
        assert (in_contexts.retrieved_contexts, in_contexts.response) == ((FIRST,), ANSWER)
        assert read(inputs, outputs, context=context, metric=AlignmentCoverage).user_input == FIRST


def test_an_original_goes_before_the_instruction_but_not_before_its_own_name():
    inputs = {"input": "Summarise.", "text": FIRST}
    for source in ("user_input", "retrieved_contexts"):  # also where the user chose the source
        assert read(inputs, ANSWER, metric=AlignmentCoverage(llm=judge(), source=source)).texts(source) == (FIRST,)
    assert read(inputs | {"user_input": SECOND}, ANSWER, metric=AlignmentCoverage).user_input == SECOND
    in_contexts = read(inputs, ANSWER, metric=SummarizationScore)
    assert (in_contexts.user_input, in_contexts.retrieved_contexts) == ("Summarise.", (FIRST,))
    for blank in (None, "  "):  # pieces are joined as the metric joins them
        assert read(blank, ANSWER, context=DOCUMENTS, metric=AlignmentCoverage).user_input == f"{FIRST}\n{SECOND}"


def test_a_source_stays_chosen_or_the_default_in_copies():
    for options, chosen in (({}, False), ({"source": "user_input"}, True)):
        metric = AlignmentCoverage(llm=Named(), **options)
        for same in (replace(metric, threshold=None), pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric)):
            assert (same.source, same.source_chosen) == ("user_input", chosen)


# --- fields= -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "whole",
    [
        Given({"q": QUESTION, "k": 2, "found": DOCUMENTS}, {"draft": AIMessage(ANSWER), "n": 1}),
        Given({"inputs": {"q": QUESTION, "k": 2}}, {"output": {"draft": ANSWER, "found": [FIRST, SECOND]}}),
        Given({"q": QUESTION}, {"draft": ANSWER}, {"found": dumpd(DOCUMENTS)}),
        Given({"q": None}, {"q": [("user", QUESTION)], "draft": ANSWER, "found": DOCUMENTS, "answer": "no"}),
        Given({"q": QUESTION, "draft": "in inputs"}, {"draft": ANSWER, "found": DOCUMENTS}),
    ],
    ids=["in inputs and outputs", "deeper", "in the reference", "None is absent", "outputs before inputs"],
)
def test_a_mapping_says_where_the_fields_are(whole):
    fields = {"user_input": "q", "response": "draft", "retrieved_contexts": "found"}
    assert read_sample(whole, Reading(NeedsAll(llm=judge()), fields)) == WHOLE


def test_a_function_says_what_the_fields_are():
    called = []

    def fields(**keywords):
        called.append(keywords)
        return {"user_input": HumanMessage(QUESTION), "retrieved_contexts": DOCUMENTS, "response": ANSWER, "id": None}

    assert read({"a": 1}, 2, {"b": 3}, [4], fields=fields) == WHOLE
    assert read(retrieved=[{"documents": DOCUMENTS}], fields=lambda **_: WHOLE) == WHOLE
    assert called == [{"inputs": {"a": 1}, "outputs": 2, "reference_outputs": {"b": 3}, "context": [4]}]
    found = read(retrieved=[{"documents": DOCUMENTS}], fields=lambda context, **_: {"retrieved_contexts": context})
    assert found.retrieved_contexts == (FIRST, SECOND), "what the retrievers found is its context"


# --- anything ------------------------------------------------------------------------------------------------------


def test_nesting_without_end_ends_and_a_field_that_nobody_needs_may_be_anything():
    assert read(b"x", 7, context=1j, metric=NeedsNothing) == Sample()
    loop = {}
    loop["output"] = loop
    several = {"answer": None, "n": 1}
    several["response"] = several
    for value in (loop, several):
        with pytest.raises(Unreadable):
            read_sample(Given(value, value, None, value), Reading(NeedsAll(llm=judge())))


WORDS = st.sampled_from(["user", "ai", "tool", "assistant", "constructor", "search", "HumanMessage"])
TEXTS = st.integers(0, 99).map("<{}>".format) | WORDS
KEYS = st.sampled_from(
    [
        *("question", "input", "answer", "output", "context", "documents", "messages", "text", "draft", "value"),
        *("type", "role", "content", "name", "artifact", "lc", "id", "kwargs", "data", "page_content", "interrupts"),
    ]
)
OBJECTS = (
    st.builds(HumanMessage, TEXTS)
    | st.builds(AIMessage, TEXTS)
    | st.builds(
        lambda text, artifact: ToolMessage(text, tool_call_id="1", name="search", artifact=artifact), TEXTS, TEXTS
    )
    | st.builds(Document, TEXTS)
)
LEAVES = st.none() | st.booleans() | st.just(1) | st.floats(allow_nan=False) | st.binary(max_size=2) | TEXTS | OBJECTS
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(KEYS | st.just(3), inner, max_size=4)
    ),
    max_leaves=12,
)


def texts_in(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (HumanMessage, AIMessage)):
        yield value.content
    elif isinstance(value, ToolMessage):
        yield from (value.content, value.artifact)
    elif isinstance(value, Document):
        yield value.page_content
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from texts_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts_in(item)


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
    before = copy.deepcopy((inputs, outputs, context))
    reading = Reading(metric(llm=judge()), fields, {"search"})
    try:
        sample = read_sample(Given(inputs, outputs, None, context), reading)
    except Unreadable as reason:
        named = re.match("user_input|retrieved_contexts|response", str(reason))
    else:
        named = True
        own = {*texts_in(inputs), *texts_in(outputs), *texts_in(context)}
        made_of = "|".join(re.escape(text) for text in own if text) or "nothing"
        for field in ("user_input", "retrieved_contexts", "response"):
            for text in sample.texts(field):  # blocks of one message, and an original's pieces, are joined
                assert re.fullmatch(f"(?:{made_of}|\n)*", text), (text, own)
    assert named
    assert repr((inputs, outputs, context)) == repr(before)


def test_what_an_agent_says_before_it_looks_is_no_answer():
    assert problem(None, agent_messages()[:-1]).startswith("response: is not in outputs (list)")
