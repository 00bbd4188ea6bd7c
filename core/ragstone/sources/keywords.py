"""A row as keywords: what type checkers know of `metric.score(user_input=..., response=...)`."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from ragstone.sample import Turn


class SampleFields(TypedDict, total=False):
    """The fields of a sample by name; `ragstone.Sample` says what they hold."""

    user_input: str | None
    retrieved_contexts: Sequence[str] | None
    response: str | None
    reference: str | None
    reference_ids: Sequence[str] | None
    retrieved_ids: Sequence[str] | None
    id: str | None
    history: Sequence[Turn | Mapping[str, str]] | None
    metadata: Mapping[str, object] | None
