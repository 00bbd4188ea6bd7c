"""LangChain's kinds of models, whose words alone are scripted: by a function of the text that reaches them."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

from langchain_core.language_models import LLM, BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

TOKENS = (100, 10)


class Script:
    """What the models say; a text or a value for JSON is the same each time."""

    def __init__(self, reply: Callable[[str], Any] | str | dict[str, Any]) -> None:
        self.reply = reply
        self.asked: list[str] = []  # what reached a model, in order
        self.tools: list[Any] = []  # the tools it was given, None without
        self.calls = itertools.count()

    def answer(self, user: str) -> str:
        self.asked.append(user)
        said = self.reply(user) if callable(self.reply) else self.reply
        return said if isinstance(said, str) else json.dumps(said)


def message(text: Any, **more: Any) -> AIMessage:
    usage = {"input_tokens": TOKENS[0], "output_tokens": TOKENS[1], "total_tokens": sum(TOKENS)}
    return AIMessage(text, usage_metadata=usage, **more)


def result(said: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=said)])


class PlainChat(BaseChatModel):
    """A chat model with no tools: `with_structured_output` is a NotImplementedError."""

    script: Any = None

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def say(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        assert [m.type for m in messages] in (["system", "human"], ["human"])
        self.script.tools.append(kwargs.get("tools"))
        return message(self.script.answer(messages[-1].content))

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return result(self.say(messages, kwargs))


class ToolChat(PlainChat):
    """A chat model that answers by calling the tool it is given."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[Any, Any]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def say(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        said = super().say(messages, kwargs)
        if not kwargs.get("tools"):
            return said
        name = kwargs["tools"][0]["function"]["name"]
        return message("", tool_calls=[{"name": name, "args": json.loads(str(said.content)), "id": "1"}])


class AsyncChat(PlainChat):
    """A chat model with an async half only, which belongs to the loop that it is called on."""

    loops: set[int] = Field(default_factory=set)

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.loops.add(id(asyncio.get_running_loop()))
        await asyncio.sleep(0)
        return result(self.say(messages, kwargs))


class StreamingChat(PlainChat):
    """A chat model that streams as soon as somebody listens."""

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        text = str(self.say(messages, kwargs).content)
        for i in range(0, len(text), 7):
            chunk = ChatGenerationChunk(message=AIMessageChunk(text[i : i + 7]))
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


class TextModel(LLM):
    """A text model: it gets one text and has neither messages nor token counts."""

    script: Any

    @property
    def _llm_type(self) -> str:
        return "scripted-text"

    def _call(self, prompt: str, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> str:
        return self.script.answer(prompt)


class Failing(PlainChat):
    """A chat model that is down."""

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise ConnectionError("down")


WRAPPERS: dict[str, Callable[[Script], Runnable[Any, Any]]] = {
    "chat with tools": lambda s: ToolChat(script=s),
    "chat without tools": lambda s: PlainChat(script=s),
    "streaming chat": lambda s: StreamingChat(script=s),
    "async only": lambda s: AsyncChat(script=s),
    "text model": lambda s: TextModel(script=s),
    "with_retry": lambda s: ToolChat(script=s).with_retry(),
    "with_fallbacks": lambda s: Failing(script=s).with_fallbacks([ToolChat(script=s)]),
    "bind": lambda s: ToolChat(script=s).bind(stop=["\n\n\n"]),
}
