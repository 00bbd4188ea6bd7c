"""Real LlamaIndex apps whose model says what it is told to, and a monitor that writes down what it is handed."""

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.base.llms.generic_utils import astream_completion_response_to_chat_response
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata, MessageRole
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import TextNode
from llama_index_instrumentation import root_dispatcher
from pydantic import PrivateAttr

from ragstone_llama_index.handler import Live
from ragstone_llama_index.record import Handler

ANSWER = "Jane Austen wrote it."
TEXTS = ("Emma is a novel by Jane Austen.", "Dune is a novel by Frank Herbert.")


def kept_by_handlers():
    """How many things our handlers on the root dispatcher keep."""
    ours = [handler for handler in root_dispatcher.span_handlers if isinstance(handler, Handler)]
    for handler in ours:
        assert (handler.open_spans, handler.completed_spans, handler.dropped_spans) == ({}, [], [])
    return sum(len(handler.recorder.trees) for handler in ours if isinstance(handler.recorder, Live))


class Speaking(CustomLLM):
    """Answers each prompt by a function of it, word for word; what it returns as an exception is raised."""

    answer: object = None
    pause: float = 0.0

    def __init__(self, answer=ANSWER, pause=0.0, **fields):
        super().__init__(**fields)
        self.answer = answer
        self.pause = pause

    @property
    def metadata(self):
        return LLMMetadata(model_name="speaking", num_output=64)

    def _say(self, prompt):
        said = self.answer(prompt) if callable(self.answer) else self.answer
        if isinstance(said, BaseException):
            raise said
        return said

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        if self.pause:
            time.sleep(self.pause)
        return CompletionResponse(text=self._say(prompt))

    @llm_completion_callback()
    async def acomplete(self, prompt, formatted=False, **kwargs):
        await asyncio.sleep(self.pause)
        return CompletionResponse(text=self._say(prompt))

    def _words(self, prompt):
        text = ""
        for word in self._say(prompt).split(" "):
            if word == "BREAK":
                raise ConnectionError("the line broke")
            delta = f" {word}" if text else word
            text += delta
            yield CompletionResponse(text=text, delta=delta)

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **kwargs):
        return self._words(prompt)

    @llm_completion_callback()
    async def astream_complete(self, prompt, formatted=False, **kwargs):
        async def words():
            for piece in self._words(prompt):
                await asyncio.sleep(self.pause)
                yield piece

        return words()

    @llm_chat_callback()
    async def astream_chat(self, messages, **kwargs):
        """Not all at once, as CustomLLM would have it."""
        completions = await self.astream_complete(self.messages_to_prompt(messages), formatted=True)
        return astream_completion_response_to_chat_response(completions)


class Answering(CustomQueryEngine):
    """An engine of the app's own: its answer is a function of the question."""

    answer: object = None

    def custom_query(self, query_str):
        return self.answer(query_str)


class Calling(FunctionCallingLLM):
    """Calls the tools it is told to, one after the other, and then answers."""

    _turns: list = PrivateAttr()
    _at: int = PrivateAttr(default=0)

    def __init__(self, *turns, **fields):
        super().__init__(**fields)
        self._turns = list(turns)

    @property
    def metadata(self):
        return LLMMetadata(model_name="calling", is_chat_model=True, is_function_calling_model=True)

    def _turn(self):
        said = self._turns[min(self._at, len(self._turns) - 1)]
        self._at += 1
        if isinstance(said, BaseException):
            raise said
        content, calls = (said, []) if isinstance(said, str) else ("", [said])
        message = ChatMessage(role=MessageRole.ASSISTANT, content=content, additional_kwargs={"calls": calls})
        return ChatResponse(message=message, delta=content)

    def _prepare_chat_with_tools(self, tools, user_msg=None, chat_history=None, **kwargs):
        return {"messages": list(chat_history or [])}

    def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **kwargs):
        return [
            ToolSelection(tool_id=f"call {self._at}", tool_name=name, tool_kwargs=arguments)
            for name, arguments in response.message.additional_kwargs.get("calls", [])
        ]

    @llm_chat_callback()
    def chat(self, messages, **kwargs):
        return self._turn()

    @llm_chat_callback()
    async def achat(self, messages, **kwargs):
        await asyncio.sleep(0)
        return self._turn()

    @llm_chat_callback()
    async def astream_chat(self, messages, **kwargs):
        async def pieces():
            yield self._turn()

        return pieces()

    def stream_chat(self, messages, **kwargs):
        raise NotImplementedError

    complete = acomplete = stream_complete = astream_complete = stream_chat


def embedding():
    return MockEmbedding(embed_dim=2)


def index(texts=TEXTS):
    nodes = [TextNode(text=text, id_=str(i)) for i, text in enumerate(texts)]
    return VectorStoreIndex(nodes, embed_model=embedding())


def engine(answer=ANSWER, texts=TEXTS, pause=0.0, **options):
    """A query engine over texts, all of which it retrieves."""
    return index(texts).as_query_engine(llm=Speaking(answer, pause), similarity_top_k=len(texts) or 1, **options)


def retriever(texts=TEXTS):
    return index(texts).as_retriever(similarity_top_k=len(texts))


def memory():
    """A chat's memory that holds no connection to a database open, as the default one does."""
    return ChatMemoryBuffer.from_defaults(token_limit=10_000)


async def settled():
    """Let what LlamaIndex does after a run's end come to pass."""
    for _ in range(10):
        await asyncio.sleep(0.005)


def run(app, **asked):
    """Run an agent or a workflow to its end; return what it returned or raised."""

    async def main():
        try:
            return await app.run(**asked)
        except Exception as error:
            return error
        finally:
            await settled()

    return asyncio.run(main())


def as_json(value):
    return f"```json\n{json.dumps(value)}\n```"


def in_threads(*calls):
    """Run calls at the same time, each in a thread."""
    with ThreadPoolExecutor(len(calls)) as pool:
        for done in [pool.submit(call) for call in calls]:
            done.result(60)
