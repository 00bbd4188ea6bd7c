"""From every form in which LangChain hands things over to the one sample that is in it."""

import copy
import itertools
import json
import re
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompt_values import ChatPromptValue
from pydantic import BaseModel, ConfigDict, Field

from ragstone import AlignmentCoverage, Sample, SummarizationScore, Turn
from ragstone.run import Run
from ragstone_langchain.arguments import Arguments
from ragstone_langchain.messages import Unreadable
from ragstone_langchain.read import FIELD_NAMES, Reading

from .samples import ANSWER, FIRST, QUESTION, SECOND, NeedsAll, NeedsNothing, judge

WHOLE = Sample(user_input=QUESTION, retrieved_contexts=[FIRST, SECOND], response=ANSWER)
DOCUMENTS = [Document(FIRST, metadata={"page": 1}), Document(SECOND)]
CALL = {"name": "search", "args": {"query": "word1"}, "id": "1", "type": "tool_call"}


def read(inputs=None, outputs=None, reference_outputs=None, context=None, retrieved=None, metric=NeedsAll, **options):
    """Read a sample, and see to it that nothing was changed on the way."""
    inside = () if retrieved is None else (Run("search", "retriever", output=retrieved),)
    whole = (inputs, outputs, reference_outputs, context)
    before = copy.deepcopy(whole)
    metric = metric(llm=judge()) if isinstance(metric, type) else metric
    try:
        return Arguments(*whole, inside).sample(metric, Reading(**options))
    finally:
        assert whole == before


def agent_messages():
    """An agent's second turn; what the first one found is no longer to the point."""
    return [
        SystemMessage("Be terse."),
        HumanMessage("Which say word9?"),
        AIMessage("", tool_calls=[CALL]),
        ToolMessage("It has word9 here.", tool_call_id="1", name="search", artifact=[Document("It has word9 here.")]),
        AIMessage("It has word9 here."),
        HumanMessage(QUESTION),
        AIMessage("Let me look.", tool_calls=[CALL]),
        ToolMessage("found", tool_call_id="1", name="search", artifact=DOCUMENTS),
        AIMessage(ANSWER),
    ]


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
    "message of blocks": HumanMessage([{"type": "text", "text": QUESTION}, {"type": "image", "url": "http://x/y"}]),
    "messages": [SystemMessage("Be terse."), HumanMessage("Hi."), AIMessage("Hello."), HumanMessage(QUESTION)],
    "a chat API's messages": [{"role": "developer", "content": "Be terse."}, {"role": "user", "content": QUESTION}],
    "prompt": ChatPromptValue(messages=[HumanMessage(QUESTION)]),
    "mapping of one pair": {"messages": ("user", QUESTION)},
    "LangSmith, a graph": {"input": {"messages": [dumpd(HumanMessage(QUESTION))]}},
    "pydantic state with a deprecated field": DeprecatedModel(question=QUESTION, old="x"),
    "an unknown mapping under one name": {"input": {"lang": "en", "n": 3}, "messages": [("user", QUESTION)]},
}
ANSWERS = {
    "text": ANSWER,
    "message of blocks": AIMessage(
        [{"type": "reasoning", "text": "Hm."}, {"type": "text", "text": "It has "}, "word1 here."]
    ),
    "last message calls a tool, too": {"messages": [("ai", "Hm."), AIMessage(ANSWER, tool_calls=[CALL])]},
    "LangGraph's invoke(version='v2')": Packed({"answer": ANSWER, "n": 3}),
    "a graph's update in messages": {"agent": {"messages": [dumpd(AIMessage(ANSWER))]}},
    "names win over messages": {"answer": ANSWER, "messages": [HumanMessage("Hi."), AIMessage("Hello.")]},
    "pydantic state with more fields than declared": DeprecatedModel(question="x", answer=ANSWER),
    "dataclass state": QuestionState("x", ANSWER),
    "in one inner mapping": {"data": {"answer": ANSWER}, "error": None, 3: "three"},
}


CONTEXTS = {
    "tuple": (FIRST, SECOND),
    "mixed": [FIRST, Document(SECOND)],
    "with scores": [(Document(FIRST), 0.9), (Document(SECOND), 0)],
    "serialised": dumpd(DOCUMENTS),
    "packed": {"output": {"documents": DOCUMENTS}},
}


