"""What the calls inside of a run come to: one walk over them notes all that reading the run needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from ragstone.adapters.answering import ModelCall
from ragstone.adapters.runs import Run, Unreadable

RunKind = Literal["chain", "step", "tool", "retriever", "model", "named"]
"""What a run is. A step is a chain that only words or parses (a prompt, a parser); "named" a call of `contexts`."""
KINDS: Mapping[str, RunKind] = {
    "prompt": "step",
    "parser": "step",
    "tool": "tool",
    "retriever": "retriever",
    **dict.fromkeys(("llm", "chat_model", "embedding"), "model"),
}
"""Kinds by LangChain's `run_type`, where it is no chain: also of what begins as one, as a decision model does."""
Texts = Sequence[str] | Unreadable
"""The texts that a call has found, or why they cannot be read."""


def _some() -> list[Texts]:
    return []


@dataclass(slots=True)
class Inside:
    """What the calls inside of a run have come to, in the order in which they ended.

    A search is an outermost retriever, or such a tool that found anything itself. What failed, and what lies below it,
    has found nothing: where the app survived that, its answer rests on others.

    Attributes:
        named: What the app has named by `contexts`.
        searches: What searches returned, each by itself.
        steps: The Documents that steps returned.
        given: Conversations that steps were given.
        open: Whether any of them has not ended.
        waits: Whether any of them waits for a person.
        calls: The calls of models; none of what went on where others waited, whose prompts are not kept so long.
    """

    named: list[Texts] = field(default_factory=_some)
    searches: list[Texts] = field(default_factory=_some)
    steps: list[Texts] = field(default_factory=_some)
    given: list[object] = field(default_factory=list[object])
    open: bool = False
    waits: bool = False
    calls: list[ModelCall] = field(default_factory=list[ModelCall])

    def note(self, run: Run, *, searching: bool = False, failed: bool = False) -> "Inside":
        """Note the calls inside of a run.

        Args:
            run: The run.
            searching: Whether it is a search, or lies in one.
            failed: Whether it has failed, or lies in what has.
        """
        for each in run.inside:
            lost, error = failed, each.error
            self.open = self.open or each.open
            if error is not None:
                self.waits = self.waits or is_langgraph_s("GraphInterrupt", error)
                lost = lost or not (isinstance(error, GeneratorExit) or is_langgraph_s("GraphBubbleUp", error))
            if each.inputs is not None:
                self.given.append(each.inputs)
            search = each.kind == "retriever" or (each.kind == "tool" and bool(each.output))
            if each.inside:
                self.note(each, searching=searching or search, failed=lost)
            if each.call is not None and not lost:
                self.calls.append(each.call)
            if lost or each.output is None:
                continue
            found = cast("Texts", each.output)
            if each.kind == "named":
                self.named.append(found)
            elif search and not searching:
                self.searches.append(found)
            elif each.kind == "chain" and not searching:
                self.steps.append(found)
        return self

    def before(self, later: "Inside") -> "Inside":
        """What these and later calls have come to, which go on where these waited."""
        return Inside(
            self.named + later.named,
            self.searches + later.searches,
            self.steps + later.steps,
            self.given + later.given,
            later.open,
            later.waits,
        )


def texts_of(found: Sequence[Texts]) -> list[str]:
    """The texts that calls have found, each once: several searches may find the same."""
    texts: dict[str, None] = {}
    for each in found:
        if isinstance(each, Unreadable):
            raise each
        texts |= dict.fromkeys(each)
    return [*texts]


def passed_on(steps: Sequence[Texts]) -> list[str]:
    """The texts of the Documents that steps returned: a step that returns some of those before has chosen."""
    passed: list[str] = []
    for each in steps:
        texts = texts_of([each])
        chosen = bool(texts) and set(texts) <= set(passed)
        passed = texts if chosen else [*dict.fromkeys([*passed, *texts])]
    return passed


def is_langgraph_s(name: str, error: BaseException | None) -> bool:
    """Whether an error is one of those with which LangGraph steers graphs, without importing it."""
    kinds = () if error is None else type(error).__mro__
    return any(each.__name__ == name and each.__module__.startswith("langgraph.") for each in kinds)
