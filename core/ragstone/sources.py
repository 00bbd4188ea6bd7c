"""Rows of samples from lists, generators, tables (pandas, polars, Arrow, Hugging Face), files and standard input."""

import ast
import codecs
import csv
import gzip
import io
import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from itertools import chain
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import IO, Any, AnyStr, cast

from pydantic import ValidationError

from ragstone.errors import RagstoneError, describe
from ragstone.fields.names import FIELDS, STRONGLY, WEAKLY, FieldName, bare, may_hold, meant_by, strongly
from ragstone.fields.read import Found, Plain, Read, likely, read, under
from ragstone.fields.values import text_of_document
from ragstone.plain import as_dict, as_list, fields_of, is_list, is_mapping
from ragstone.sample import BadLine, FirstRow, Row, Sample, first_problem, name_list, naming_of

__all__ = ["SAMPLE_FIELDS", "BadLine", "Row", "RowReader", "SourceError", "rows_of"]

SAMPLE_FIELDS = FIELDS
NAMING = "fields={{{field!r}: {key!r}}}"
"""How Python names the key of a field."""
LARGEST = 100_000_000
"""The bytes of a line, or a row of Parquet or Arrow that are read at most; of a cell of CSV half as many characters."""
PRESETS: Mapping[str, Mapping[str, str]] = {
    "phoenix": {"user_input": "input", "retrieved_contexts": "reference", "response": "output"},
}
"""Fields of rows whose names mean something else than usual, by what they come from."""
# A list of texts or mappings as Python writes it, or of what it has no literal for: Document(...), array([...]).
_LIST_BEGINS = re.compile(
    r"(?:array\(\s*)?\[\s*(?:[bBrRuU]?['\"]|\{\s*['\"]|\[\s*['\"]|None\s*[,\]]|[A-Za-z_][\w.]*\((?:\w+\s*=|['\"\[]))"
)
# None of these alone is a sample.
_NO_SAMPLE = {"id", "history", "metadata", "reference"}
# What a row that lacks them is asked for.
_ASKED_FOR: Sequence[FieldName] = ("user_input", "retrieved_contexts", "response", "reference")
# Where so many rows of a file are no samples, it is something else.
_LOOKED_AT = 20
# DeepEval writes the texts of this column with "|" between them.
_DEEPEVAL_CONTEXTS = "retrievalcontext"
_NEVER_MISSING = (str, list, dict, int, bool)
# Roles of turns that the user did not see.
_SILENT = ("system", "developer", "tool", "function")
# Rows of Parquet that are unpacked at a time.
_CHUNK = 16
# Only a text that says the same over and over is packed so densely.
_DENSEST = 1_000
_BLANK_LINES = 1_000_000
# The syntax tree of a list that Python wrote is 50 times as large as its characters.
_LONGEST_LITERAL = 1_000_000
_SPLIT = "split it, or read it by rows_of(..., largest=...)"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://?(?=[^/\\])")
# These begin what spreadsheets save as "Unicode text".
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

Source = Iterable[object] | str | PathLike[str]
Rows = Iterator[Row | BadLine]


class SourceError(RagstoneError, ValueError):
    """A source that holds no samples, or cannot be read; the message says why and what to do.

    Attributes:
        report: What `evaluate` had scored by then, a `Report`; None elsewhere.
    """

    report: object = None


