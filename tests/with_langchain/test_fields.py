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
from ragstone_langchain.messages import text_of
from ragstone_langchain.places import USUAL_NAMES
from ragstone_langchain.values import Unreadable

from .samples import ANSWER, FIRST, QUESTION, SECOND, NeedsAll, NeedsNothing, judge, relevancy


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


QUESTIONS = {
    "text": QUESTION,
    "message of blocks": HumanMessage([{"type": "text", "text": QUESTION}, {"type": "image", "url": "http://x/y"}]),
    "messages": [SystemMessage("Be terse."), HumanMessage("Hi."), AIMessage("Hello."), HumanMessage(QUESTION)],
    "pairs from JSON": [["system", "Be terse."], ["human", QUESTION]],
    "a chat API's messages": [{"role": "developer", "content": "Be terse."}, {"role": "user", "content": QUESTION}],
    "prompt": ChatPromptValue(messages=[HumanMessage(QUESTION)]),
    "mapping of one pair": {"messages": ("user", QUESTION)},
    "mapping of texts as messages": {"messages": ["Hi.", QUESTION]},
    "LangSmith, a traced function": {"inputs": {"question": QUESTION}},
    "LangSmith, a traced function of one text": {"topic": QUESTION},
    "LangSmith, a graph": {"input": {"messages": [dumpd(HumanMessage(QUESTION))]}},
    "saved message": message_to_dict(HumanMessage(QUESTION)),
    "dumped message": HumanMessage(QUESTION).model_dump(),
    "pydantic state with a deprecated field": DeprecatedModel(question=QUESTION, old="x"),
    "dataclass state": QuestionState(QUESTION),
    "its name is None first": {"user_input": None, "question": QUESTION},
    "several names, the first counts": {"query": "rewritten", "question": QUESTION, "input": "more"},
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
    "another role": ChatMessage(ANSWER, role="bot"),
    "LangSmith, a message": AIMessage(ANSWER).model_dump(),
    "LangSmith, messages under output": {"output": [HumanMessage(QUESTION), AIMessage(ANSWER)]},
    "LangSmith, a state under output": {"output": {"question": "x", "answer": ANSWER}},
    "a graph's update in messages": {"agent": {"messages": [dumpd(AIMessage(ANSWER))]}},
    "names win over messages": {"answer": ANSWER, "messages": [HumanMessage("Hi."), AIMessage("Hello.")]},
    "pydantic state with more fields than declared": DeprecatedModel(question="x", answer=ANSWER),
    "dataclass state": QuestionState("x", ANSWER),
    "a chat API's message": {"role": "assistant", "content": ANSWER},
    "alone beside None and what has no name": {"draft": ANSWER, "error": None, 3: "three"},
}


@pytest.mark.parametrize("form", QUESTIONS)
def test_the_question_is_read_from_every_form_of_inputs(form):
    assert read(QUESTIONS[form], {"answer": ANSWER, "context": [FIRST, SECOND]}) == WHOLE


@pytest.mark.parametrize("form", ANSWERS)
def test_the_answer_is_read_from_every_form_of_outputs(form):
    assert read(QUESTION, ANSWERS[form], context=DOCUMENTS) == WHOLE


def test_each_usual_name_is_known():
    for name in USUAL_NAMES["user_input"]:
        assert read({name: QUESTION, "lang": "en"}, ANSWER, context=DOCUMENTS) == WHOLE, name
    for name in USUAL_NAMES["response"]:
        assert read(QUESTION, {name: ANSWER, "lang": "en"}, context=DOCUMENTS) == WHOLE, name
    for name in USUAL_NAMES["retrieved_contexts"]:
        assert read(QUESTION, {"answer": ANSWER, name: DOCUMENTS}) == WHOLE, name


