"""What a model object says of itself."""

from collections.abc import Mapping
from typing import cast

from ragstone.identity import settings_of
from ragstone.judging.values import as_count, as_dict

_NAMES = ("model_name", "model", "model_id", "deployment_name", "repo_id")
# Of a binding, of fallbacks, of a configurable, of a sequence, of cached embeddings.
_INSIDE = ("bound", "runnable", "default", "first", "underlying_embeddings")


def model_name(model: object) -> str:
    """Return the name that a model object, or the one that it wraps, gives to its model; else its class.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> model_name(DeterministicFakeEmbedding(size=2))
        'DeterministicFakeEmbedding'
    """
    for part in _layers(model):
        for name in _NAMES:
            value = _attribute(part, name)
            if isinstance(value, str) and value:
                return value
    return type(_layers(model)[-1]).__name__


def identity_settings(model: object) -> dict[str, object]:
    """Return what makes a model object, for journals: the settings of all its layers, without keys.

    Beside fields and attributes that is what each layer says of itself for LangChain's own caches and traces.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> identity_settings(DeterministicFakeEmbedding(size=2))["settings"]["size"]
        2
    """
    from langchain_core.embeddings import Embeddings
    from langchain_core.runnables import Runnable

    follow = (Runnable, Embeddings, type(model))
    identifying = [_attribute(layer, "_identifying_params") for layer in _layers(model)]
    return {
        "settings": settings_of(model, follow),
        "identifying": [settings_of(each, follow) for each in map(as_dict, identifying) if each],
    }


def input_limit(model: object) -> int | None:
    """Return the longest prompt in tokens by a model's profile; None if it has none."""
    for part in _layers(model):
        profile = _attribute(part, "profile")
        if isinstance(profile, Mapping):
            return as_count(cast("Mapping[str, object]", profile).get("max_input_tokens")) or None
    return None


def check_timeout(timeout: object) -> None:
    """Refuse what is no number of seconds above 0.

    Raises:
        ValueError: Names the option and the value.
    """
    number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if timeout is not None and not (number and cast("float", timeout) > 0):
        raise ValueError(f"timeout: {timeout!r} is not a number of seconds above 0")


def _layers(model: object) -> list[object]:
    """Return the object and what it wraps, from the outside in."""
    inside = next((part for name in _INSIDE if (part := _attribute(model, name)) is not None), None)
    return [model] if inside is None else [model, *_layers(inside)]


def _attribute(thing: object, name: str) -> object:
    try:
        return getattr(thing, name, None)
    except Exception:  # a configurable model makes the model for it, which may need a key or a package
        return None