def rows_of(
    source: Source,
    fields: Mapping[str, str] | str | None = None,
    *,
    naming: str = NAMING,
    largest: int = LARGEST,
) -> Rows:
    """The rows of a source, lazily: a `Row` per sample, a `BadLine` for what is none.

    Rows count from 1: lines of a file of JSON lines, else positions (of CSV, records behind the line of names). A
    sample without an id keeps none; a row of a file or table, or a dict, gets its number. Ids may occur twice.

    Args:
        source: One of these.

            - Any iterable of `Sample`s, dicts, or objects with such fields (a sample of ragas,
              a test case of DeepEval). It may have no end.
            - A pandas or polars DataFrame, a Hugging Face Dataset, an Arrow Table, RecordBatch or RecordBatchReader.
            - The path of a file: JSON lines, one JSON list, CSV, TSV, Parquet or Arrow (these two need pyarrow), also
              packed by gzip. The content says which it is.
            - The path of a folder that `Dataset.save_to_disk` wrote (needs pyarrow).
            - "-": standard input.

            In tables NaN and its like are as good as absent, and a text in the column of contexts is a list of them, as
            JSON or as Python writes it, or the only one (in DeepEval's `retrieval_context`, "|" stands between them).
            In CSV an empty cell is absent. A context may be a document (`page_content`, `text`, `content`).
        fields: The key or column by the sample's field, such as {"user_input": "query"}, where it is none of the
            known names (ragstone's, ragas', DeepEval's). Dots lead inward: "outputs.answer", "inputs.0.text". A row
            without it is a bad line. A text that is named here for `retrieved_contexts` is one context. Or what the
            rows come from, where names mean something else there: "phoenix", whose `reference` is the context.
        naming: How the user names a field's key, for messages.
        largest: The bytes of a line, or a row of Parquet or Arrow at most; of a cell of CSV half as many characters.

    Returns:
        An iterator. It may wait for a file or for the source. An exception that the source raises comes through.

    Raises:
        TypeError: The source is no such thing.
        SourceError: A file cannot be read, none of its first 20 rows is a sample, or a table has no column with a
            field of a sample; some of it only when the rows are read.

    Example:
        >>> rows = rows_of([{"question": "Why?", "output": "So."}, "oops"], fields={"response": "output"})
        >>> next(rows).sample.response
        'So.'
        >>> next(rows)
        BadLine(line=2, problem='is str, not a Sample or a dict')
    """
    reader = RowReader(fields, naming, largest)
    if isinstance(source, (str, PathLike)):
        path = os.path.expanduser(source)  # noqa: PTH111 - a text with NUL is no path, and is said below
        if _ADDRESS.match(path):
            raise SourceError(f"{path[:100]!r}: is an address; download it first, and pass the file's path")
        if path != "-" and not os.path.exists(path):  # noqa: PTH110
            raise SourceError(f"{path[:100]!r}: there is no such file; pass the path of one, or a list of samples")
        return _file_rows(path, reader)
    kind = type(source).__name__
    table: Any = source
    items: Iterable[object] | None = None
    # It is Polars'.
    if hasattr(source, "iter_rows"):
        items = table.select(reader.columns(table.columns, kind, all_of_them=True)).iter_rows(named=True)
    elif hasattr(source, "itertuples"):
        # It is pandas', which is not imported for it.
        columns = reader.columns(list(table.columns), kind, all_of_them=True)
        cells = table[columns].itertuples(index=False, name=None)
        items = (dict(zip(columns, values, strict=True)) for values in cells)
    elif is_list(names := getattr(getattr(source, "schema", None), "names", None)):
        batches = table if hasattr(source, "read_next_batch") else [table]
        batches = table.to_batches() if hasattr(source, "to_batches") else batches
        items = _arrow_items(batches, reader.columns(names, kind), largest)
    elif is_list(names := getattr(source, "column_names", None)):
        reader.columns(names, kind)
        items = table
    if items is not None:
        return (reader.row(number, item, table=True) for number, item in enumerate(items, 1))
    if is_mapping(source):
        keys = name_list(list(source))
        raise TypeError(
            f"samples: is one {kind} (with {keys}), not a list of them; write [row], or take one of the splits"
        )
    single = isinstance(source, (Sample, Row, bytes, bytearray)) or hasattr(source, "read")
    if single or not hasattr(source, "__iter__"):
        raise TypeError(
            f"samples: is {kind}; pass a list of Samples or dicts, a generator, a DataFrame, a Dataset, an Arrow "
            "Table, or the path of a file"
        )
    return (reader.row(number, item) for number, item in enumerate(table, 1))


