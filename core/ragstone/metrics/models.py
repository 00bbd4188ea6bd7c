"""Who a metric asks: judge, writer and embedder, as objects or by name."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, cast

from ragstone.judge import LLM, Embedder, Judge
from ragstone.registry import RegistryError, make_embedder, make_llm, wrapper_of

_LLM = ("model", "asking", "generate", "agenerate")
_DECISIONS = ("model", "most_questions", "decide", "adecide")
_EMBEDDER = ("model", "embed", "aembed")
_INSTEAD = (
    "pass its name, or a ragstone {0}: OpenAICompatible of ragstone.clients, Local{0} of ragstone.local, or one of an "
    "integration; ragstone.Base{0} makes one of a class with {1} or a{1}"
)


def judge_of(role: Literal["llm", "writer"], judge: object) -> Judge:
    """Return the judge or writer of an option: made by its name, or the object, which has all members.

    Raises:
        RegistryError: The name names none.
        TypeError: The object lacks a member.
    """
    made = _named(role, partial(make_llm, judge)) if isinstance(judge, str) else judge
    if role == "llm" and decides(made):
        check_members(role, made, _DECISIONS, "ragstone.BaseDecisionModel makes one of a class with decide or adecide")
    else:
        check_members(role, made, _LLM, partial(_instead, made, "LLM"))
    return cast("Judge", made)


def embedder_of(embedder: object, judge: Judge, llm_name: str) -> Embedder:
    """Return the embedder of an option: made by its name, for None the one that goes with the judge; as `judge_of`."""
    made = embedder
    if embedder is None or isinstance(embedder, str):
        made = _named("embedder", partial(make_embedder, embedder, cast("LLM", judge), llm_name=llm_name))
    check_members("embedder", made, _EMBEDDER, partial(_instead, made, "Embedder"))
    return cast("Embedder", made)


def decides(judge: object) -> bool:
    """Whether a judge is a decision model."""
    return hasattr(judge, "decide") and not hasattr(judge, "generate")


def _named(role: str, make: Callable[[], object]) -> object:
    try:
        return make()
    except RegistryError as error:
        raise RegistryError(f"{role}: {error}") from error


def _instead(value: object, role: Literal["LLM", "Embedder"]) -> str:
    return wrapper_of(value, role) or _INSTEAD.format(role, "generate" if role == "LLM" else "embed")


def check_members(name: str, value: object, members: Sequence[str], instead: str | Callable[[], str]) -> None:
    """Refuse an object that lacks one of the members, or is a class in place of an object, with a TypeError."""
    if isinstance(value, type):
        raise TypeError(f"{name}: is the class {value.__name__}; make an object: {value.__name__}(...)")
    if missing := [member for member in members if not hasattr(value, member)]:
        hint = instead if isinstance(instead, str) else instead()
        raise TypeError(f"{name}: {type(value).__name__} has no {', '.join(missing)}; {hint}")
