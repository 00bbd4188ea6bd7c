"""What an app's framework reports of one call: a tree of runs, which an integration reads into a sample."""

import asyncio
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from ragstone.adapters.answering import ModelCall
from ragstone.sample import Sample

CANCELLED = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)
"""Errors by which a run is called off, and did not fail."""
PERSONAL = ("user_id", "thread_id", "session_id", "conversation_id")
"""Settings or tags of a run that say who asked, and in which conversation: a sample's metadata has them, too."""
UNDER_WAY: ContextVar[object] = ContextVar("ragstone_preview", default=None)
"""What collects the runs of the preview that is under way in this context, if one is: no monitor counts them."""
Asked = TypeVar("Asked")
FieldFunction = Callable[[Asked, object], Sample | Mapping[str, object] | None]
"""A user's own reading of a run: by what it was asked and what it returned (None if it failed)."""
Fields = Mapping[str, str] | FieldFunction[Asked]
"""Where a sample's fields are: names by field, or a function."""


@dataclass(slots=True, eq=False)
class Run:
    """One call of an app as its framework reported it, with the calls inside of it.

    Attributes:
        id: What the framework knows it by.
        kind: What it is, in the integration's words.
        output: What it returned; None where it has not, or has failed.
        inside: The runs that it started, as they began.
        open: Whether it has not ended.
        call: Of a model: what it was given and what it said, unless that is too much.
        ids: The ids of the sources that it found, by their texts, where they are wanted.
    """

    id: Hashable
    kind: str
    name: str = ""
    inputs: object = None
    output: object = None
    error: BaseException | None = None
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    parent: "Run | None" = None
    inside: "list[Run]" = field(default_factory=list["Run"])
    open: bool = True
    call: ModelCall | None = None
    ids: Mapping[str, str] | None = None

    def walk(self) -> "Iterator[Run]":
        """Yield the runs inside as they began, each before those inside of it."""
        waiting = self.inside[::-1]
        while waiting:
            run = waiting.pop()
            yield run
            waiting += run.inside[::-1]


class Unreadable(ValueError):  # noqa: N818 - it becomes an Unscored, or a reason of `stats().skipped`
    """Says which value is not what it should be, and what it is."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Why a run is no sample.

    Attributes:
        reason: A reason of `stats().skipped`.
        names: The names that were there, of which none holds the field.
        likely: The one of them that can be meant; "" where there are several, or none.
    """

    reason: str
    names: tuple[str, ...] = ()
    likely: str = ""


@dataclass(frozen=True, slots=True)
class Searched:
    """What searches of a run returned, and by what is told which of it the answering call read.

    Attributes:
        found: The texts of what they returned.
        calls: The calls of models.
        passed_on: Texts of documents that steps returned.
        compared: The texts of `found` as a prompt has them, where contexts have more.
    """

    found: Sequence[str]
    calls: Sequence[ModelCall]
    passed_on: Sequence[str] = ()
    compared: Sequence[str] = ()

    @property
    def is_choice(self) -> bool:
        """Whether there is anything to choose, and to choose it by."""
        return bool(self.calls) and len({*self.found, *self.passed_on}) > 1

    @property
    def size(self) -> int:
        """How many characters it holds."""
        prompts = {id(text): len(text) for call in self.calls for text in call.prompt}
        return sum(prompts.values()) + sum(map(len, (*self.found, *self.passed_on)))


@dataclass(frozen=True, slots=True)
class Draft:
    """A sample as it was read.

    Attributes:
        sample: The sample.
        read_from: Where each of its fields came from.
        names: The names that were there and hold no field.
        likely: Of a field that is missing, the one entry that can be meant.
        answer: What answers, where it is a stream whose text is yet to come.
        searched: What its contexts are to be narrowed by, where searches returned them.
        ids: The ids of sources by their texts, where they are wanted.
    """

    sample: Sample
    read_from: Mapping[str, str] = field(default_factory=dict[str, str])
    names: tuple[str, ...] = ()
    likely: Mapping[str, str] = field(default_factory=dict[str, str])
    answer: object = None
    searched: Searched | None = None
    ids: Mapping[str, str] | None = None