class RowReader:
    """Makes a source's items rows of samples, whatever their fields are called; the arguments are `rows_of`'s."""

    def __init__(
        self, fields: Mapping[str, str] | str | None = None, naming: str = NAMING, largest: int = LARGEST
    ) -> None:
        named: object = PRESETS.get(fields, fields) if isinstance(fields, str) else fields or {}
        if not is_mapping(named):
            raise TypeError(
                f"fields: is {type(named).__name__}; pass a mapping such as {{'response': 'output'}}, or one of "
                f"{', '.join(PRESETS)}"
            )
        for field, name in named.items():
            if field not in SAMPLE_FIELDS:
                raise ValueError(f"fields: {field!r} is no field of a sample; there are {', '.join(SAMPLE_FIELDS)}")
            if not isinstance(name, str):
                raise TypeError(f"fields[{field!r}]: is {type(name).__name__}; name a column or key")
        self._said = cast("Mapping[FieldName, str]", named)
        self._others: Sequence[FieldName] = [field for field in FIELDS if field not in self._said]
        self._naming = naming
        self.largest = largest
        # Of a table of which some columns are not looked at.
        self._columns: Sequence[object] = ()
        self._has_first = False

    def columns(self, names: Sequence[object], table: str, *, all_of_them: bool = False) -> list[str]:
        """The columns of a table that may hold fields of a sample; all of them where none may hold contexts.

        Args:
            names: The names of its columns.
            table: What it is called.
            all_of_them: Whether to look at all where none is known to hold contexts.

        Raises:
            SourceError: None does, or one that is named is not there.
        """
        there = f"the columns are {name_list(names)}"
        for field, name in self._said.items():
            if _column(name, names) not in names:
                raise SourceError(f"{table}: {field}: there is no column {name!r}; {there}")
        if not self.knows(names):
            raise SourceError(f"{table}: no column holds a field of a sample; {there}: {self._ways(names)}")
        texts = [name for name in names if isinstance(name, str)]
        meant = {name: _meanings(name) for name in texts}
        contexts = "retrieved_contexts" in self._said or any("retrieved_contexts" in each for each in meant.values())
        said = [_column(name, names) for name in self._said.values()]
        columns = texts if all_of_them and not contexts else [name for name in texts if meant[name] or name in said]
        if twice := [name for name in columns if Counter(names)[name] > 1]:
            raise SourceError(f"{table}: the column {twice[0]!r} is there more than once; {there}")
        self._columns = names
        return columns

    def knows(self, names: Iterable[object]) -> bool:
        """Whether some of these are a sample's fields."""
        there = [*names]
        if any(_column(name, there) in there for field, name in self._said.items() if field not in _NO_SAMPLE):
            return True
        return any(_meanings(name) - _NO_SAMPLE for name in there if isinstance(name, str))

    def _ways(self, names: Iterable[object]) -> str:
        """How to say which name holds which field, by the words of the names where only one has them."""
        # Loaded when first used.
        from ragstone.adapters.guesses import meant_by_words

        meant: dict[str, list[str]] = {}
        for name in names:
            field = meant_by_words(name) if isinstance(name, str) else None
            if field is not None and may_hold(field, str(name)):
                meant.setdefault(field, []).append(str(name))
        ways = [self._way(field, found[0]) for field, found in meant.items() if len(found) == 1]
        return f"perhaps {' '.join(ways)}" if ways else f"name them with {self._way()}"

    def _way(self, field: str = "FIELD", key: str = "KEY") -> str:
        return naming_of(self._naming, field, key)

    def row(self, number: int, item: object, *, table: bool = False) -> Row | BadLine:
        """Return the row of one item.

        Args:
            number: Its place, from 1.
            item: A `Sample`, `Row` or `BadLine`, which stay as they are (a `BadLine` of no line gets this one); a
                mapping, or an object with fields.
            table: Whether it is of a table, where numbers may stand for ids.
        """
        if not is_mapping(item):
            if isinstance(item, BadLine):
                return replace(item, line=item.line or number)
            if isinstance(item, Row):
                return item
            if isinstance(item, Sample):
                return Row(number, item)
        try:
            values = item if is_mapping(item) else fields_of(item)
            if values is None:
                return BadLine(number, f"is {type(item).__name__}, not a Sample or a dict")
            reading = self._read(values)
            sample = self._sample(number, reading, table=table)
            first, self._has_first = None if self._has_first else self._says(reading), True
            return Row(number, sample, first=first)
        except ValidationError as error:
            return BadLine(number, first_problem(error))
        except ValueError as error:
            return BadLine(number, str(error))
        except Exception as error:
            # A user's object may raise anything when it is looked into.
            return BadLine(number, describe(error, most=200))

    def _read(self, row: Mapping[Any, object]) -> Read:
        """Read a row: what the user said of it, and the other fields under their usual names."""
        if not self._said:
            return read(row, _CELLS)
        taken = [*self._said.values()]
        free = {name: value for name, value in row.items() if name not in taken}
        reading = read(free, _CELLS, self._others)
        found: dict[FieldName, Found] = {}
        for field, name in self._said.items():
            value = under(row, name, _CELLS, missing=_CELLS)
            if value is _CELLS:
                raise ValueError(f"{field}: there is no key {name!r}; the row has {name_list(list(row))}")
            if (value := _python_value(value)) is not None:
                found[field] = Found(_CELLS.value(field, value), name, value)
        unread = {name: value for name, value in reading.unread.items() if name not in map(_first_name, taken)}
        return replace(reading, found={**reading.found, **found}, unread=unread)

    def _sample(self, number: int, reading: Read, *, table: bool) -> Sample:
        for field, names in reading.conflicts.items():
            raise ValueError(f"{field}: {name_list(names)} hold different texts; say which with {self._way(field)}")
        values: dict[str, Any] = {"id": str(number)}
        for field, found in reading.found.items():
            values[field] = _field_value(field, found, table=table)
        if not values.keys() - _NO_SAMPLE:
            names = name_list([*reading.unread, *(each.name for each in reading.found.values())])
            raise ValueError(
                f"none of a sample's fields has a value; the row has {names}: {self._ways(reading.unread)}"
            )
        return Sample(**values)

    def _says(self, reading: Read) -> FirstRow:
        """What a source's first row says of where its fields stand."""
        unread = dict(reading.unread)
        for name in map(str, self._columns):
            if name not in unread and not _is_read(name, reading):
                unread[name] = None
        may_be: dict[FieldName, str] = {}
        for field in _ASKED_FOR:
            near = [name for name in unread if _is_near(name, field)]
            meant = likely(reading, field) if field != "reference" else None
            meant = meant or (near[0] if len(near) == 1 else None)
            if field not in reading.found and meant is not None:
                may_be[field] = meant
        # An entry that may be two fields is neither.
        once: dict[FieldName, str] = {
            field: name for field, name in may_be.items() if [*may_be.values()].count(name) == 1
        }
        return FirstRow(reading.found, unread, once, self._naming)


