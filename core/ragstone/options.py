"""Options, checked against their types."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank")
    return text


AboveZero = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True, ge=1)]
Flag = Annotated[bool, Field(strict=True)]
Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(strict=True, ge=0)]
Seconds = Annotated[float, Field(strict=True, ge=0.001)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Text = Annotated[str, AfterValidator(_not_blank)]
Texts = Annotated[Sequence[Text], Field(min_length=1), AfterValidator(tuple)]


# To build an adapter takes a millisecond.
_adapter = cache(TypeAdapter[Any])


def checked(name: str, value: object, kind: Any) -> Any:  # noqa: ANN401 - what a type is, and what is of it
    """Return an option's value as its type has it; one whose type pydantic does not know is returned unchecked.

    Raises:
        ValueError: It is not of the type; the message names the option and the value.

    Example:
        >>> checked("strictness", 0, Count)
        Traceback (most recent call last):
        ValueError: strictness: 0 should be greater than or equal to 1
    """
    try:
        return _adapter(kind).validate_python(value)
    except PydanticSchemaGenerationError:
        return value
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = "".join(f"[{part!r}]" for part in first["loc"] if part != "[key]")
        problem = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
        raise ValueError(f"{name}{where}: {first['input']!r} {problem}") from None


def checked_fields(made: Any, but: Collection[str]) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - a dataclass
    """Yield the fields of a dataclass that are not as by default, by name, each as its type has it.

    Types that are texts, by postponed annotations, are not looked into.
    """
    for each in fields(made):
        value = getattr(made, each.name)
        if value is not each.default and each.name not in but and not isinstance(each.type, str):
            yield each.name, checked(each.name, value, each.type)
