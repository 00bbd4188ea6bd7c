"""Judges and embedders by name: "langchain:PROVIDER:MODEL", through the entry points of pyproject.toml."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragstone_langchain.models import LangChainEmbedder, LangChainLLM

# Providers whose package does not bear their name; needed only where langchain, which knows them all, is missing.
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
        packages = " ".join(_missing(model, error))
        raise ImportError(f"langchain:{model} needs packages that are missing: pip install {packages}") from error


def _missing(model: str, error: ImportError) -> list[str]:
    """Return the packages to install: langchain and the provider's, or what its import did not find."""
    if _is_there("langchain"):
        cause = error.__cause__ if isinstance(error.__cause__, ImportError) else error
        return [(cause.name or "langchain").partition(".")[0].replace("_", "-")]
    provider, _, named = model.partition(":")
    package = _PACKAGES.get(provider.replace("-", "_"), f"langchain-{provider.replace('_', '-')}")
    return ["langchain", *([package] if named and not _is_there(package.replace("-", "_")) else [])]


def _is_there(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True
