"""What is kept of the app's texts: a snapshot that is redacted before it is queued, and outcomes without texts."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import groupby, islice
from typing import Any, cast

from ragstone.errors import LONGEST, without_keys
from ragstone.judging.flow import without_reply
from ragstone.outcome import Outcome, Unscored
from ragstone.results.record import without_texts
from ragstone.sample import Sample, Turn

Redact = Callable[[str], str]

_DEPTH = 6
_ITEMS = 1_000
_BITS = 4_096  # Python refuses to write much longer numbers down
_TRIES = 3  # one in some ten thousand needs a second
_QUOTED, _SHORTEST = 24, 8
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class RedactionFailed(Exception):  # noqa: N818 - it is what became of the sample
    """The user's `redact` raised, or gave back something that is no text."""


# --- before a sample is queued ------------------------------------------------------------------------------------


def snapshot(sample: Sample, sample_id: str, redact: Redact | None = None) -> Sample:
    """Return a copy that shares only immutable values with the app's sample, every text redacted but the id.

    The metadata becomes plain JSON values: what JSON does not know is named by its type, what goes deeper than six
    levels or beyond 1,000 items in all is left out. `metadata["error"]` is cut to 2,000 characters and freed of keys
    and passwords.

    Raises:
        RedactionFailed: `redact` raised or returned no text; nothing of the sample may be kept then.
        TypeError: The sample was made without checks and holds something else than texts.

    Example:
        >>> sample = Sample(response="Call 555-0100.", metadata={"tags": ["a"]})
        >>> snapshot(sample, "1", lambda text: text.replace("555-0100", "[phone]")).response
        'Call [phone].'
    """
    clean = None if redact is None else _checked(redact)
    text: Callable[[object], str] = _exact if clean is None else clean
    metadata = _PlainValues(clean).mapping(sample.metadata, _DEPTH)
    if isinstance(error := metadata.get("error"), str):
        metadata["error"] = without_keys(error[:LONGEST])
    fields: dict[str, Any] = {"id": sample_id, "metadata": metadata}
    if "retrieved_contexts" in sample.model_fields_set:
        if not isinstance(sample.retrieved_contexts, (list, tuple)):
            raise TypeError("retrieved_contexts: is not a list of texts")
        fields["retrieved_contexts"] = tuple([text(context) for context in sample.retrieved_contexts])
    if sample.history:
        turns = [(turn.role, text(turn.content)) for turn in sample.history]
        fields["history"] = tuple([Turn.model_construct(role=role, content=content) for role, content in turns])
    for name in ("user_input", "response", "reference"):
        if (value := getattr(sample, name)) is not None:
            fields[name] = text(value)
    return Sample.model_construct(**fields) if clean is None else Sample(**fields)  # a user's text is checked


def _exact(value: object) -> str:
    if type(value) is str:
        return value
    if not issubclass(type(value), str):
        raise TypeError(f"is {type(value).__name__}, not text (str)")
    return str.__str__(cast("str", value))  # not a subclass's own idea of its text


def _name(key: object) -> str:
    return _exact(key) if issubclass(type(key), str) else str(key)


def _checked(redact: Callable[[str], object]) -> Callable[[object], str]:
    def clean(value: object) -> str:
        text = _exact(value)
        try:
            redacted = redact(text)
        except Exception as error:
            raise RedactionFailed(f"redact raised {type(error).__name__}") from None  # its text may be the secret
        if not isinstance(redacted, str):
            raise RedactionFailed(f"redact returned {type(redacted).__name__}, not text (str)")
        return _exact(redacted)

    return clean


class _PlainValues:
    """Turns metadata into plain values, up to a number of items in all: lists of lists of lists may be endless.

    It looks at `type(value)`, as `isinstance` would load a lazy object on the app's thread.
    """

    def __init__(self, clean: Callable[[object], str] | None) -> None:
        self._clean = clean
        self._left = _ITEMS

    def mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, object]:
        pairs, text, plain = self._first(value.items()), self._text, self.value
        return {text(key if type(key) is str else _name(key)): plain(item, depth - 1) for key, item in pairs}

    def value(self, value: object, depth: int) -> object:
        if type(value) is str:
            return self._text(value)
        try:
            return self._value(value, depth)
        except RedactionFailed:
            raise
        except Exception:  # an object of the app's that cannot be looked at
            return f"<{type(value).__name__}>"

    def _text(self, text: str) -> str:
        if self._clean is not None:
            text = self._clean(text)
        return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)

    def _value(self, anything: object, depth: int) -> object:
        value, kind = cast("Any", anything), type(anything)
        if value is None or value is True or value is False:
            return anything
        if issubclass(kind, float):
            fraction = float.__float__(value)
            return fraction if math.isfinite(fraction) else str(fraction)  # JSON has no NaN
        if issubclass(kind, int):
            number = int.__int__(value)
            return number if number.bit_length() <= _BITS else f"<{kind.__name__}>"
        if issubclass(kind, str):
            return self._text(_exact(value))
        if depth > 0 and issubclass(kind, (list, tuple, set, frozenset)):
            return [self.value(item, depth - 1) for item in self._first(value)]
        if depth > 0 and issubclass(kind, Mapping):
            return self.mapping(value, depth)
        return f"<{kind.__name__}>"

    def _first(self, items: Iterable[Any]) -> list[Any]:
        """Return as many as may still be kept. The app may change them meanwhile; then look again, a few times."""
        for _ in range(_TRIES):
            with suppress(RuntimeError):
                first = list(islice(items, self._left))
                break
        else:
            first = list(islice(items, self._left))
        self._left -= len(first)
        return first


# --- before an outcome is stored ----------------------------------------------------------------------------------


def storable(outcome: Outcome, sample: Sample, *, store_text: bool) -> Outcome:
    """Return the outcome as it may be stored: without keys, and without the app's texts unless they are stored.

    What stays without them: value, breakdown, each verdict's id, kind, word and probability, and the places of its
    evidence. A reply that could not be read is not quoted, nor what an error quotes of the sample.
    """
    if isinstance(outcome, Unscored):
        detail = without_keys(outcome.detail)
        if not store_text:
            hide = outcome.reason == "judge_unparseable"
            detail = without_quotations(without_reply(detail) if hide else detail, sample.all_texts())
        return outcome.model_copy(update={"detail": detail})
    return outcome if store_text else without_texts(outcome)


def without_quotations(detail: str, texts: Iterable[str]) -> str:
    """Return a message with "[text]" for what it quotes of the texts: 24 characters in a row, or all of a shorter one.

    Texts of less than 8 characters are not looked for.

    Example:
        >>> without_quotations("400: content filtered: 'Who is the man next door?'", ["Who is the man next door?"])
        "400: content filtered: '[text]'"
    """
    quoted: set[int] = set()
    for text in texts:
        length = min(_QUOTED, len(text))
        if length >= _SHORTEST:
            for start in range(len(detail) - length + 1):
                if detail[start : start + length] in text:
                    quoted.update(range(start, start + length))
    runs = groupby(range(len(detail)), key=quoted.__contains__)
    return "".join("[text]" if hidden else "".join(detail[place] for place in places) for hidden, places in runs)