def _meanings(name: str) -> set[str]:
    return {*strongly(name), *WEAKLY.get(bare(name), ())}


def _is_near(name: str, field: FieldName) -> bool:
    """Whether an unread name is near to one of a field, or ends as those do."""
    meanings = _meanings(name)
    by_end = meanings == {field} and bare(name) not in STRONGLY and bare(name) not in WEAKLY
    return by_end or (not meanings and meant_by(name) == field)


def _is_read(name: str, reading: Read) -> bool:
    return any(name in (each.name, _first_name(each.name)) for each in reading.found.values())


def _first_name(name: str) -> str:
    return name.partition(".")[0]


class _Cells(Plain):
    """The values of rows and cells: what is missing is none, and a text may be the list of contexts."""

    def value(self, field: FieldName, value: object) -> object | None:
        """A value of any kind, which the sample refuses where it is no text, so that the row says so."""
        if isinstance(value, str):
            return value
        value = _python_value(value)
        if field == "retrieved_contexts":
            items = _items(value)
            if not is_list(items):
                return value
            return [each if isinstance(each, str) else _text_or_item(each) for each in items]
        return None if is_mapping(value) and field not in ("history", "metadata", "id") else value


_CELLS = _Cells()


def _text_or_item(item: object) -> object:
    text = text_of_document(item)
    return item if text is None else text


