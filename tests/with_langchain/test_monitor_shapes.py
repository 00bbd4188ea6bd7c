"""What a person would read is the sample: structured answers, conversations, contexts that a function found, ids."""

import asyncio
import dataclasses
import sys
import threading
import uuid

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tools import tool
from langsmith import RunTree, traceable, tracing_context
from pydantic import BaseModel

import ragstone
from ragstone_langchain import MonitorHandler, RagEvaluator, contexts
from ragstone_langchain.arguments import Arguments
from ragstone_langchain.read import Reading

from ..support.noting import Noting  # noqa: TID252
from .monitored import (
    ANSWER,
    FIRST,
    FOUND,
    PROMPT,
    QUESTION,
    THIRD,
    WHOLE,
    Searching,
    joined,
    parts,
    rag,
    sample_of,
    says,
)
from .samples import NeedsAll, NeedsNothing, judge
from .ways import abatch, ainvoke, astream_events, batch, invoke, named, stream

pytestmark = pytest.mark.usefixtures("offline")
DOCUMENTS = [Document(text) for text in FOUND]
in_async_code = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python 3.10 keeps the context from what is awaited"
)


def turns(sample):
    return [(turn.role, turn.content) for turn in sample.history]


def offline(inputs, outputs):
    """The sample that an evaluator reads."""
    return Arguments(inputs, outputs).sample(NeedsNothing(llm=judge()), Reading())


def heard(monitor, **options):
    return {"callbacks": [MonitorHandler(monitor, **options)]}


def gives(state, asked=QUESTION):
    """A chain that ends with this state; the sample that comes of it."""
    return sample_of(RunnableLambda(lambda _: state), asked)


# --- question and answer ----------------------------------------------------------------------------------------------


class Cited(BaseModel):
    answer: str
    sources: list[int] = [1]


class Place(BaseModel):
    city: str
    people: int


@dataclasses.dataclass
class Note:
    note: str


STRUCTURED = {
    "a named text": (Cited(answer=ANSWER), ANSWER),
    "an only text": (Note(ANSWER), ANSWER),
    "several": (Place(city="Bath", people=94_000), '{"city": "Bath", "people": 94000}'),
    "a mapping": ({"city": "Bath", "people": 94_000}, '{"city": "Bath", "people": 94000}'),
    "a text": (ANSWER, ANSWER),
    "a list": ([Place(city="Bath", people=1)], '[{"city": "Bath", "people": 1}]'),
}


@pytest.mark.parametrize("shape", STRUCTURED)
def test_a_structured_answer_is_read_as_a_person_would(shape) -> None:
    answer, read = STRUCTURED[shape]
    call = AIMessage("", tool_calls=[{"name": "X", "args": {}, "id": "1"}])
    by_tool = [HumanMessage(QUESTION), call, ToolMessage("Returning.", tool_call_id="1")]
    by_provider = [HumanMessage(QUESTION), AIMessage('{"answer": "as JSON"}')]
    for messages in (by_tool, by_provider):
        state = {"messages": messages, "structured_response": answer}
        assert parts(gives(state, {"messages": messages[:1]})) == (QUESTION, (), read)
        assert parts(offline(None, state)) == (QUESTION, (), read)
    assert parts(gives({"raw": call, "parsed": answer, "parsing_error": None}))[2] == read
    texts = {"messages": [HumanMessage(QUESTION), AIMessage("In words.")], "structured_response": answer}
    assert gives(texts).response == "In words.", "what was said last counts"


