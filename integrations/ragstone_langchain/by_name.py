"""Judges and embedders by name: "langchain:PROVIDER:MODEL", through the entry points of pyproject.toml."""

import importlib
from typing import TYPE_CHECKING, Any

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


def make_judge(model: str) -> "LangChainLLM":
    """Return the judge that `init_chat_model(model)` makes, with its provider's settings.

    Raises:
        ImportError: A package is missing; the message holds the command that installs all that is missing.
        Exception: What `init_chat_model` raises.
    """
    made = _made("langchain.chat_models", "init_chat_model", model)
    from ragstone_langchain.models import LangChainLLM

    return LangChainLLM(made)


def make_embedder(model: str) -> "LangChainEmbedder":
    """Return the embedder that `init_embeddings(model)` makes; it raises what `make_judge` does."""
    made = _made("langchain.embeddings", "init_embeddings", model)
    from ragstone_langchain.models import LangChainEmbedder

    return LangChainEmbedder(made)


def _made(module: str, function: str, model: str) -> Any:  # noqa: ANN401 - langchain need not be there
    try:
        return getattr(importlib.import_module(module), function)(model)
    except ImportError as error:
        packages = "langchain"
        provider, _, named = model.partition(":")
        if named:
            packages += " " + _PACKAGES.get(provider.replace("-", "_"), f"langchain-{provider.replace('_', '-')}")
        raise ImportError(f"langchain:{model} needs packages that are missing: pip install {packages}") from error
