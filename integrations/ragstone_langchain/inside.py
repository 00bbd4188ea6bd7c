"""What the calls inside of a run come to: one walk over them notes all that reading the run needs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

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
FoundTexts = Sequence[str] | Unreadable
"""The texts that a call has found, or why they cannot be read."""


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
        calls: The calls of models.
        ids: The ids of what searches and the app's own contexts hold, by their texts, where they are wanted.
        open: Whether any of them has not ended.
        waits: Whether any of them waits for a person.
    """

    named: list[FoundTexts] = field(default_factory=list[FoundTexts])
    searches: list[FoundTexts] = field(default_factory=list[FoundTexts])
    steps: list[FoundTexts] = field(default_factory=list[FoundTexts])
    given: list[object] = field(default_factory=list[object])
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    ids: dict[str, str] = field(default_factory=dict[str, str])
    open: bool = False
    waits: bool = False

    def note(self, run: Run, *, searching: bool = False, failed: bool = False) -> "Inside":
        """Note the calls inside of a run.

        Args:
            run: The run.
            searching: Whether it is a search, or lies in one.
            failed: Whether it has failed, or lies in what has.
        """
        for each in run.inside:
            lost = failed
            self.open = self.open or each.open
            if each.error is not None:
                self.waits = self.waits or is_langgraph_s("GraphInterrupt", each.error)
                steered = isinstance(each.error, GeneratorExit) or is_langgraph_s("GraphBubbleUp", each.error)
                lost = failed or not steered
            if each.inputs is not None:
                self.given.append(each.inputs)
            search = each.kind == "retriever" or (each.kind == "tool" and bool(each.output))
            if each.inside:
                self.note(each, searching=searching or search, failed=lost)
            if lost:
                continue
            found: Any = each.output
            if each.ids:
                self.ids |= each.ids
            if each.call is not None:
                self.calls.append(each.call)
            if each.kind == "named":
                self.named.append(found)
            elif search and not searching and found is not None:
                self.searches.append(found)
            elif each.kind == "chain" and not searching and found is not None:
                self.steps.append(found)
        return self

    def go_on(self, before: "Inside") -> None:
        """Add what calls have come to where this goes on. Their prompts are not kept so long, so none is known."""
        self.calls.clear()
        self.named[:0], self.searches[:0] = before.named, before.searches
        self.steps[:0], self.given[:0] = before.steps, before.given


def texts_of(found: Iterable[FoundTexts]) -> list[str]:
    """The texts that calls have found, each once: several searches may find the same."""
    texts: dict[str, None] = {}
    for each in found:
        if isinstance(each, Unreadable):
            raise each
        texts |= dict.fromkeys(each)
    return [*texts]


def passed_on(steps: Iterable[FoundTexts]) -> list[str]:
    """The texts of the Documents that steps returned: a step that returns some of those before has chosen."""
    passed: list[str] = []
    for each in steps:
        texts = texts_of([each])
        chosen = bool(texts) and set(texts) <= set(passed)
        passed = texts if chosen else [*dict.fromkeys([*passed, *texts])]
    return passed


def is_langgraph_s(name: str, error: BaseException) -> bool:
    """Whether an error is one of those with which LangGraph steers graphs, without importing it."""
    return any(each.__name__ == name and each.__module__.startswith("langgraph.") for each in type(error).__mro__)