def test_the_question_the_answer_and_the_contexts_are_read_from_every_form():
    for form, inputs in QUESTIONS.items():
        sample = read(inputs, {"answer": ANSWER, "context": [FIRST, SECOND]})
        assert sample.model_copy(update={"history": ()}) == WHOLE, form
        assert len(sample.history) == (2 if form == "messages" else 0)
    for form, outputs in ANSWERS.items():
        assert read(QUESTION, outputs, context=DOCUMENTS) == WHOLE, form
    for form, context in CONTEXTS.items():
        assert read(QUESTION, ANSWER, context=context) == WHOLE, form
        assert read(QUESTION, {"answer": ANSWER, "context": context}) == WHOLE, form
        assert read({"question": QUESTION, "context": context}, ANSWER) == WHOLE, form


def test_each_usual_name_is_known():
    for name in FIELD_NAMES["user_input"]:
        assert read({name: QUESTION, "lang": "en"}, ANSWER, context=DOCUMENTS) == WHOLE, name
    for name in FIELD_NAMES["response"]:
        assert read(QUESTION, {name: ANSWER, "lang": "en"}, context=DOCUMENTS) == WHOLE, name
    for name in FIELD_NAMES["retrieved_contexts"]:
        assert read(QUESTION, {"answer": ANSWER, name: DOCUMENTS}) == WHOLE, name


def test_an_agents_state_has_everything_of_its_last_turn():
    dumped = json.loads(json.dumps([message.model_dump() for message in agent_messages()]))
    earlier = (Turn(role="user", content="Which say word9?"), Turn(role="assistant", content="It has word9 here."))
    whole = WHOLE.model_copy(update={"history": earlier})
    for messages in (agent_messages(), dumpd(agent_messages()), dumped):
        assert read({"messages": [("user", QUESTION)]}, {"messages": messages}) == whole
        assert read(None, {"output": {"messages": messages, "remaining_steps": 3}}) == WHOLE
        assert read(None, messages, retriever_tools={"search"}) == whole, "of a named tool with Documents these alone"


def test_contexts_come_from_the_call_then_the_outputs_then_the_retrievers_then_the_inputs():
    places = {
        "context": [FIRST],
        "outputs": {"answer": ANSWER, "docs": ["in outputs"]},
        "retrieved": ["by the retriever"],
        "inputs": {"question": QUESTION, "docs": ["in inputs"]},
    }
    assert read(**places).retrieved_contexts == (FIRST,)
    assert read(**places | {"context": None}).retrieved_contexts == ("in outputs",)
    places |= {"context": None, "outputs": ANSWER}
    assert read(**places).retrieved_contexts == ("by the retriever",)
    assert read(**places | {"retrieved": None}).retrieved_contexts == ("in inputs",)


def searched(*tool_messages):
    return [("user", QUESTION), AIMessage("", tool_calls=[CALL]), *tool_messages, ("ai", ANSWER)]


SEARCHES = {
    "one Document": (searched(ToolMessage("found", tool_call_id="1", artifact=Document(FIRST))), (FIRST,)),
    "nothing was found": (searched(ToolMessage("No results.", tool_call_id="1", name="search", artifact=[])), ()),
    "a named tool's text": (searched(ToolMessage(FIRST, tool_call_id="1", name="search")), (FIRST,)),
    "named by the call alone": (searched(ToolMessage(FIRST, tool_call_id="1")), (FIRST,)),
    "several searches, each text once": (
        searched(
            ToolMessage("found", tool_call_id="1", artifact=DOCUMENTS),
            ToolMessage("more", tool_call_id="2", artifact=(Document(SECOND), (Document("more"), 0.1))),
            ToolMessage("2 + 2 = 4", tool_call_id="3", name="calculator", artifact={"value": 4}),
        ),
        (FIRST, SECOND, "more"),
    ),
}


def test_what_tools_found_is_contexts():
    for what, (messages, contexts) in SEARCHES.items():
        assert read(None, messages, retriever_tools={"search"}).retrieved_contexts == contexts, what


def test_other_places():
    for outputs in ({"question": QUESTION, "answer": ANSWER}, {"messages": [("user", QUESTION), ("ai", ANSWER)]}):
        for inputs in (None, {"lang": "en", "n": 2}, {"docs": [FIRST]}):  # the question is in the outputs
            assert read(inputs, outputs, context=DOCUMENTS) == WHOLE
    for context in (FIRST, Document(FIRST), {"page_content": FIRST}, (Document(FIRST), 0.5)):  # one needs no list
        assert read(QUESTION, ANSWER, context=context).retrieved_contexts == (FIRST,)
    for outputs in (DOCUMENTS, {"documents": DOCUMENTS}):  # a retriever's own
        assert read(QUESTION, outputs, metric=NeedsNothing) == WHOLE.model_copy(update={"response": None})
    # Nothing retrieved is known from not said.
    assert "retrieved_contexts" in read(QUESTION, {"answer": ANSWER, "context": []}).model_fields_set
    assert read(QUESTION, {"answer": ANSWER, "docs": []}, retrieved=[FIRST]).retrieved_contexts == ()


