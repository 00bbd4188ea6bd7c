"""Who a metric asks: judge, writer and embedder, as objects or by name."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from inspect import getattr_static
from typing import Literal, cast

from ragstone.judge import LLM, Embedder, Judge
from ragstone.judge_names import RegistryError, make_embedder, make_llm, wrapped

_LLM = ("model", "asking", "generate", "agenerate")
_DECISIONS = ("model", "most_questions", "decide", "adecide")
_CHECKER = ("model", "most_claims", "check", "acheck")
_EMBEDDER = ("model", "embed", "aembed")
_INSTEAD = (
    "pass its name, or a ragstone {0}: OpenAICompatible of ragstone.clients, Local{0} of ragstone.local, or one of an "
    "integration; ragstone.Base{0} makes one of a class with {1} or a{1}"
)


def judge_of(role: Literal["llm", "writer"], judge: object, **settings: object) -> Judge:
    """The judge or writer of an option: made by its name, a framework's model wrapped, or the object itself.

    Raises:
        RegistryError: The name names none.
        TypeError: The object lacks a member.
    """
    if isinstance(judge, str):
        with naming(role):
            judge = make_llm(judge, **settings)
    is_judge = _has(judge, _LLM) or _has(judge, _DECISIONS)
    names = _CHECKER[1:2] if is_judge else _CHECKER[1:]
    is_checker = any(_has(judge, (name,)) for name in names)
    if role == "writer" and (is_checker or getattr(judge, "claims_only", False)):
        model: object = getattr(judge, "model", type(judge).__name__)
        raise TypeError(f"writer: {model!r} is a claim checker, which writes no texts; name an LLM")
    if is_checker:
        check_members(role, judge, _CHECKER, "ragstone.BaseClaimChecker makes one of a class with check or acheck")
        # Loaded when first used.
        from ragstone.judging.checkers import ClaimChecker, ClaimJudge

        return ClaimJudge(cast("ClaimChecker", judge))
    if not is_judge:
        _refuse_client(role, judge)
        judge = wrapped(judge, "llm")
    if role == "llm" and decides(judge):
        check_members(role, judge, _DECISIONS, "ragstone.BaseDecisionModel makes one of a class with decide or adecide")
    else:
        check_members(role, judge, _LLM, _INSTEAD.format("LLM", "generate"))
    return cast("Judge", judge)


class ModelField:
    """A field for a judge or writer. A name or a framework's model becomes ragstone's when it is set.

    A frozen dataclass sets its fields once, when it is made. So `dataclasses.replace` makes no model again.
    """

    def __init__(self, role: Literal["llm", "writer"]) -> None:
        self._role: Literal["llm", "writer"] = role

    def __repr__(self) -> str:
        return "None"

    def __set__(self, metric: object, given: object) -> None:
        # The default is what the class has, which is the field itself.
        vars(metric)[self._role] = None if given is None or given is self else judge_of(self._role, given)


JUDGE, WRITER = ModelField("llm"), ModelField("writer")


def embedder_of(embedder: object, judge: object, **settings: object) -> Embedder:
    """The embedder of an option: made by its name, for None the one that goes with the judge; as `judge_of`."""
    if embedder is None or isinstance(embedder, str):
        with naming("embedder"):
            embedder = make_embedder(embedder, cast("LLM", judge), **settings)
    if not _has(embedder, _EMBEDDER):
        _refuse_client("embedder", embedder)
        embedder = wrapped(embedder, "embedder")
    check_members("embedder", embedder, _EMBEDDER, _INSTEAD.format("Embedder", "embed"))
    return cast("Embedder", embedder)


def _refuse_client(role: str, model: object) -> None:
    if type(model).__module__.partition(".")[0] == "openai":
        way_out = 'name the model, "openai:MODEL", or pass OpenAICompatible(MODEL, base_url=..., api_key=...)'
        raise TypeError(f"{role}: is {type(model).__name__}, a client and no model; {way_out}")


def decides(judge: object) -> bool:
    """Whether a judge is a decision model."""
    return hasattr(judge, "decide") and not hasattr(judge, "generate")


@contextmanager
def naming(argument: str) -> Generator[None, None, None]:
    """Let the error of a name say which argument it is of."""
    try:
        yield
    except RegistryError as error:
        raise RegistryError(f"{argument}: {error}") from error


def _has(value: object, members: Sequence[str]) -> bool:
    """Whether an object has all members, without running code of its own, which may load a model."""
    return all(getattr_static(value, member, None) is not None for member in members)


def check_members(name: str, value: object, members: Sequence[str], instead: str) -> None:
    """Refuse an object that lacks one of the members, or is a class in place of an object, with a TypeError."""
    if isinstance(value, type):
        raise TypeError(f"{name}: is the class {value.__name__}; make an object: {value.__name__}(...)")
    if missing := [member for member in members if not hasattr(value, member)]:
        raise TypeError(f"{name}: {type(value).__name__} has no {', '.join(missing)}; {instead}")
