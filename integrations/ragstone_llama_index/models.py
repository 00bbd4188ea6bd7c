"""`LlamaIndexLLM` and `LlamaIndexEmbedder`: any LlamaIndex model as a judge or an embedder."""

import json
from collections.abc import Sequence
from functools import partial

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, MessageRole
from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW
from llama_index.core.llms import LLM, CustomLLM
from numpy.typing import NDArray

from ragstone.adapters.chat_models import (
    LeavesOut,
    as_one_text,
    as_rows,
    member,
    read_reply,
    reasoning,
    spelled_out,
    why_it_ended,
    without_waiting,
)
from ragstone.judge import Asking, LLMReply, LLMRequest
from ragstone.options import Count, Flag, checked
from ragstone.plain import as_list
from ragstone_llama_index.shared_model import LlamaIndexModel, defined_by


class LlamaIndexLLM(LeavesOut, LlamaIndexModel[LLM]):
    """A LlamaIndex LLM as a judge.

    Calls use `chat` or `complete`, with the reply's schema in the prompt and without the object's `system_prompt`. The
    object is never changed and keeps all other settings. Judge calls stay out of the app's traces (see `JUDGE_TAG`).
    For the event loop or thread of a call see docs/llama_index.md.

    Args:
        llm: The model; None: `Settings.llm` at the time of the call.
        asking: "together" for capable models; "one_by_one" for small ones, of about 8B parameters or less.
        gives_probabilities: Whether the model sends log-probabilities; metrics that ask one by one then score by them.
        max_input_tokens: The longest prompt that the model takes, in tokens; None: from its `metadata`, and unknown if
            that is LlamaIndex' default of 3,900 or leaves no room.
        identity: A text for journals; change it whenever you change the model object's settings.
        trace: True lets the app's callbacks and tracers see the judge's calls, still tagged as such.

    Raises:
        TypeError: `llm` is not a LlamaIndex LLM.
        ValueError: An option is out of range; from calls: no LLM was given and `Settings` has none.

    Example:
        >>> from llama_index.core.llms import MockLLM
        >>> judge = LlamaIndexLLM(MockLLM(max_tokens=2))
        >>> judge.generate(LLMRequest("demo.ask", "Answer.", "Is it?", {})).text
        'text text'
        >>> judge
        LlamaIndexLLM('MockLLM')
    """

    _setting = "llm"
    _kind = LLM
    _wanted = (
        "LLM; pass an object of llama_index.core.llms or of a llama-index-llms-... package, such as "
        'OpenAI("gpt-5-mini")'
    )
    _apps_own = ("system_prompt", "output_parser")

    def __init__(
        self,
        llm: LLM | None = None,
        *,
        asking: Asking = "together",
        gives_probabilities: bool = False,
        max_input_tokens: int | None = None,
        identity: str | None = None,
        trace: bool = False,
    ) -> None:
        self.asking: Asking = checked("asking", asking, Asking)
        self.gives_probabilities: bool = checked("gives_probabilities", gives_probabilities, Flag)
        self._max_input_tokens: int | None = checked("max_input_tokens", max_input_tokens, Count | None)
        super().__init__(llm, identity=identity, trace=trace)

    @property
    def max_input_tokens(self) -> int | None:
        """The longest prompt that the model takes; None: unknown."""
        llm = self._original()
        if self._max_input_tokens is not None or llm is None:
            return self._max_input_tokens
        room = llm.metadata.context_window - max(0, llm.metadata.num_output)
        return None if llm.metadata.context_window == DEFAULT_CONTEXT_WINDOW or room <= 0 else room

    def _name_of(self, model: LLM) -> str | None:
        return model.metadata.model_name

    def _only_calls_sync(self, model: LLM) -> bool:
        return defined_by(model, "achat" if model.metadata.is_chat_model else "acomplete") is CustomLLM

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request by the model's sync method, blocking the calling thread. Raises what the model raises."""
        return without_waiting(self._answer(request, awaited=False))

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request by the model's async method on the running event loop, or by its sync one in a thread."""
        return await self._ainvoke(partial(self.generate, request), partial(self._answer, request, awaited=True))

    async def _answer(self, request: LLMRequest, *, awaited: bool) -> LLMReply:
        with self._hidden() as llm:
            return await self._ask_with_system(partial(self._ask, llm, awaited), request, self.secrets)

    async def _ask(self, llm: LLM, awaited: bool, request: LLMRequest) -> LLMReply:
        """Ask by the model's async method, or by its sync one, which waits for nothing."""
        if llm.metadata.is_chat_model:
            messages = _chat_messages(llm, request)
            return to_reply(await llm.achat(messages) if awaited else llm.chat(messages), request)
        prompt = as_one_text(request)
        return to_reply(await llm.acomplete(prompt) if awaited else llm.complete(prompt), request)