API_CALLS = {"type": "ai", "content": " ", "additional_kwargs": {"tool_calls": [{"id": "1"}]}}
NO_TEXT = {"answer": ANSWER, "docs": [{"page_content": 7}]}
TOOL_SAID = searched(ToolMessage(FIRST, tool_call_id="1", name="search"))
TOOL_FAILED = searched(ToolMessage("TimeoutError", tool_call_id="1", name="search", status="error"))
CHOSEN = AlignmentCoverage(llm=judge(), source="retrieved_contexts")
# What is handed over (inputs, outputs, contexts), how it is read, and what is said.
REFUSED = [
    (None, ANSWER, DOCUMENTS, {}, "user_input: is not in inputs (None) or outputs (str)"),
    ({"a": FIRST, "b": SECOND}, ANSWER, DOCUMENTS, {}, "user_input: is not in inputs (dict with 'a', 'b')"),
    ({"lang": "en", "n": 2}, ANSWER, DOCUMENTS, {}, "user_input: is not in inputs (dict with 'lang', 'n')"),
    (QUESTION, {"html": ANSWER, "draft": ANSWER}, DOCUMENTS, {}, "response: is not in outputs (dict with"),
    (QUESTION, {"prompt": QUESTION, "n": 1}, DOCUMENTS, {}, "response: is not in outputs (dict with"),
    (QUESTION, {"error": "rate limited"}, DOCUMENTS, {}, "response: is not in outputs (dict with"),
    (QUESTION, {"thread_id": "u-42"}, DOCUMENTS, {}, "response: is not in outputs (dict with"),
    (None, QuestionState(QUESTION), DOCUMENTS, {}, "response: outputs['answer'] is None, not text"),
    (QUESTION, {"answer": None, "n": 1}, DOCUMENTS, {}, "response: outputs['answer'] is None, not text"),
    (QUESTION, {"a": {"answer": ANSWER}, "b": {"answer": "x"}}, DOCUMENTS, {}, "response: is not in outputs (dict"),
    ({"file_path": "/data/x.pdf"}, ANSWER, DOCUMENTS, {}, "user_input: is not in inputs (dict with 'file_path')"),
    (None, searched()[:-1], DOCUMENTS, {}, "response: is not in outputs (list)"),
    (None, agent_messages()[:-1], DOCUMENTS, {}, "response: is not in outputs (list)"),
    (None, [("ai", "Hello."), ("user", QUESTION)], DOCUMENTS, {}, "response: is not in outputs (list)"),
    (None, [("user", QUESTION), API_CALLS], DOCUMENTS, {}, "response: is not in outputs"),
    (
        QUESTION,
        {"answer": AIMessage("", tool_calls=[CALL])},
        DOCUMENTS,
        {},
        "response: outputs['answer'] is AIMessage, not text",
    ),
    (QUESTION, {"output": 3.5}, DOCUMENTS, {}, "response: outputs['output'] is float, not text"),
    (QUESTION, {"answer": ANSWER, "reference_contexts": [FIRST]}, None, {}, "retrieved_contexts: is not in context"),
    ({"question": QUESTION, "text": FIRST}, ANSWER, None, {}, "retrieved_contexts: is not in context"),
    (QUESTION, ANSWER, 7, {}, "retrieved_contexts: context is int, not text or a Document"),
    (QUESTION, ANSWER, [FIRST, None], {}, "retrieved_contexts: context[1] is None, not text or a Document"),
    (QUESTION, ANSWER, {"docs": [7]}, {}, "retrieved_contexts: context['docs'][0] is int, not"),
    (QUESTION, NO_TEXT, None, {}, "retrieved_contexts: outputs['docs'][0] is dict, not text or a Document"),
    (QUESTION, TOOL_SAID, None, {"retriever_tools": ["other"]}, "retrieved_contexts: is not in context (None)"),
    (QUESTION, TOOL_FAILED, None, {"retriever_tools": ["search"]}, "retrieved_contexts: is not in "),
    (QUESTION, ANSWER, None, {"metric": CHOSEN}, "retrieved_contexts: is not in "),
    (
        QUESTION,
        {"x": 1},
        DOCUMENTS,
        {"fields": {"response": "draft"}},
        "response: fields= names the key 'draft', which",
    ),
    (QUESTION, {"draft": [1]}, DOCUMENTS, {"fields": {"response": "draft"}}, "response: outputs['draft'] is list, "),
    (QUESTION, ANSWER, None, {"fields": lambda *_: {}["x"]}, "fields: the function raised KeyError: 'x'"),
    (QUESTION, ANSWER, None, {"fields": lambda *_: {"response": 7}}, "fields: the function's 'response' is int"),
    (
        QUESTION,
        ANSWER,
        None,
        {"fields": lambda *_: {"question": "x"}},
        "fields: the function's question: write user_input",
    ),
]


