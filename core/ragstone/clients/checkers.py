"""Claim checkers by name: Bespoke-MiniCheck behind a server, and objects and functions of your own."""

import inspect
import re
from collections.abc import Sequence
from typing import Any

from ragstone.clients.access import AnswerError, with_path
from ragstone.clients.compatible import OpenAICompatible
from ragstone.judge import BaseClaimChecker, LLMReply, LLMRequest
from ragstone.judge_names import is_entry_point, load_entry_point
from ragstone.judging.prompt import sendable

_MODEL_AT = re.compile(r"(?P<model>.+)@(?P<url>https?://.*)")
_YES, _NO = "Yes", "No"


class MiniCheck(OpenAICompatible):
    r"""Bespoke-MiniCheck, a claim checker, behind a server that speaks OpenAI's API, such as Ollama or vLLM.

    Each claim is one chat completion: "Document: ...\nClaim: ...", which the model answers with Yes or No. The
    probability comes from the log-probabilities of that word; without them it is 1 or 0. The weights are not for
    commercial use. Arguments are those of `OpenAICompatible`.

    Attributes:
        most_claims: 1: a claim a call.
        most_tokens: The longest text of a call. Ollama reads 4,096 tokens where nothing else is set, and cuts the rest
            off without a word; where your server reads more, set more.

    Source:
        Ollama, "bespoke-minicheck" (library page).

    Example:
        >>> MiniCheck("bespoke-minicheck", base_url="http://127.0.0.1:11434/v1")
        MiniCheck('bespoke-minicheck', base_url='http://127.0.0.1:11434/v1')
    """

    most_claims: int = 1
    most_tokens: int = 3_000

    def check(self, text: str, claims: Sequence[str], /) -> Sequence[float]:
        """Return for each claim the probability that the text supports it, blocking the calling thread.

        Raises:
            openai.OpenAIError: The server cannot be reached or refused, after the retries.
            AnswerError: The server's answer is neither Yes nor No.
        """
        return [self._support(self.generate(_request(text, claim))) for claim in claims]

    async def acheck(self, text: str, claims: Sequence[str], /, *, max_retries: int | None = None) -> Sequence[float]:
        """Return for each claim the probability that the text supports it; otherwise as `check`."""
        replies = [await self.agenerate(_request(text, claim), max_retries=max_retries) for claim in claims]
        return [self._support(reply) for reply in replies]

    def _support(self, reply: LLMReply) -> float:
        if reply.text not in (_YES, _NO):
            raise AnswerError(f"{self._access.shown} answered {reply.text[:80]!r}, neither {_YES} nor {_NO}")
        return reply.probabilities[_YES] if reply.probabilities else float(reply.text == _YES)


def _request(text: str, claim: str) -> LLMRequest:
    prompt = sendable(f"Document: {text}\nClaim: {claim}")
    return LLMRequest("checker.claim", "", prompt, {"type": "string", "enum": [_YES, _NO]}, choices=(_YES, _NO))


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

    What a module has may be a claim checker, its class or another function without arguments that makes one, or a
    function of a text and claims that returns the probabilities.

    Raises:
        ValueError: The name is of neither form.
        TypeError: What the module has is none of these.

    Example:
        >>> make_checker("bespoke-minicheck@http://127.0.0.1:11434")
        MiniCheck('bespoke-minicheck', base_url='http://127.0.0.1:11434/v1')
    """
    if match := _MODEL_AT.fullmatch(name):
        return MiniCheck(match["model"], base_url=with_path(match["url"]))
    if not is_entry_point(name):
        raise ValueError("write checker:MODEL@URL or checker:module:name")
    value: Any = load_entry_point(name)
    if callable(value) and not _checks(value) and _takes(value, "text", ["claim"]):
        return (_AsyncFunction if inspect.iscoroutinefunction(value) else _Function)(name, value)
    makes = callable(value) and (isinstance(value, type) or not _checks(value))
    checker: object = value() if makes else value
    if not _checks(checker):
        raise TypeError(f"{type(checker).__name__} has neither check nor acheck")
    return checker


def _checks(value: object) -> bool:
    return hasattr(value, "check") or hasattr(value, "acheck")


def _takes(function: Any, *arguments: object) -> bool:  # noqa: ANN401 - of whoever wrote it
    try:
        inspect.signature(function).bind(*arguments)
    except (TypeError, ValueError):
        return False
    return True
