"""`LangChainLLM` and `LangChainEmbedder`: any LangChain model as a judge, any embeddings as an embedder."""

import json
import logging
import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableBindingBase

from ragstone.adapters.chat_models import (
    LeavesOut,
    as_rows,
    is_constrained,
    read_reply,
    reasoning,
    schema_name,
    spelled_out,
    why_it_ended,
    without_waiting,
)
from ragstone.background import Async, Sync
from ragstone.clients.chat import read_completion
from ragstone.errors import describe
from ragstone.judge import Asking, BaseEmbedder, BaseLLM, LLMReply, LLMRequest
from ragstone.judging.refusals import REFUSALS, is_about_content
from ragstone.judging.reply import was_cut_off
from ragstone.options import Count, Flag, checked
from ragstone.plain import as_dict, as_list
from ragstone_langchain.messages import message_text
from ragstone_langchain.shared_model import (
    LangChainModel,
    input_limit,
    is_decision_model,
    judge_config,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import numpy as np
    from langchain_core.language_models import LanguageModelInput
    from numpy.typing import NDArray

_log = logging.getLogger(__name__)

# Servers that cannot convert a schema answer with the last two.
_MAYBE_STRUCTURE = REFUSALS | {500, 501}
_ABOUT_STRUCTURE = re.compile(r"tool|function|schema|response_format|structured|grammar|guided", re.IGNORECASE)


class LangChainLLM(LeavesOut, LangChainModel[Runnable[Any, Any]], BaseLLM):
    """A LangChain model as a judge: a chat model, a text model, or a runnable around one.

    The model object is never changed and keeps its temperature and all other settings. Judge calls stay out of the
    app's traces. If the model has structured output, replies use it; otherwise the schema goes into the prompt. For
    caches, retries, time-outs and log-probabilities see docs/langchain.md.

    Args:
        model: A model or runnable that answers messages with a message or text.
        asking: "together" for capable models; "one_by_one" for small ones, of about 8B parameters or less.
        gives_probabilities: Whether the model sends log-probabilities; metrics that ask one by one then score by them.
        structured_output: False puts the schema into the prompt even if the model has `with_structured_output`.
        max_input_tokens: The longest prompt that the model takes, in tokens; None: from its `profile`, else
            unknown.
        name: For logs and cache keys; None: the model's name from the object, else its class.
        identity: A text for journals; change it whenever you change the model object's settings.
        trace: True lets the app's callbacks and tracers see the judge's runs, tagged "ragstone:judge".

    Raises:
        TypeError: `model` is not a LangChain runnable, or a decision model.
        ValueError: An option is out of range.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> judge = LangChainLLM(FakeListChatModel(responses=["yes"]))
        >>> judge.generate(LLMRequest("demo.ask", "Answer.", "Is it?", {}, choices=("yes", "no"))).text
        'yes'
        >>> judge
        LangChainLLM('FakeListChatModel')
    """

    def __init__(
        self,
        model: "Runnable[LanguageModelInput, AIMessage] | Runnable[LanguageModelInput, str]",
        *,
        asking: Asking = "together",
        gives_probabilities: bool = False,
        structured_output: bool = True,
        max_input_tokens: int | None = None,
        name: str | None = None,
        identity: str | None = None,
        trace: bool = False,
    ) -> None:
        if not isinstance(cast("object", model), Runnable):
            raise TypeError(
                f"model: {type(model).__name__} is not a LangChain model; pass a chat model (from init_chat_model), "
                "a text model, or a runnable around one"
            )
        if is_decision_model(model):
            raise TypeError(
                f"model: {type(model).__name__} is a decision model, which writes no texts; pass it as llm= itself, or "
                "take LangChainDecisions"
            )
        super().__init__(model, name=name, identity=identity, trace=trace)
        self.asking: Asking = checked("asking", asking, Asking)
        self.gives_probabilities: bool = checked("gives_probabilities", gives_probabilities, Flag)
        longest: int | None = checked("max_input_tokens", max_input_tokens, Count | None)
        self.max_input_tokens = longest or input_limit(model)
        self._structured = structured_output

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request by the model's `invoke`, blocking; raise what the model raises."""

        async def ask(sync: Sync[object], asynchronous: Async[object]) -> object:
            return self._invoke(sync, asynchronous)

        return without_waiting(self._ask_with_system(partial(self._ask, ask), request, self.secrets))

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request by the model's `ainvoke` on the running event loop; otherwise as `generate`."""
        return await self._ask_with_system(partial(self._ask, self._ainvoke), request, self.secrets)

    async def _ask(
        self, ask: "Callable[[Sync[object], Async[object]], Awaitable[object]]", request: LLMRequest
    ) -> LLMReply:
        """Ask for structured output where the model has it; else, or where it is refused, by the prompt alone."""
        model = self._silent()
        config = judge_config(request.task, trace=self._trace)

        def calls(model: Runnable[Any, Any], user: str) -> tuple[Sync[object], Async[object]]:
            prompt = JudgePrompt(system=request.system, user=user, draw=request.sample_index)
            return partial(model.invoke, prompt, config), partial(model.ainvoke, prompt, config)

        refusal: Exception | None = None
        constrained = self._structured and "structured_output" not in self.left_out and is_constrained(request)
        structured = _with_structure(model, request) if constrained else None
        if structured is not None:
            try:
                answer = await ask(*calls(structured, request.user))
            except Exception as error:
                cut_off = _unfinished_reply(error, request)
                if cut_off is not None:
                    return cut_off
                refusal = error
            else:
                self._took("structured_output")
                return read_structured(answer, request)
        answer = await ask(*calls(model, spelled_out(request)))
        # Without the structure there was an answer.
        if refusal is not None and _is_lasting(refusal):
            self._refused("structured_output", describe(refusal, self.secrets))
        return read_plain(answer, request)


def _with_structure(model: Runnable[Any, Any], request: LLMRequest) -> Runnable[Any, Any] | None:
    """Return the model constrained to the request's schema, answering with its raw message too; None if it cannot.

    A binding with arguments cannot: its `with_structured_output` is that of the model inside, without them.
    """
    if isinstance(model, RunnableBindingBase) and (model.kwargs or "configurable" in model.config):
        return None
    schema = {"title": schema_name(request), "description": "The reply to the user's message.", **request.schema}
    # Not every runnable has the method.
    make: Any = model
    try:
        structured: Runnable[Any, Any] = make.with_structured_output(schema, include_raw=True)
    except Exception as error:
        # Each wrapper has an error of its own: AttributeError, NameError, NotImplementedError, ValueError.
        _log.debug("no structured output from %s: %s", type(model).__name__, describe(error))
        return None
    return structured


def _is_lasting(refusal: Exception) -> bool:
    """Whether a refusal is about what is asked of every sample: not about one text, nor of a bad moment."""
    text = f"{refusal} {getattr(refusal, 'body', '')}"
    return getattr(refusal, "status_code", None) not in (500, 501) and not is_about_content(text)


def _unfinished_reply(error: Exception, request: LLMRequest) -> LLMReply | None:
    """Return the reply that an error brings along; None where structured output was refused; else raise the error.

    OpenAI's client raises when structured output was cut off, and its error has what there is of the reply; and when it
    was withheld. A configurable model tells only by a NotImplementedError that it has no structured output.
    """
    # The class is openai's, which need not be installed.
    if type(error).__name__ == "ContentFilterFinishReasonError":
        return LLMReply("", ended="content_filter")
    dump = getattr(getattr(error, "completion", None), "model_dump", None)
    reply = read_completion(as_dict(dump() if callable(dump) else None), request)
    # Clients differ in how much of the body they show.
    text = f"{error} {getattr(error, 'body', '')}"
    refused = getattr(error, "status_code", None) in _MAYBE_STRUCTURE and _ABOUT_STRUCTURE.search(text)
    if reply is None and not refused and not isinstance(error, NotImplementedError):
        raise error
    return reply


class JudgePrompt(PromptValue):
    """Messages for a chat model, one text for a text model: whichever stands at the end of the runnable.

    LangChain's caches would answer the second draw of one prompt with the first: so the draw stands in the message
    where no provider reads it, and at the end of a text, which has no such place.
    """

    system: str
    user: str
    draw: int = 0
    type: Literal["JudgePrompt"] = "JudgePrompt"

    def to_messages(self) -> list[BaseMessage]:
        """Return the instructions, if any, as a system message, and the data as the user's."""
        data = HumanMessage(self.user, response_metadata={"ragstone_draw": self.draw} if self.draw else {})
        return [SystemMessage(self.system), data] if self.system else [data]

    def to_string(self) -> str:
        """Return instructions and data one after the other."""
        draw = f"\n\n(Draw {self.draw + 1}.)" if self.draw else ""
        system = f"{self.system}\n\n" if self.system else ""
        return f"{system}{self.user}{draw}\n\n"


def read_plain(answer: object, request: LLMRequest) -> LLMReply:
    """Return the reply that is in a message or a text: its text, else its one tool call, else its reasoning."""
    if isinstance(answer, str):
        return read_reply(answer, request)
    if not isinstance(answer, BaseMessage):
        raise TypeError(
            f"the model answered with {type(answer).__name__}, not a message or text; pass the model alone, "
            "without with_structured_output or a parser"
        )
    return _reply_of_message(message_text(answer), answer, request)


def read_structured(answer: object, request: LLMRequest) -> LLMReply:
    """Return the reply that is in the answer of `with_structured_output(schema, include_raw=True)`.

    It is read from the raw message. What was parsed is taken only where that holds neither text nor tool call:
    LangChain's parsers complete JSON that was cut off.
    """
    parts = as_dict(answer)
    message, parsed = parts.get("raw"), parts.get("parsed")
    if not isinstance(message, BaseMessage):
        raise TypeError(f"with_structured_output answered with {type(answer).__name__}, without a raw message")
    text = message_text(message)
    if parsed is not None and "{" not in text and not _arguments_of_calls(message):
        text = json.dumps(parsed)
    calls = [*message.tool_calls, *message.invalid_tool_calls] if isinstance(message, AIMessage) else []
    must_call = any(call["name"] == schema_name(request) for call in calls)
    return _reply_of_message(text, message, request, must_call=must_call)


def _arguments_of_calls(message: BaseMessage) -> list[str]:
    """Return the arguments of each tool call as JSON, as the model wrote them where they are not whole."""
    if not isinstance(message, AIMessage):
        return []
    invalid = [str(as_dict(call).get("args") or "") for call in message.invalid_tool_calls]
    # LangChain completes streamed arguments that were cut off.
    if was_cut_off(_why_it_ended(message)):
        return invalid or ["" for _ in message.tool_calls]
    return [json.dumps(call["args"], ensure_ascii=False) for call in message.tool_calls] + invalid


def _why_it_ended(message: BaseMessage) -> str:
    # One of the blocks may be a refusal.
    blocks = as_list(cast("object", message.content))
    return why_it_ended(message.response_metadata, message.additional_kwargs, *blocks)


def _reasoning(message: BaseMessage) -> str:
    """Return the thoughts that a provider keeps apart from a message's text; "" where there are none."""
    blocks = [as_dict(block) for block in as_list(cast("object", message.content))]
    thoughts = [block.get("reasoning") or block.get("thinking") for block in blocks]
    texts = [text for text in thoughts if isinstance(text, str)]
    return "".join(texts) or reasoning(message.additional_kwargs)


def _reply_of_message(text: str, message: BaseMessage, request: LLMRequest, *, must_call: bool = False) -> LLMReply:
    return read_reply(
        text,
        request,
        tool_calls=_arguments_of_calls(message),
        must_call=must_call,
        reasoning=_reasoning(message),
        ended=_why_it_ended(message),
        usages=[getattr(message, "usage_metadata", None)],
        logprobs=message.response_metadata.get("logprobs"),
    )


class LangChainEmbedder(LangChainModel[Embeddings], BaseEmbedder):
    """LangChain embeddings as an embedder.

    All texts of a call are documents (`embed_documents`, `aembed_documents`): models that put one prefix before queries
    and another before passages place the two in different regions, and questions are compared with questions here.
    The object gets them all at once and cuts them itself, by its own setting (`chunk_size` of OpenAIEmbeddings). It is
    used as it is and never changed.

    Args:
        embeddings: What embeds.
        name: For logs and cache keys; None: the object's own name for its model, else its class.
        identity: A text for journals, as for `LangChainLLM`.

    Raises:
        TypeError: `embeddings` has no `embed_documents`.
        ValueError: From `embed` and `aembed`, if there is not one vector for each text, all of one length.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> LangChainEmbedder(DeterministicFakeEmbedding(size=4)).embed(["a", "b"]).shape
        (2, 4)
    """

    def __init__(
        self,
        embeddings: Embeddings,
        *,
        name: str | None = None,
        identity: str | None = None,
    ) -> None:
        if isinstance(embeddings, type) or not callable(getattr(embeddings, "embed_documents", None)):
            what = embeddings if isinstance(embeddings, type) else type(embeddings)
            raise TypeError(
                f"embeddings: {what.__name__} has no embed_documents; pass LangChain embeddings (from init_embeddings)"
            )
        super().__init__(embeddings, name=name, identity=identity)

    def embed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text, shape (len(texts), dim), blocking; raise what the embeddings raise."""
        return as_rows(self._invoke(*self._calls(texts)), texts)

    async def aembed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text, shape (len(texts), dim), on the running event loop; otherwise as `embed`."""
        return as_rows(await self._ainvoke(*self._calls(texts)), texts)

    def _calls(self, texts: Sequence[str]) -> tuple[Sync[list[list[float]]], Async[list[list[float]]]]:
        model, documents = self._given, list(texts)
        return partial(model.embed_documents, documents), partial(model.aembed_documents, documents)
