"""Parts of a row of JSON, checked: each error names the field, and what stands there."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

Place = tuple[int, int]
"""Of a sentence: number of its passage, and of the sentence within it, from 0."""

_KINDS: Mapping[type, str] = {dict: "an object", list: "a list", str: "a text"}


def sentences_of(values: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Return the sentences of each passage, which have to stand in it in order."""
    given: list[object] = part(values, "sentences", list)
    contexts: list[object] = part(values, "retrieved_contexts", list)
    if len(given) != len(contexts):
        raise ValueError(f"sentences: has {len(given)} lists for {len(contexts)} retrieved_contexts")
    for sentences in given:
        if not isinstance(sentences, list) or not all(isinstance(s, str) for s in cast("list[object]", sentences)):
            raise ValueError("sentences: is no list of lists of text")
    found = tuple(tuple(cast("list[str]", sentences)) for sentences in given)
    for text, sentences in zip(contexts, found, strict=True):
        if isinstance(text, str):
            located(text, sentences)
    return found


def relevant_of(labels: Mapping[str, Any], sentences: Sequence[Sequence[str]]) -> frozenset[Place]:
    """Return the places that people chose, which have to be places of these sentences."""
    chosen: set[Place] = set()
    for pair in cast("list[object]", part(labels, "relevant", list)):
        match pair:
            case [int(passage), int(number)] if 0 <= passage < len(sentences) and 0 <= number < len(sentences[passage]):
                chosen.add((passage, number))
            case _:
                raise ValueError(f"use.target.relevant: {pair!r} is no [passage, sentence] of this row")
    return frozenset(chosen)


def located(text: str, sentences: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return the sentences with the places where they stand in the text, in order.

    Raises:
        ValueError: One is not there, or not behind the one before it.

    Example:
        >>> located("A. B. A.", ["A.", "A."])
        [('A.', 0, 2), ('A.', 6, 8)]
    """
    found: list[tuple[str, int, int]] = []
    end = 0
    for number, sentence in enumerate(sentences):
        start = text.find(sentence, end)
        if start < 0:
            raise ValueError(f"sentences: number {number} is not in its passage, or not behind the one before it")
        end = start + len(sentence)
        found.append((sentence, start, end))
    return found


def part(values: Mapping[str, Any], name: str, kind: type[Any]) -> Any:  # noqa: ANN401 - it is JSON, of that kind
    """Return a field that has to be there, of that kind, and not an empty text."""
    value = values.get(name)
    if not isinstance(value, kind) or value == "":
        given = "missing" if value is None else "empty" if value == "" else type(value).__name__
        raise ValueError(f"{name}: is {given}; it has to be {_KINDS[kind]}")
    return value


def number_of(name: str, value: object) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{name}: {value!r} is no number")
    return float(value)
