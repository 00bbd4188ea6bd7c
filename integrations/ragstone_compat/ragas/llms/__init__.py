"""Judges by ragas' names."""

from ragstone.clients import OpenAICompatible
from ragstone_compat.ragas.missing import refuse as __getattr__  # noqa: F401 - for what is not there


class BaseRagasLLM:
    """A judge; `wrapped` is what ragstone takes."""

    wrapped: object


class LangchainLLMWrapper(BaseRagasLLM):
    """A model of LangChain; other arguments have no effect, and the model is not changed."""

    def __init__(self, langchain_llm: object, *_: object, **__: object) -> None:
        self.wrapped = self.langchain_llm = langchain_llm


class LlamaIndexLLMWrapper(BaseRagasLLM):
    """A model of LlamaIndex; likewise."""

    def __init__(self, llm: object, *_: object, **__: object) -> None:
        self.wrapped = self.llm = llm


InstructorBaseRagasLLM = BaseRagasLLM


def llm_factory(
    model: str = "gpt-4o-mini",
    provider: str = "openai",
    client: object = None,
    base_url: str | None = None,
    **_: object,
) -> OpenAICompatible:
    """Return a judge behind OpenAI's API.

    Args:
        model: The model's name.
        provider: Whose client it is: only OpenAI's.
        client: A client of the package `openai`, whose address and key are used.
        base_url: The address of another server.
        **_: Without effect: options (temperature, max_tokens) are for ragas' own prompts.

    Raises:
        TypeError: The client is another package's.
    """
    return of_client(model, client if provider == "openai" else client or provider, base_url)


def of_client(model: str, client: object, base_url: str | None = None) -> OpenAICompatible:
    """Return a judge or embedder at the server of a client of the package `openai`, or at the default one."""
    if client is None:
        return OpenAICompatible(model, base_url=base_url)
    if type(client).__module__.partition(".")[0] != "openai":
        kind = client if isinstance(client, str) else type(client).__name__
        raise TypeError(
            f"client: is {kind}; pass a client of the package openai, as most providers have its API, or "
            'LangchainLLMWrapper(init_chat_model("PROVIDER:MODEL")) of LangChain in place of this'
        )
    return OpenAICompatible(
        model, base_url=str(getattr(client, "base_url", base_url)), api_key=getattr(client, "api_key", None)
    )
