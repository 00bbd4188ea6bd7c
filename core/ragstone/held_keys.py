"""The keys that model objects hold. No error's text may show them."""

import re
from collections.abc import Iterator
from contextlib import suppress

from pydantic import BaseModel, SecretStr

from ragstone.plain import is_list, is_mapping

_DEEPEST = 6
_NAME_OF_A_KEY = (
    r"(?i)api[_-]?key|(?:access|account|auth|bearer|secret|session)[_-]?(?:key|token)|password|^token$|^authorization$"
)
_SCHEMED = r"(?i)(?:bearer|basic|token) +\S+$"


def secrets_in(model: object) -> tuple[str, ...]:
    """Return the keys that a pydantic model object holds, in itself or in what it wraps.

    Those are its `SecretStr`s and the texts of fields, mappings and headers named like a key, such as `api_key`.
    """
    return tuple(dict.fromkeys(key for key in _secrets("", model, _DEEPEST) if key))


def _secrets(name: str, value: object, depth: int) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, str):
        if re.search(_NAME_OF_A_KEY, name) or re.match(_SCHEMED, value):
            # Of "Bearer KEY" this is the key.
            yield value.rpartition(" ")[2]
    elif depth and is_list(value):
        for part in value:
            yield from _secrets(name, part, depth - 1)
    elif depth and isinstance(value, BaseModel):
        yield from _secrets(name, {**vars(value), **(value.__pydantic_extra__ or {})}, depth)
    elif depth and is_mapping(value):
        for key, part in value.items():
            yield from _secrets(str(key), part, depth - 1)


def secrets_of(*adapters: object) -> tuple[str, ...]:
    """Return the keys of judges and embedders that have an attribute `secrets`."""
    secrets: list[str] = []
    for adapter in adapters:
        # A class of somebody's own may raise anything.
        with suppress(Exception):
            value: object = getattr(adapter, "secrets", ())
            secrets += [key for key in value if isinstance(key, str)] if is_list(value) else ()
    return tuple(secrets)
