"""The identity of a judge or an embedder: the part of a journal's keys that distinguishes two of one model name."""

import json
import re
import types
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from hashlib import blake2b, sha256
from pathlib import PurePath
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pydantic import BaseModel

from ragstone.errors import without_keys
from ragstone.plain import is_list, is_mapping, is_set, to_plain

_DEPTH = 12
# Fields of the request itself, under whatever name: each can change the answer.
_REQUEST_FIELDS = frozenset(("additional_kwargs", "extra_body", "model_kwargs"))
_KEY_FIELDS = frozenset(("access_token", "api_key", "apikey", "authorization", "password", "secret", "token"))
# Wider than what an error's text is cleaned of: who is in doubt leaves a setting out rather than keep a key.
_SECRET_NAME = re.compile(
    r"key(?!word)|token(?!iz)|secret|passw|auth(?!ors?\b)|credential|cookie|bearer|signature|^sig$|^pwd$|^proxies$|proxy$",
    re.IGNORECASE,
)
_TEXT_TOKEN = re.compile(r"(bos|eos|pad|unk|sep|stop|think\w*)_token", re.IGNORECASE)
# How a call is made, watched, repeated or kept: no part of who answers. Nor what changes from call to call.
_NOT_IDENTITY = frozenset((
    "batch_size", "cache", "callback_manager", "callbacks", "chunk_size", "config_factories",
    "custom_get_token_ids", "disable_streaming", "embed_batch_size", "embeddings_cache", "max_concurrency",
    "max_retries", "metadata", "name", "num_workers", "profile", "rate_limiter", "recursion_limit",
    "request_timeout", "retry_max_seconds", "retry_min_seconds", "run_id", "run_name", "show_progress",
    "show_progress_bar", "stream", "stream_chunk_timeout", "stream_usage", "streaming", "tags", "timeout", "verbose",
))  # fmt: skip


class IdentityError(TypeError):
    """A judge's `identity` is neither a text nor a mapping that JSON can hold."""


