"""Rows that do not have one name for each field: numbered columns, JSON in cells, columns as lists."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

from ragstone.fields.names import STRONGLY, TEXTS, WEAKLY, FieldName, bare, strongly
from ragstone.fields.read import Found, Read
from ragstone.fields.values import alike
from ragstone.plain import is_list, is_mapping
from ragstone.sample import BadLine
from ragstone.sources.cells import CELLS, CONVERSATIONS, LOGGED, contexts_in, python_value
from ragstone.sources.written import written_value

_NUMBERED = re.compile(r"(.*?)[\W_]*(\d{1,3})\W?")
_ENVELOPES = ("inputs", "outputs", "expectations", "referenceoutputs", *CONVERSATIONS)
_ID = re.compile(r"(?i)(?:query|question|prompt|example|sample|case|turn|q)[ _-]?id")
# How pandas calls the column of its index.
_INDEX = ("", "Unnamed: 0", "__index_level_0__")
_DIGITS = re.compile(r"\d+")


@lru_cache(maxsize=10_000)
def numbered(names: tuple[object, ...]) -> Sequence[str]:
    """The names of contexts that differ by a number from 0 or 1 on, in its order; none where they are of two kinds.

    Example:
        >>> numbered(("question", "context_2", "context_1", "gold_context_1"))
        ['context_1', 'context_2']
    """
    by_stem: dict[str, dict[int, str]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(name) if isinstance(name, str) else None
        if match and _is_contexts(bare(match[1])):
            by_stem.setdefault(match[1], {})[int(match[2])] = match[0]
    for found in by_stem.values():
        if len(by_stem) == 1 and min(found) < 2:
            return [name for _, name in sorted(found.items())]
    return []


def _is_contexts(stem: str) -> bool:
    meant = STRONGLY.get(stem) or STRONGLY.get(f"{stem}s")
    return bool(stem) and meant == ("retrieved_contexts",)


def starred(name: str, names: Iterable[object]) -> list[str]:
    """The names that one with a star means, in the order of their numbers.

    Example:
        >>> starred("Contexto_*", ["Pergunta", "Contexto_10", "Contexto_2"])
        ['Contexto_2', 'Contexto_10']
    """
    begins, star, _ = name.partition("*")
    found = [each for each in names if isinstance(each, str) and star and each.startswith(begins)]
    return sorted(found, key=lambda each: [*map(int, _DIGITS.findall(each[len(begins) :]))])


def filled(row: Mapping[Any, object], name: str) -> object | None:
    """What stands under a name; None where it is nothing."""
    value = python_value(row.get(name))
    return None if isinstance(value, str) and not value else value


def columns_of(name: str, names: Iterable[object]) -> Sequence[str]:
    """The columns that hold what a name with dots, or with a star, leads to."""
    there = [*names]
    return [each for each in (name, name.partition(".")[0]) if each in there][:1] or starred(name, there)


def texts_under(names: Sequence[str], *rows: Mapping[Any, object]) -> Found:
    """The contexts that stand under several names, each behind the one before; empty cells are passed over."""
    texts: list[object] = []
    for row, name in product(rows, names):
        if (value := filled(row, name)) is not None:
            items = contexts_in(CELLS.value("retrieved_contexts", value), name)
            texts += items if is_list(items) else [items]
    names = [name for name in names if any(filled(row, name) is not None for row in rows)] or names
    listed = ", ".join(names) if len(names) < 4 else f"{names[0]} to {names[-1]}"
    return Found(texts, f"{listed} ({len(names)} column{'s' * (len(names) > 1)})", texts)


def with_columns(row: Mapping[Any, object], reading: Read, rows_by: str | None, fields: Sequence[FieldName]) -> Read:
    """A reading with contexts that stand in several columns, or behind each other in rows that were made one."""
    columns = numbered(tuple(row)) if "retrieved_contexts" in fields else ()
    found, conflicts = dict(reading.found), dict(reading.conflicts)
    stated = found.get("retrieved_contexts")
    passages = [name for name in reading.unread if is_passage(name)] if rows_by and stated is None else ()
    if columns:
        found["retrieved_contexts"] = texts_under(columns, row)
        if stated is not None and not alike(stated.value, found["retrieved_contexts"].value):
            conflicts["retrieved_contexts"] = [stated.name, *columns]
    elif len(passages) == 1 and "retrieved_contexts" in fields:
        found["retrieved_contexts"] = Found(row[passages[0]], passages[0], row[passages[0]])
    if rows_by in row:
        found["id"] = Found(row[rows_by], str(rows_by), row[rows_by])
    used = (*columns, *passages, rows_by)
    unread = {name: each for name, each in reading.unread.items() if name not in used}
    return replace(reading, found=found, unread=unread, conflicts=conflicts)


def without_json(row: Mapping[Any, object]) -> Mapping[Any, object]:
    """A row with the values that its texts write, where what went in is such an object or conversation."""
    # Loaded when first used.
    from ragstone.sources.turns import turns_in

    for name, text in row.items():
        is_logged = isinstance(name, str) and bare(name) in LOGGED
        if is_logged and isinstance(text, str) and text.lstrip()[:1] in ("{", "["):
            value = written_value(text)
            if is_mapping(value) or turns_in(value) is not None:
                return {key: _value_of_json(each) for key, each in row.items()}
    return row


def _value_of_json(cell: object) -> object:
    if not isinstance(cell, str) or cell.lstrip()[:1] not in ("{", "[", '"'):
        return cell
    value = written_value(cell)
    return cell if isinstance(value, BadLine) else value


def rows_of_columns(value: Mapping[Any, object]) -> tuple[list[object], Mapping[str, str]] | None:
    """The rows of an object whose names hold columns, and the fields of which a name is the plural; None for others.

    Raises:
        ValueError: The columns are not of one length.

    Example:
        >>> rows_of_columns({"questions": ["Why?", "Who?"], "answer": {"0": "So.", "1": "She."}})[1]
        {'user_input': 'questions'}
    """
    # A text under a name of question or answer is that of one row.
    if any(
        isinstance(each, str) and _field_of_column(name) in ("user_input", "response") for name, each in value.items()
    ):
        return None
    columns = {name: column for name, each in value.items() if (column := _column(each)) is not None}
    meant = {name: field for name in columns if (field := _field_of_column(name)) is not None}
    asked = [name for name, field in meant.items() if field == "user_input"] or [
        name for name, field in meant.items() if field == "response"
    ]
    if not any(all(isinstance(cell, str) for cell in columns[name]) and columns[name] for name in asked):
        return None
    lengths = {name: len(columns[name]) for name in meant}
    if len({*lengths.values()}) > 1:
        said = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise ValueError(f"its lists are columns of different lengths: {said}; a row needs a value in each")
    if len({tuple(each) for name in columns if is_mapping(each := value[name])}) > 1:
        raise ValueError("its columns have the numbers of different rows, or in another order; write a list of rows")
    length = lengths[asked[0]]
    same = {name: column for name, column in columns.items() if len(column) == length}
    rows: list[object] = [dict(zip(same, cells, strict=True)) for cells in zip(*same.values(), strict=True)]
    return rows, {field: name for name, field in meant.items() if not strongly(name) and bare(name) not in WEAKLY}


def _column(value: object) -> Sequence[object] | None:
    """A column: a list, or, as pandas writes it, the cells by the number of their rows."""
    if is_mapping(value) and value and all(isinstance(name, str) and name.isdecimal() for name in value):
        return [*value.values()]
    return value if is_list(value) else None


def _field_of_column(name: object) -> FieldName | None:
    if not isinstance(name, str):
        return None
    singular = f"{bare(name)[:-3]}y" if bare(name).endswith("ies") else bare(name).removesuffix("s")
    meant = strongly(name) or WEAKLY.get(bare(name)) or STRONGLY.get(singular) or WEAKLY.get(singular)
    return meant[0] if meant else None


def is_passage(name: object) -> bool:
    """Whether a name is that of contexts, or of the text of one passage."""
    return isinstance(name, str) and (strongly(name) == ("retrieved_contexts",) or bare(name) in map(bare, TEXTS))


def is_envelope(name: object) -> bool:
    """Whether fields may stand behind a name."""
    return isinstance(name, str) and bare(name) in _ENVELOPES


def is_needed(name: str) -> bool:
    """Whether a column that holds no field by its name may hold some, or tells rows of one question."""
    return name in _INDEX or is_envelope(name) or is_passage(name) or _ID.fullmatch(name) is not None


def is_index(name: str, value: object) -> bool:
    """Whether a value is a row's number, as pandas writes it in a column of its own."""
    return name in _INDEX and str(value).isdecimal()


def id_of_question(names: Iterable[object]) -> str | None:
    """The name of the id that rows of one question share; None where there is none."""
    return next((name for name in names if isinstance(name, str) and _ID.fullmatch(name)), None)


def one_name(names: Sequence[str]) -> str | None:
    """The only name, or that of all that differ by a number, with a star; None for others.

    Example:
        >>> one_name(["Contexto_1", "Contexto_2"]), one_name(["Fonte", "Contexto"])
        ('Contexto_*', None)
    """
    stems = {name.rstrip("0123456789") for name in names}
    return names[0] if len(names) == 1 else f"{stems.pop()}*" if len(stems) == 1 else None