def test_a_model_that_a_chain_returns_is_an_answer_and_a_state_is_none() -> None:
    assert gives(Place(city="Bath", people=1)).response == '{"city": "Bath", "people": 1}'
    assert gives({"answer": Place(city="Bath", people=1), "n": 1}).response == '{"city": "Bath", "people": 1}'

    class State(BaseModel):
        question: str
        title: str
        n: int

    monitor = Noting()
    RunnableLambda(lambda _: State(question=QUESTION, title="x", n=1)).invoke(QUESTION, heard(monitor))
    assert (monitor.skipped, monitor.names) == ({"no_answer": 1}, [("n", "question", "title")])


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        *(({name: QUESTION, "x": "a"}, {"topic": QUESTION, "reply": ANSWER}) for name in ("request", "topic")),
        ({"data": {"question": QUESTION}, "id": "7"}, {"data": {"answer": ANSWER}, "request_id": "r-1"}),
        ({"input": {"content": QUESTION}}, {"answer": {"text": ANSWER, "sources": ["x"]}}),
        ({"input": {"message": QUESTION, "lang": "en"}}, {"output": {"reply": ANSWER, "x": "y"}}),
        ({"messages": [("user", QUESTION)], "topic": "billing"}, {"messages": [("user", QUESTION), ("ai", ANSWER)]}),
        ({"question": QUESTION, "text": "x"}, {"question": "x", "answer": ANSWER}),
        (("user", QUESTION), ("ai", ANSWER)),
        ([{"role": "user", "content": QUESTION}], {"role": "assistant", "content": ANSWER}),
    ],
)
def test_names(asked, answered) -> None:
    assert parts(gives(answered, asked)) == (QUESTION, (), ANSWER)


BLOCK = {"type": "text", "text": "First."}
SAID = {
    "paragraphs": ([BLOCK, {"type": "text", "text": "Second."}], "First.\n\nSecond."),
    "an open end": ([{"type": "text", "text": "First. "}, {"type": "text", "text": "Second."}], "First. Second."),
    "a citation": ([{"type": "text", "text": "It is blue"}, {"type": "text", "text": ". So."}], "It is blue. So."),
    "a cut word": ([{"type": "text", "text": "Fir"}, {"type": "text", "text": "st."}], "First."),
    "thoughts": ([{"type": "reasoning", "reasoning": "Hm."}, BLOCK, {"type": "thinking", "thinking": "x"}], "First."),
    "in the middle": ("Well. <think>Hm.</think> First.", "Well. First."),
    "inline": ("<think>Hm.\nSo?</think>\n\nFirst.", "First."),
    "Mistral's": ("[THINK]Hm.[/THINK]First.", "First."),
    "opened unseen": ("Hm, so?</think>\n\nFirst.", "First."),
    "a tag in words": ("Write `<think>` and `</think>`.", "Write `<think>` and `</think>`."),
}


@pytest.mark.parametrize("shape", SAID)
def test_the_answer_is_what_was_shown(shape) -> None:
    content, read = SAID[shape]
    assert gives(AIMessage(content)).response == read
    if isinstance(content, str):
        assert gives(content).response == read
        assert gives({"answer": content, "n": 1}).response == read


def test_the_pieces_of_a_stream_are_one_text_and_its_blocks_are_not() -> None:
    def said(*texts, **more):
        return sum(
            (AIMessageChunk([{"type": "text", "text": text, **more}]) for text in texts[1:]),
            AIMessageChunk([{"type": "text", "text": texts[0], **more}]),
        )

    assert gives(said("obj", ".", "Method")).response == "obj.Method"
    assert gives(said("obj.", "Method", index=0)).response == "obj.Method"
    assert gives(said("First.", index=0) + said("Second.", index=1)).response == "First.\n\nSecond."


