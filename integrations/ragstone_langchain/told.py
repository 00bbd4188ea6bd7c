"""Fields that stand where the user says: under a key, or where a function finds them."""

from collections.abc import Iterator, Mapping
from typing import cast, get_args

from pydantic import ValidationError

from ragstone.errors import describe
from ragstone.sample import Sample, SampleField
from ragstone_langchain.given import FieldFunction, Given
from ragstone_langchain.places import contexts_of, find_text, response_place, retrieved_texts, user_input_place
from ragstone_langchain.values import Unreadable, entries_of, kind, kind_of_keys

FIELDS: tuple[SampleField, ...] = get_args(SampleField)
_BY_NAME: Mapping[object, SampleField] = {field: field for field in FIELDS}


def check_fields(fields: object) -> None:
    """Refuse a `fields` that no sample can come of.

    Raises:
        ValueError: A mapping names an unknown field, or a key is not text.
        TypeError: It is neither mapping nor function.

    Example:
        >>> check_fields({"question": "q"})
        Traceback (most recent call last):
        ValueError: fields: 'question' is not one of 'user_input', 'retrieved_contexts', 'response'
    """
    if fields is None or callable(fields):
        return
    if not isinstance(fields, Mapping):
        raise TypeError(f"fields: is {kind(fields)}; pass a mapping from a sample's field to a key, or a function")
    for field, key in cast("Mapping[object, object]", fields).items():
        if field not in FIELDS:
            raise ValueError(f"fields: {field!r} is not one of {', '.join(map(repr, FIELDS))}")
        if not isinstance(key, str):
            raise ValueError(f"fields: the key of {field} is {kind(key)}, not text (str)")


def under_key(field: SampleField, key: str, given: Given) -> str | list[str]:
    """Return a field that stands under a key of the outputs, the inputs or the reference.

    Raises:
        Unreadable: The key is nowhere, or what stands there is not the field.

    Example:
        >>> under_key("response", "draft", Given({"topic": "Emma"}, {"draft": "It is long."}))
        'It is long.'
    """
    places = {"outputs": given.outputs, "inputs": given.inputs, "reference_outputs": given.reference_outputs}
    for name, value in places.items():
        for where, entries in _levels(value, name):
            if key in entries:
                return _strictly(field, entries[key], f"{where}[{key!r}]")
    there = ", ".join(f"{name} ({kind_of_keys(value)})" for name, value in places.items())
    raise Unreadable(f"the key {key!r}, which fields= names, is not in {there}")


def _levels(value: object, where: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the entries of a value and, where it only packs another one as LangSmith does, those of that one."""
    for _ in range(3):
        entries = entries_of(value)
        if entries is None:
            return
        yield where, entries
        if len(entries) != 1:
            return
        ((name, value),) = entries.items()
        where = f"{where}[{name!r}]"


def _strictly(field: SampleField, value: object, where: str) -> str | list[str]:
    """Read a value that someone said is the field.

    Raises:
        Unreadable: It is not.
    """
    texts: str | list[str] | None
    if field == "retrieved_contexts":
        texts = contexts_of(value, where)
    else:
        texts = find_text(response_place() if field == "response" else user_input_place(), value, where, own=True)
    if texts is None:
        meant = "texts or Documents" if field == "retrieved_contexts" else "text"
        raise Unreadable(f"{where} is {kind_of_keys(value)}, not {meant}")
    return texts


def by_function(function: FieldFunction, given: Given) -> Sample:
    """Return the sample that a function makes of what was handed over.

    Raises:
        Unreadable: It raises, or returns neither a sample nor a mapping of a sample's fields.

    Example:
        >>> by_function(lambda inputs, outputs, **others: {"response": outputs[0]}, Given(None, ["So."])).response
        'So.'
    """
    context = given.context
    if context is None and given.retrieved is not None:
        context = retrieved_texts(given.retrieved)
    try:
        made = cast(
            "object",
            function(
                inputs=given.inputs, outputs=given.outputs, reference_outputs=given.reference_outputs, context=context
            ),
        )
    except Exception as error:
        raise Unreadable(f"fields: the function raised {describe(error, most=300)}") from error
    if isinstance(made, Sample):
        return made
    if not isinstance(made, Mapping):
        raise Unreadable(f"fields: the function returned {kind(made)}; return a Sample or a mapping of its fields")
    return to_sample(cast("Mapping[object, object]", made))


def to_sample(made: Mapping[object, object], option: str = "fields") -> Sample:
    """Return the sample of a mapping of its fields, which may be texts, messages and Documents.

    Args:
        made: What the user's function returned.
        option: What the function was given as, for messages.

    Raises:
        Unreadable: It is no sample.

    Example:
        >>> to_sample({"response": ("ai", "So.")}).response
        'So.'
    """
    found: dict[object, object] = {}
    for name, value in made.items():
        if value is None:
            continue
        field = _BY_NAME.get(name)
        found[name] = value if field is None else _strictly(field, value, f"{option}: the function's {field!r}")
    try:
        return Sample.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        at = ".".join(str(part) for part in first["loc"])
        wrong = first["msg"].removeprefix("Value error, ")
        raise Unreadable(
            f"{option}: the function's {at!r}: {wrong}; a sample has {', '.join(Sample.model_fields)}"
        ) from None
