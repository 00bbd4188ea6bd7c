"""What apps return, read as text and contexts; a stream is read once and stays the user's to read."""

import asyncio
import threading
import warnings

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.agent.workflow import AgentOutput, ReActAgent, ToolCallResult
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.llms import ChatMessage, CompletionResponse, MockLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.schema import ImageNode, MetadataMode, NodeWithScore, TextNode
from llama_index.core.tools import QueryEngineTool, ToolOutput
from pydantic import BaseModel

from ragstone import ContextRelevancy, Unscored
from ragstone.testing import FakeLLM
from ragstone_llama_index import AlignmentCoverageEvaluator, ContextRelevancyEvaluator, MetricEvaluator
from ragstone_llama_index.responses import aread_response, read_response

from .models import truth

NODES = [
    NodeWithScore(node=TextNode(text="Jane Austen wrote Emma.", metadata={"file": "emma.txt"}), score=0.9),
    NodeWithScore(node=TextNode(text="It came out in 1815."), score=None),
]
TEXTS = ("Jane Austen wrote Emma.", "It came out in 1815.")
SEEN = ("file: emma.txt\n\nJane Austen wrote Emma.", "It came out in 1815.")
PIECES = ["Jane ", "", "Austen."]


class Author(BaseModel):
    name: str


async def atokens(pieces=PIECES, error=None):
    for piece in pieces:
        await asyncio.sleep(0)
        yield piece
    if error:
        raise error


def tokens(pieces=PIECES, error=None):
    yield from pieces
    if error:
        raise error


async def collect(stream, into):
    async for piece in stream:
        into.append(piece)


def read(response, mode=MetadataMode.NONE):
    return read_response(response, mode)


def aread(response, mode=MetadataMode.NONE):
    return asyncio.run(aread_response(response, mode))


WAYS = pytest.mark.parametrize("way", [read, aread])

RETURNED = {
    "Response": (lambda: Response("Jane Austen.", NODES), "Jane Austen."),
    "Response(None)": (lambda: Response(None, NODES), None),
    "PydanticResponse": (lambda: PydanticResponse(Author(name="Jane"), NODES), '{"name":"Jane"}'),
    "PydanticResponse(None)": (lambda: PydanticResponse(None, NODES), None),
    "StreamingResponse": (lambda: StreamingResponse(tokens(), NODES), "Jane Austen."),
    "StreamingResponse, read": (lambda: StreamingResponse(tokens(), NODES, None, "Jane Austen."), "Jane Austen."),
    "AsyncStreamingResponse": (lambda: AsyncStreamingResponse(atokens(), NODES), "Jane Austen."),
    "AgentChatResponse": (lambda: AgentChatResponse("Jane Austen.", source_nodes=NODES), "Jane Austen."),
    "AgentOutput": (
        lambda: an_agents(called(Response("It is her.", NODES)), called("nothing"), called([NODES[0], "else"])),
        "Jane Austen.",
    ),
}


def an_agents(*calls):
    output = AgentOutput(response=ChatMessage(content="Jane Austen."), current_agent_name="a")
    output.tool_calls.extend(calls)  # as LlamaIndex does, past the field's own type
    return output


def called(returned):
    output = ToolOutput(blocks=[], tool_name="t", raw_input={}, raw_output=returned)
    return ToolCallResult(tool_name="t", tool_kwargs={}, tool_id="1", tool_output=output, return_direct=False)


@WAYS
@pytest.mark.parametrize("name", RETURNED)
def test_text_and_contexts(way, name):
    make, text = RETURNED[name]
    answer = way(make())
    again = TEXTS[:1] if name == "AgentOutput" else ()
    assert (answer.text, answer.contexts, answer.problem) == (text, (*TEXTS, *again), None)


@WAYS
@pytest.mark.parametrize(("mode", "contexts"), [(MetadataMode.LLM, SEEN), (MetadataMode.NONE, TEXTS)])
def test_contexts_as_the_llm_saw_them_or_the_text_alone(way, mode, contexts):
    assert way(Response("x", NODES), mode).contexts == contexts


@WAYS
def test_an_image_is_a_context_without_text(way):
    assert way(Response("x", [NodeWithScore(node=ImageNode(image="")), *NODES])).contexts == ("", *TEXTS)


@WAYS
@pytest.mark.parametrize("wrong", ["Jane Austen.", None, 7, ChatMessage(content="x")])
def test_what_is_no_response_is_refused(way, wrong):
    with pytest.raises(TypeError, match=f"response: is {type(wrong).__name__}; "):
        way(wrong)