# --- contexts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["documents", "context", "docs", "retrieved_contexts"])
def test_what_a_state_holds_in_the_end_counts_also_when_it_is_empty_live_and_offline(name) -> None:
    def chain(kept):
        return RunnablePassthrough.assign(**{name: (lambda s: s["question"]) | Searching()}) | (
            lambda state: {**state, name: kept, "answer": ANSWER}
        )

    for kept, texts in (([], ()), ([*DOCUMENTS, *DOCUMENTS], (*FOUND, *FOUND)), ([FIRST], (FIRST,))):
        asked = {"question": QUESTION}
        sample = sample_of(chain(kept), asked)
        assert parts(sample) == (QUESTION, texts, ANSWER)
        state = chain(kept).invoke(asked)
        assert offline(asked, state).retrieved_contexts == texts
        metric = NeedsAll(llm=judge())
        said = RagEvaluator(metric)(inputs=asked, outputs=state)["metadata"]["unscored"]
        assert said == (None if texts else metric.score(sample).reason) == (None if texts else "empty_input")


def test_of_a_retriever_s_result_that_cannot_be_read_whole_nothing_is_a_context() -> None:
    class Odd(Searching):
        def _get_relevant_documents(self, query, *, run_manager):
            return [DOCUMENTS[0], 7, DOCUMENTS[1]]

    monitor = Noting()
    (Odd() | (lambda _: ANSWER)).invoke(QUESTION, {"callbacks": [MonitorHandler(monitor)]})
    assert "retrieved_contexts" not in monitor.samples[0].model_fields_set
    assert [str(error) for error in monitor.errors] == ["a retriever's result[1] is int, not text or a Document"]


def found(asked):
    return joined(contexts(DOCUMENTS))


@tool
def lookup(query: str) -> str:
    """Look something up."""
    return joined(contexts(DOCUMENTS))


async def found_later(asked):
    return joined(await asyncio.to_thread(contexts, DOCUMENTS))


NAMED = {
    "in a function": lambda: {"context": found, "question": RunnablePassthrough()} | PROMPT | says(ANSWER),
    "in the only function": lambda: RunnableLambda(lambda q: found(q) and ANSWER),
    "in a tool": lambda: RunnableLambda(lambda q: lookup.invoke(q) and ANSWER),
    "instead of what a retriever found": lambda: Searching(texts=(THIRD,)) | found | (lambda _: ANSWER),
    "twice": lambda: RunnableLambda(lambda q: contexts(DOCUMENTS[0]) and contexts([(DOCUMENTS[1], 0.5)]) and ANSWER),
    "beside another": lambda: RunnableParallel(a=found, b=lambda _: ANSWER) | (lambda both: both["b"]),
    "as texts": lambda: RunnableLambda(lambda q: contexts(list(FOUND)) and ANSWER),
}


@pytest.mark.parametrize("way", [invoke, stream, batch, ainvoke, abatch, astream_events], ids=named)
@pytest.mark.parametrize("shape", NAMED)
def test_contexts_that_a_function_names(shape, way) -> None:
    if sys.version_info < (3, 11) and way.__name__[0] == "a":
        pytest.skip("Python 3.10 keeps the context from what is awaited")
    assert parts(sample_of(NAMED[shape](), way=way)) == WHOLE


@in_async_code
def test_contexts_that_an_async_function_names_in_a_thread() -> None:
    assert parts(sample_of(RunnableLambda(found_later) | (lambda _: ANSWER), way=ainvoke)) == WHOLE


def test_contexts_are_for_all_that_follow_the_run_and_come_back_whatever_they_are(caplog) -> None:
    one, other = Noting(), Noting()
    handlers = [MonitorHandler(one), MonitorHandler(other)]
    RunnableLambda(lambda q: found(q) and ANSWER).invoke(QUESTION, {"callbacks": handlers})
    assert parts(one.only) == parts(other.only) == WHOLE
    for odd in (7, None, iter([1]), {1: 2}, Document(FIRST)):
        assert contexts(odd) is odd, "outside of any run"
    assert gives(ANSWER).retrieved_contexts == (), "what was named outside belongs to none"
    monitor = Noting()
    chain = RunnableLambda(lambda q: (contexts([FIRST, 7]) and contexts(None)) or ANSWER)
    assert chain.invoke(QUESTION, {"callbacks": [MonitorHandler(monitor)]}) == ANSWER
    assert "retrieved_contexts" not in monitor.samples[0].model_fields_set
    assert [str(error) for error in monitor.errors] == [
        "contexts(docs)[1] is int, not text or a Document",
        "contexts(docs) is None, not text or a Document",
    ]


