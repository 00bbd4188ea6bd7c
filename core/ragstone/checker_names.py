"""Claim checkers by name: a model behind a server, or an object, a class or a function of a module."""

import inspect
import re
from collections.abc import Sequence
from typing import Any

from ragstone.clients.access import with_path
from ragstone.clients.checkers import MiniCheck
from ragstone.judge_names import is_entry_point, load_entry_point
from ragstone.judging.checkers import BaseClaimChecker

_MODEL_AT = re.compile(r"(?P<model>.+)@(?P<url>https?://.*)")


class _Function(BaseClaimChecker):
    """A function as a claim checker, asked one call after the other: it may be a model in this process."""

    in_turn = True

    def __init__(self, name: str, function: Any) -> None:  # noqa: ANN401 - of whoever wrote it
        self.model = self.identity = name
        self._function = function

    def check(self, text: str, claims: Sequence[str], /) -> Sequence[float]:
        given: Sequence[float] = self._function(text, claims)
        return given


class _AsyncFunction(BaseClaimChecker):
    """An async function as a claim checker."""

    def __init__(self, name: str, function: Any) -> None:  # noqa: ANN401 - of whoever wrote it
        self.model = self.identity = name
        self._function = function

    async def acheck(self, text: str, claims: Sequence[str], /) -> Sequence[float]:
        given: Sequence[float] = await self._function(text, claims)
        return given


def make_checker(name: str) -> object:
    """The claim checker that "checker:MODEL@URL" or "checker:module:name" names.

    The module's object is a claim checker, its class, a function without arguments that makes one, or a function of a
    text and claims that returns the probabilities.

    Raises:
        ValueError: The name is of neither form.
        TypeError: The module's object is none of these.

    Example:
        >>> make_checker("bespoke-minicheck@http://127.0.0.1:11434")
        MiniCheck('bespoke-minicheck', base_url='http://127.0.0.1:11434/v1')
    """
    if match := _MODEL_AT.fullmatch(name):
        return MiniCheck(match["model"], base_url=with_path(match["url"]))
    if not is_entry_point(name):
        raise ValueError("write checker:MODEL@URL or checker:module:name")
    value: Any = load_entry_point(name)
    if callable(value) and not _checks(value) and _accepts(value, "text", ["claim"]):
        return (_AsyncFunction if inspect.iscoroutinefunction(value) else _Function)(name, value)
    makes = callable(value) and (isinstance(value, type) or not _checks(value))
    checker: object = value() if makes else value
    if not _checks(checker):
        raise TypeError(f"{type(checker).__name__} has neither check nor acheck")
    return checker


def _checks(value: object) -> bool:
    return hasattr(value, "check") or hasattr(value, "acheck")


def _accepts(function: Any, *arguments: object) -> bool:  # noqa: ANN401 - of whoever wrote it
    try:
        inspect.signature(function).bind(*arguments)
    except (TypeError, ValueError):
        return False
    return True