def identity_json(judge: object) -> str:
    """Return what makes a judge or an embedder as JSON: its own `identity`, else its class and its `model`.

    Raises:
        IdentityError: Its `identity` is neither a text nor a mapping that JSON can hold.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> identity_json(FakeLLM(lambda request: "yes"))
        '{"class": "FakeLLM", "model": "fake"}'
    """
    where = f"{type(judge).__name__}.identity"
    identity: object = getattr(judge, "identity", None)
    if identity is None:
        identity = {"class": class_name(judge), "model": getattr(judge, "model", None)}
    if not isinstance(identity, (str, Mapping)):
        raise IdentityError(f"{where}: is {type(identity).__name__}, not a text or a mapping")
    try:
        return json.dumps(identity if isinstance(identity, str) else {**identity}, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise IdentityError(f"{where}: holds what JSON cannot ({error})") from None


def class_name(thing: object) -> str:
    """Return the qualified name of an object's class, with its module."""
    kind = type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"


def public_url(url: str) -> str:
    """Return an address without password and parameters that are keys; the user name is a digest, as it may be a key.

    Example:
        >>> public_url("https://me:pw@judge.test:8443/v1?api-version=2&key=abc")
        'https://2744ccd10c7533bd@judge.test:8443/v1?api-version=2'
    """
    try:
        parts = urlsplit(url)
        query = [(name, value) for name, value in parse_qsl(parts.query) if not is_secret(name, value)]
    except ValueError:
        return ""
    host = parts.netloc.rpartition("@")[2]
    user = f"{sha256(parts.username.encode()).hexdigest()[:16]}@" if parts.username else ""
    return urlunsplit((parts.scheme, user + host, parts.path, urlencode(query), ""))


def request_digest(fields: object) -> str:
    """Return a digest of further fields of a request, whole but for the texts of fields such as `api_key`."""
    return sha256(json.dumps(_whole(fields), sort_keys=True).encode()).hexdigest()


def _whole(value: object) -> object:
    if isinstance(value, str):
        return str(value)
    if is_mapping(value):
        items = value.items()
        return {str(name): _whole(inside) for name, inside in items if not _is_key_field(str(name), inside)}
    if is_list(value):
        return [_whole(item) for item in value]
    return settings_of(value)


def settings_of(value: object, follow: tuple[type, ...] = (), *, depth: int = 0) -> object:
    """Return the settings of a framework's model object, or any value of them, as JSON holds it and without keys.

    Fields of pydantic models, mappings, lists and plain values are followed. Another object counts by its class, a
    function by its name and code. What is no part of who answers (time-outs, retries, callbacks, tags) is left out;
    so is what looks like a key by its name (`api_key`, `Authorization`) or by itself (`sk-...`, `Bearer ...`).
    Fields of the request (`extra_body`, `model_kwargs`, `additional_kwargs`) count whole, as `request_digest`.

    Args:
        value: The object or value.
        follow: Classes whose attributes are followed, too.
        depth: How deep in another object it lies.

    Example:
        >>> settings_of({"temperature": 0.5, "api_key": "abc", "base_url": "http://me:pw@127.0.0.1/v1", "timeout": 9})
        {'base_url': 'http://2744ccd10c7533bd@127.0.0.1/v1', 'temperature': 0.5}
    """
    if value is None or isinstance(value, (bool, int, float, Enum, PurePath)):
        return to_plain(value)
    if isinstance(value, str):
        return without_keys(public_url(value) if "://" in value and " " not in value else value)
    if depth > _DEPTH:
        return class_name(value)
    if isinstance(value, (bytes, bytearray)):
        return blake2b(value, digest_size=8).hexdigest()
    if is_mapping(value):
        return _settings(value, follow, depth)
    if is_list(value) or is_set(value):
        items = [settings_of(item, follow, depth=depth + 1) for item in value]
        return sorted(items, key=repr) if is_set(value) else items
    if isinstance(value, (types.FunctionType, types.MethodType)):
        return _function(value, follow, depth)
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    fields: Mapping[str, object]
    if isinstance(value, BaseModel):
        names = [name for name, field in type(value).model_fields.items() if not field.exclude]
        fields = {name: vars(value).get(name) for name in names} | (value.model_extra or {})
    elif isinstance(value, follow):
        fields = dict(getattr(value, "__dict__", {}))
    else:
        return class_name(value)
    return {"class": class_name(value), **_settings(fields, follow, depth)}


def _settings(values: Mapping[Any, object], follow: tuple[type, ...], depth: int) -> dict[str, object]:
    named = {str(name): value for name, value in values.items() if value is not None}
    return {
        name: request_digest(value)
        if name in _REQUEST_FIELDS and value
        else settings_of(value, follow, depth=depth + 1)
        for name, value in sorted(named.items(), key=lambda item: item[0])
        if name not in _NOT_IDENTITY and not is_secret(name, value)
    }


def _function(function: types.FunctionType | types.MethodType, follow: tuple[type, ...], depth: int) -> object:
    code = function.__code__
    constants = [constant for constant in code.co_consts if isinstance(constant, (str, int, float, bytes))]
    brought: list[object] = [owner] if (owner := getattr(function, "__self__", None)) is not None else []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not set yet
            brought.append(cell.cell_contents)
    return {
        "function": f"{function.__module__}.{function.__qualname__}",
        "code": blake2b(code.co_code + repr((code.co_names, constants)).encode(), digest_size=8).hexdigest(),
        "brought": [settings_of(part, follow, depth=depth + 1) for part in brought],
    }


def _is_key_field(name: str, value: object) -> bool:
    """Whether a field of a request is a key: no number, list or mapping is, such as a schema's `token`."""
    return name.lower() in _KEY_FIELDS and not isinstance(value, (Mapping, list, tuple, int, float))


def is_secret(name: str, value: object) -> bool:
    """Whether a name is of a key, and the value can be one: numbers such as `max_tokens` cannot."""
    if "secret" in type(value).__name__.lower():
        return True
    inside = value.values() if is_mapping(value) else value if is_list(value) or is_set(value) else (value,)
    if all(item is None or isinstance(item, (bool, int, float)) for item in inside):
        return False
    return _SECRET_NAME.search(name) is not None and not _TEXT_TOKEN.fullmatch(name)