@pytest.mark.parametrize("inputs", [None, {"lang": "en", "n": 2}, {"docs": [FIRST]}, {"messages": []}])
def test_a_question_that_is_not_in_inputs_is_read_from_the_outputs(inputs):
    for outputs in (
        {"question": QUESTION, "answer": ANSWER},
        {"messages": [("user", QUESTION), ("ai", ANSWER)]},
        {"output": {"input": QUESTION, "answer": ANSWER}},
    ):
        assert read(inputs, outputs, context=DOCUMENTS) == WHOLE


NOWHERE = {
    "an answer alone": (None, ANSWER, "user_input: is not in inputs (None) or outputs (str)"),
    "an answer under its name": (None, {"answer": ANSWER}, "user_input: is not in inputs (None) or outputs (dict with"),
    "an answer in messages": (None, [("ai", ANSWER)], "user_input: is not in inputs (None) or outputs (list)"),
    "contexts alone": ({"context": FIRST}, ANSWER, "user_input: is not in inputs (dict with 'context')"),
    "a reference alone": ({"reference": ANSWER}, ANSWER, "user_input: is not in inputs (dict with 'reference')"),
    "a question alone": (None, {"question": QUESTION}, "response: is not in outputs (dict with 'question')"),
    "a state's question alone": (None, QuestionModel(question=QUESTION), "response: is not in outputs (QuestionModel"),
    "no AI message after a tool's": (
        None,
        [("user", QUESTION), AIMessage("", tool_calls=[CALL]), ToolMessage("x", tool_call_id="1")],
        "response: is not in outputs (list)",
    ),
    "no AI message in the last turn": (
        None,
        [("user", "Hi."), ("ai", "Hello."), ("user", QUESTION)],
        "response: is not in outputs (list)",
    ),
    "a call alone": (None, [("user", QUESTION), AIMessage(" ", tool_calls=[CALL])], "response: is not in outputs"),
    "a chat API's call": (
        None,
        [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
        ],
        "response: is not in outputs",
    ),
    "a block's call": (
        None,
        [("user", QUESTION), {"role": "assistant", "content": [{"type": "tool_use", "name": "f"}]}],
        "response: is not in outputs",
    ),
    "an older call": (
        None,
        [("user", QUESTION), {"type": "ai", "content": "", "additional_kwargs": {"tool_calls": [{"id": "1"}]}}],
        "response: is not in outputs",
    ),
    "a call under a name": (
        QUESTION,
        {"answer": AIMessage("", tool_calls=[CALL])},
        "response: outputs['answer'] is a message that only calls tools, not an answer; pass ",
    ),
    "a number": (QUESTION, {"output": 3.5}, "response: outputs['output'] is float, not text"),
    "bytes": (QUESTION, b"x", "response: outputs is bytes, not text"),
    "a Document": (QUESTION, Document("x"), "response: outputs is Document, not text"),
    "a list of numbers": (QUESTION, {"answer": [1, 2]}, "response: outputs['answer'] is list, not text"),
    "a class": (QUESTION, AIMessage, "response: outputs is "),
}


@pytest.mark.parametrize("what", NOWHERE)
def test_no_field_stands_in_for_another_and_what_is_none_is_named_with_its_place(what):
    inputs, outputs, said = NOWHERE[what]
    whole = problem(inputs, outputs, context=DOCUMENTS)
    assert whole.startswith(said)
    assert re.search(r"; pass (in|out)puts as text.*fields=\{'(user_input|response)': KEY\}$", whole)


def test_text_of_takes_what_every_version_of_langchain_core_has():
    class Older:  # in langchain-core 0.3 `text` was a method
        content = "So."

        def text(self):
            return self.content

    assert text_of(Older()) == text_of(AIMessage("So.")) == AIMessage("So.").text == "So."


# --- the contexts ------------------------------------------------------------------------------------------------

