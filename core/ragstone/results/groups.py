"""Groups: rows that depend on each other, such as questions on one document or turns of one conversation.

A record keeps its group as "NOUN=VALUE", such as "document=handbook.pdf".
"""

from collections.abc import Iterable, Iterator
from typing import get_args

from ragstone.errors import GroupError
from ragstone.identity import digest_of
from ragstone.results.record import Record, json_of
from ragstone.sample import Sample, SampleField

_IN_METADATA = "metadata."
_OF_RUN = {"thread_id": "conversation", "user_id": "user", "run_name": "run"}
_OF_SAMPLE = {"user_input": "question", "retrieved_contexts": "retrieved text", "id": "id"}
_LONGEST = 100
# Tables have NaN for nothing.
_NOTHING = ("", "null", "[]", '"NaN"')

RowKey = tuple[int, str]
"""A row: its number, and its sample's id."""


def group_name(name: str) -> str:
    """The name by which rows are grouped: a field's, or `metadata.NAME`.

    Raises:
        GroupError: It is neither.

    Example:
        >>> group_name("document")
        Traceback (most recent call last):
        ragstone.errors.GroupError: group: 'document' is no field; write metadata.document, or one of thread_id, ..., id
    """
    fields = [*_OF_RUN, *get_args(SampleField), "id"]
    if name in fields or (name.startswith(_IN_METADATA) and name != _IN_METADATA):
        return name
    raise GroupError(f"group: {name!r} is no field; write metadata.{name or 'NAME'}, or one of {', '.join(fields)}")


def group_of(name: str, record: Record, sample: Sample | None) -> str | None:
    """The group of a row by a field's name or `metadata.NAME`; None where the row has no such value.

    What a text is, is not kept: a digest stands for it.

    Example:
        >>> from ragstone import Unscored
        >>> record = Record("a", Unscored(metric="demo", reason="timeout", detail="", version="1"))
        >>> group_of("metadata.doc", record, Sample(metadata={"doc": "handbook"}))
        'doc=handbook'
    """
    metadata = {} if sample is None else sample.metadata
    value: object
    key = name.removeprefix(_IN_METADATA)
    if key != name:
        return _named(key.replace("_", " "), metadata.get(key))
    if name in _OF_RUN:
        value = getattr(record, name) or metadata.get(name)
        return _named(_OF_RUN[name], value, digest=name == "user_id")
    value = None if sample is None else getattr(sample, name)
    return _named(_OF_SAMPLE.get(name, name), value, digest=name != "id")


def conversation_of(record: Record, sample: Sample | None) -> str | None:
    """The conversation of a row by its `thread_id`; None without one."""
    return group_of("thread_id", record, sample)


def conversations(rows: Iterable[tuple[RowKey, Sample | None]]) -> dict[RowKey, str]:
    """The conversation of each row whose history holds the question and response of another, and of that one.

    Example:
        >>> first = Sample(user_input="Who wrote Emma?", response="Jane Austen.")
        >>> said = [{"role": "user", "content": "Who wrote Emma?"}, {"role": "assistant", "content": "Jane Austen."}]
        >>> rows = [first, Sample(user_input="When?", response="In 1815.", history=said), Sample(user_input="Why?")]
        >>> conversations(((row, ""), sample) for row, sample in enumerate(rows))
        {(0, ''): 'conversation=1', (1, ''): 'conversation=1'}
    """
    said: dict[str, list[RowKey]] = {}
    before: dict[RowKey, list[str]] = {}
    for key, sample in rows:
        if sample is None:
            continue
        if sample.user_input and sample.response:
            said.setdefault(digest_of([sample.user_input, sample.response]), []).append(key)
        if sample.history:
            before[key] = [digest_of(turn) for turn in _exchanges(sample)]
    leads: dict[RowKey, RowKey] = {}

    def first(key: RowKey) -> RowKey:
        while (lead := leads.setdefault(key, key)) != key:
            leads[key] = leads[lead]
            key = lead
        return key

    for key, turns in before.items():
        for other in (other for turn in turns for other in said.get(turn, ())):
            leads[first(key)] = first(other)
    return {key: f"conversation={first(key)[0] + 1}" for key in list(leads)}


def _exchanges(sample: Sample) -> Iterator[list[str]]:
    """Yield the questions of a history, each with its response."""
    for before, after in zip(sample.history, sample.history[1:]):  # noqa: B905 - the second is shorter
        if (before.role, after.role) == ("user", "assistant"):
            yield [before.content, after.content]


def _named(noun: str, value: object, *, digest: bool = False) -> str | None:
    text = value if isinstance(value, str) else json_of(value)
    if text in _NOTHING:
        return None
    return f"{noun}={digest_of(text) if digest or len(text) > _LONGEST else text}"
