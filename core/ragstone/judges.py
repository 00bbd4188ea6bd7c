"""Judges and embedders by name: the same strings in Python, on the command line and in a worker.

A judge or an embedder is "local", "local:PATH", "local:hf:OWNER/REPO/FILE.gguf", "openai:MODEL", the URL of an
OpenAI-compatible server, "MODEL@URL", or "my_pkg:make_judge". Packages add forms of their own, "NAME:MODEL", by the
entry points `ragstone.judges` and `ragstone.embedders`: functions that get MODEL and return the judge or embedder. By
`ragstone.wrappers` they say how to wrap a framework's model object: "PACKAGE.LLM" or "PACKAGE.Embedder".
"""

import os
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from ragstone.clients.access import check_url
from ragstone.errors import describe
from ragstone.judge import LLM, Asking, Embedder, LLMReply, LLMRequest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    import numpy as np
    from numpy.typing import NDArray

_OPENAI_EMBEDDER = "text-embedding-3-small"
_ENTRY_POINTS = {"llm": "ragstone.judges", "embedder": "ragstone.embedders"}
_NAME = re.compile(
    r"(?P<local>local(:(?P<path>.*))?)|openai:(?P<openai>.+)|((?P<model>(?!https?://).+)@)?(?P<url>https?://.*)"
    r"|(?P<entry>[A-Za-z_][\w.]*:[A-Za-z_][\w.]*)"
)


class RegistryError(ValueError):
    """A name that names nothing, or an option that the named metric does not have; the message says what there is."""


class NullJudge:
    """A judge and embedder that has a name and is never asked: for a dry run, and for checking a metric's options.

    Example:
        >>> NullJudge("gpt-5-mini").model
        'gpt-5-mini'
    """

    def __init__(self, model: str = "none", asking: Asking = "together", *, gives_probabilities: bool = False) -> None:
        self.model = model
        self.asking: Asking = asking
        self.gives_probabilities = gives_probabilities

    def generate(self, request: LLMRequest, /) -> LLMReply:
        """Refuse."""
        raise AssertionError(f"a NullJudge cannot answer {request.task}")

    def embed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Refuse."""
        raise AssertionError(f"a NullJudge cannot embed {len(texts)} texts")

    async def agenerate(self, request: LLMRequest, /) -> LLMReply:
        """Refuse."""
        return self.generate(request)

    async def aembed(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Refuse."""
        return self.embed(texts)


def _packages(role: Literal["llm", "embedder"]) -> list[str]:
    """Return the names of the installed packages that make judges or embedders from names of their own."""
    from importlib.metadata import entry_points  # loaded when first used

    return sorted({each.name for each in entry_points(group=_ENTRY_POINTS[role])} - {"local"})


def _forms() -> str:
    """Return the forms that a name may have."""
    added = "".join(f"{package}:MODEL, " for package in _packages("llm"))
    return f"local, local:PATH, local:hf:OWNER/REPO/FILE.gguf, openai:MODEL, URL, MODEL@URL, {added}or module:function"


def check_name(name: object) -> None:
    """Refuse what is no name of a judge or an embedder. Whether it can be had, only making it tells.

    Raises:
        RegistryError: It is none of the forms.
    """
    if not isinstance(name, str):
        raise RegistryError(f"is {type(name).__name__}, not a name: one of {_forms()}")
    match = _NAME.fullmatch(name)
    if match is None and not _is_added(name):
        raise RegistryError(f"{name[:200]!r} is none of {_forms()}{_near_judge(name)}")
    if match is not None and match["url"]:
        try:
            check_url(match["url"])
        except ValueError as error:
            raise RegistryError(str(error)) from None


def _near_judge(name: str) -> str:
    """Return what may be meant by a provider's or a model's name alone."""
    import difflib  # loaded when first used

    if difflib.get_close_matches(name.lower(), ["local"]):
        return ". Did you mean local?"
    provider, colon, _ = name.partition(":")
    if not colon:
        return f". A model of OpenAI's is openai:{name}"
    near = difflib.get_close_matches(provider.lower(), ["openai"])
    packages = [f"{package}:{name}" for package in _packages("llm")]
    meant = [f"openai:{name.partition(':')[2]}"] if near else packages
    return f". Did you mean {' or '.join(meant)}?" if meant else ""


def is_entry_point(name: str) -> bool:
    """Whether a name is of the form "module:function"."""
    return _part(name, "entry") is not None and not _is_added(name)


def is_local(name: str) -> bool:
    """Whether a name is that of a model in this process: "local" or "local:PATH"."""
    return _part(name, "local") is not None


def _part(name: str, part: str) -> str | None:
    match = _NAME.fullmatch(name)
    return None if match is None else match[part]


def _added(name: str, role: Literal["llm", "embedder"]) -> "EntryPoints":
    """Return the entry point that makes judges or embedders of the form "NAME:MODEL", if a package has one."""
    from importlib.metadata import entry_points  # loaded when first used

    return entry_points(group=_ENTRY_POINTS[role], name=name.partition(":")[0])


def _is_added(name: str) -> bool:
    match = _NAME.fullmatch(name)
    ours = match is not None and match["entry"] is None
    return not ours and name.partition(":")[2] != "" and bool(_added(name, "llm") or _added(name, "embedder"))