CONTEXTS = {
    "tuple": (FIRST, SECOND),
    "mixed": [FIRST, Document(SECOND)],
    "with scores": [(Document(FIRST), 0.9), (Document(SECOND), 0)],
    "with scores from JSON": [[{"page_content": FIRST}, 0.9], [{"page_content": SECOND}, 0.1]],
    "serialised": dumpd(DOCUMENTS),
    "named inside": {"documents": DOCUMENTS, "k": 2},
    "packed": {"output": {"documents": DOCUMENTS}},
    "an agent's messages": {"messages": agent_messages()},
    "a tool's message": ToolMessage("found", tool_call_id="1", artifact=DOCUMENTS),
}


@pytest.mark.parametrize("form", CONTEXTS)
def test_contexts_are_read_from_every_form(form):
    context = CONTEXTS[form]
    assert read(QUESTION, ANSWER, context=context) == WHOLE
    assert read(QUESTION, {"answer": ANSWER, "context": context}) == WHOLE
    assert read({"question": QUESTION, "context": context}, ANSWER) == WHOLE


def test_one_context_needs_no_list_and_none_found_is_known_from_not_said():
    for context in (FIRST, Document(FIRST), {"page_content": FIRST}, (Document(FIRST), 0.5)):
        assert read(QUESTION, ANSWER, context=context).retrieved_contexts == (FIRST,)
    assert "retrieved_contexts" in read(QUESTION, {"answer": ANSWER, "context": []}).model_fields_set
    assert read(QUESTION, {"answer": ANSWER, "docs": []}, retrieved=[[Document(FIRST)]]).retrieved_contexts == ()
    said = problem(QUESTION, {"answer": ANSWER, "reference_contexts": [FIRST]})  # what should have been retrieved
    assert said.startswith("retrieved_contexts: is not in context (None) or inputs (str) or outputs (dict with 'answ")


def test_a_retrievers_own_output_is_contexts():
    for outputs in (DOCUMENTS, {"output": DOCUMENTS}, {"documents": DOCUMENTS}):
        sample = read(QUESTION, outputs, metric=NeedsNothing)
        assert (sample.retrieved_contexts, sample.response) == ((FIRST, SECOND), None)


@pytest.mark.parametrize(
    ("context", "said"),
    [
        (7, "context is int, not texts or Documents"),
        ({"pages": 3}, "context is dict with 'pages', not"),
        ({}, "context is an empty dict, not"),
        ([FIRST, None], "context[1] is None, not text or a Document"),
        ([{"text": FIRST}], "context[0] is dict with 'text', not"),
        ([HumanMessage("Hi.")], "context[0] is HumanMessage, not"),
        ([{"page_content": 7}], "context[0]: its page_content is int, not text"),
        ({"docs": [FIRST, 7]}, "context['docs'][1] is int, not"),
    ],
)
def test_what_is_no_context_is_named_with_its_place(context, said):
    whole = problem(QUESTION, ANSWER, context=context)
    assert whole.startswith(f"retrieved_contexts: {said}")
    assert "; pass context as texts or Documents" in whole


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


# --- an agent's conversation ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["objects", "serialised", "saved", "from JSON"])
def test_an_agents_state_has_everything_of_its_last_turn(form):
    messages = {
        "objects": agent_messages(),
        "serialised": dumpd(agent_messages()),
        "saved": [message_to_dict(message) for message in agent_messages()],
        "from JSON": json.loads(json.dumps([message.model_dump() for message in agent_messages()])),
    }[form]
    assert read({"messages": [("user", QUESTION)]}, {"messages": messages}) == WHOLE
    assert read(None, {"output": {"messages": messages, "remaining_steps": 3}}) == WHOLE
    assert read(None, messages, retriever_tools={"search"}) == WHOLE, "of a named tool with Documents these alone"


def test_a_tool_without_documents_retrieves_only_if_it_is_named():
    text = ToolMessage(FIRST, tool_call_id="1", name="search")
    state = {"messages": agent_messages(text)}
    assert read(None, state, retriever_tools=["search"]).retrieved_contexts == (FIRST,)
    assert problem(None, state, retriever_tools=["other"]).startswith("retrieved_contexts: is not in context (None)")
    assert "is named in retriever_tools" in problem(None, state)


