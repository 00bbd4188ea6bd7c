"""Judges, embedders and metrics by name: what a worker makes for itself, so that no live client is sent to it."""

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar, cast

from ragstone.errors import describe
from ragstone.judge import LLM, Asking, Embedder, LLMReply, LLMRequest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
_ENTRY_POINT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_FORMS = "local, local:PATH, openai:MODEL, URL, MODEL@URL, or module:function"


class SpecError(ValueError):
    """A spec says what cannot be, or names what this machine does not have; the message says which part of it."""


class Nobody:
    """Stands where a judge and an embedder will be, while a spec is checked; is never asked anything."""

    model = "nobody"
    asking: Asking = "together"

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Refuse."""
        raise AssertionError(f"nobody was asked {request.task}")

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        """Refuse."""
        return self.generate(request)

    def embed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Refuse."""
        raise AssertionError(f"nobody was asked to embed {len(texts)} texts")

    async def aembed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Refuse."""
        return self.embed(texts)


def check_name(what: str, name: object) -> None:
    """Refuse what names no judge or embedder. Whether it is there is found out where it is made.

    Raises:
        SpecError: Names the forms that there are; a password in the address is refused too.

    Example:
        >>> check_name("judge", "gpt-5-mini")
        Traceback (most recent call last):
            ...
        ragstone.distributed.judges.SpecError: judge: 'gpt-5-mini' is none of local, local:PATH, openai:MODEL, URL, \
MODEL@URL, or module:function
    """
    if not isinstance(name, str):
        raise SpecError(f"{what}: is {type(name).__name__}, not text: a spec names it ({_FORMS}); each worker makes it")
    url = _url(name)
    if url is not None:
        if "@" in url.partition("://")[2].partition("/")[0]:
            raise SpecError(f"{what}: the address holds a password, and specs are kept and sent; set OPENAI_BASE_URL "
                            "and OPENAI_API_KEY on each worker, or write a function that makes it")  # fmt: skip
        return
    known = name == "local" or (name.startswith(("local:", "openai:")) and not name.endswith(":"))
    if not known and not _ENTRY_POINT.fullmatch(name):
        raise SpecError(f"{what}: {name[:200]!r} is none of {_FORMS}")


def make_judge(name: str, max_concurrency: int) -> LLM:
    """Return the judge of that name, made here and now.

    Raises:
        SpecError: It cannot be made on this machine.
    """
    if name.startswith("local"):
        from ragstone.local import LocalLLM

        return _made("judge", name, lambda: LocalLLM(name.removeprefix("local").removeprefix(":") or None))
    made = _made("judge", name, lambda: _remote(name, max_concurrency))
    if not isinstance(made, LLM):
        raise SpecError(f"judge: {name} gave a {type(made).__name__}, which is no judge: it lacks generate, agenerate, "
                        "model or asking")  # fmt: skip
    return made


def make_embedder(name: str | None, judge_name: str, judge: LLM, max_concurrency: int) -> Embedder:
    """Return the embedder of that name; for None what goes with the judge: its own server, or the embedded one.

    Raises:
        SpecError: It cannot be made on this machine, or the judge has none that goes with it.
    """
    if name is None and judge_name.startswith("openai:"):
        name = "openai:text-embedding-3-small"
    elif name is None and judge_name.startswith("local"):
        name = "local"
    if name is None:
        made: object = judge
        name = judge_name
    elif name.startswith("local"):
        from ragstone.local import LocalEmbedder

        path = name.removeprefix("local").removeprefix(":") or None
        made = _made("embedder", name, lambda: LocalEmbedder(path))
    else:
        given = name
        made = _made("embedder", name, lambda: _remote(given, max_concurrency))
    if not isinstance(made, Embedder):
        raise SpecError(f"embedder: {name} gave a {type(made).__name__}, which does not embed; name an embedder")
    return made


def found(what: str, name: str) -> object:
    """Return what an entry point "module:name" names.

    Raises:
        SpecError: The module cannot be imported, or has nothing of the name.
    """
    module, _, path = name.partition(":")
    try:
        value: object = import_module(module)
        for part in path.split("."):
            value = getattr(value, part)
    except Exception as error:
        raise SpecError(
            f"{what}: {name} cannot be imported ({describe(error)}); each worker must have it installed"
        ) from error
    return value


def is_entry_point(name: str) -> bool:
    """Whether a name is of the form "module:function"."""
    return _ENTRY_POINT.fullmatch(name) is not None and not name.startswith(("local:", "openai:"))


def _remote(name: str, max_concurrency: int) -> object:
    if is_entry_point(name):
        make = found("judge", name)
        return make() if callable(make) else make
    from ragstone.clients import OpenAICompatible

    if name.startswith("openai:"):
        return OpenAICompatible(name.removeprefix("openai:"), max_concurrency=max_concurrency)
    url = cast("str", _url(name))
    model = name.removesuffix(url).removesuffix("@") or None
    return OpenAICompatible.at(url, model, max_concurrency=max_concurrency)


def _url(name: str) -> str | None:
    if name.startswith(("http://", "https://")):
        return name
    model, at, rest = name.rpartition("@http")
    return f"http{rest}" if at and model and rest.startswith(("://", "s://")) else None


def _made(what: str, name: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except SpecError:
        raise
    except Exception as error:
        raise SpecError(f"{what}: {name} cannot be had on this machine: {describe(error)}") from error
