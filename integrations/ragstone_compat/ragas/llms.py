"""Judges by ragas' names."""

from typing import Any

from ragstone.adapters.chat_models import as_one_text
from ragstone.clients import OpenAICompatible
from ragstone.judge import BaseLLM, LLMReply, LLMRequest
from ragstone_compat.shared import check_names

_OTHERS = (
    "bypass_n", "bypass_temperature", "cache", "is_finished_parser", "multiple_completion_supported", "run_config",
)  # fmt: skip

_OF_A_MODEL = (
    "adapter", "cache", "default_headers", "extra_body", "extra_headers", "frequency_penalty", "logprobs",
    "max_completion_tokens", "max_retries", "max_tokens", "mode", "n", "presence_penalty", "reasoning_effort",
    "run_config", "seed", "stop", "system_prompt", "temperature", "timeout", "top_k", "top_p", "user", "verbosity",
)  # fmt: skip


class BaseRagasLLM(BaseLLM):
    """A judge of your own: a subclass with `generate_text`, from a prompt of LangChain to its result."""

    model = "own"
    generate_text: Any

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request."""
        # The user's own code has this package.
        from langchain_core.prompt_values import StringPromptValue

        prompt = StringPromptValue(text=as_one_text(request))
        return LLMReply(self.generate_text(prompt).generations[0][0].text)


class LangchainLLMWrapper(BaseRagasLLM):
    """A model of LangChain or LlamaIndex; ragas' other arguments have no effect, and the model is not changed."""

    def __init__(self, langchain_llm: object = None, *_: object, llm: object = None, **others: object) -> None:
        check_names(type(self).__name__, others, _OTHERS)
        self.wrapped = self.langchain_llm = langchain_llm if llm is None else llm
        if self.wrapped is None:
            raise TypeError(f"{type(self).__name__}: is None; pass a model of LangChain or LlamaIndex")


LangchainLLM = LlamaIndexLLMWrapper = LangchainLLMWrapper


def llm_factory(
    model: str = "gpt-4o-mini",
    provider: str = "openai",
    client: object = None,
    base_url: str | None = None,
    **options: object,
) -> OpenAICompatible:
    """Return a judge behind OpenAI's API.

    Args:
        model: The model's name.
        provider: Whose client it is: only OpenAI's.
        client: A client of the package `openai`, whose address and key are used.
        base_url: The address of another server.
        **options: Without effect: those of a model (temperature, max_tokens) are for ragas' own prompts.

    Raises:
        TypeError: The client is another package's, or there is no such option.
    """
    check_names("llm_factory", options, _OF_A_MODEL)
    return of_client(model, client if provider == "openai" else client or provider, base_url)


def of_client(
    model: str,
    client: object,
    base_url: str | None = None,
    way_out: str = 'LangchainLLMWrapper(init_chat_model("PROVIDER:MODEL"))',
) -> OpenAICompatible:
    """Return a judge or embedder at the server of a client of the package `openai`, or at the default one."""
    if client is None:
        return OpenAICompatible(model, base_url=base_url)
    if not any(kind.__module__.partition(".")[0] == "openai" for kind in type(client).__mro__):
        kind = client if isinstance(client, str) else type(client).__name__
        raise TypeError(
            f"client: is {kind}; pass a client of the package openai, as most providers have its API, or "
            f"{way_out} of LangChain in place of this"
        )
    return OpenAICompatible(
        model, base_url=str(getattr(client, "base_url", base_url)), api_key=getattr(client, "api_key", None)
    )