# --- streams -------------------------------------------------------------------------------------------------


@WAYS
def test_a_stream_is_still_readable(way):
    response = StreamingResponse(tokens(), NODES)
    assert way(response).text == "Jane Austen."
    assert list(response.response_gen) == PIECES
    assert list(response.response_gen) == []
    assert str(response) == "Jane Austen."
    assert response.get_response().response == "Jane Austen."
    assert way(response).text == "Jane Austen."


def test_an_async_stream_is_still_readable():
    async def app():
        response = AsyncStreamingResponse(atokens(), NODES)
        assert (await aread_response(response, MetadataMode.NONE)).text == "Jane Austen."
        assert [piece async for piece in response.response_gen] == PIECES
        assert [piece async for piece in response.async_response_gen()] == ["Jane Austen."]
        assert (await response.get_response()).response == "Jane Austen."
        return await aread_response(response, MetadataMode.NONE)

    assert asyncio.run(app()).text == "Jane Austen."


@pytest.mark.parametrize("stream", [tokens, lambda: iter(PIECES)])
def test_a_stream_is_read_once_however_many_ask(stream):
    response = StreamingResponse(stream(), NODES)

    async def many():
        return await asyncio.gather(*(aread_response(response, MetadataMode.NONE) for _ in range(5)))

    assert {answer.text for answer in asyncio.run(many())} == {"Jane Austen."}
    threads = [threading.Thread(target=read, args=(response,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert response.response_txt == "Jane Austen."


def test_an_async_stream_is_read_once_however_many_ask():
    async def many():
        response = AsyncStreamingResponse(atokens(), NODES)
        return await asyncio.gather(*(aread_response(response, MetadataMode.NONE) for _ in range(5)))

    assert {answer.text for answer in asyncio.run(many())} == {"Jane Austen."}


@WAYS
def test_a_sync_stream_does_not_hold_up_the_loop_nor_change_its_text(way):
    where = []

    def here():
        where.append(threading.current_thread() is threading.main_thread())
        yield from PIECES

    assert way(StreamingResponse(here())).text == "Jane Austen."
    assert where == [way is read]


@WAYS
def test_what_the_user_read_through_the_class_is_known(way):
    response = StreamingResponse(tokens(), NODES)
    str(response)
    assert way(response).text == "Jane Austen."


@WAYS
@pytest.mark.parametrize("pieces", [1, 9])
def test_what_the_user_read_from_the_generator_is_gone_and_said_so(way, pieces):
    response = StreamingResponse(tokens(), NODES)
    for _, _ in zip(range(pieces), response.response_gen, strict=False):
        pass
    answer = way(response)
    assert answer.text is None
    assert "was read before" in answer.problem
    assert answer.contexts == TEXTS


def test_what_the_user_read_from_the_async_generator_is_gone_and_said_so():
    async def app():
        response = AsyncStreamingResponse(atokens())
        assert [piece async for piece in response.response_gen] == PIECES
        return await aread_response(response, MetadataMode.NONE)

    assert "was read before" in asyncio.run(app()).problem


def test_a_stream_that_the_user_is_reading_is_left_to_them():
    async def app():
        response = AsyncStreamingResponse(atokens())
        reading = response.async_response_gen()
        assert await anext(reading) == "Jane "
        answer = await aread_response(response, MetadataMode.NONE)
        assert [piece async for piece in reading] == PIECES[1:]
        return answer, await aread_response(response, MetadataMode.NONE)

    during, after = asyncio.run(app())
    assert during.text is None
    assert "being read by others" in during.problem
    assert after.text == "Jane Austen."


@WAYS
def test_a_stream_that_breaks_off_breaks_off_for_the_user_as_well(way):
    response = StreamingResponse(tokens(error=ConnectionError("gone")), NODES)
    for _ in range(2):
        answer = way(response)
        assert (answer.text, answer.problem) == (None, "its stream broke off (ConnectionError: gone)")
    got = []
    with pytest.raises(ConnectionError, match="gone"):
        got.extend(response.response_gen)
    assert got == PIECES


def test_an_async_stream_that_breaks_off_breaks_off_for_the_user_as_well():
    async def app():
        response = AsyncStreamingResponse(atokens(error=ConnectionError("gone")))
        for _ in range(2):
            assert "broke off" in (await aread_response(response, MetadataMode.NONE)).problem
        got = []
        with pytest.raises(ConnectionError, match="gone"):
            await collect(response.response_gen, got)
        return got

    assert asyncio.run(app()) == PIECES


def test_an_async_stream_that_is_unread_wants_the_async_method():
    async def notebook():
        response = AsyncStreamingResponse(atokens())
        with pytest.raises(ValueError, match="await aevaluate_response"):
            AlignmentCoverageEvaluator(FakeLLM(truth)).evaluate_response(response=response)
        await aread_response(response, MetadataMode.NONE)
        return read_response(response, MetadataMode.NONE)

    assert asyncio.run(notebook()).text == "Jane Austen."


def test_an_async_stream_is_read_on_when_the_first_who_asked_gives_up():
    async def app():
        response = AsyncStreamingResponse(atokens())
        first = asyncio.ensure_future(aread_response(response, MetadataMode.NONE))
        await asyncio.sleep(0)
        first.cancel()
        return await aread_response(response, MetadataMode.NONE)

    assert asyncio.run(app()).text == "Jane Austen."


def test_an_async_stream_whose_loop_has_gone_is_said_to_be_lost():
    response = AsyncStreamingResponse(atokens(PIECES * 9))

    async def gives_up():
        task = asyncio.ensure_future(aread_response(response, MetadataMode.NONE))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(gives_up())
    assert aread(response).problem == "its stream broke off (RuntimeError: reading it was cancelled)"


def test_an_async_stream_is_read_on_one_loop():
    begun, done = threading.Event(), threading.Event()

    async def waiting():
        yield "Jane "
        begun.set()
        await asyncio.to_thread(done.wait, 30)
        yield "Austen."

    async def app():
        response = AsyncStreamingResponse(waiting())
        reading = asyncio.ensure_future(aread_response(response, MetadataMode.NONE))
        await asyncio.to_thread(begun.wait, 30)
        with pytest.raises(ValueError, match="being read on another event loop"):
            await asyncio.to_thread(lambda: aread(response))
        done.set()
        return await reading

    assert asyncio.run(app()).text == "Jane Austen."


def test_a_chat_that_is_still_streaming_is_not_taken_for_an_answer():
    response = StreamingAgentChatResponse(response="", source_nodes=NODES)
    assert read(response).problem == "is still being streamed; read it to its end first"
    response.response, response.is_done = "Jane Austen.", True
    assert read(response).text == "Jane Austen."


# --- through the evaluators --------------------------------------------------------------------------------------


def evaluate(evaluator, query, response):
    return evaluator.evaluate_response(query=query, response=response)


def aevaluate(evaluator, query, response):
    return asyncio.run(evaluator.aevaluate_response(query=query, response=response))


RESULTS = pytest.mark.parametrize("way", [evaluate, aevaluate])
FACTS = [NodeWithScore(node=TextNode(text="Jane Austen wrote Emma."))]


@RESULTS
@pytest.mark.parametrize(
    "response",
    [
        lambda: Response("Jane Austen wrote Emma.", FACTS),
        lambda: StreamingResponse(iter(["Jane Austen ", "wrote Emma."]), FACTS),
        lambda: AsyncStreamingResponse(atokens(["Jane Austen ", "wrote Emma."]), FACTS),
        lambda: AgentChatResponse("Jane Austen wrote Emma.", source_nodes=FACTS),
    ],
)
def test_responses_are_scored(way, response):
    result = way(AlignmentCoverageEvaluator(FakeLLM(truth)), "Who wrote Emma?", response())
    assert (result.score, result.response, result.contexts) == (
        1.0,
        "Jane Austen wrote Emma.",
        ["Jane Austen wrote Emma."],
    )


@RESULTS
@pytest.mark.parametrize("response", [lambda: Response(None, FACTS), lambda: StreamingResponse(iter([]), FACTS)])
def test_an_app_that_answered_nothing_is_an_invalid_result(way, response):
    llm = FakeLLM(truth)
    result = way(AlignmentCoverageEvaluator(llm), "Who wrote Emma?", response())
    assert result.unscored in ("missing_input", "empty_input")
    assert "response" in result.invalid_reason
    assert llm.requests == []


@RESULTS
def test_a_stream_that_broke_off_is_an_invalid_result_for_metrics_that_need_it(way):
    def broken():
        return StreamingResponse(tokens(error=ConnectionError("gone")), FACTS)

    result = way(AlignmentCoverageEvaluator(FakeLLM(truth)), "Who wrote Emma?", broken())
    assert result.invalid_reason == "missing_input: response: its stream broke off (ConnectionError: gone)"
    assert way(ContextRelevancyEvaluator(FakeLLM(truth)), "Who wrote Emma?", broken()).score == 1.0


@RESULTS
def test_nothing_retrieved_is_an_invalid_result(way):
    result = way(ContextRelevancyEvaluator(FakeLLM(truth)), "Who wrote Emma?", Response("Empty Response", []))
    assert result.unscored == "empty_input"


@RESULTS
def test_missing_arguments_raise(way):
    evaluator = ContextRelevancyEvaluator(FakeLLM(truth))
    with pytest.raises(ValueError, match="^query: is missing"):
        way(evaluator, None, Response("x", FACTS))
    with pytest.raises(ValueError, match="^contexts: is missing"):
        way(evaluator, "Who?", None)


@RESULTS
def test_the_metadata_that_the_app_showed_its_llm_are_in_the_contexts(way):
    metric = ContextRelevancy(llm=FakeLLM(truth))
    shown = way(MetricEvaluator(metric, metadata_mode=MetadataMode.LLM), "Who wrote Emma?", Response("x", NODES))
    bare = way(MetricEvaluator(metric, metadata_mode=MetadataMode.NONE), "Who wrote Emma?", Response("x", NODES))
    assert (tuple(shown.contexts), tuple(bare.contexts)) == (SEEN, TEXTS)
    assert len(shown.verdicts) > len(bare.verdicts)


# --- from real engines and agents --------------------------------------------------------------------------------


class Looking(MockLLM):
    """Looks the question up by a tool where it has one, in the words of ReActAgent; says a fact."""

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        asked = prompt.rpartition("Who wrote Emma?")[2]
        if "Action Input:" not in prompt:
            return CompletionResponse(text="Jane Austen wrote Emma.")
        if "Observation:" in asked:
            return CompletionResponse(text="Thought: I know.\nAnswer: Jane Austen wrote Emma.")
        return CompletionResponse(text='Thought: Hm.\nAction: books\nAction Input: {"input": "Who wrote Emma?"}')

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **kwargs):
        text = self.complete(prompt).text
        yield from (CompletionResponse(text=text[: i + 1], delta=text[i]) for i in range(len(text)))


def memory():
    return ChatMemoryBuffer.from_defaults(llm=Looking())  # the default keeps a database open


def books():
    return VectorStoreIndex([TextNode(text="Jane Austen wrote Emma.")], embed_model=MockEmbedding(embed_dim=2))


@RESULTS
def test_a_real_chat_engine(way):
    response = books().as_chat_engine(chat_mode="context", llm=Looking(), memory=memory()).chat("Who wrote Emma?")
    assert isinstance(response, AgentChatResponse)
    assert way(AlignmentCoverageEvaluator(FakeLLM(truth)), "Who wrote Emma?", response).score == 1.0


@RESULTS
def test_a_real_chat_engines_stream_once_it_is_read(way):
    response = (
        books().as_chat_engine(chat_mode="context", llm=Looking(), memory=memory()).stream_chat("Who wrote Emma?")
    )
    assert "".join(response.response_gen) == "Jane Austen wrote Emma."
    result = way(AlignmentCoverageEvaluator(FakeLLM(truth)), "Who wrote Emma?", response)
    assert (result.score, result.response) == (1.0, "Jane Austen wrote Emma.")


@RESULTS
def test_a_real_agent_with_a_query_engine_for_a_tool(way):
    engine = books().as_query_engine(llm=Looking())
    tool = QueryEngineTool.from_defaults(engine, name="books", description="Who wrote what.")

    async def app():
        return await ReActAgent(tools=[tool], llm=Looking()).run("Who wrote Emma?", memory=memory())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # LlamaIndex's agents read pydantic's old __fields__
        output = asyncio.run(app())
    assert isinstance(output, AgentOutput)
    result = way(AlignmentCoverageEvaluator(FakeLLM(truth)), "Who wrote Emma?", output)
    assert (result.score, result.contexts) == (1.0, ["Jane Austen wrote Emma."])


@RESULTS
def test_a_real_engines_streams(way):
    index = VectorStoreIndex([TextNode(text="Jane Austen wrote Emma.")], embed_model=MockEmbedding(embed_dim=2))
    response = index.as_query_engine(llm=MockLLM(max_tokens=3), streaming=True).query("Who wrote Emma?")
    assert isinstance(response, StreamingResponse)
    result = way(AlignmentCoverageEvaluator(FakeLLM(truth)), "Who wrote Emma?", response)
    assert result.response.split() == ["text"] * 3
    assert "".join(response.response_gen) == result.response
    assert isinstance(result.outcome, Unscored)  # no sentence, no claim