def make_llm(name: str, **settings: Any) -> LLM:  # noqa: ANN401
    """Return the judge of a name. No model is loaded yet; a bare URL asks its server for the model.

    Args:
        name: The judge.
        settings: Of `OpenAICompatible`, such as `max_concurrency`, for a judge that is asked over HTTP.

    Raises:
        RegistryError: The name names none.
        ImportError: An extra is not installed; the message names it.
        Exception: What making it raises.
    """
    llm: LLM = _made(name, "llm", settings)
    return llm


def make_embedder(name: str | None, llm: "LLM | str", *, llm_name: str = "", **settings: Any) -> Embedder:  # noqa: ANN401
    """Return the embedder of a name; for None the one that goes with the judge.

    That is "text-embedding-3-small" for "openai:MODEL", the embedded one for "local" and for a `LocalLLM`, and the
    judge itself where it embeds, as a server does. Nothing goes with a judge of LangChain.

    Args:
        name: The embedder.
        llm: The judge, or its name.
        llm_name: The name by which the judge was made.
        settings: As for `make_llm`.

    Raises:
        RegistryError: The name names none, or nothing goes with the judge.
        ImportError: An extra is not installed; the message names it.
        Exception: What making it raises.
    """
    llm_name = llm if isinstance(llm, str) else llm_name
    if name is None and llm_name.startswith("openai:"):
        name = f"openai:{_OPENAI_EMBEDDER}"
    elif name is None and (is_local(llm_name) or is_embedded(llm)):
        name = "local"
    embedder: object = llm
    if name is not None or (isinstance(llm, str) and not _is_added(llm)):
        embedder = _made(name or llm_name, "embedder", settings)
    if not isinstance(embedder, Embedder):
        what = embedder if isinstance(embedder, str) else type(embedder).__name__
        wrapper = wrapper_of(embedder, "LLM" if embedder is llm else "Embedder")
        raise RegistryError(
            f"{what} is no judge yet; {wrapper}"
            if wrapper
            else f"{what} does not embed texts; name an embedder ({_forms()})"
        )
    return embedder


def wrapper_of(model: object, role: Literal["LLM", "Embedder"]) -> str | None:
    """Return how to wrap a framework's model object; None where no installed package wraps it."""
    from importlib.metadata import entry_points  # loaded when first used

    for kind in type(model).__mro__:
        package = kind.__module__.partition(".")[0]
        for wrapper in entry_points(group="ragstone.wrappers", name=f"{package}.{role}"):
            return f"wrap it: {wrapper.value.replace(':', '.')}(model)"
    return None


def is_embedded(llm: object) -> bool:
    """Whether a judge is one that the embedded embedder goes with."""
    return getattr(llm, "embedder", None) == "local"


def model_of(name: str) -> str:
    """Return what a judge would be called, without making it.

    Raises:
        RegistryError: The name names none.

    Example:
        >>> model_of("openai:gpt-5-mini"), model_of("qwen3@http://127.0.0.1:8080/v1")
        ('gpt-5-mini', 'qwen3')
    """
    check_name(name)
    return _part(name, "openai") or _part(name, "model") or name


def _made(name: str, role: Literal["llm", "embedder"], settings: Mapping[str, Any]) -> Any:  # noqa: ANN401
    check_name(name)
    if is_local(name) or _is_added(name):
        return _made_by_package(name, role)
    if is_entry_point(name):
        try:
            return load_entry_point(name, call=True)
        except RegistryError as error:
            raise RegistryError(f"{error}{_near_judge(name)}") from error.__cause__
    from ragstone.clients.compatible import OpenAICompatible  # loaded when one is made

    url, model = _part(name, "url"), _part(name, "openai") or _part(name, "model")
    return OpenAICompatible(model, **settings) if url is None else OpenAICompatible.at(url, model, **settings)


def _made_by_package(name: str, role: Literal["llm", "embedder"]) -> object:
    package, _, model = name.partition(":")
    if not (added := _added(name, role)):
        raise RegistryError(f"{name}: {package} makes no {role}; there is no entry point of {_ENTRY_POINTS[role]}")
    try:
        return next(iter(added)).load()(model)
    except ImportError:  # it names what to install
        raise
    except Exception as error:  # code of somebody's own
        raise RegistryError(f"{name} cannot be made ({describe(error)})") from error


def load_calibration(path: str | os.PathLike[str]) -> Any:  # noqa: ANN401 - of a wing that the core does not know
    """Return a calibration that a file holds, for the option `calibration` of a metric.

    Raises:
        RegistryError: No installed package reads calibrations.
        ValueError: The file holds none.
        ImportError: An extra is not installed; the message names it.
    """
    from importlib.metadata import entry_points  # loaded when first used

    reader = next(iter(entry_points(group="ragstone.calibrations")), None)
    if reader is None:
        raise RegistryError(f"{path}: no installed package reads calibrations")
    return reader.load()(path)


def load_entry_point(name: str, *, call: bool = False) -> object:
    """Return what an entry point "module:name" names; with `call` what that returns, where it can be called."""
    module, _, path = name.partition(":")
    try:
        value: Any = import_module(module)
        for part in path.split("."):
            value = getattr(value, part)
        return value() if call and callable(value) else value
    except Exception as error:  # code of somebody's own
        raise RegistryError(f"{name} cannot be loaded ({describe(error)})") from error
