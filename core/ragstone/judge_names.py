"""Judges and embedders by name: the same strings in Python, on the command line and in a worker.

A judge or an embedder is "local", "local:PATH", "local:hf:OWNER/REPO/FILE.gguf", "openai:MODEL", the URL of an
OpenAI-compatible server, "MODEL@URL", or "my_pkg:make_judge". A judge that is asked over HTTP takes settings behind a
question mark: "openai:MODEL?temperature=0.2&seed=7". Packages add forms of their own, "NAME:MODEL", by the
entry points `ragstone.judges` and `ragstone.embedders`: functions that get MODEL and return the judge or embedder. One
that is named as the top package of a model object's class, or of a class that this is derived from, gets such objects.
"""

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from ragstone.errors import RagstoneError, describe
from ragstone.judge import LLM, Asking, BaseEmbedder, BaseLLM, Embedder, LLMReply, LLMRequest
from ragstone.options import Text, checked

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    import numpy as np
    from numpy.typing import NDArray

_OPENAI_EMBEDDER = "openai:text-embedding-3-small"
_ENTRY_POINTS = {"llm": "ragstone.judges", "embedder": "ragstone.embedders"}
# Our own entry points put these names before a model.
_OURS = {"checker", "local", "openai-decisions", "systemone"}
_NAME = re.compile(
    r"(?P<local>local(:(?P<path>.*))?)|openai:(?P<openai>.+)|((?P<model>(?!https?://).+)@)?(?P<url>https?://.*)"
    r"|(?P<entry>[A-Za-z_][\w.]*:[A-Za-z_][\w.]*)"
)
_SETTINGS: Mapping[str, Any] = {
    "temperature": Annotated[float, Field(ge=0, allow_inf_nan=False)],
    "seed": int,
    "reasoning_effort": Text,
}
"""What may stand behind a judge's name, "?temperature=0.2&seed=7": arguments of `OpenAICompatible`."""
# These are no settings, and of no server's address.
_NO_SETTINGS = ("max_tokens", "timeout", "top_k", "top_p")


class RegistryError(RagstoneError, ValueError):
    """A name that names nothing, or an option that the named metric does not have; the message says what there is."""


class NullJudge(BaseLLM, BaseEmbedder):
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


def check_name(name: object) -> None:
    """Refuse anything but a name of a judge or an embedder. Whether it can be had, only making it tells.

    Raises:
        RegistryError: It is none of the forms.
    """
    if not isinstance(name, str):
        raise RegistryError(f"is {type(name).__name__}, not a name: one of {forms()}")
    bare, _ = _settings(name)
    match = _NAME.fullmatch(bare)
    if match is None and not _is_added(name):
        raise RegistryError(f"{name[:200]!r} is none of {forms()}{_near_judge(name)}")
    if match is not None and match["url"]:
        from ragstone.clients.access import check_url

        try:
            check_url(match["url"])
        except ValueError as error:
            raise RegistryError(str(error)) from None


def _near_judge(name: str) -> str:
    # Loaded where a name is none.
    from ragstone.near_judges import near_judge

    return near_judge(name, _packages())


def _packages() -> list[str]:
    """Return the names that installed packages put before their judges."""
    from importlib.metadata import entry_points

    # A class, rather than a function, gets objects and no names; of one function's names people write the shortest.
    judges = [each for each in entry_points(group=_ENTRY_POINTS["llm"]) if not each.attr[:1].isupper()]
    names = {each.value: each.name for each in sorted(judges, key=lambda each: len(each.name), reverse=True)}
    return sorted({*names.values()} - _OURS)


def forms() -> str:
    """Return the forms that the name of a judge or an embedder may have."""
    added = "".join(f"{package}:MODEL, " for package in _packages())
    ours = "local, local:PATH, local:hf:OWNER/REPO/FILE.gguf, openai:MODEL, URL, MODEL@URL"
    return f"{ours}, openai-decisions:MODEL, systemone:URL, checker:MODEL@URL, {added}or module:function"


def is_entry_point(name: str) -> bool:
    """Whether a name is of the form "module:function"."""
    return _part(name, "entry") is not None and not _is_added(name)


def is_local(name: str) -> bool:
    """Whether a name is that of a model in this process: "local" or "local:PATH"."""
    return _part(name, "local") is not None


def _settings(name: str) -> tuple[str, dict[str, Any]]:
    """Return a judge's name without the settings behind its question mark, and these."""
    bare, mark, query = name.partition("?")
    if not mark:
        return name, {}
    pairs = [pair.partition("=") for pair in query.split("&")]
    given = {key: text for key, _, text in pairs}
    if _is_added(bare) or not (bare.startswith("openai:") or "://" in bare):
        if meant := given.keys() & _SETTINGS.keys():
            raise RegistryError(f"{name}: {min(meant)}: only openai:MODEL, URL and MODEL@URL take settings")
        return name, {}
    # These are of the server's address.
    others = {key: text for key, text in given.items() if key not in _SETTINGS}
    if wrong := sorted(key for key in others if bare.startswith("openai:") or _is_like_a_setting(key)):
        example = f"{bare}?temperature=0.2&seed=7"
        there = f"there is no setting {wrong[0]!r}; there are {', '.join(_SETTINGS)}"
        raise RegistryError(f"{name}: {there}: {example}")
    if len(given) < len(pairs):
        raise RegistryError(f"{name}: a setting is there twice")
    try:
        settings = {key: checked(key, given[key], kind) for key, kind in _SETTINGS.items() if key in given}
    except ValueError as error:
        raise RegistryError(f"{name}: {error}") from None
    address = "&".join(map("=".join, others.items()))
    return f"{bare}?{address}" if others else bare, settings