def test_a_named_tool_that_found_nothing_is_known_from_one_that_was_not_run():
    nothing = ToolMessage("No results.", tool_call_id="1", name="search", artifact=[])
    sample = read(None, {"messages": agent_messages(nothing)}, retriever_tools={"search"})
    assert sample.retrieved_contexts == ()


def test_a_tools_error_is_no_context():
    failed = agent_messages(ToolMessage("TimeoutError", tool_call_id="1", name="search", status="error"))
    for messages in (failed, dumpd(failed)):
        assert problem(None, messages, retriever_tools={"search"}).startswith("retrieved_contexts: is not in ")


@pytest.mark.parametrize("role", ["object", "mapping"])
def test_a_tool_s_message_without_a_name_is_known_by_its_call(role):
    messages = [
        ("user", QUESTION),
        AIMessage("", tool_calls=[CALL]),
        ToolMessage(FIRST, tool_call_id="1"),
        ("ai", ANSWER),
    ]
    if role == "mapping":
        call = {"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
        messages[1] = {"role": "assistant", "content": None, "tool_calls": [call]}
        messages[2] = {"role": "tool", "tool_call_id": "1", "content": FIRST}
    assert read(None, messages, retriever_tools={"search"}).retrieved_contexts == (FIRST,)


def test_a_document_without_text_is_named_wherever_it_stands():
    broken = {"page_content": 7}
    for outputs in (
        [broken],
        {"output": [broken]},
        {"docs": [broken]},
        agent_messages(ToolMessage("", tool_call_id="1", artifact=[broken])),
    ):
        assert "its page_content is int, not text" in problem(QUESTION, outputs, metric=relevancy())


def test_several_searches_of_one_turn_count_each_text_once():
    messages = agent_messages()
    again = ToolMessage("more", tool_call_id="2", artifact=(Document(SECOND), {"score": 1}, (Document("more"), 0.1)))
    one = ToolMessage("one", tool_call_id="4", artifact=Document("one"))
    other = ToolMessage("2 + 2 = 4", tool_call_id="3", name="calculator", artifact={"value": 4})
    assert read(None, [*messages[:-1], again, other, one, messages[-1]]).retrieved_contexts == (
        FIRST,
        SECOND,
        "more",
        "one",
    )


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


@pytest.mark.parametrize(
    ("source", "inputs", "context"),
    [
        ("retrieved_contexts", {"question": QUESTION}, None),
        ("user_input", None, [FIRST]),
    ],
)
def test_a_source_that_the_user_chose_is_filled_from_nowhere_else(source, inputs, context):
    metric = AlignmentCoverage(llm=judge(), source=source)
    for same in (metric, replace(metric, threshold=None), pickle.loads(pickle.dumps(replace(metric, llm=Named())))):
        said = problem(inputs, ANSWER, context=context, metric=same)
        assert said.startswith(f"{source}: is not in ")


@pytest.mark.parametrize("source", ["user_input", "retrieved_contexts"])
def test_a_source_that_the_user_chose_is_read_under_the_usual_names_of_an_original(source):
    metric = AlignmentCoverage(llm=judge(), source=source)
    assert read({"original": FIRST, "question": "Short?"}, ANSWER, metric=metric).texts(source) == (FIRST,)


def test_the_default_source_stays_the_default_in_copies():
    metric = AlignmentCoverage(llm=Named())
    for same in (replace(metric, threshold=None), pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric)):
        assert (same.source, read(None, ANSWER, context=FIRST, metric=same).user_input) == ("user_input", FIRST)


