"""One thing to score."""

import math
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from ragstone.fields.names import FIELDS, FieldName, meant_by, strongly
from ragstone.plain import id_of

if TYPE_CHECKING:
    from ragstone.fields.read import Found

SampleField = Literal["user_input", "retrieved_contexts", "response", "reference"]
"""The fields that hold texts."""
IdField = Literal["reference_ids", "retrieved_ids"]
"""The fields that hold ids of sources."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def _text(value: object) -> object:
    """Refuse what is no text; replace lone surrogates, which no encoding can carry, by U+FFFD.

    One code point for one code point, so that offsets still point into what the user handed in.
    """
    if not isinstance(value, str):
        found = {"kind": "NaN" if isinstance(value, float) and math.isnan(value) else type(value).__name__}
        raise PydanticCustomError("sample", "is {kind}, not text (str)", found)
    return value if value.isascii() else _LONE_SURROGATE.sub("\ufffd", value)


def _contexts(value: object) -> object:
    # The usual ones, quickly.
    if isinstance(value, (list, tuple)):
        return tuple(cast("Sequence[object]", value))
    kind = type(value).__name__
    if isinstance(value, (str, bytes, bytearray, memoryview, Mapping, Set)) or not isinstance(value, Iterable):
        raise PydanticCustomError(
            "sample", "is one {kind}; pass a list of texts, one per retrieved context", {"kind": kind}
        )
    return tuple(cast("Iterable[object]", value))


_Text = Annotated[str, BeforeValidator(_text)]
_NONE_IS_EMPTY = ("retrieved_contexts", "reference_ids", "retrieved_ids", "history")
_ROLES = {"human": "user", "ai": "assistant"}


def _ids(value: object) -> object:
    """A list of ids, or one."""
    one = id_of(value)
    return (one,) if isinstance(one, str) else tuple(map(id_of, cast("Iterable[object]", _contexts(value))))


def _role(value: object) -> object:
    return _ROLES.get(value, value) if isinstance(value, str) else value


_Ids = Annotated[Sequence[_Text], BeforeValidator(_ids)]


class Turn(BaseModel):
    """An earlier message of one side in a conversation.

    Attributes:
        role: "user" or "assistant" ("human" and "ai" mean the same).
        content: What was said.

    Example:
        >>> Turn(role="human", content="Who wrote Emma?").role
        'user'
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    role: Annotated[Literal["user", "assistant"], BeforeValidator(_role)]
    content: _Text


def _meant(name: str) -> str:
    """The field that an unknown name means, if any is near."""
    field = meant_by(name[:100])
    return f"{name[:40]}: write {field}" if field else f"{name[:40]}: is no field"