def _field_value(field: FieldName, found: Found, *, table: bool) -> object:
    value = found.value
    if field in ("user_input", "response"):
        return value
    if field == "id":
        # A column of whole numbers of which one is missing comes as floats.
        value = int(value) if table and isinstance(value, float) and value.is_integer() else value
        return value if isinstance(value, bool) or is_list(value) or is_mapping(value) else str(value)
    if field == "history":
        return _history(value)
    if field == "metadata":
        return _metadata(value, found.name)
    if field == "retrieved_contexts":
        if not isinstance(value, str):
            return value
        items = _contexts_in_cell(value, found.name)
        return [_text_or_item(each) for each in items] if is_list(items) else items
    # Of ground_truths there is one.
    if field == "reference" and is_list(value) and len(value) == 1:
        return value[0]
    return value


def _column(name: str, names: Sequence[object]) -> str:
    """The column that holds what a name with dots leads to."""
    return name if name in names else _first_name(name)


def _items(value: object) -> object:
    # Pandas reads Parquet into arrays of numpy.
    return getattr(value, "tolist", lambda: value)()


def _python_value(value: object) -> Any:  # noqa: ANN401 - it may be anything, as in the user's row
    """A cell's value as Python's own; None where it is missing (NaN, NA, NaT)."""
    if type(value) in _NEVER_MISSING:
        return value
    # What pandas has for nothing.
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    # Numpy's numbers have it.
    if isinstance(value, Real) and hasattr(value, "item"):
        scalar: Any = value
        value = scalar.item()
    return None if isinstance(value, float) and math.isnan(value) else value


def _contexts_in_cell(text: str, column: str) -> object:
    """The contexts in a cell of text: a list of JSON or of Python, DeepEval's list with "|", or the only one."""
    stripped = text.strip()
    if stripped.startswith(("[", "(")):
        if is_list(found := _json(stripped)):
            return found
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            found = ast.literal_eval(stripped[:_LONGEST_LITERAL])
            # Texts that stand side by side, as numpy writes an array, would be one text to Python.
            if is_list(found) and "".join(repr(found).split()) == "".join(stripped.split()):
                return found
    if _LIST_BEGINS.match(stripped):
        raise ValueError(
            f"{column}: begins as a list and is none: it was cut off (spreadsheets cut a cell at 32,767 "
            "characters), or is one of numpy's or of objects; write it as JSON (json.dumps)"
        )
    return text.split("|") if bare(column) == _DEEPEVAL_CONTEXTS else [text]


def _history(value: object) -> object:
    """The turns that a value holds, which may be JSON text, without those of the system and of tools."""
    turns = _json(value) if isinstance(value, str) else _items(value)
    if not is_list(turns) or not all(map(is_mapping, turns)):
        raise ValueError('history: write a list such as [{"role": "user", "content": "Why?"}], or its JSON as text')
    return [turn for turn in turns if is_mapping(turn) and turn.get("role") not in _SILENT]


def _metadata(value: object, name: str) -> object:
    """An object, which may be JSON text; any other value under its name."""
    found = _json(value) if isinstance(value, str) else value
    return found if is_mapping(found) else {name: value}


