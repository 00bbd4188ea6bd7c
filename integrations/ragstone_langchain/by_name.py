"""Judges and embedders by name, "langchain:PROVIDER:MODEL", or of model objects: entry points of pyproject.toml."""

import importlib
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from ragstone_langchain.decisions import LangChainDecisions
    from ragstone_langchain.models import LangChainEmbedder, LangChainLLM


def make_judge(model: object) -> "LangChainLLM | LangChainDecisions":
    """Return the judge of a chat, text or decision model, or of what `init_chat_model(model)` makes of a name.

    Raises:
        ImportError: A package is missing; the message holds the command that installs it.
        ValueError: Only a provider is named.
        Exception: What `init_chat_model` raises.
    """
    given = _initialised("langchain.chat_models", "init_chat_model", model) if isinstance(model, str) else model
    from ragstone_langchain.decisions import LangChainDecisions
    from ragstone_langchain.models import LangChainLLM
    from ragstone_langchain.shared_model import is_decision_model

    judge = LangChainDecisions if is_decision_model(given) else LangChainLLM
    return judge(cast("Any", given))


def make_embedder(model: object) -> "LangChainEmbedder":
    """Return the embedder of embeddings, or that `init_embeddings(model)` makes; it raises what `make_judge` does."""
    embeddings = _initialised("langchain.embeddings", "init_embeddings", model) if isinstance(model, str) else model
    from ragstone_langchain.models import LangChainEmbedder

    return LangChainEmbedder(cast("Any", embeddings))


def _initialised(module: str, function: str, model: str) -> Any:  # noqa: ANN401 - langchain need not be there
    provider, colon, named = model.partition(":")
    if colon and not named.strip():
        raise ValueError(f"it names no model: langchain:{provider}:MODEL")
    try:
        make = getattr(importlib.import_module(module), function)
    except ImportError as error:
        raise ImportError(
            f"langchain:{model} needs langchain and its provider's package: pip install langchain"
        ) from error
    return make(model)
