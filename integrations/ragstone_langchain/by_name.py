"""Judges and embedders by name, "langchain:PROVIDER:MODEL", or of model objects: entry points of pyproject.toml."""

import importlib
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from ragstone_langchain.models import LangChainEmbedder, LangChainLLM

# Providers whose package does not bear their name.
_PACKAGES = {
    "anthropic_bedrock": "langchain-aws",
    "azure_openai": "langchain-openai",
    "bedrock": "langchain-aws",
    "bedrock_converse": "langchain-aws",
    "google_anthropic_vertex": "langchain-google-vertexai",
    "nvidia": "langchain-nvidia-ai-endpoints",
}


def make_judge(model: object) -> "LangChainLLM":
    """Return the judge of a model object, or that `init_chat_model(model)` makes, with its provider's settings.

    Raises:
        ImportError: A package is missing; the message holds the command that installs all that is missing.
        Exception: What `init_chat_model` raises.
    """
    chat_model = _made("langchain.chat_models", "init_chat_model", model) if isinstance(model, str) else model
    from ragstone_langchain.models import LangChainLLM

    return LangChainLLM(cast("Any", chat_model))


def make_embedder(model: object) -> "LangChainEmbedder":
    """Return the embedder of embeddings, or that `init_embeddings(model)` makes; it raises what `make_judge` does."""
    embeddings = _made("langchain.embeddings", "init_embeddings", model) if isinstance(model, str) else model
    from ragstone_langchain.models import LangChainEmbedder

    return LangChainEmbedder(cast("Any", embeddings))


def _made(module: str, function: str, model: str) -> Any:  # noqa: ANN401 - langchain need not be there
    try:
        return getattr(importlib.import_module(module), function)(model)
    except ImportError as error:
        packages = "langchain"
        provider, _, named = model.partition(":")
        if named:
            packages += " " + _PACKAGES.get(provider.replace("-", "_"), f"langchain-{provider.replace('_', '-')}")
        raise ImportError(f"langchain:{model} needs packages that are missing: pip install {packages}") from error
