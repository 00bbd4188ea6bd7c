"""Judges by DeepEval's names."""

import asyncio
import os
from collections.abc import Mapping
from functools import partial
from inspect import signature
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

from ragstone.adapters.chat_models import as_one_text, is_constrained
from ragstone.clients import OpenAICompatible
from ragstone.judge import BaseLLM, LLMReply, LLMRequest
from ragstone_compat.missing import missing_name
from ragstone_compat.shared import check_names

_SERVERS: Mapping[str, tuple[str, str]] = {
    "DeepSeekModel": ("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "GPTModel": ("", "OPENAI_API_KEY"),
    "GeminiModel": ("https://generativelanguage.googleapis.com/v1beta/openai/", "GOOGLE_API_KEY"),
    "GrokModel": ("https://api.x.ai/v1", "GROK_API_KEY"),
    "LocalModel": ("", "LOCAL_MODEL_API_KEY"),
    "OllamaModel": ("http://127.0.0.1:11434/v1", "OLLAMA_API_KEY"),
    "OpenAIModel": ("", "OPENAI_API_KEY"),
    "OpenRouterModel": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
}
"""Providers that speak OpenAI's API: the address, and the variable that holds the key."""
_WITHOUT = (
    "api_version", "cost_per_input_token", "cost_per_output_token", "default_headers", "format", "generation_kwargs",
    "max_retries", "openai_api_version", "organization", "temperature", "timeout",
)  # fmt: skip


def __getattr__(name: str) -> object:
    return partial(_client, name) if name in _SERVERS else missing_name(__name__, name)


def _client(
    server: str, model: str = "", *, model_name: str = "", base_url: str = "", api_key: str = "", **others: object
) -> OpenAICompatible:
    """Return a judge; what DeepEval's classes take beside (temperature, prices) is for its own prompts."""
    check_names(server, others, _WITHOUT)
    url, variable = _SERVERS[server]
    name, key = model or model_name, api_key or os.environ.get(variable)
    return (
        OpenAICompatible.at(base_url or url, name, api_key=key)
        if base_url or url
        else OpenAICompatible(name, api_key=key)
    )


def AzureOpenAIModel(  # noqa: N802
    model: str = "",
    deployment_name: str = "",
    base_url: str = "",
    api_key: str = "",
    *,
    azure_endpoint: str = "",
    azure_openai_api_key: str = "",
    **others: object,
) -> OpenAICompatible:
    """Return the judge of a deployment, asked by Azure's address for OpenAI's API."""
    check_names("AzureOpenAIModel", others, _WITHOUT)
    url = base_url or azure_endpoint or os.environ.get("AZURE_OPENAI_ENDPOINT", "")
    key = api_key or azure_openai_api_key or os.environ.get("AZURE_OPENAI_API_KEY")
    name = deployment_name or os.environ.get("AZURE_DEPLOYMENT_NAME") or model
    return OpenAICompatible(name, base_url=f"{url.rstrip('/').removesuffix('/openai/v1')}/openai/v1", api_key=key)


class DeepEvalBaseLLM:
    """A judge of your own: a subclass with DeepEval's `load_model`, `generate`, `a_generate` and `get_model_name`.

    `a_generate` is called, or `generate` where a metric's `async_mode` is False, with a prompt, and with a `schema` (a
    pydantic class) where it has such a parameter. It returns text, or an object of that class. All calls of
    `a_generate` run on one event loop, as in DeepEval.
    """

    def __init__(self, model: str | None = None, *_: object, **__: object) -> None:
        self.name = model
        self.model: Any = self.load_model()

    def load_model(self) -> object:
        """Return the model."""
        return self


class OwnJudge(BaseLLM):
    """A `DeepEvalBaseLLM` as ragstone's judge, asked by `a_generate`, or by `generate` in a thread."""

    def __init__(self, own: Any, async_mode: bool) -> None:  # noqa: ANN401 - it has the methods that the user wrote
        self.model, self._own, self._async_mode = own.get_model_name(), own, async_mode

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        """Answer one request."""
        ask = self._own.a_generate if self._async_mode else self._own.generate
        takes_schema = is_constrained(request) and "schema" in signature(ask).parameters
        options = {"schema": _type_of(request.schema)} if takes_schema else {}
        asking = partial(ask, as_one_text(request), **options)
        answer = await (asking() if self._async_mode else asyncio.to_thread(asking))
        return LLMReply(answer.model_dump_json() if isinstance(answer, BaseModel) else str(answer))


def _type_of(schema: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return a type with a JSON Schema of ours: objects, lists, texts, choices, whole numbers and flags."""
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    if schema["type"] == "array":
        size = Field(min_length=schema.get("minItems"), max_length=schema.get("maxItems"))
        return Annotated[list[_type_of(schema["items"])], size]  # type: ignore[misc]
    if schema["type"] == "integer":
        return Annotated[int, Field(ge=schema.get("minimum"), le=schema.get("maximum"))]
    if schema["type"] == "object":
        fields: dict[str, Any] = {name: (_type_of(inner), ...) for name, inner in schema["properties"].items()}
        return create_model("Reply", **fields)
    return {"string": str, "boolean": bool}[schema["type"]]