def _chat_messages(llm: LLM, request: LLMRequest) -> list[ChatMessage]:
    instructions = ChatMessage(role=llm.metadata.system_role, content=request.system)
    data = ChatMessage(role=MessageRole.USER, content=spelled_out(request))
    return [instructions, data] if request.system else [data]


def to_reply(response: ChatResponse | CompletionResponse, request: LLMRequest) -> LLMReply:
    """Return a model's answer as a reply, with its token counts and, where it has some, log-probabilities."""
    message = response.message if isinstance(response, ChatResponse) else ChatMessage(response.text)
    raw, extra = response.raw, member(response, "additional_kwargs")
    choices = as_list(member(raw, "choices")) or as_list(member(raw, "candidates"))
    # The choice of a chat completion.
    choice = next(iter(choices), None)
    raw_message = member(choice, "message")
    thoughts = [text for text in _block_values(message, "thinking", "content") if isinstance(text, str)]
    return read_reply(
        message.content or "",
        request,
        tool_calls=_arguments_of_tool_calls(message),
        reasoning="".join(thoughts) or reasoning(message.additional_kwargs, raw_message),
        ended=why_it_ended(raw, choice, raw_message, message.additional_kwargs, extra),
        usages=[member(raw, "usage"), member(raw, "usage_metadata"), extra, message.additional_kwargs],
        logprobs=_logprobs(response),
    )


def _logprobs(response: ChatResponse | CompletionResponse) -> object:
    """Return the log-probabilities in the form of a chat completion's choice.

    LlamaIndex keeps the alternatives of each token and not which of them was drawn: that is taken to be the first.
    """
    content: list[object] = []
    for alternatives in response.logprobs or ():
        options = [{"token": option.token, "logprob": option.logprob} for option in alternatives]
        content.extend({**option, "top_logprobs": options} for option in options[:1])
    return {"content": content}


def _block_values(message: ChatMessage, block_type: str, name: str) -> list[object]:
    return [member(block, name) for block in message.blocks if member(block, "block_type") == block_type]


def _arguments_of_tool_calls(message: ChatMessage) -> Sequence[str]:
    """Return the arguments of each tool call as JSON: out of the message's blocks, or where older releases put them."""
    arguments = _block_values(message, "tool_call", "tool_kwargs")
    if not arguments:
        calls = as_list(message.additional_kwargs.get("tool_calls"))
        arguments = [member(member(call, "function"), "arguments") for call in calls]
    return [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in arguments]


class LlamaIndexEmbedder(LlamaIndexModel[BaseEmbedding]):
    """A LlamaIndex embedding model as an embedder.

    All texts of a call are embedded as texts, none as a query, in one `get_text_embedding_batch`, which cuts them by
    the object's `embed_batch_size`. The object is never changed, the app sees nothing of the calls, and its embeddings
    cache gets nothing from them.

    Args:
        embed_model: The model; None: `Settings.embed_model`, as it is when a call is made.
        identity: As for `LlamaIndexLLM`.
        trace: As for `LlamaIndexLLM`.

    Raises:
        TypeError: `embed_model` is no LlamaIndex embedding model.
        ValueError: From calls: none was given and `Settings` has none.

    Example:
        >>> from llama_index.core import MockEmbedding
        >>> LlamaIndexEmbedder(MockEmbedding(embed_dim=4)).embed(["One.", "Two."]).shape
        (2, 4)
    """

    _setting = "embed_model"
    _kind = BaseEmbedding
    _wanted = "embedding model; pass a BaseEmbedding, such as one of a llama-index-embeddings-... package"
    _apps_own = ("embeddings_cache",)

    def __init__(
        self,
        embed_model: BaseEmbedding | None = None,
        *,
        identity: str | None = None,
        trace: bool = False,
    ) -> None:
        super().__init__(embed_model, identity=identity, trace=trace)

    def _name_of(self, model: BaseEmbedding) -> str:
        return model.model_name

    def _only_calls_sync(self, model: BaseEmbedding) -> bool:
        names = ("_aget_text_embedding", "_aget_text_embeddings")
        return all(defined_by(model, name) is BaseEmbedding for name in names)

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Return one row per text, shape (len(texts), dim), blocking the calling thread.

        Raises:
            Exception: Whatever the model raises; `ValueError` when there is not one vector for each text, all of one
                length.
        """
        with self._hidden() as model:
            return as_rows(model.get_text_embedding_batch(list(texts)), texts)

    async def aembed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Return one row per text, on the running event loop or from a thread; otherwise as `embed`."""
        return await self._ainvoke(partial(self.embed, texts), partial(self._aembed, texts))

    async def _aembed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        with self._hidden() as model:
            return as_rows(await model.aget_text_embedding_batch(list(texts)), texts)
