"""Judges by DeepEval's names."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from inspect import signature
from typing import Any, Literal

from pydantic import BaseModel, create_model

from ragstone.clients import OpenAICompatible
from ragstone.judge import BaseLLM, LLMReply, LLMRequest
from ragstone.judging.adapting import is_constrained, spelled_out, without_system
from ragstone_compat.missing import refuse

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


def __getattr__(name: str) -> object:
    return partial(_client, name) if name in _SERVERS else refuse("ragstone_compat.deepeval", name)


def _client(
    server: str, model: str = "", *, model_name: str = "", base_url: str = "", api_key: str = "", **_: object
) -> OpenAICompatible:
    """Return a judge; what DeepEval's classes take beside (temperature, prices) is for its own prompts."""
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
    **_: object,
) -> OpenAICompatible:
    """Return the judge of a deployment, asked by Azure's address for OpenAI's API."""
    url = base_url or azure_endpoint or os.environ.get("AZURE_OPENAI_ENDPOINT", "")
    key = api_key or azure_openai_api_key or os.environ.get("AZURE_OPENAI_API_KEY")
    name = deployment_name or os.environ.get("AZURE_DEPLOYMENT_NAME") or model
    return OpenAICompatible(name, base_url=f"{url.rstrip('/').removesuffix('/openai/v1')}/openai/v1", api_key=key)


class DeepEvalBaseLLM:
    """A judge of your own: a subclass with DeepEval's `load_model`, `generate`, `a_generate` and `get_model_name`.

    `a_generate` is called, with a prompt, and with a `schema` (a pydantic class) where it has such a parameter. It
    returns text, or an object of that class. All its calls run on one event loop, as in DeepEval.
    """

    def __init__(self, model: str | None = None, *_: object, **__: object) -> None:
        self.name = model
        self.model: Any = self.load_model()

    def load_model(self) -> object:
        """Return the model."""
        return self

    @cached_property
    def judge(self) -> BaseLLM:
        """The model as ragstone's judge."""
        return _OwnJudge(self)


class _OwnJudge(BaseLLM):
    def __init__(self, own: Any) -> None:  # noqa: ANN401 - it has the methods that the user wrote
        self.own = own
        self.model = own.get_model_name()

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        prompt = without_system(replace(request, user=spelled_out(request))).user
        takes_schema = is_constrained(request) and "schema" in signature(self.own.a_generate).parameters
        reply = await self.own.a_generate(prompt, **({"schema": _type_of(request.schema)} if takes_schema else {}))
        return LLMReply(reply.model_dump_json() if isinstance(reply, BaseModel) else str(reply))


def _type_of(schema: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return a type with a JSON Schema of ours: objects, lists, texts, choices, whole numbers and flags."""
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    if schema["type"] == "array":
        return list[_type_of(schema["items"])]  # type: ignore[misc]
    if schema["type"] == "object":
        fields: dict[str, Any] = {name: (_type_of(inner), ...) for name, inner in schema["properties"].items()}
        return create_model("Reply", **fields)
    return {"string": str, "integer": int, "boolean": bool}[schema["type"]]