def _is_like_a_setting(key: str) -> bool:
    import difflib

    return bool(difflib.get_close_matches(key, (*_SETTINGS, *_NO_SETTINGS), n=1, cutoff=0.75))


def _part(name: str, part: str) -> str | None:
    match = _NAME.fullmatch(_settings(name)[0])
    return None if match is None else match[part]


def _added(name: str, role: Literal["llm", "embedder"]) -> "EntryPoints":
    """Return the entry point that makes judges or embedders of "NAME:MODEL" or of a package's objects, if any."""
    from importlib.metadata import entry_points

    return entry_points(group=_ENTRY_POINTS[role], name=name.partition(":")[0])


def _is_added(name: str) -> bool:
    prefix, _, rest = name.partition(":")
    if not rest or prefix in ("local", "openai", "http", "https"):
        return False
    return bool(_added(name, "llm") or _added(name, "embedder"))


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
    llm: LLM = _make_by_name(name, "llm", settings)
    return llm


def make_embedder(name: str | None, llm: "LLM | str", **settings: Any) -> Embedder:  # noqa: ANN401
    """The embedder of a name; for None the one that goes with the judge.

    That is "text-embedding-3-small" for "openai:MODEL", the embedded one for "local" and for a `LocalLLM`, and the
    judge itself where it embeds, as a server does.

    Args:
        name: The embedder.
        llm: The judge, or its name.
        settings: As for `make_llm`.

    Raises:
        RegistryError: The name names none, or nothing goes with the judge.
        ImportError: An extra is not installed; the message names it.
        Exception: What making it raises.
    """
    embedder: object = llm
    if name is None:
        name = _embedder_name(llm)
    if name is None and isinstance(llm, str) and not _is_added(llm):
        name = llm
    if name is not None:
        embedder = _make_by_name(name, "embedder", settings)
    if not isinstance(embedder, Embedder):
        what = embedder if isinstance(embedder, str) else type(embedder).__name__
        raise RegistryError(f"{what} does not embed texts; name an embedder ({forms()})")
    return embedder


def _embedder_name(llm: "LLM | str") -> str | None:
    """The name of the embedder that goes with a judge; None: the judge itself, if any."""
    if not isinstance(llm, str):
        own: object = getattr(llm, "embedder", None)
        return own if isinstance(own, str) else None
    if llm.startswith("openai:"):
        return _OPENAI_EMBEDDER
    return "local" if is_local(llm) else None


def wrapped(model: object, role: Literal["llm", "embedder"]) -> object:
    """Return the judge or embedder of a framework's model object; what no installed package wraps, as it is.

    Raises:
        Exception: What wrapping it raises.
    """
    for kind in type(model).__mro__:
        for wrapper in _added(kind.__module__.partition(".")[0], role):
            return wrapper.load()(model)
    return model


def is_embedded(llm: object) -> bool:
    """Whether a judge is the embedded one, which the embedded embedder goes with."""
    return getattr(llm, "embedder", None) == "local"


def model_of(name: str) -> str:
    """The `model` that a judge would have, without making it.

    Raises:
        RegistryError: The name names none.

    Example:
        >>> model_of("openai:gpt-5-mini"), model_of("qwen3@http://127.0.0.1:8080/v1?seed=7")
        ('gpt-5-mini', 'qwen3')
    """
    check_name(name)
    return _part(name, "openai") or _part(name, "model") or name


def _make_by_name(name: str, role: Literal["llm", "embedder"], settings: Mapping[str, Any]) -> Any:  # noqa: ANN401
    check_name(name)
    if is_local(name) or _is_added(name):
        return _make_by_package(name, role)
    if is_entry_point(name):
        try:
            return load_entry_point(name, call=True)
        except RegistryError as error:
            raise RegistryError(f"{error}{_near_judge(name)}") from error.__cause__
    from ragstone import clients

    client: Any = clients.OpenAICompatible
    settings = {**settings, **_settings(name)[1]}
    url, model = _part(name, "url"), _part(name, "openai") or _part(name, "model")
    if url is not None:
        return client.at(url, model, **settings)
    made = client(model, **settings)
    # OpenAI's judges do not embed: `make_embedder` reads what goes with them
    made.embedder = _OPENAI_EMBEDDER
    return made


def _make_by_package(name: str, role: Literal["llm", "embedder"]) -> object:
    package, _, model = name.partition(":")
    if not (added := _added(name, role)):
        raise RegistryError(f"{name}: {package} makes no {role}; there is no entry point of {_ENTRY_POINTS[role]}")
    try:
        return next(iter(added)).load()(model)
    except ImportError:
        # It names what to install.
        raise
    except Exception as error:
        # Code of somebody's own may raise anything.
        raise RegistryError(f"{name} cannot be made ({describe(error)})") from error


def load_entry_point(name: str, *, call: bool = False) -> object:
    """The object that an entry point "module:name" names; with `call` the one that it returns, if it can be called."""
    module, _, path = name.partition(":")
    try:
        value: Any = import_module(module)
        for part in path.split("."):
            value = getattr(value, part)
        return value() if call and callable(value) else value
    except (Exception, SystemExit) as error:
        # Code of somebody's own may raise anything.
        raise RegistryError(f"{name} cannot be loaded ({describe(error)})") from error
