"""`LlamaIndexLLM`: any LlamaIndex LLM as a judge."""

from collections.abc import Mapping
from typing import cast

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW
from llama_index.core.llms import LLM, CustomLLM

from ragstone.errors import secrets_in
from ragstone.identity import settings_of
from ragstone.judge import Asking, LLMReply, LLMRequest
from ragstone.judging.adapting import is_constrained, spelled_out
from ragstone.judging.values import as_dict
from ragstone.metrics.options import check_count, check_option
from ragstone_llama_index.borrowed import Borrowed, defined_by
from ragstone_llama_index.replies import to_reply
from ragstone_llama_index.structured import aask_structured, ask_structured
from ragstone_llama_index.unseen import SilentCallbacks, unseen


class LlamaIndexLLM:
    """A LlamaIndex LLM as a judge.

    It is asked by `chat` where it is a chat model, by `complete` where it is not, with the schema of the reply in
    the prompt; ragstone's own strict parser reads the answer. The prompt is the metric's alone: the object's
    `system_prompt` is the app's and stays out.

    No temperature, `n` or `stop` is passed: they are the model object's own. Verdicts want temperature 0;
    `ResponseRelevancy(sampling="n_calls")` wants one above 0, or its draws are all the same. A `max_tokens` made
    for the app's answers may cut the judge's off: they are then `Unscored("judge_unparseable")`.

    The app sees nothing of the judge (see `JUDGE_TAG`), and the object is never changed: calls go to a shallow copy
    of it. `generate` uses its sync half; `agenerate` awaits it on the running loop, the same one each time. On any
    other loop, and for models whose async half only calls the sync one (`CustomLLM`), it is called from threads.

    Log-probabilities, where the object was made to ask for them (`OpenAI(logprobs=True, top_logprobs=20)`), give
    metrics that are asked one by one the probability of each choice.

    Args:
        llm: The model; None: `Settings.llm`, as it is when a call is made.
        asking: "together" for capable models; "one_by_one" for small ones, of about 8B parameters or less.
        structured: True asks by LlamaIndex' `structured_predict`, which says nothing of tokens.
        in_threads: True: always the sync half, in threads; False: always the async half; None: as said above.
        max_input_tokens: The longest prompt that the model takes, for metrics to keep within; None: what its
            `metadata` says, and unknown where that is but LlamaIndex' default of 3,900 or leaves no room.
        trace: True lets the app's callbacks and tracers see the judge's calls, still tagged as such.

    Raises:
        TypeError: `llm` is no LlamaIndex LLM.
        ValueError: An option is out of range; from calls: no LLM was given and `Settings` has none.

    Example:
        >>> from llama_index.core.llms import MockLLM
        >>> judge = LlamaIndexLLM(MockLLM(max_tokens=2))
        >>> judge.generate(LLMRequest("demo.ask", "Answer.", "Is it?", {})).text
        'text text'
        >>> judge
        LlamaIndexLLM('MockLLM')
    """

    def __init__(
        self,
        llm: LLM | None = None,
        *,
        asking: Asking = "together",
        structured: bool = False,
        in_threads: bool | None = None,
        max_input_tokens: int | None = None,
        trace: bool = False,
    ) -> None:
        if not isinstance(cast("object", llm), LLM | None):
            raise TypeError(
                f"llm: {type(llm).__name__} is no LlamaIndex LLM; pass an object of llama_index.core.llms or of a "
                'llama-index-llms-... package, such as OpenAI("gpt-5-mini"), or None for Settings.llm'
            )
        check_option("asking", asking, ("together", "one_by_one"))
        if max_input_tokens is not None:
            check_count("max_input_tokens", max_input_tokens)
        self.asking: Asking = asking
        self._max_input_tokens = max_input_tokens
        self._structured = structured
        self._trace = trace
        self._borrowed = Borrowed(
            llm, "llm", changes=lambda: _changes(trace=trace), blocks=_only_calls_sync, in_threads=in_threads
        )

    @property
    def model(self) -> str:
        """The name that the model gives itself, else its class; "Settings.llm" while that is not set."""
        llm = self._borrowed.look()
        if llm is None:
            return "Settings.llm"
        name = llm.metadata.model_name
        return name if name and name != "unknown" else type(llm).__name__

    @property
    def identity(self) -> dict[str, object]:
        """What makes this judge, for journals: the model object's settings, without keys."""
        settings = as_dict(settings_of(self._borrowed.look()))
        asked = {name: value for name, value in settings.items() if name not in ("system_prompt", "output_parser")}
        own = {"class": type(self).__qualname__, "model": self.model, "structured": self._structured}
        return {**own, "settings": asked}

    @property
    def max_input_tokens(self) -> int | None:
        """The longest prompt that the model takes; None: unknown."""
        llm = self._borrowed.look()
        if self._max_input_tokens is not None or llm is None:
            return self._max_input_tokens
        room = llm.metadata.context_window - max(0, llm.metadata.num_output)
        return None if llm.metadata.context_window == DEFAULT_CONTEXT_WINDOW or room <= 0 else room

    @property
    def secrets(self) -> tuple[str, ...]:
        """The model object's keys, which are taken out of every error text."""
        return secrets_in(self._borrowed.look())

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request by the model's sync half, blocking the calling thread.

        Raises:
            Exception: Whatever the model raises.
        """
        llm = self._borrowed.take()
        with unseen(trace=self._trace):
            if self._structured and is_constrained(request):
                return ask_structured(llm, request, _messages(llm, request, request.user))
            if llm.metadata.is_chat_model:
                return to_reply(llm.chat(_messages(llm, request, spelled_out(request))), request)
            return to_reply(llm.complete(_prompt(request)), request)

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request by the model's async half on the running event loop, or by its sync half in a thread.

        Raises:
            Exception: Whatever the model raises.
        """
        llm = self._borrowed.take()
        if not self._borrowed.is_awaited_here(llm):
            return await self._borrowed.in_thread(lambda: self.generate(request))
        with unseen(trace=self._trace):
            if self._structured and is_constrained(request):
                return await aask_structured(llm, request, _messages(llm, request, request.user))
            if llm.metadata.is_chat_model:
                return to_reply(await llm.achat(_messages(llm, request, spelled_out(request))), request)
            return to_reply(await llm.acomplete(_prompt(request)), request)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"


def _changes(*, trace: bool) -> Mapping[str, object]:
    own: dict[str, object] = {"system_prompt": None, "output_parser": None}
    return own if trace else {**own, "callback_manager": SilentCallbacks()}


def _only_calls_sync(llm: LLM) -> bool:
    """Whether the async half is CustomLLM's, which blocks the event loop."""
    return defined_by(llm, "achat" if llm.metadata.is_chat_model else "acomplete") is CustomLLM


def _messages(llm: LLM, request: LLMRequest, user: str) -> list[ChatMessage]:
    instructions = ChatMessage(role=llm.metadata.system_role, content=request.system)
    return [*([instructions] if request.system else []), ChatMessage(role=MessageRole.USER, content=user)]


def _prompt(request: LLMRequest) -> str:
    return "\n\n".join(part for part in (request.system, spelled_out(request)) if part)