def _json(text: str | bytes) -> object:
    """A text's JSON value; a `BadLine` where it has none."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        return BadLine(0, f"not JSON: {error.msg} at column {error.colno}")
    except (ValueError, RecursionError) as error:
        # An integer may have too many digits, or brackets may stand in brackets.
        return BadLine(0, f"not JSON: {str(error)[:100]}")


def _file_rows(path: str, reader: RowReader) -> Rows:
    """Yield the rows of a file, in constant memory (one that is a JSON list is read whole)."""
    name = "standard input" if path == "-" else path
    with _as_source_errors(name):
        rows = _folder_rows(Path(path), reader) if os.path.isdir(path) else _opened_rows(path, reader, name)  # noqa: PTH112
        bad: list[BadLine] = []
        for row in rows:
            if isinstance(row, Row):
                yield from bad
                yield row
                yield from rows
                return
            bad.append(row)
            if len(bad) == _LOOKED_AT:
                break
        if not bad:
            raise SourceError(f"{name}: is empty: it holds no rows")
        raise SourceError(f"{name}: no sample in its first {len(bad)} row(s); line {bad[0].line}: {bad[0].problem}")


def _opened_rows(path: str, reader: RowReader, name: str) -> Rows:
    with _open_bytes(path) as file:
        packed = file.peek(2)[:2] == b"\x1f\x8b"
        body = cast("io.BufferedReader", gzip.GzipFile(fileobj=file)) if packed else file
        # These are read from their end.
        if not file.seekable() and body.peek(6).startswith((b"PAR1", b"ARROW1")):
            body = cast("io.BufferedReader", io.BufferedReader(io.BytesIO(body.read())))
        yield from _rows_in(body, reader, name)


def _open_bytes(path: str) -> io.BufferedReader:
    if path != "-":
        return Path(path).open("rb")
    # A thread that waits in sys.stdin for a line would abort the interpreter's exit.
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):
        # It is no file, as in tests.
        return io.BufferedReader(cast("io.RawIOBase", sys.stdin.buffer))


@contextmanager
def _as_source_errors(name: str) -> Generator[None, None, None]:
    try:
        yield
    except SourceError:
        raise
    except Exception as error:
        # Of damaged files pyarrow raises many kinds of errors.
        why = str(getattr(error, "strerror", None) or error) or type(error).__name__
        raise SourceError(f"{name}: cannot be read: {why}") from error


def _rows_in(file: io.BufferedReader, reader: RowReader, name: str) -> Rows:
    """The rows of a file of whatever kind; its content says which it is, and of damaged JSON its name."""
    start = file.peek(200)[:200]
    if start.startswith(b"PAR1"):
        return _parquet_rows(file, reader, name)
    # A file begins with the one, a stream, as Hugging Face writes it, with the other.
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return _arrow_rows([file], reader, name)
    is_json = Path(name.lower().removesuffix(".gz")).suffix in (".json", ".jsonl", ".ndjson")
    if is_json or start.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"["):
        return _json_rows(file, reader, name)
    if b"\0" in start and start[:2] not in _WIDE:
        raise SourceError(f"{name}: is neither JSON, CSV, Parquet nor Arrow; save a table as CSV")
    return _csv_rows(file, reader, name)


def _lines(file: IO[AnyStr], largest: int) -> Iterator[AnyStr]:
    """Yield a file's lines; none is read that is longer than `largest`."""
    number = blank = 0
    while line := file.readline(largest + 1):
        number += 1
        blank = blank + 1 if line.isspace() else 0
        if len(line) > largest:
            raise SourceError(f"line {number:,} is longer than {largest:,} bytes; {_SPLIT}")
        if blank > _BLANK_LINES:
            raise SourceError(f"line {number:,} is blank, as are the {_BLANK_LINES:,} before it; take them out")
        yield line