def test_contexts_of_a_block_are_for_the_sample_that_begins_in_it_if_it_names_none() -> None:
    monitor = Noting()
    config = {"callbacks": [MonitorHandler(monitor)]}
    with ragstone.trace_id("request 7"):
        contexts(DOCUMENTS)
        rag(search=Searching(texts=(THIRD,))).invoke(QUESTION, config)
        contexts([THIRD])
        RunnableLambda(lambda q: found(q) and ANSWER).invoke(QUESTION, config)
        RunnableLambda(lambda q: ANSWER).invoke(QUESTION, config)
    assert [parts(sample)[1] for sample in monitor.samples] == [FOUND, FOUND, ()]
    assert [sample.id for sample in monitor.samples] == ["request 7", "request 7/2", "request 7/3"]


@pytest.fixture
def traced(monkeypatch):
    """LangSmith's tracing, which sends nothing."""
    from langsmith import Client

    class Silent(Client):
        def create_run(self, *args, **kwargs):
            pass

        update_run = create_run

    with tracing_context(enabled=True, client=Silent(api_key="none", auto_batch_tracing=False)):
        yield


def test_a_function_that_langsmith_traces_names_its_contexts(traced) -> None:
    before = RunTree.end

    @traceable(run_type="retriever")
    def retrieve(query):
        return contexts([{"page_content": text, "type": "Document"} for text in FOUND])

    assert parts(sample_of(RunnableLambda(lambda q: retrieve(q) and ANSWER))) == WHOLE
    assert retrieve(QUESTION)[0]["page_content"] == FIRST, "outside of any run, too"
    assert RunTree.end is before, "nothing of LangSmith's is patched"


# --- conversations ------------------------------------------------------------------------------------------------------

EARLIER = [("user", "Who was Austen?"), ("assistant", "A writer.")]
MESSAGES = [SystemMessage("Be terse."), HumanMessage("Who was Austen?"), AIMessage("A writer.")]
TOOL = [AIMessage("", tool_calls=[{"name": "x", "args": {}, "id": "1"}]), ToolMessage("found", tool_call_id="1")]
MEMORIES = {
    "messages": {"messages": [*MESSAGES, HumanMessage(QUESTION)]},
    "messages with tools between": {"messages": [MESSAGES[1], *TOOL, MESSAGES[2], ("user", QUESTION)]},
    "a list": [*MESSAGES, HumanMessage(QUESTION)],
    "pairs": [("human", "Who was Austen?"), ("ai", "A writer."), ("human", QUESTION)],
    "chat_history": {"question": QUESTION, "chat_history": MESSAGES},
    "a chat API's": {"input": QUESTION, "history": [{"role": r, "content": c} for r, c in EARLIER]},
    "pairs of question and answer": {"question": QUESTION, "chat_history": [("Who was Austen?", "A writer.")]},
    "a text": {"input": QUESTION, "history": "Human: Who was Austen?\nAI: A writer."},
    "the question is in it": {"input": QUESTION, "chat_history": [*MESSAGES, HumanMessage(QUESTION)]},
    "messages beside a question": {"question": QUESTION, "messages": MESSAGES},
}


@pytest.mark.parametrize("shape", MEMORIES)
def test_earlier_turns_are_the_history(shape) -> None:
    sample = gives(ANSWER, MEMORIES[shape])
    assert parts(sample) == (QUESTION, (), ANSWER)
    assert turns(sample) == EARLIER
    assert turns(offline(MEMORIES[shape], ANSWER)) == EARLIER


