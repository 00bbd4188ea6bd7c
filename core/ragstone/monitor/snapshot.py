"""What the monitor keeps of a sample: a copy that the app cannot change any more, redacted before it is queued."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, cast

from ragstone.errors import LONGEST, without_keys
from ragstone.sample import Sample

Redact = Callable[[str], str]

_DEPTH = 6
_TRIES = 3  # one in some ten thousand needs a second
_ITEMS = 1_000
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_BITS = 4_096  # Python refuses to write much longer numbers down


class RedactionFailed(Exception):  # noqa: N818 - it is what became of the sample
    """The user's `redact` raised, or gave back something that is no text."""


def snapshot(sample: Sample, sample_id: str, redact: Redact | None = None) -> Sample:
    """Return a copy that shares only immutable values with what was handed in, every text redacted but the id.

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
    clean = None if redact is None else _cleaner(redact)
    metadata = _Plain(clean).mapping(sample.metadata, _DEPTH)
    if isinstance(error := metadata.get("error"), str):
        metadata["error"] = without_keys(error[:LONGEST])
    fields: dict[str, Any] = {"id": sample_id, "metadata": metadata}
    if "retrieved_contexts" in sample.model_fields_set:
        if not isinstance(sample.retrieved_contexts, (list, tuple)):
            raise TypeError("retrieved_contexts: is no list of texts")
        fields["retrieved_contexts"] = tuple([_exact(context) for context in sample.retrieved_contexts])
    if sample.user_input is not None:
        fields["user_input"] = _exact(sample.user_input)
    if sample.response is not None:
        fields["response"] = _exact(sample.response)
    return Sample.model_construct(**fields) if clean is None else _redacted(fields, clean)


def _redacted(fields: dict[str, Any], clean: Redact) -> Sample:
    for name in ("user_input", "response"):
        if name in fields:
            fields[name] = clean(fields[name])
    if "retrieved_contexts" in fields:
        fields["retrieved_contexts"] = [clean(context) for context in fields["retrieved_contexts"]]
    return Sample(**fields)  # checked: what a user's function gives back may hold anything


def _exact(value: object) -> str:
    if type(value) is str:
        return value
    if not issubclass(type(value), str):
        raise TypeError(f"is {type(value).__name__}, not text (str)")
    return str.__str__(cast("str", value))  # not a subclass's own idea of its text


def _name(key: object) -> str:
    return _exact(key) if issubclass(type(key), str) else str(key)


def _cleaner(redact: Redact) -> Redact:
    def clean(text: str) -> str:
        try:
            kept = cast("object", redact(text))
        except Exception as error:
            raise RedactionFailed(f"redact raised {type(error).__name__}") from None  # its text may be the secret
        if not isinstance(kept, str):
            raise RedactionFailed(f"redact returned {type(kept).__name__}, not text (str)")
        return _exact(kept)

    return clean


class _Plain:
    """Turns metadata into plain values, up to a number of items in all: lists of lists of lists may be endless.

    Kinds are told by `type`, not by `isinstance`: that would wake a lazy object up, on the app's thread.
    """

    def __init__(self, clean: Redact | None) -> None:
        self._clean = clean
        self._left = _ITEMS

    def mapping(self, value: Mapping[Any, object], depth: int) -> dict[str, object]:
        pairs, text, plain = self._first(value.items()), self._text, self.value
        return {text(key if type(key) is str else _name(key)): plain(item, depth - 1) for key, item in pairs}

    def value(self, value: object, depth: int) -> object:
        if type(value) is str:
            return self._text(value)
        try:
            return self._value(value, depth)
        except RedactionFailed:
            raise
        except Exception:  # of an object of the app's that cannot be looked at
            return f"<{type(value).__name__}>"

    def _text(self, text: str) -> str:
        if self._clean is not None:
            text = self._clean(text)
        return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)

    def _value(self, value: object, depth: int) -> object:
        kind = type(value)
        if value is None or value is True or value is False:
            return value
        if issubclass(kind, float):
            fraction = float.__float__(cast("float", value))
            return fraction if math.isfinite(fraction) else str(fraction)  # JSON has no NaN
        if issubclass(kind, int):
            number = int.__int__(cast("int", value))
            return number if number.bit_length() <= _BITS else f"<{kind.__name__}>"
        if issubclass(kind, str):
            return self._text(_exact(value))
        if depth > 0 and issubclass(kind, (list, tuple, set, frozenset)):
            return [self.value(item, depth - 1) for item in self._first(cast("Iterable[Any]", value))]
        if depth > 0 and issubclass(kind, Mapping):
            return self.mapping(cast("Mapping[object, object]", value), depth)
        return f"<{kind.__name__}>"

    def _first(self, items: Iterable[Any]) -> list[Any]:
        """Return as many as may still be kept, in one step: the app may change them meanwhile.

        A garbage collection within that step may let another thread in, which changes them all the same: then again.
        """
        tries = 0
        while True:
            try:
                found = list(islice(items, self._left))
                break
            except RuntimeError:
                tries += 1
                if tries > _TRIES:
                    raise
        self._left -= len(found)
        return found
