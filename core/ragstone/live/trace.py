"""From a score to the request it belongs to: the id that the app gives, and what an outcome says of its run."""

import threading
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from ragstone.options import Text, checked
from ragstone.plain import is_list, is_mapping

TRACE_KEY = "ragstone_trace_id"
"""The key of a run's metadata, or the name of its tag, under which the app names a sample's id."""

Fact = Literal["id", "run_id", "run_name", "tags", "user_id", "thread_id"]
"""What an outcome may say of the run that it belongs to, without any text of the sample."""

_KEYS: Mapping[Fact, tuple[str, ...]] = {
    "run_id": ("run_id",),
    # As an app names it, and as frameworks do.
    "run_name": ("run_name", "name"),
    "tags": ("tags",),
    "user_id": ("user_id",),
    "thread_id": ("thread_id", "session_id", "conversation_id"),
}


@dataclass(slots=True, eq=False)
class Trace:
    """A `trace_id` block.

    Attributes:
        id: The app's id.
        contexts: The texts that `contexts(...)` named inside of the block, but outside of any run.
        samples: How many samples have begun in it.
    """

    id: str
    contexts: list[str] = field(default_factory=list[str])
    samples: int = 0


_numbering = threading.Lock()
_current: ContextVar[Trace | None] = ContextVar("ragstone_trace", default=None)


@contextmanager
def trace_id(name: str) -> Generator[str, None, None]:
    """Give the samples of the runs that begin inside of the block an id of the app's.

    The first sample has the id itself, a second one "ID/2", and so on. Feedback and scores are then known by it.

    Raises:
        ValueError: The id is no text, or empty.

    Example:
        >>> with trace_id("request 7"):
        ...     own_id({}), own_id({})
        ('request 7', 'request 7/2')
    """
    checked("trace_id", name, Text)
    token = _current.set(Trace(name))
    try:
        yield name
    finally:
        _current.reset(token)


def current_trace() -> Trace | None:
    """Return the `trace_id` block that the caller is in."""
    return _current.get()


def own_id(metadata: Mapping[str, object]) -> str | None:
    """Find the id that the app gives a sample that begins now: by the block, else by a run's metadata or tags."""
    trace = _current.get()
    if trace is None:
        name = metadata.get(TRACE_KEY)
        return name if isinstance(name, str) and name else None
    with _numbering:
        # The runs of a batch begin on several threads.
        trace.samples = number = trace.samples + 1
    return trace.id if number == 1 else f"{trace.id}/{number}"


def facts_of(metadata: Mapping[str, object], keep: Collection[str]) -> dict[Fact, object]:
    """Find what an outcome keeps of a sample's metadata, by the fields of a record.

    Example:
        >>> facts_of({"name": "rag", "tags": {"team": "a"}, "session_id": 7}, ["run_name", "tags", "thread_id"])
        {'run_name': 'rag', 'tags': ('team=a',), 'thread_id': '7'}
    """
    facts: dict[Fact, object] = {}
    for fact, keys in _KEYS.items():
        value = next((metadata[key] for key in keys if metadata.get(key)), None) if fact in keep else None
        if fact == "tags" and is_mapping(value):
            facts[fact] = tuple(f"{name}={item}" for name, item in value.items())
        elif fact == "tags" and is_list(value):
            facts[fact] = tuple(map(str, value))
        elif fact != "tags" and isinstance(value, (str, int)):
            facts[fact] = str(value)
    return facts