def test_no_turn_is_earlier() -> None:
    for asked in (QUESTION, {"question": QUESTION, "chat_history": []}, {"messages": [("user", QUESTION)]}):
        assert gives({"messages": [("user", QUESTION), ("ai", ANSWER)]}, asked).history == ()
    assert gives({"question": QUESTION, "history": "x", "answer": ANSWER}).history == ()


def test_the_question_stays_what_was_typed_where_a_chain_condenses_it() -> None:
    condense = RunnablePassthrough.assign(question=PROMPT | says("When did Austen write?") | StrOutputParser())
    chain = RunnablePassthrough.assign(context=lambda _: "") | condense | (lambda s: s["question"]) | rag()
    sample = sample_of(chain, {"question": QUESTION, "chat_history": MESSAGES})
    assert (sample.user_input, sample.response, turns(sample)) == (QUESTION, ANSWER, EARLIER)


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_a_memory_that_langchain_loads() -> None:
    from langchain_core.chat_history import InMemoryChatMessageHistory
    from langchain_core.runnables.history import RunnableWithMessageHistory

    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])
    keys = {"input_messages_key": "question", "history_messages_key": "history"}
    for runnable, options, asked in (
        (prompt | says(ANSWER), keys, {"question": QUESTION}),
        (says(ANSWER), {}, QUESTION),
    ):
        memory = InMemoryChatMessageHistory(messages=MESSAGES[1:])
        chain = RunnableWithMessageHistory(runnable, lambda session_id, memory=memory: memory, **options)
        sample = sample_of(chain, asked, configurable={"session_id": "7"})
        assert parts(sample) == (QUESTION, (), ANSWER)
        assert turns(sample) == EARLIER
        assert sample.metadata["session_id"] == "7"


# --- what is counted, and once -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [invoke, ainvoke, batch], ids=named)
@pytest.mark.parametrize("message", [str, HumanMessage])
def test_one_sample_for_each_of_a_list(way, message) -> None:
    monitor = Noting()
    config = {"callbacks": [MonitorHandler(monitor)]}
    asked = [message(QUESTION), message("Who else?")]
    each = RunnableLambda(lambda one: one if isinstance(one, str) else one.content) | rag()
    if way is batch:
        each.batch(asked, config)
    else:
        with ragstone.trace_id("r"):
            way(each.map(), asked, config)
        assert sorted(sample.id for sample in monitor.samples) == ["r", "r/2"]
    assert sorted(map(parts, monitor.samples)) == sorted([WHOLE, ("Who else?", FOUND, ANSWER)])
    assert (monitor.skipped, monitor.errors) == ({}, [])


def test_two_handlers_of_one_monitor_make_one_sample() -> None:
    monitor, other = Noting(), Noting()
    inner = rag().with_config(callbacks=[MonitorHandler(monitor)])
    apps = (RunnablePassthrough() | inner, RunnableLambda(lambda q: inner.invoke(q)), RunnableLambda(inner.invoke))
    for app in apps:
        with ragstone.trace_id("r"):
            app.invoke(
                QUESTION, {"callbacks": [MonitorHandler(monitor), MonitorHandler(other), MonitorHandler(monitor)]}
            )
        assert [parts(sample) for sample in monitor.samples] == [WHOLE]
        assert monitor.samples.pop().id == other.samples.pop().id == "r"
    assert (monitor.skipped, monitor.errors, other.samples) == ({}, [], [])


def test_each_of_two_handlers_takes_what_it_chooses_and_reads_it_itself() -> None:
    monitor = Noting()

    def handler(tag):
        fields = lambda inputs, outputs: {"user_input": tag}  # noqa: E731
        return MonitorHandler(monitor, where=lambda name, tags, metadata: tag in tags, fields=fields)

    config = {"callbacks": [handler("a"), handler("b")]}
    for tag in "abc":
        rag().invoke(QUESTION, {**config, "tags": [tag]})
    assert [parts(sample) for sample in monitor.samples] == [("a", FOUND, ANSWER), ("b", FOUND, ANSWER)]
    assert monitor.skipped == {"excluded": 1}