class Sample(BaseModel):
    """One question, the contexts retrieved for it, and the answer.

    Every field may be absent; each metric names the ones that it needs (`Metric.required_fields`) and a
    sample that lacks one is `Unscored("missing_input")` with no judge call. A value of the wrong type is
    refused here, with the field's name: nothing is ever turned into text for the judge by `str()`.
    Lone surrogates (half an emoji, as JSON from JavaScript may hold) become U+FFFD, one for one.

    Attributes:
        user_input: The question or request that the app received. For a summariser, the original text.
        retrieved_contexts: The retrieved chunks, in order.
        response: What the app answered.
        reference: A right answer, written by a person. Metrics of golden sets compare with it.
        reference_ids: Ids of the sources that should have been retrieved: of documents or chunks, as the golden set
            names them. Metrics of ranks compare `retrieved_ids` with them, without a judge.
        retrieved_ids: Ids of the sources that were retrieved, best first.
        id: Any name for the sample; it comes back with its outcomes.
        history: The turns of the conversation before `user_input`, oldest first: `Turn`s, or mappings of `role` and
            `content`. Metrics that look at the question show them to the judge.
        metadata: Anything of yours; never shown to the judge. A monitor's rules read `error` and `feedback`.

    Raises:
        pydantic.ValidationError: A field is not of its type; the message names the field and the type given. Or a
            name is no field's; the message says which is meant.

    Example:
        >>> sample = Sample(
        ...     user_input="Who wrote Emma?",
        ...     retrieved_contexts=["Emma is a novel by Jane Austen."],
        ...     response="Jane Austen wrote it.",
        ... )
        >>> sample.retrieved_contexts
        ('Emma is a novel by Jane Austen.',)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    user_input: _Text | None = None
    retrieved_contexts: Annotated[Sequence[_Text], BeforeValidator(_contexts)] = ()
    response: _Text | None = None
    reference: _Text | None = None
    reference_ids: _Ids = ()
    retrieved_ids: _Ids = ()
    id: _Text | None = None
    history: tuple[Turn, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])

    @model_validator(mode="before")
    @classmethod
    def _none_is_absent(cls, values: object) -> object:
        if not isinstance(values, Mapping):
            return values
        fields = cast("Mapping[str, object]", values)
        if unknown := [str(name) for name in fields if name not in FIELDS]:
            meant = {"meant": "; ".join(map(_meant, unknown)), "fields": ", ".join(FIELDS)}
            raise PydanticCustomError("sample", "{meant}. A sample has {fields}", meant)
        return {name: value for name, value in fields.items() if value is not None or name not in _NONE_IS_EMPTY}

    def texts(self, field: SampleField | IdField | Literal["history"]) -> tuple[str, ...]:
        """Return the texts of a field: of contexts, ids and turns each by itself; none where it is absent."""
        if field == "history":
            return tuple(turn.content for turn in self.history)
        value: str | Sequence[str] | None = getattr(self, field)
        return (value,) if isinstance(value, str) else tuple(value or ())

    def all_texts(self) -> list[str]:
        """Return the texts of all fields."""
        return [text for name in (*get_args(SampleField), *get_args(IdField), "history") for text in self.texts(name)]

    def characters(self) -> int:
        """Return the length of all texts together."""
        return sum(map(len, self.all_texts()))


@dataclass(frozen=True, slots=True)
class FirstRow:
    """Where the fields of a source stand, by its first row.

    Attributes:
        found: What was read, by field, and from where.
        unread: The names that hold no field, with their values, if these were looked at.
        may_be: Of a field that is missing, the one name that may hold it.
        naming: How the user names a field's key.
        part: Of a source of several parts, as sheets are, the one that is read.
        notes: Sentences on the rows, also on those behind this one, once they were read.
    """

    found: Mapping[FieldName, "Found"]
    unread: Mapping[str, object]
    may_be: Mapping[FieldName, str]
    naming: str
    part: str = ""
    notes: Sequence[str] = ()

    def also(self, lacking: Collection[str] = ()) -> str:
        """The names that hold no field, and how to say that one does; "" where all do.

        Args:
            lacking: The fields that are missing; none: any.

        Example:
            >>> row = FirstRow({}, {"my docs": [], "k": 3}, {"retrieved_contexts": "my docs"}, "--field {field}={key}")
            >>> row.also()
            "also has 'my docs', 'k': --field retrieved_contexts='my docs'"
        """
        ways = [self.way(field, name) for field, name in self.may_be.items() if field in (lacking or self.may_be)]
        # A known name that was not read holds something else beside the others.
        names = [name for name in self.unread if not strongly(name) or name in self.may_be.values()]
        said = " ".join(ways) or f"name them with {self.way('FIELD', 'KEY')}"
        return f"also has {name_list(names)}: {said}" if names else ""

    def way(self, field: str, key: str) -> str:
        """How the user names the key of a field, so that it can be pasted."""
        return naming_of(self.naming, field, key)


def naming_of(naming: str, field: str, key: str) -> str:
    """How the user names the key of a field: as Python has it, or as a shell's option."""
    return naming.format(field=field, key=shlex.quote(key) if naming.startswith("--") else key)


_LISTED = 20


def name_list(names: Sequence[object]) -> str:
    """Names for a message: the first 20, each cut to 40 characters."""
    return ", ".join(repr(name)[:40] for name in names[:_LISTED]) or "(none)"


@dataclass(frozen=True, slots=True)
class Row:
    """A sample and the line it stood on, counted from 1.

    Attributes:
        line: The line.
        sample: The sample.
        error: Why the app gave no response. Metrics that need one are then `Unscored("missing_input")` with this
            reason, and all are where nothing was retrieved.
        problems: Why fields of ids could not be read. Metrics that need them are then unscored likewise.
        first: Of a source's first row, where its fields stand.
    """

    line: int
    sample: Sample
    error: str | None = None
    first: FirstRow | None = None
    problems: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that holds no sample, and why."""

    line: int
    problem: str