@pytest.mark.parametrize(("inputs", "outputs", "context", "options", "said"), REFUSED, ids=itertools.count())
def test_what_is_no_field_is_named_with_its_place_and_the_way_out(inputs, outputs, context, options, said):
    with pytest.raises(Unreadable) as error:
        read(inputs, outputs, context=context, **options)
    assert str(error.value).startswith(said)
    way_out = r"; pass .*; or name its key with fields=\{'\w+': KEY\}$"
    assert said.startswith("fields: ") or re.search(way_out, str(error.value))


@pytest.mark.parametrize(
    ("inputs", "context"),
    [
        (FIRST, None),
        ({"text": FIRST, "max_words": 20}, None),
        ({"original": [Document(FIRST)], "style": "terse"}, None),
        (None, [Document(FIRST)]),
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


@pytest.mark.parametrize(
    "whole",
    [
        Arguments({"q": QUESTION, "k": 2, "found": DOCUMENTS}, {"draft": AIMessage(ANSWER), "n": 1}),
        Arguments({"q": QUESTION}, {"draft": ANSWER}, {"found": dumpd(DOCUMENTS)}),
        Arguments({"q": None}, {"q": [("user", QUESTION)], "draft": ANSWER, "found": DOCUMENTS, "answer": "no"}),
        Arguments({"q": QUESTION, "draft": "in inputs"}, {"output": {"draft": ANSWER, "found": DOCUMENTS}}),
    ],
    ids=["in inputs and outputs", "in the reference", "None is absent", "outputs before inputs, deeper"],
)
def test_a_mapping_says_where_the_fields_are(whole):
    fields = {"user_input": "q", "response": "draft", "retrieved_contexts": "found"}
    assert whole.sample(NeedsAll(llm=judge()), Reading(fields)) == WHOLE


def test_a_function_says_what_the_fields_are():
    called = []

    def fields(inputs, outputs):
        called.append((inputs, outputs))
        return {"user_input": HumanMessage(QUESTION), "retrieved_contexts": DOCUMENTS, "response": ANSWER, "id": None}

    assert read({"a": 1}, 2, {"b": 3}, [4], fields=fields) == WHOLE
    assert called == [({"a": 1}, 2)]
    assert read(fields=lambda inputs, outputs: WHOLE) == WHOLE
    for found in ({"context": DOCUMENTS}, {"retrieved": [FIRST, SECOND]}):  # what it does not say is read as always
        assert read(QUESTION, {"told": ANSWER}, **found, fields=lambda _, told: {"response": told["told"]}) == WHOLE


def test_nesting_without_end_ends_and_a_field_that_nobody_needs_may_be_anything():
    assert read(b"x", 7, context=1j, metric=NeedsNothing) == Sample()
    loop = {}
    loop["output"] = loop
    several = {"answer": None, "n": 1}
    several["response"] = several
    for value in (loop, several):
        with pytest.raises(Unreadable):
            Arguments(value, value, None, value).sample(NeedsAll(llm=judge()), Reading())


ROLES = ["user", "ai", "tool", "assistant", "constructor", "search", "HumanMessage"]
TEXTS = st.integers(0, 99).map("<{}>".format) | st.sampled_from(ROLES)
NAMES = "question input answer output context documents messages text draft value type role content name artifact lc"
KEYS = st.sampled_from([*NAMES.split(), "id", "kwargs", "data", "page_content", "interrupts"])
FOUND = st.builds(lambda text: ToolMessage(text, tool_call_id="1", name="search", artifact=text), TEXTS)
OBJECTS = st.builds(HumanMessage, TEXTS) | st.builds(AIMessage, TEXTS) | st.builds(Document, TEXTS) | FOUND
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
        sample = arguments.sample(metric(llm=judge()), Reading(fields, {"search"}))
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