def _json_rows(file: io.BufferedReader, reader: RowReader, name: str) -> Rows:
    """Yield the rows of JSON objects, one a line, or of one list of them. Blank lines are skipped."""
    blank = codecs.BOM_UTF8 + b" \t\r\n"
    lines: Iterator[tuple[int, bytes]] = (
        (number, line.strip()) for number, line in enumerate(_lines(file, reader.largest), 1) if line.strip(blank)
    )
    for number, line in lines:
        value = _json(line)
        if is_mapping(value) and "ragstone_results" in value:
            raise SourceError(f"{name}: holds results; `ragstone report`, `explain` and `compare` read them")
        lines = chain([(number, line)], lines)
        # It may be the beginning of a list, or hold one.
        if not is_mapping(value) or not reader.knows(_without_rows(value)):
            held = list(lines)
            whole = _json(b"\n".join(line for _, line in held))
            if is_mapping(whole):
                whole = [whole] if reader.knows(_without_rows(whole)) else _list_in(whole, name)
            if is_list(whole):
                yield from (reader.row(number, item) for number, item in enumerate(whole, 1))
                return
            lines = iter(held)
        break
    yield from (reader.row(number, _json(line)) for number, line in lines)


def _without_rows(value: Mapping[Any, object]) -> list[object]:
    """The names of an object, without those of lists of objects, which may be the rows."""
    return [name for name, each in value.items() if not _are_rows(each)]


def _are_rows(value: object) -> bool:
    return is_list(value) and bool(value) and all(map(is_mapping, value))


def _list_in(value: Mapping[Any, object], name: str) -> object:
    """Return the one list of objects in an object; the object itself, as the only row, where there is none."""
    lists = {key: each for key, each in value.items() if _are_rows(each)}
    if len(lists) > 1:
        raise SourceError(
            f"{name}: is one object with lists under {name_list(list(lists))}; pass the one with the samples, "
            f"such as json.load(open(PATH))[{next(iter(lists))!r}]"
        )
    return next(iter(lists.values())) if lists else [value]


