"""What a run says where the user has said it: by names, or by a function of what it was asked and what it returned.

The integrations read a run's fields into `Found`s, or the `Unreadable` that says why not; a draft comes of them here.
"""

from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, get_args

from pydantic import ValidationError

from ragstone.adapters.runs import Asked, Draft, FieldFunction, Fields, Searched, Unreadable
from ragstone.errors import describe
from ragstone.fields.read import Forms, Found, Read, likely, read, under
from ragstone.options import checked
from ragstone.plain import is_list, is_mapping, printable
from ragstone.sample import Sample, SampleField

P = ParamSpec("P")
T = TypeVar("T")
FoundFields = Mapping[str, Found | Unreadable]
"""A run's fields, as far as it says anything of them."""
SAMPLE_FIELDS: tuple[SampleField, ...] = get_args(SampleField)
BY_USER = "fields="
"""Where a field came from that the user has named."""


def check_fields(fields: object) -> None:
    """Check an option `fields`; ValueError: it is neither a function nor a mapping of a sample's fields."""
    if not callable(fields):
        if is_mapping(fields) and not fields.keys() <= {*SAMPLE_FIELDS}:
            # Loaded where something is wrong.
            from ragstone.fields.problems import other_way_round

            if way := other_way_round(fields):
                raise ValueError(f"fields: {way}")
        checked("fields", fields, dict[SampleField, str] | None)


def names_of(fields: Fields[Asked] | None) -> Mapping[SampleField, str]:
    """The names of fields, where the user gave them."""
    if fields is None or callable(fields):
        return {}
    # `check_fields` has checked it.
    given: Any = fields
    names: Mapping[SampleField, str] = given
    return names


def by_function(function: FieldFunction[Asked], inputs: Asked, output: object) -> Sample | Mapping[str, object] | None:
    """What the user's function returns; `Unreadable` where it fails, or returns something else."""
    try:
        given: object = function(inputs, output)
    except Exception as error:
        raise Unreadable(f"fields: the function raised {describe(error, most=300)}") from error
    if given is None or isinstance(given, Sample):
        return given
    if not is_mapping(given):
        raise Unreadable(
            f"fields: the function returned {type(given).__name__}; return a Sample or a mapping of its fields"
        )
    return {str(name): value for name, value in given.items() if value is not None}


def by_name(field: SampleField, name: str, places: Mapping[str, object], forms: Forms) -> Found:
    """What stands under a user's name, dotted where it is deeper, in the first place that has it.

    Raises:
        Unreadable: It stands nowhere, or cannot be the field.
    """
    for place, value in places.items():
        raw = _under(value, name, forms)
        if raw is not None:
            return Found(strictly(field, raw, f"{place}[{name!r}]", forms), BY_USER, raw)
    there = ", ".join(f"{place} ({kind(value, forms)})" for place, value in places.items())
    raise Unreadable(f"fields= names the key {name!r}, which is not in {there}")


def _under(value: object, name: str, forms: Forms) -> object:
    """What stands under a name, or in the only entry that there is."""
    found = under(value, name, forms)
    entries = forms.entries(value) if found is None else None
    inner = [*entries.values()] if entries is not None and len(entries) == 1 else ()
    return next((_under(each, name, forms) for each in inner), found)


def strictly(field: SampleField, value: object, where: str, forms: Forms) -> object:
    """What someone said is a field, or holds it under a usual name; `Unreadable` if it cannot be."""
    read_as = forms.value(field, value)
    if read_as is None:
        read_as = read(value, forms, (field,)).value(field)
    if read_as is not None:
        return read_as
    wanted = "text or a document" if field == "retrieved_contexts" else "text"
    for i, item in enumerate(value if is_list(value) else ()):
        if field == "retrieved_contexts" and forms.value(field, [item]) is None:
            raise Unreadable(f"{where}[{i}] is {kind(item, forms)}, not {wanted}")
    raise Unreadable(f"{where} is {kind(value, forms)}, not {wanted}")


def kind(value: object, forms: Forms) -> str:
    """A value's description for a message: its type and, where it has them, its names, such as "dict with 'q'"."""
    name = "None" if value is None else type(value).__name__
    names = ", ".join(map(repr, forms.entries(value) or ()))
    return f"{name} with {printable(names, 300)}" if names else name


def attempt(read: Callable[P, T], *args: P.args, **options: P.kwargs) -> T | Unreadable:
    """The value that a function reads, or the `Unreadable` that it raises."""
    try:
        return read(*args, **options)
    except Unreadable as problem:
        return problem


def draft_of(fields: FoundFields, outputs: Read, forms: Forms) -> Draft:
    """The sample that has these fields, where each came from, and what could be meant by those that are missing.

    Args:
        fields: What was found.
        outputs: What the run returned, as it was read.
        forms: How its values are read.

    Raises:
        Unreadable: The user's function gave a field that a sample has not.
    """
    found = {name: each for name, each in fields.items() if isinstance(each, Found)}
    try:
        sample = Sample.model_validate({name: each.value for name, each in found.items()})
    except ValidationError as error:
        # Loaded where something is wrong.
        from ragstone.fields.problems import first_problem

        raise Unreadable(f"fields: the function's {first_problem(error)}") from None
    read_from: dict[str, str] = {}
    meant: dict[str, str] = {}
    for name in SAMPLE_FIELDS:
        if name in found:
            read_from[name] = found[name].name
        # An app has no reference.
        elif name != "reference" and (entry := likely(outputs, name, forms)) is not None:
            meant[name] = entry
    # An entry that may be two fields is neither.
    once = {name: entry for name, entry in meant.items() if [*meant.values()].count(entry) == 1}
    contexts = found.get("retrieved_contexts")
    searched = contexts.raw if contexts is not None and isinstance(contexts.raw, Searched) else None
    return Draft(sample, read_from, tuple(outputs.unread), once, searched=searched)
