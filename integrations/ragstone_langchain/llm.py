"""`LangChainLLM`: any LangChain model as a judge."""

import logging
import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ragstone.errors import describe, secrets_in
from ragstone.judge import Asking, BaseLLM, LLMReply, LLMRequest
from ragstone.judging.adapting import REFUSALS, is_constrained, schema_name, spelled_out
from ragstone.metrics.options import check_count, check_option
from ragstone_langchain.calling import Calling
from ragstone_langchain.facts import check_timeout, identity_settings, input_limit, model_name

if TYPE_CHECKING:
    from collections.abc import Generator

    from langchain_core.language_models import LanguageModelInput
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import Runnable, RunnableConfig

    from ragstone_langchain.prompt import JudgePrompt

_log = logging.getLogger(__name__)

_PERHAPS_BRIEF = frozenset({500})  # llama.cpp's for a schema it cannot convert, and anybody's for a bad moment
_LOCK = threading.Lock()
_ABOUT_STRUCTURE = re.compile(r"tool|function|schema|response_format|structured|grammar|guided", re.IGNORECASE)


class LangChainLLM(BaseLLM):
    """A LangChain model as a judge: a chat model, a text model, or a runnable around one.

    Replies are had as structured output where the model has `with_structured_output`; where it has not, where a
    wrapper hides it (`with_retry`, `with_fallbacks`), where it would lose arguments that `bind` holds, or where the
    provider refuses it, the schema is put into the prompt. Reply and token counts are read from the raw message,
    with `ragstone`'s own strict parser: LangChain's parsers complete JSON that was cut off.

    The model object is used as it is and never changed. No temperature is passed: it is the object's own. Verdicts
    want 0; `ResponseRelevancy(sampling="n_calls")` wants one above 0, or its draws are all the same. A cache
    (`set_llm_cache`) keeps the draws apart, unless it answers similar prompts alike.

    The app sees nothing of the judge: no callbacks, no tokens in its stream, no LangSmith. `generate` uses the
    model's `invoke`, `agenerate` its `ainvoke` on the running loop. A model with one half only is called from a
    thread, or on a loop in a thread of its own.

    Where the provider gives log-probabilities in the message's `response_metadata["logprobs"]` (as
    `ChatOpenAI(logprobs=True, top_logprobs=20)` does), metrics asked one by one get the probability of each choice.

    Args:
        model: What answers messages with a message or with text.
        asking: "together" for capable models; "one_by_one" for small ones, of about 8B parameters or less.
        structured_output: False puts the schema into the prompt even if the model has `with_structured_output`.
        timeout: Seconds that one call may take; None: as long as the model's own time-out lets it. A sync model
            cannot be stopped: its thread runs on.
        max_input_tokens: The longest prompt that the model takes, for metrics to keep within; None: what its
            `profile` says, else unknown.
        name: For logs and cache keys; None: the model object's own name for its model, else its class.
        trace: True lets the app's callbacks and tracers see the judge's runs, tagged "ragstone:judge".

    Raises:
        TypeError: `model` is no LangChain runnable.
        ValueError: An option is out of range.
        TimeoutError: From `generate` and `agenerate`, after `timeout`.

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
        structured_output: bool = True,
        timeout: float | None = None,
        max_input_tokens: int | None = None,
        name: str | None = None,
        trace: bool = False,
    ) -> None:
        from langchain_core.runnables import Runnable

        if not isinstance(cast("object", model), Runnable):
            raise TypeError(
                f"model: {type(model).__name__} is no LangChain model; pass a chat model (init_chat_model makes one), "
                "a text model, or a runnable around one"
            )
        check_option("asking", asking, ("together", "one_by_one"))
        check_timeout(timeout)
        if max_input_tokens is not None:
            check_count("max_input_tokens", max_input_tokens)
        self.model = name or model_name(model)
        self.asking: Asking = asking
        self.max_input_tokens = max_input_tokens or input_limit(model)
        self._given: Runnable[Any, Any] = model
        self._runnable = self._given
        self._trace = trace
        self._without_callbacks()
        self._asks_structured = self._structured = structured_output
        self._calling = Calling(self.model, self._bridge, timeout=timeout, trace=trace)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The model object's keys, which are taken out of every error text."""
        return secrets_in(self._given)

    @property
    def identity(self) -> dict[str, object]:
        """What makes this judge, for journals: the model object's settings, bound arguments too, without keys."""
        own = {"class": type(self).__qualname__, "model": self.model, "structured_output": self._asks_structured}
        return {**own, **identity_settings(self._given)}

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request by the model's `invoke`, blocking the calling thread.

        Raises:
            Exception: Whatever the model raises; `TimeoutError` after `timeout`.
        """
        flow = self._flow(request)
        answer: object = None
        error: Exception | None = None
        while True:
            try:
                attempt = flow.send(answer) if error is None else flow.throw(error)
            except StopIteration as stop:
                return cast("LLMReply", stop.value)
            try:
                answer, error = self._calling.call(attempt.invoke, attempt.ainvoke), None
            except Exception as failed:
                error = failed

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request by the model's `ainvoke` on the running event loop.

        Raises:
            Exception: Whatever the model raises; `TimeoutError` after `timeout`.
        """
        flow = self._flow(request)
        answer: object = None
        error: Exception | None = None
        while True:
            try:
                attempt = flow.send(answer) if error is None else flow.throw(error)
            except StopIteration as stop:
                return cast("LLMReply", stop.value)
            try:
                answer, error = await self._calling.acall(attempt.invoke, attempt.ainvoke), None
            except Exception as failed:
                error = failed

    def _without_callbacks(self) -> None:
        """Call a copy of the model from when it first carries callbacks: at once, or when the app adds some later."""
        if not self._trace and self._runnable is self._given:
            from ragstone_langchain.unseen import without_callbacks

            self._runnable = without_callbacks(self._given)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    def _flow(self, request: LLMRequest) -> "Generator[_Attempt, Any, LLMReply]":
        """Ask for structured output where the model has it; else, or where it is refused, by the prompt alone."""
        from ragstone_langchain import replies
        from ragstone_langchain.prompt import judge_prompt
        from ragstone_langchain.unseen import judge_config

        self._without_callbacks()
        config = judge_config(request.task, trace=self._trace)
        refusal: Exception | None = None
        if self._structured and is_constrained(request):
            structured = structured_output(self._runnable, request)
            if structured is not None:
                try:
                    answer = yield _Attempt(structured, judge_prompt(request, request.user), config)
                except Exception as error:
                    cut_off = replies.read_unfinished(error, request)
                    if cut_off is not None:
                        return cut_off
                    if not _refuses_structure(error):
                        raise
                    refusal = error
                else:
                    return replies.read_structured(answer, request)
        answer = yield _Attempt(self._runnable, judge_prompt(request, spelled_out(request)), config)
        if refusal is not None:  # and it was the structure that was refused: without it there was an answer
            self._go_on_without(refusal)
        return replies.read_plain(answer, request)

    def _go_on_without(self, refusal: Exception) -> None:
        if getattr(refusal, "status_code", None) in _PERHAPS_BRIEF:
            return
        with _LOCK:
            new, self._structured = self._structured, False  # another call, in flight at the same time, may be first
        if new:
            _log.warning("%r refused structured output, going on without: %s", self, describe(refusal, self.secrets))


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One call that may answer a request."""

    runnable: "Runnable[Any, Any]"
    prompt: "JudgePrompt"
    config: "RunnableConfig"

    def invoke(self) -> object:
        return self.runnable.invoke(self.prompt, self.config)

    async def ainvoke(self) -> object:
        return await self.runnable.ainvoke(self.prompt, self.config)


def structured_output(model: "Runnable[Any, Any]", request: LLMRequest) -> "Runnable[Any, Any] | None":
    """Return the model constrained to the request's schema, answering with its raw message too; None if it cannot.

    A binding with arguments cannot: its `with_structured_output` is that of the model inside, without them.
    """
    from langchain_core.runnables.base import RunnableBindingBase

    if isinstance(model, RunnableBindingBase) and (model.kwargs or "configurable" in model.config):
        return None
    schema = {"title": schema_name(request), "description": "The reply to the user's message.", **request.schema}
    make = cast("Any", model)  # not every runnable has the method
    try:
        return cast("Runnable[Any, Any]", make.with_structured_output(schema, include_raw=True))
    except Exception as error:  # each wrapper has its own: AttributeError, NameError, NotImplementedError, ValueError
        _log.debug("no structured output from %s: %s", type(model).__name__, describe(error))
        return None


def _refuses_structure(error: Exception) -> bool:
    """Whether an error says that the model, or its server, does not do structured output."""
    if isinstance(error, NotImplementedError):  # a configurable model tells only now what is inside
        return True
    said = f"{error} {getattr(error, 'body', '')}"  # clients differ in how much of the body they show
    return getattr(error, "status_code", None) in REFUSALS and bool(_ABOUT_STRUCTURE.search(said))