def _csv_rows(file: io.BufferedReader, reader: RowReader, name: str) -> Rows:
    wide = file.peek(2)[:2] in _WIDE
    encoding, errors = ("utf-16", "strict") if wide else ("utf-8-sig", "surrogateescape")
    with io.TextIOWrapper(file, encoding=encoding, errors=errors, newline="") as text:
        lines = _lines(text, reader.largest)
        passed, first = next(((i, line) for i, line in enumerate(lines) if line.strip()), (0, ""))
        if not first:
            return
        # Spreadsheets write this line.
        if said := re.fullmatch(r"(?i)sep=(.)\s*", first):
            passed, first = passed + 1, next(lines, "")
        known = (mark for mark in ",;\t" if reader.knows(_column_names(first, mark)))
        mark = said[1] if said else next(known, "\t" if "\t" in first else ",")
        # This is of the whole process. The usual 131,072 characters are too few for a context.
        csv.field_size_limit(reader.largest // 2)
        # Unless it is strict, an open quote swallows the rest.
        records = csv.reader(chain([first], lines), delimiter=mark, strict=True)
        names = [cell.strip() for cell in next(records)]
        columns = reader.columns(names, name, all_of_them=True)
        positions = {column: names.index(column) for column in columns}
        for number, item in enumerate(_csv_items(records, positions, len(names), passed), 1):
            yield reader.row(number, item, table=True)


def _column_names(line: str, mark: str) -> list[str]:
    return [cell.strip() for record in csv.reader([line], delimiter=mark) for cell in record]


def _csv_items(records: Any, positions: Mapping[str, int], width: int, passed: int) -> Iterator[object]:  # noqa: ANN401
    """Yield the records of a `csv.reader` behind the line of names; a bad one says where in the file it ends."""
    while True:
        try:
            cells: list[str] = next(records)
            "".join(cells).encode()
        except StopIteration:
            return
        except csv.Error as error:
            problem = f"is not CSV: {error}"
        except UnicodeEncodeError:
            problem = "is not UTF-8; save the file as UTF-8"
        else:
            if len(cells) == width:
                yield _without_json_quotes({name: cells[i] or None for name, i in positions.items()})
                continue
            if not cells:
                continue
            problem = f"has {len(cells)} cells, and there are {width} columns"
        yield BadLine(0, f"{problem} (it ends on line {passed + records.line_num} of the file)")


def _without_json_quotes(row: dict[str, str | None]) -> dict[str, str | None]:
    """A row of texts without JSON's quotes, as TruLens and Langfuse write them around each; not around one."""
    quoted = {name: _json(cell) for name, cell in row.items() if cell and cell[0] == cell[-1] == '"'}
    texts = {name: text or None for name, text in quoted.items() if isinstance(text, str)}
    return row | texts if len(texts) > 1 else row


def _pyarrow(name: str, module: str) -> Any:  # noqa: ANN401
    try:
        return import_module(f"pyarrow.{module}")
    except ImportError:
        raise SourceError(f"{name}: reading Parquet and Arrow needs pyarrow: pip install pyarrow") from None


def _parquet_rows(file: io.BufferedReader, reader: RowReader, name: str) -> Rows:
    with _pyarrow(name, "parquet").ParquetFile(file) as table:
        columns = reader.columns(table.schema_arrow.names, name)
        _check_sizes(table.metadata, columns, reader.largest)
        items = _arrow_items(table.iter_batches(batch_size=_CHUNK, columns=columns), columns, reader.largest)
        for number, item in enumerate(items, 1):
            yield reader.row(number, item, table=True)


def _check_sizes(footer: Any, columns: Sequence[str], largest: int) -> None:  # noqa: ANN401 - pyarrow's
    """Refuse rows that are too large before they are unpacked."""
    for group in map(footer.row_group, range(footer.num_row_groups)):
        parts = [part for i in range(group.num_columns) if _root(part := group.column(i)) in columns]
        size = sum(part.total_uncompressed_size for part in parts)
        packed = sum(part.total_compressed_size for part in parts)
        rows = group.num_rows if size < _DENSEST * packed else 1
        if size > largest * rows:
            raise SourceError(f"{group.num_rows:,} row(s) have {size:,} bytes, and one may have {largest:,}; {_SPLIT}")


def _root(part: Any) -> str:  # noqa: ANN401 - of pyarrow's footer
    return str(part.path_in_schema).partition(".")[0]


def _folder_rows(path: Path, reader: RowReader) -> Rows:
    """Yield the rows of a data set that Hugging Face's `save_to_disk` wrote: Arrow streams, which state.json names."""
    splits, state = path / "dataset_dict.json", path / "state.json"
    if splits.is_file():
        parts = as_list(as_dict(json.loads(splits.read_bytes())).get("splits"))
        raise SourceError(f"{path}: holds the splits {name_list(parts)}; name the folder of one of them")
    if not state.is_file():
        raise SourceError(f"{path}: is a folder; name a file in it, or a folder that Dataset.save_to_disk wrote")
    with ExitStack() as files:
        shards = as_list(as_dict(json.loads(state.read_bytes())).get("_data_files"))
        names = [Path(str(as_dict(each).get("filename"))).name for each in shards]
        yield from _arrow_rows([files.enter_context((path / name).open("rb")) for name in names], reader, str(path))


def _arrow_rows(files: Sequence[io.BufferedReader], reader: RowReader, name: str) -> Rows:
    number = 0
    ipc = _pyarrow(name, "ipc")
    for file in files:
        is_stream = file.peek(6)[:6] != b"ARROW1"
        table = ipc.open_stream(file) if is_stream else ipc.open_file(file)
        batches = table if is_stream else map(table.get_batch, range(table.num_record_batches))
        for item in _arrow_items(batches, reader.columns(table.schema.names, name), reader.largest):
            number += 1
            yield reader.row(number, item, table=True)


def _arrow_items(batches: Iterable[Any], columns: Sequence[str], largest: int) -> Iterator[object]:
    for batch in batches:
        wanted = batch.select(columns)
        # Reading a value of a damaged one may end the process.
        wanted.validate(full=True)
        for i in range(wanted.num_rows):
            row = wanted.slice(i, 1)
            if row.nbytes > largest:
                raise SourceError(f"a row is larger than {largest:,} bytes; {_SPLIT}")
            yield from row.to_pylist()