def test_an_original_in_pieces_is_joined_as_the_metric_joins_it():
    assert read(None, ANSWER, context=DOCUMENTS, metric=AlignmentCoverage).user_input == f"{FIRST}\n{SECOND}"
    blank = read("  ", ANSWER, context=DOCUMENTS, metric=AlignmentCoverage)
    assert blank.user_input == f"{FIRST}\n{SECOND}"


def test_an_original_goes_before_the_instruction_but_not_before_its_own_name():
    inputs = {"input": "Summarise.", "text": FIRST}
    assert read(inputs, ANSWER, metric=AlignmentCoverage).user_input == FIRST
    assert read(inputs | {"user_input": SECOND}, ANSWER, metric=AlignmentCoverage).user_input == SECOND
    in_contexts = read(inputs, ANSWER, metric=SummarizationScore)
    assert (in_contexts.user_input, in_contexts.retrieved_contexts) == ("Summarise.", (FIRST,))
    for question in ({"text": FIRST, "n": 1}, {"question": QUESTION, "text": FIRST}):  # of no summary
        assert "is not in" in problem(question, ANSWER)


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


def test_a_mapped_key_that_is_nowhere_is_named_with_the_keys_that_are_there():
    said = problem({"q": QUESTION}, {"draft": ANSWER, "n": 1}, metric=NeedsNothing, fields={"response": "final"})
    assert said.startswith(
        "response: the key 'final', which fields= names, is not in outputs (dict with 'draft', 'n'), "
        "inputs (dict with 'q'), reference_outputs (None); pass "
    )
    said = problem(FIRST, ANSWER, metric=SummarizationScore, fields={"retrieved_contexts": "pages"})
    assert said.startswith("retrieved_contexts: the key 'pages'"), "and not made up for from elsewhere"
    said = problem(None, {"draft": [1, 2]}, metric=NeedsNothing, fields={"response": "draft"})
    assert said.startswith("response: outputs['draft'] is list, not text")


def test_a_messages_or_documents_own_attributes_are_no_fields():
    for outputs in (
        AIMessage(ANSWER, name="bot"),
        Document(FIRST, id="bot"),
        AIMessage(ANSWER, name="bot").model_dump(),
    ):
        said = problem(None, outputs, metric=NeedsNothing, fields={"response": "name"})
        assert said.startswith("response: the key 'name', which fields= names, is not in outputs (")


@pytest.mark.parametrize(
    "made",
    [
        WHOLE,
        {
            "user_input": HumanMessage(QUESTION),
            "retrieved_contexts": DOCUMENTS,
            "response": AIMessage(ANSWER),
            "id": None,
        },
    ],
    ids=["a sample", "a mapping"],
)
def test_a_function_says_what_the_fields_are(made):
    called = []

    def fields(**keywords):
        called.append(keywords)
        return made

    assert read({"a": 1}, 2, {"b": 3}, [4], fields=fields) == WHOLE
    assert called == [{"inputs": {"a": 1}, "outputs": 2, "reference_outputs": {"b": 3}, "context": [4]}]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (lambda **_: {}["x"], "fields: the function raised KeyError: 'x'"),
        (lambda **_: None, "fields: the function returned None; return a Sample or a mapping of its fields"),
        (lambda **_: {"response": 7}, "fields: the function's 'response' is int, not text"),
        (lambda **_: {"retrieved_contexts": [7]}, "fields: the function's 'retrieved_contexts'[0] is int, not"),
        (lambda **_: {"question": "x"}, "fields: the function's 'question': Extra inputs are not permitted; a sample"),
    ],
)
def test_what_is_wrong_with_a_function_is_said(fields, said):
    assert problem(QUESTION, ANSWER, fields=fields).startswith(said)


def test_a_function_gets_what_the_retrievers_found_as_context():
    found = read(retrieved=[{"documents": DOCUMENTS}], fields=lambda context, **_: {"retrieved_contexts": context})
    assert found.retrieved_contexts == (FIRST, SECOND)


# --- what cannot be read -------------------------------------------------------------------------------------------


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