def test_every_topmost_run_is_a_sample_or_counted_by_a_reason_that_says_what_to_do() -> None:
    monitor = Noting()
    config = {"callbacks": [MonitorHandler(monitor)]}
    says(ANSWER).invoke(QUESTION, config)
    Searching().invoke(QUESTION, config)
    PROMPT.invoke({"context": "", "question": ""}, config)
    lookup.invoke("x", config)
    RunnableLambda(lambda _: {"docs": DOCUMENTS}).invoke(7, config)
    RunnableLambda(lambda _: 8).invoke(7, config)
    for option in ("where", "fields"):
        rag().invoke(QUESTION, {"callbacks": [MonitorHandler(monitor, **{option: lambda *_: 1 / 0})]})
    rag().invoke(QUESTION, {"callbacks": [MonitorHandler(monitor, where=lambda *_: False)]})
    excluded = MonitorHandler(monitor, where=lambda name, tags, metadata: name == "inner")
    (RunnablePassthrough() | rag().with_config(run_name="inner")).invoke(QUESTION, {"callbacks": [excluded]})
    assert [parts(sample) for sample in monitor.samples] == [WHOLE], "an excluded run around a sample is not counted"
    assert monitor.skipped == {
        "only_model": 1,
        "only_retrieval": 1,
        "only_step": 2,
        "no_question": 1,
        "nothing_found": 1,
        "where_failed": 1,
        "fields_failed": 1,
        "excluded": 1,
    }
    assert set(monitor.skipped) <= set(monitor.advice)


def test_a_stream_that_is_left_at_its_last_piece_is_whole_and_earlier_is_not() -> None:
    def condensed():
        return says(QUESTION) | (lambda m: m.content) | rag()

    pieces = len(list(condensed().stream(QUESTION)))
    for left_at in (pieces, pieces - 2):
        monitor = Noting()
        reading = condensed().stream(QUESTION, {"callbacks": [MonitorHandler(monitor)]})
        for _ in range(left_at):
            next(reading)
        reading.close()
        if left_at == pieces:
            assert parts(monitor.only) == WHOLE
        else:
            assert (monitor.samples, monitor.skipped) == ([], {"abandoned": 1})


# --- whose it is -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"metadata": {"ragstone_trace_id": "m"}, "tags": ["ragstone_trace_id:t"]}, "m"),
        ({"tags": ["prod", "ragstone_trace_id:a:b"]}, "a:b"),
        ({"run_id": uuid.UUID(int=7)}, str(uuid.UUID(int=7))),
    ],
)
def test_the_app_may_name_the_sample(config, expected) -> None:
    assert sample_of(rag(), **config).id == expected
    sample = sample_of(rag(), run_id=uuid.UUID(int=8), configurable={"user_id": "u", "thread_id": 7, "key": "secret"})
    assert sample.metadata["run_id"] == sample.id == str(uuid.UUID(int=8))
    assert (sample.metadata["user_id"], str(sample.metadata["thread_id"])) == ("u", "7")


def test_the_block_counts_in_which_the_run_begins() -> None:
    monitor = Noting()
    begun, go_on = threading.Event(), threading.Event()

    def wait(asked):
        begun.set()
        go_on.wait(60)
        return ANSWER

    def run():
        with ragstone.trace_id("mine"):
            RunnableLambda(wait).invoke(QUESTION, {"callbacks": [MonitorHandler(monitor)]})

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait(60)
    with ragstone.trace_id("another's"):
        go_on.set()
        thread.join()
    assert monitor.only.id == "mine"
    reading = None
    with ragstone.trace_id("begins here"):
        reading = rag().stream(QUESTION, {"callbacks": [MonitorHandler(monitor)]})
        next(reading)
    list(reading)
    assert monitor.samples[1].id == "begins here"
