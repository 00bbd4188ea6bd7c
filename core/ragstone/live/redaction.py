"""What is kept of the app's texts: a snapshot that is redacted before it is queued, and outcomes without texts."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby
from typing import Any, cast

from ragstone.errors import LONGEST, without_keys
from ragstone.judging.flow import without_reply
from ragstone.outcome import Outcome, Unscored
from ragstone.plain import as_dict, is_list, is_mapping, to_plain
from ragstone.results.record import without_texts
from ragstone.sample import Sample, Turn

Redact = Callable[[str], str]

_DEPTH = 6
_ITEMS = 1_000
# One try in some ten thousand needs a second.
_TRIES = 4
_QUOTED, _SHORTEST = 24, 8
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class RedactionFailed(Exception):  # noqa: N818 - it is what became of the sample
    """The user's `redact` raised, or gave back something that is no text."""


# --- before a sample is queued ------------------------------------------------------------------------------------


def snapshot(sample: Sample, sample_id: str, redact: Redact | None = None) -> Sample:
    """Return a copy that shares only immutable values with the app's sample, every text redacted but the id.

    The metadata becomes plain JSON values: what goes deeper than six levels is named by its type, what is
    beyond 1,000 items in all is left out. `metadata["error"]` is cut to 2,000 characters and freed of keys
    and passwords.

    Raises:
        RedactionFailed: `redact` raised or returned no text; nothing of the sample may be kept then.
        TypeError: The sample was made without checks and holds something else than texts.

    Example:
        >>> sample = Sample(response="Call 555-0100.", metadata={"tags": ["a"]})
        >>> snapshot(sample, "1", lambda text: text.replace("555-0100", "[phone]")).response
        'Call [phone].'
    """
    text = _exact if redact is None else partial(_redacted, redact)
    metadata = as_dict(_each_text(_plain_metadata(sample.metadata), text))
    if isinstance(error := metadata.get("error"), str):
        metadata["error"] = without_keys(error[:LONGEST])
    fields: dict[str, Any] = {"id": sample_id, "metadata": metadata}
    if "retrieved_contexts" in sample.model_fields_set:
        if not isinstance(sample.retrieved_contexts, (list, tuple)):
            raise TypeError("retrieved_contexts: is not a list of texts")
        fields["retrieved_contexts"] = tuple([text(context) for context in sample.retrieved_contexts])
    for name in ("reference_ids", "retrieved_ids"):
        if name in sample.model_fields_set:
            fields[name] = tuple([text(each) for each in getattr(sample, name)])
    if sample.history:
        turns = [(turn.role, text(turn.content)) for turn in sample.history]
        fields["history"] = tuple([Turn.model_construct(role=role, content=content) for role, content in turns])
    for name in ("user_input", "response", "reference"):
        if (value := getattr(sample, name)) is not None:
            fields[name] = text(value)
    # A user's text is checked.
    return Sample.model_construct(**fields) if redact is None else Sample(**fields)


def _exact(value: object) -> str:
    if type(value) is str:
        return value
    if not issubclass(type(value), str):
        raise TypeError(f"is {type(value).__name__}, not text (str)")
    # A subclass may have its own idea of its text.
    return str.__str__(cast("str", value))


def _redacted(redact: Callable[[str], object], value: object) -> str:
    text = _exact(value)
    try:
        redacted = redact(text)
    except Exception as error:
        # Its text may be the secret.
        raise RedactionFailed(f"redact raised {type(error).__name__}") from None
    if not isinstance(redacted, str):
        raise RedactionFailed(f"redact returned {type(redacted).__name__}, not text (str)")
    return _exact(redacted)


def _plain_metadata(metadata: object) -> object:
    """Make metadata plain values. The app may change it meanwhile: then look again, a few times."""
    for _ in range(_TRIES):
        if is_mapping(plain := to_plain(metadata, depth=_DEPTH, left=[_ITEMS])):
            return plain
    raise TypeError("metadata: is not a mapping")


def _each_text(plain: object, text: Callable[[object], str]) -> object:
    if isinstance(plain, str):
        return _LONE_SURROGATE.sub("\ufffd", text(plain))
    if is_list(plain):
        return [_each_text(item, text) for item in plain]
    if is_mapping(plain):
        return {str(_each_text(key, text)): _each_text(item, text) for key, item in plain.items()}
    return plain


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
    return "".join("[text]" if hidden else "".join(detail[i] for i in run) for hidden, run in runs)
