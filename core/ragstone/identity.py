"""What makes a judge or an embedder: the part of a journal's keys by which two of one model's name are told apart."""

import json
import re
import types
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from enum import Enum
from hashlib import blake2b, sha256
from pathlib import PurePath
from typing import cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pydantic import BaseModel

_DEPTH = 12
# Fields of the request itself, under whatever name: each can change the answer.
_REQUEST_FIELDS = frozenset(("additional_kwargs", "extra_body", "model_kwargs"))
_KEY_FIELDS = frozenset(("access_token", "api_key", "apikey", "authorization", "password", "secret", "token"))
_SECRET_NAME = re.compile(
    r"key(?!word)|token(?!iz)|secret|passw|auth(?!ors?\b)|credential|cookie|bearer|signature|^sig$|^pwd$|^proxies$|proxy$",
    re.IGNORECASE,
)
_TEXT_TOKEN = re.compile(r"(bos|eos|pad|unk|sep|stop|think\w*)_token", re.IGNORECASE)
_SECRET_TEXT = re.compile(
    r"\b(?:bearer|basic)\s+\S+|\b(?:sk|pk|gsk|hf|xai|ghp)[-_]\S{8,}|\b(?:AKIA|AIza)\w{12,}", re.IGNORECASE
)
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


def identity_of(judge: object) -> str | Mapping[str, object]:
    """Return what makes a judge or an embedder: its own `identity`, else its class and its `model`.

    Raises:
        IdentityError: Its `identity` is neither a text nor a mapping.

    Example:
        >>> from ragstone.testing import FakeLLM
        >>> identity_of(FakeLLM(lambda request: "yes"))
        {'class': 'FakeLLM', 'model': 'fake'}
    """
    identity: object = getattr(judge, "identity", None)
    if identity is None:
        return {"class": class_name(judge), "model": getattr(judge, "model", None)}
    if not isinstance(identity, (str, Mapping)):
        raise IdentityError(f"{type(judge).__name__}.identity: is {type(identity).__name__}, not a text or a mapping")
    return cast("str | Mapping[str, object]", identity)


def identity_json(judge: object) -> str:
    """Return `identity_of` as JSON, the same text for the same identity.

    Raises:
        IdentityError: Its `identity` is neither a text nor a mapping that JSON can hold.
    """
    identity = identity_of(judge)
    try:
        return json.dumps(identity if isinstance(identity, str) else dict(identity), sort_keys=True)
    except (TypeError, ValueError) as error:
        raise IdentityError(f"{type(judge).__name__}.identity: holds what JSON cannot ({error})") from None


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
        query = [(name, value) for name, value in parse_qsl(parts.query) if not _is_secret(name, value)]
    except ValueError:
        return ""
    host = parts.netloc.rpartition("@")[2]
    user = f"{sha256(parts.username.encode()).hexdigest()[:16]}@" if parts.username else ""
    return urlunsplit((parts.scheme, user + host, parts.path, urlencode(query), ""))


def request_digest(fields: Mapping[str, object]) -> str:
    """Return a digest of further fields of a request, whole but for the texts of fields such as `api_key`.

    Example:
        >>> request_digest({"tags": ["a"], "api_key": "abc"}) == request_digest({"tags": ["a"], "api_key": "another"})
        True
        >>> request_digest({"tags": ["a"]}) == request_digest({"tags": ["b"]})
        False
    """
    return _Reader(()).digest(fields)


def settings_of(value: object, follow: tuple[type, ...] = ()) -> object:
    """Return the settings of a framework's model object, or any value of them, as JSON holds it and without keys.

    Fields of pydantic models, mappings, lists and plain values are followed. Another object counts by its class, a
    function by its name and code. What is no part of who answers (time-outs, retries, callbacks, tags) is left out;
    so is what looks like a key by its name (`api_key`, `Authorization`) or by itself (`sk-...`, `Bearer ...`).
    Fields of the request (`extra_body`, `model_kwargs`, `additional_kwargs`) count whole, as `request_digest`.

    Args:
        value: The object or value.
        follow: Classes whose attributes are followed, too.

    Example:
        >>> settings_of({"temperature": 0.5, "api_key": "abc", "base_url": "http://me:pw@127.0.0.1/v1", "timeout": 9})
        {'base_url': 'http://2744ccd10c7533bd@127.0.0.1/v1', 'temperature': 0.5}
    """
    return _Reader(follow).plain(value, 0)


class _Reader:
    """Turns values into what JSON holds, to a depth."""

    def __init__(self, follow: tuple[type, ...]) -> None:
        self._follow = follow

    def plain(self, value: object, depth: int) -> object:
        if isinstance(value, Enum):
            return self.plain(value.value, depth)
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, str):
            text = _SECRET_TEXT.sub("***", value)
            return public_url(text) if "://" in text and " " not in text else text
        if depth > _DEPTH:
            return class_name(value)
        if isinstance(value, (bytes, bytearray)):
            return blake2b(value, digest_size=8).hexdigest()
        if isinstance(value, PurePath):
            return str(value)
        if isinstance(value, Mapping):
            return self._mapping(cast("Mapping[object, object]", value), depth)
        if isinstance(value, Set):
            return sorted((self.plain(item, depth + 1) for item in cast("Set[object]", value)), key=repr)
        if isinstance(value, (list, tuple)):
            return [self.plain(item, depth + 1) for item in cast("Sequence[object]", value)]
        if isinstance(value, (types.FunctionType, types.MethodType)):
            return self._function(value, depth)
        if isinstance(value, type):
            return f"{value.__module__}.{value.__qualname__}"
        return self._object(value, depth)

    def _mapping(self, values: Mapping[object, object], depth: int) -> dict[str, object]:
        named = {str(name): value for name, value in values.items()}
        return {
            name: self._setting(name, named[name], depth + 1)
            for name in sorted(named)
            if named[name] is not None and name not in _NOT_IDENTITY and not _is_secret(name, named[name])
        }

    def _setting(self, name: str, value: object, depth: int) -> object:
        return self.digest(value) if name in _REQUEST_FIELDS and value else self.plain(value, depth)

    def digest(self, fields: object) -> str:
        return sha256(json.dumps(self._whole(fields), sort_keys=True).encode()).hexdigest()

    def _whole(self, value: object) -> object:
        if isinstance(value, str):
            return str(value)
        if isinstance(value, Mapping):
            items = [(str(name), inside) for name, inside in cast("Mapping[object, object]", value).items()]
            return {name: self._whole(inside) for name, inside in items if not _is_key_field(name, inside)}
        if isinstance(value, (list, tuple)):
            return [self._whole(item) for item in cast("Sequence[object]", value)]
        return self.plain(value, 0)

    def _object(self, value: object, depth: int) -> object:
        fields: dict[str, object]
        if isinstance(value, BaseModel):
            names = [name for name, field in type(value).model_fields.items() if not field.exclude]
            fields = {name: vars(value).get(name) for name in names} | (value.model_extra or {})
        elif isinstance(value, self._follow):
            fields = dict(getattr(value, "__dict__", {}))
        else:
            return class_name(value)
        return {"class": class_name(value), **self._mapping(cast("dict[object, object]", fields), depth)}

    def _function(self, function: types.FunctionType | types.MethodType, depth: int) -> object:
        code = function.__code__
        constants = [constant for constant in code.co_consts if isinstance(constant, (str, int, float, bytes))]
        digest = blake2b(code.co_code + repr((code.co_names, constants)).encode(), digest_size=8).hexdigest()
        brought: list[object] = []
        for cell in function.__closure__ or ():
            with suppress(ValueError):  # not set yet
                brought.append(self.plain(cell.cell_contents, depth + 1))
        owner = getattr(function, "__self__", None)
        return {
            "function": f"{function.__module__}.{function.__qualname__}",
            "code": digest,
            "brought": [*brought, *([] if owner is None else [self.plain(owner, depth + 1)])],
        }


def _is_key_field(name: str, value: object) -> bool:
    """Whether a field of a request is a key: no number, list or mapping is, such as a schema's `token`."""
    return name.lower() in _KEY_FIELDS and not isinstance(value, (Mapping, list, tuple, int, float))


def _is_secret(name: str, value: object) -> bool:
    """Whether a name is of a key, and the value can be one: numbers such as `max_tokens` cannot."""
    if "secret" in type(value).__name__.lower():
        return True
    if isinstance(value, Mapping):
        inside = list(cast("Mapping[object, object]", value).values())
    elif isinstance(value, (list, tuple, Set)):
        inside = list(cast("Sequence[object]", value))
    else:
        inside = [value]
    if all(item is None or isinstance(item, (bool, int, float)) for item in inside):
        return False
    return _SECRET_NAME.search(name) is not None and not _TEXT_TOKEN.fullmatch(name)
