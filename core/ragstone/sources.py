"""Rows of samples from lists, generators, tables (pandas, polars, Arrow, Hugging Face), files and standard input."""

import ast
import codecs
import csv
import gzip
import importlib
import io
import itertools
import json
import math
import re
import sys
import tokenize
import zlib
from collections import Counter
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import IO, Any, AnyStr, Literal, cast
from uuid import UUID

from pydantic import ValidationError

from ragstone.errors import RagstoneError, describe
from ragstone.plain import as_dict, as_list, fields_of, is_list, is_mapping
from ragstone.sample import KNOWN_NAMES, MEANT, OTHER_NAMES, BadLine, Row, Sample, first_problem

__all__ = ["SAMPLE_FIELDS", "BadLine", "Row", "RowReader", "SourceError", "parse_line", "rows_of"]

SAMPLE_FIELDS = tuple(KNOWN_NAMES)
NAMING = "fields={FIELD: KEY, ...}"
"""How Python names the keys of fields."""
PRESETS: Mapping[str, Mapping[str, str]] = {
    "phoenix": {"user_input": "input", "retrieved_contexts": "reference", "response": "output"},
}
"""Fields of rows whose names mean something else than usual, by what they come from."""
# A list of texts or mappings as Python writes it, or of what it has no literal for: Document(...), array([...]), None.
_LIST_BEGINS = re.compile(
    r"(?:array\(\s*)?\[\s*(?:[bBrRuU]?['\"]|\{\s*['\"]|\[\s*['\"]|None\s*[,\]]|[A-Za-z_][\w.]*\((?:\w+\s*=|['\"\[]))"
    r"|\(\s*['\"]"
)
_LONGEST_LITERAL = (
    1_000_000  # characters of a list or mapping as Python writes it: its syntax tree is 50 times as large
)
_TEXT_NAMES = ("page_content", "text", "content")  # of frameworks' documents
_MARKS = ";\t,"
_LISTED = 20
LARGEST = 100_000_000
"""The bytes of a line, or a row of Parquet or Arrow that are read at most; of a cell of CSV half as many characters."""
_SPLIT = "split it, or read it by rows_of(..., largest=...)"
_BLANK_LINES = 1_000_000  # at a file's start
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://?(?=[^/\\])")
_NO_SAMPLE = {"id", "history", "metadata", "reference"}  # alone
_LOOKED_AT = 20  # rows of a file: where none is a sample, the file is something else
_DEEPEVAL_CONTEXTS = "retrievalcontext"  # DeepEval writes the texts of this column with "|" between them
_SILENT = ("system", "developer", "tool", "function")  # roles of turns that the user did not see
_PYARROWS = (LookupError, MemoryError, NotImplementedError, TypeError)  # what it raises of damaged files, too
_CHUNK = 1_000  # rows of a table that are Python objects at a time
_PARQUET_CHUNK = 16  # of Parquet, whose rows are unpacked before their size is known

Source = Iterable[object] | AsyncIterable[object] | str | PathLike[str]
Form = Literal["object", "json", "table"]
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
) -> Rows | AsyncIterator[Row | BadLine]:
    """Return the rows of a source, lazily: a `Row` per sample, a `BadLine` for what is none.

    Rows count from 1: lines of a file of JSON lines, else places (of CSV, records behind the line of names). A
    sample without an id keeps none; a row of a file or table, or a dict, gets its number. Ids may occur twice.

    Args:
        source: One of these.

            - Any iterable, or asynchronous one, of `Sample`s, dicts, or objects with such fields (a sample of ragas,
              a test case of DeepEval). It may have no end.
            - A pandas or polars DataFrame, a Hugging Face Dataset, an Arrow Table, RecordBatch or RecordBatchReader.
            - The path of a file: .jsonl, .ndjson, .json (lines or one list), .csv, .tsv, .parquet, .arrow or .feather,
              each also with .gz behind it. The content decides where the name says nothing. Parquet and Arrow need
              pyarrow.
            - The path of a folder that `Dataset.save_to_disk` wrote (needs pyarrow).
            - "-": standard input; the content says which of these files it is.

            In tables NaN and its like are as good as absent, and a text in the column of contexts is a list of them, as
            JSON or as Python writes it, or the only one (in DeepEval's `retrieval_context`, "|" stands between them).
            In CSV an empty cell is absent. A context may be a document (`page_content`, `text`, `content`).
        fields: The key or column by the sample's field, such as {"user_input": "query"}, where it is none of the
            known names (ragstone's, ragas', DeepEval's). Dots lead inward: "outputs.answer", "inputs.0.text". A row
            without it is a bad line. A text that is named here for `retrieved_contexts` is one context. Or what the
            rows come from, where names mean something else there: "phoenix", whose `reference` is the context.
        naming: How the user writes such a mapping, for messages.
        largest: The bytes of a line, or a row of Parquet or Arrow at most; of a cell of CSV half as many characters.

    Returns:
        An iterator; an asynchronous one for an asynchronous source. It may wait for a file or for the source. An
        exception that the source raises comes through.

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
        return _file_rows(Path(source), reader)
    kind = type(source).__name__
    table: Any = source
    if hasattr(source, "iter_rows") and hasattr(source, "columns"):  # polars
        cells = table.select(reader.columns(list(table.columns), kind)).iter_rows(named=True)
        return (reader.row(number, item, "table") for number, item in enumerate(cells, 1))
    if hasattr(source, "itertuples") and hasattr(source, "columns"):  # pandas, which is not imported for it
        return _frame_rows(table, reader.columns(list(table.columns), kind), reader)
    names: object = getattr(getattr(source, "schema", None), "names", None)
    if is_list(names):  # Arrow
        columns = reader.columns(names, kind)
        batches = table if hasattr(source, "read_next_batch") else [table]
        return _batch_rows(table.to_batches() if hasattr(source, "to_batches") else batches, columns, reader)
    _refuse_single(source)
    if isinstance(source, AsyncIterable):
        return _arriving(source, reader)
    names = getattr(source, "column_names", None)  # of a Hugging Face dataset
    if is_list(names):
        reader.columns(names, kind)
    form: Form = "table" if is_list(names) else "object"
    return (reader.row(number, item, form) for number, item in enumerate(source, 1))


async def _arriving(source: AsyncIterable[object], reader: "RowReader") -> AsyncIterator[Row | BadLine]:
    number = 0
    async for item in source:
        number += 1
        yield reader.row(number, item)


def _refuse_single(source: object) -> None:
    kind = type(source).__name__
    if is_mapping(source):
        keys = _listed(list(source))
        raise TypeError(
            f"samples: is one {kind} (with {keys}), not a list of them; write [row], or take one of the splits"
        )
    single = isinstance(source, (Sample, Row, bytes, bytearray)) or hasattr(source, "read")
    if single or not isinstance(source, (Iterable, AsyncIterable)):
        raise TypeError(
            f"samples: is {kind}; pass an iterable of Samples or dicts, a DataFrame, a Dataset, an Arrow Table, or the "
            "path of a file"
        )


class RowReader:
    """Makes a source's items rows of samples, whatever their fields are called; the arguments are `rows_of`'s."""

    def __init__(
        self,
        fields: Mapping[str, str] | str | None = None,
        naming: str = NAMING,
        largest: int = LARGEST,
    ) -> None:
        self.largest = largest
        self._fields: dict[str, str] = {}
        self._naming = naming
        self._by_names: dict[tuple[object, ...], Mapping[str, tuple[str, ...]]] = {}
        self._unread = ""
        named: object = {} if fields is None else fields
        if isinstance(named, str):
            if named not in PRESETS:
                raise ValueError(f"fields: {named!r} is none of {', '.join(PRESETS)}, nor a mapping")
            named = PRESETS[named]
        if not is_mapping(named):
            raise TypeError(f"fields: is {type(named).__name__}; pass a mapping such as {{'response': 'output'}}")
        for field, name in named.items():
            if field not in SAMPLE_FIELDS:
                raise ValueError(f"fields: {field!r} is no field of a sample; there are {', '.join(SAMPLE_FIELDS)}")
            if not isinstance(name, str):
                raise TypeError(f"fields[{field!r}]: is {type(name).__name__}; name a column or key")
            self._fields[str(field)] = name

    def columns(self, names: Sequence[object], table: str) -> list[str]:
        """Return which of a table's columns hold fields of a sample, or raise `SourceError`."""
        there = f"the columns are {_listed(names)}"
        for field, name in self._fields.items():
            if _column(name, names) not in names:
                raise SourceError(f"{table}: {field}: there is no column {name!r}; {there}")
        try:
            found = self._names_in(tuple(names))
        except ValueError as error:
            raise SourceError(f"{table}: {error}") from None
        columns = list(dict.fromkeys(_column(name, names) for known in found.values() for name in known))
        of_a_sample = [name for field, known in found.items() if field not in _NO_SAMPLE for name in known]
        if not of_a_sample:
            way_out = f"name them with {self._naming}"
            raise SourceError(f"{table}: no column holds a field of a sample; {there}: {way_out}")
        if twice := [name for name in columns if Counter(names)[name] > 1]:
            raise SourceError(f"{table}: the column {twice[0]!r} is there more than once; {there}")
        self._unread = self._hint([name for name in names if name not in columns])
        return columns

    def knows(self, names: Iterable[object]) -> bool:
        """Whether some of these may be a sample's fields."""
        there = tuple(names)
        try:
            found = self._names_in(there)
        except ValueError:
            return True
        known = [name for field, known in found.items() if field not in _NO_SAMPLE for name in known]
        return any(_column(name, there) in there for name in known)

    def _names_in(self, there: tuple[object, ...]) -> Mapping[str, tuple[str, ...]]:
        """Return for each field the names that hold it, those before the others that are read first.

        Raises:
            ValueError: Two names mean one field, and neither is one of the known ones.
        """
        found = self._by_names.get(there)
        if found is None:
            found = self._found_in(there)
            if len(self._by_names) < _LISTED:
                self._by_names[there] = found
        return found

    def _found_in(self, there: tuple[object, ...]) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        meant = {name: _FIELDS.get(_bare(name)) for name in there if isinstance(name, str)}
        for field, known in KNOWN_NAMES.items():
            if field in self._fields:
                found[field] = (self._fields[field],)
                continue
            exact = tuple(name for name in known if name in there)
            alike = [] if exact else [name for name, other in meant.items() if other == field]
            if len(alike) > 1:
                raise ValueError(f"{field}: {_listed(alike)} both mean it; say which with {self._naming}")
            if exact or alike:
                found[field] = exact or tuple(alike)
        taken = set(self._fields.values())
        return {
            field: tuple(name for name in names if field in self._fields or name not in taken)
            for field, names in found.items()
        }

    def _hint(self, names: Sequence[object]) -> str:
        """Return which names hold no field, and how to say that one does."""
        led_into = {name.partition(".")[0] for name in self._fields.values()}
        names = [name for name in names if name not in led_into]
        if not names:
            return ""
        ways: list[str] = []
        for name in names:
            field = MEANT.get(str(name).lower())
            if field is not None:
                named = (
                    f"--field {field}={name}" if self._naming.startswith("--") else f"fields={{{field!r}: {name!r}}}"
                )
                ways.append(named)
        return f"also has {_listed(names)}: {' '.join(ways) or f'name them with {self._naming}'}"

    def row(self, number: int, item: object, form: Form = "object") -> Row | BadLine:
        """Return the row of one item.

        Args:
            number: Its place, from 1.
            item: A `Sample`, `Row` or `BadLine`, which stay as they are (a `BadLine` of no line gets this one); a
                mapping, or an object with fields.
            form: Where it comes from. In "json" a NaN is not absent, but wrong. In a "table" a text for
                `retrieved_contexts` is a JSON list of contexts or one context.
        """
        if isinstance(item, BadLine):
            return replace(item, line=item.line or number)
        if isinstance(item, Row):
            return item
        if isinstance(item, Sample):
            return Row(number, item)
        try:
            values = item if is_mapping(item) else fields_of(item)
            if values is None:
                wanted = "an object {...}" if form == "json" else "a Sample or a dict"
                return BadLine(number, f"is {type(item).__name__}, not {wanted}")
            sample = self._sample(number, values, form)
            return Row(number, sample, unread=self._unread_of(values) if number == 1 else "")
        except ValidationError as error:
            return BadLine(number, first_problem(error))
        except ValueError as error:
            return BadLine(number, str(error))
        except Exception as error:  # a user's object may raise anything when it is looked into
            return BadLine(number, describe(error, most=200))

    def _unread_of(self, row: Mapping[Any, object]) -> str:
        read = {name for names in self._names_in(tuple(row)).values() for name in names}
        return self._unread or self._hint([name for name in row if name not in read])

    def _sample(self, number: int, row: Mapping[Any, object], form: Form) -> Sample:
        values: dict[str, Any] = {}
        for field, names in self._names_in(tuple(row)).items():
            for name in names:
                value = _at(row, name, field, form)
                if form != "json":
                    value = _cell(value)
                if value is not None:
                    values[field] = self._value(field, name, value, form)
                    break
        if not values.keys() - _NO_SAMPLE:
            if form == "table":
                raise ValueError("every cell is empty that could hold a field of a sample")
            raise ValueError(
                f"none of a sample's fields; the row has {_listed(list(row))}: name them with {self._naming}"
            )
        values.setdefault("id", str(number))
        return Sample(**values)

    def _value(self, field: str, name: str, value: object, form: Form) -> object:
        if field == "id":
            return _id(value, form)
        if field == "history":
            return _history(value)
        if field == "metadata":
            return _metadata(value, name)
        if field == "retrieved_contexts":
            if isinstance(value, str) and form == "table":
                value = _contexts(value, name)
            elif isinstance(value, str) and field in self._fields:
                value = [value]
            items = _items(value)
            return [_context_text(each) for each in items] if is_list(items) else value
        if field == "reference" and is_list(value) and len(value) == 1:  # ground_truths, of which there is one
            return value[0]
        return value


def _bare(name: str) -> str:
    """Return a name without what its writing adds: case and separators."""
    return re.sub(r"[\W_]+", "", name).lower()


_FIELDS: Mapping[str, str] = {
    _bare(name): field for name, field in MEANT.items() if name in OTHER_NAMES or name in KNOWN_NAMES[field]
}


def _column(name: str, names: Sequence[object]) -> str:
    """Return the column that holds what a name with dots leads to."""
    return name if name in names else name.partition(".")[0]


def _at(row: Mapping[Any, object], name: str, field: str, form: Form) -> object:
    """Return a row's value; what a name with dots, such as "outputs.answer", leads to."""
    if name in row:
        return row[name]
    value: object = row
    for part in name.split("."):
        value = _json_cell(value, form) if value is not row else value
        if is_mapping(value) and part in value:
            value = value[part]
        elif is_list(value) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise ValueError(f"{field}: there is no key {name!r}; the row has {_listed(list(row))}")
    return value


def _items(value: object) -> object:
    return getattr(value, "tolist", lambda: value)()  # numpy's, as pandas reads Parquet


def _context_text(item: object) -> object:
    """Return the text of a document, which may be a mapping or an object; anything else as it is."""
    if isinstance(item, str):
        return item
    document: object = item
    for _ in range(2):  # some have it in "document" or "node"
        fields = document if is_mapping(document) else fields_of(document) or {}
        for name in _TEXT_NAMES:
            if isinstance(text := fields.get(name, getattr(document, name, None)), str):
                return text
        document = fields.get("document", fields.get("node"))
        if document is None:
            break
    return item


def _cell(value: object) -> Any:  # noqa: ANN401 - it may be anything, as in the user's row
    """Return a cell's value as Python's own; None where it is missing (NaN, NA, NaT)."""
    if type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return None
    if isinstance(value, Real) and hasattr(value, "item"):  # of numpy
        scalar: Any = value
        value = scalar.item()
    return None if isinstance(value, float) and math.isnan(value) else value


def _json_cell(value: object, form: Form) -> object:
    """Return a value as JSON has it: a table's cell may hold that as text."""
    value = value if form == "json" else _cell(value)
    if form == "table" and isinstance(value, str):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def _contexts(text: str, column: str) -> object:
    """Return the contexts in a cell of text: a list of JSON or of Python, DeepEval's list with "|", or the only one."""
    bare = text.strip()
    if bare.startswith("["):
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    if _LIST_BEGINS.match(bare):
        if is_list(found := _python_value(text)):
            return found
        if not bare.startswith("("):  # which a quotation in brackets begins with, too
            raise ValueError(
                f"{column}: begins as a list and is none: it was cut off (spreadsheets cut a cell at 32,767 "
                "characters), or is one of numpy's or of objects; write it as JSON (json.dumps)"
            )
    return text.split("|") if _bare(column) == _DEEPEVAL_CONTEXTS else [text]


def _python_value(text: str) -> object:
    """Return a list or mapping that Python wrote as text; None where it is none.

    Texts that stand side by side, as numpy writes an array, would be one text to Python: such a list is none.
    """
    if len(text) > _LONGEST_LITERAL:
        return None
    try:
        value: object = ast.literal_eval(text.strip())
        kinds = [token.type for token in tokenize.generate_tokens(io.StringIO(text.strip()).readline)]
    except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
        return None
    kinds = [kind for kind in kinds if kind not in (tokenize.NL, tokenize.NEWLINE)]
    return None if (tokenize.STRING, tokenize.STRING) in itertools.pairwise(kinds) else value


def _history(value: object) -> object:
    """Return the turns that a value holds, which may be JSON text, without those of the system and of tools."""
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):  # what is no JSON is refused as text
            value = json.loads(value)
    turns: object = getattr(value, "tolist", lambda: value)()  # numpy's, as pandas reads Parquet
    if not is_list(turns) or not all(map(is_mapping, turns)):
        raise ValueError('history: write a list such as [{"role": "user", "content": "Why?"}], or its JSON as text')
    return [turn for turn in turns if is_mapping(turn) and turn.get("role") not in _SILENT]


def _metadata(value: object, name: str) -> object:
    """Return an object, which may be text of JSON or of Python; any other value under its name."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        found = _python_value(value)
        with suppress(ValueError, RecursionError):
            found = json.loads(value)
        value = found if is_mapping(found) else value
    return value if is_mapping(value) else {name: value}


def _id(value: object, form: Form) -> object:
    if isinstance(value, float) and value.is_integer() and form == "table":
        return str(int(value))  # a column of whole numbers of which one is missing comes as floats
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return str(value) if number or isinstance(value, (UUID, date, Decimal)) else value


def _listed(names: Sequence[object]) -> str:
    return ", ".join(repr(name)[:40] for name in names[:_LISTED]) or "(none)"


def parse_line(line: bytes) -> object:
    """Return a line's JSON value; a `BadLine` where it has none, or where a key appears twice in one object."""
    try:
        return json.loads(line.decode("utf-8"), object_pairs_hook=_distinct)
    except UnicodeDecodeError as error:
        guess = ": it looks like UTF-16" if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else ""
        return BadLine(0, f"not UTF-8 at byte {error.start + 1}{guess}")
    except json.JSONDecodeError as error:
        return BadLine(0, f"not JSON: {error.msg.removesuffix(' at')} at column {error.colno}")
    except (ValueError, RecursionError) as error:  # an integer of too many digits; brackets in brackets
        return BadLine(0, f"not usable JSON: {str(error)[:100]}")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any] | BadLine:
    """Return a JSON object; a `BadLine` for one with a key twice, of which Python's parser would take the last."""
    row = dict(pairs)
    if len(row) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        return BadLine(0, f"the key {twice[:40]!r} appears twice in one object")
    return next((value for value in row.values() if isinstance(value, BadLine)), row)


def _file_rows(path: Path, reader: RowReader) -> Rows:
    """Return the rows of a file, lazily and in constant memory (a file that is one JSON list is read whole)."""
    if str(path) == "-":
        return _opened_rows(path, "", reader)
    if _ADDRESS.match(str(path)):
        raise SourceError(f"{str(path)[:100]!r}: is an address; download it first, and pass the file's path")
    with suppress(RuntimeError):  # there is no such user
        path = path.expanduser()
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = "".join((suffixes[:-1] if suffixes[-1:] == [".gz"] else suffixes)[-1:])
    try:
        there = path.exists()
    except (OSError, ValueError):  # a text that is too long for a path, or holds NUL
        there = False
    if not there:
        raise SourceError(f"{str(path)[:100]!r}: there is no such file; pass the path of one, or a list of samples")
    if path.is_dir():
        return _folder_rows(path, reader)
    if kind in _ARROW:
        _pyarrow(path)
    if path.is_file():  # a pipe can be opened only once
        with _explained(path), path.open("rb"):
            pass
    return _opened_rows(path, kind, reader)


def _opened_rows(path: Path, kind: str, reader: RowReader) -> Rows:
    """Yield the rows of a file. Where its name says nothing of its kind, its content does."""
    with _explained(path), _opened(path) as file:
        packed = file.peek(2)[:2] == b"\x1f\x8b"
        body = cast("io.BufferedReader", gzip.GzipFile(fileobj=file)) if packed else file
        read = _READERS[kind if kind in _READERS else _kind_of(body.peek(200), path)]
        rows = read(body, reader, path)
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
            raise SourceError(f"{_name(path)}: is empty: it holds no rows")
        where = f"its first {len(bad)} rows" if len(bad) == _LOOKED_AT else f"its {len(bad)} row(s)"
        raise SourceError(f"{_name(path)}: no sample in {where}; line {bad[0].line}: {bad[0].problem}")


def _opened(path: Path) -> AbstractContextManager[io.BufferedReader]:
    if str(path) != "-":
        return path.open("rb")
    try:  # not sys.stdin: a thread that waits in it for a line would abort the interpreter's exit
        return nullcontext(open(sys.stdin.fileno(), "rb", closefd=False))
    except (OSError, ValueError):  # it is no file, as in tests
        return nullcontext(io.BufferedReader(cast("io.RawIOBase", sys.stdin.buffer)))


def _name(path: Path) -> str:
    return "standard input" if str(path) == "-" else str(path)


def _kind_of(start: bytes, path: Path) -> str:
    r"""Return the kind of a file that begins with these bytes.

    Example:
        >>> [_kind_of(start, Path()) for start in (b"[\n{", b"question\tanswer\n", b"PAR1", b"question,answer")]
        ['.jsonl', '.tsv', '.parquet', '.csv']
    """
    if start.startswith(b"PAR1"):
        return ".parquet"
    if start.startswith((b"PK\x03\x04", b"%PDF", b"<")):  # Excel, Word and zip; PDF; HTML
        raise SourceError(
            f"{_name(path)}: is neither JSON, CSV, TSV, Parquet nor Arrow; save a table as CSV, and unpack an archive"
        )
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):  # a file; a stream, as Hugging Face writes it
        return ".arrow"
    if start.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"", b"{", b"["):
        return ".jsonl"
    if b"\0" in start and not start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError(f"{_name(path)}: is neither JSON, CSV, TSV, Parquet nor Arrow")
    return ".tsv" if b"\t" in start.split(b"\n")[0] else ".csv"


@contextmanager
def _explained(path: Path, form: str = "") -> Generator[None, None, None]:
    try:
        yield
    except SourceError:
        raise
    except (OSError, EOFError, ValueError, zlib.error, *_PYARROWS) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        why = why or type(error).__name__
        raise SourceError(f"{_name(path)}: cannot be read{form}: {why}") from error


def _lines(file: IO[AnyStr], largest: int) -> Iterator[AnyStr]:
    """Yield a file's lines; none is read that is longer than `largest`."""
    for number in itertools.count(1):
        line = file.readline(largest + 1)
        if not line:
            return
        if len(line) > largest:
            raise SourceError(f"line {number:,} is longer than {largest:,} bytes; {_SPLIT}")
        yield line


def _json_rows(file: io.BufferedReader, reader: RowReader, path: Path) -> Rows:
    """Yield the rows of JSON objects, one a line, or of one list of them. Blank lines are skipped."""
    bodies = enumerate((line.removeprefix(codecs.BOM_UTF8).strip() for line in _lines(file, reader.largest)), 1)
    head = itertools.islice(bodies, _BLANK_LINES)
    first = next(((number, body) for number, body in head if body), (0, b""))
    if not first[0] and next(bodies, None) is not None:
        raise SourceError(f"{_name(path)}: its first {_BLANK_LINES:,} lines are blank")
    lines: Iterator[tuple[int, bytes]] = ((number, body) for number, body in bodies if body)
    head_lines = [first] if first[0] else []
    is_whole = first[1].startswith(b"[") or _is_cut(first[1])
    if _is_other(first[1], reader):
        head_lines.extend(itertools.islice(lines, 1))
        is_whole = len(head_lines) == 1  # one more line, and they are rows
    if is_whole:
        held = [*head_lines, *lines]
        value: object = None
        with suppress(ValueError, RecursionError):  # where it is no JSON, it may be lines of which one holds a list
            value = json.loads(b"\n".join(body for _, body in held), object_pairs_hook=_distinct)
        if is_mapping(value):
            value = [value] if reader.knows(value) else _list_in(value, path)
        if is_list(value):
            yield from (reader.row(number, item, "json") for number, item in enumerate(value, 1))
            return
        head_lines, lines = held, iter(())
    for number, body in itertools.chain(head_lines, lines):
        item = parse_line(body)
        if number == 1 and is_mapping(item) and "ragstone_results" in item:
            raise SourceError(f"{_name(path)}: holds results; `ragstone report`, `explain` and `compare` read them")
        yield reader.row(number, item, "json")


def _is_cut(first: bytes) -> bool:
    """Whether a first line is the begin of an object that goes on in the next ones."""
    return first.startswith(b"{") and isinstance(parse_line(first), BadLine)


def _is_other(first: bytes, reader: RowReader) -> bool:
    """Whether a first line is an object that is no sample: where it is all there is, it may hold them."""
    item = parse_line(first) if first.startswith(b"{") else None
    return is_mapping(item) and "ragstone_results" not in item and not reader.knows(item)


def _list_in(value: Mapping[Any, object], path: Path) -> object:
    """Return the one list of objects in an object; the object itself, as the only row, where there is none."""
    lists = {name: each for name, each in value.items() if is_list(each) and each and all(map(is_mapping, each))}
    if len(lists) > 1:
        raise SourceError(
            f"{_name(path)}: is one object with lists under {_listed(list(lists))}; pass the one with the samples, "
            f"such as json.load(open(PATH))[{next(iter(lists))!r}]"
        )
    return next(iter(lists.values())) if lists else [value]


def _csv_rows(file: io.BufferedReader, reader: RowReader, path: Path, delimiter: str) -> Rows:
    start = file.peek(2)[:2]
    wide = start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # as spreadsheets save "Unicode text"
    encoding, errors = ("utf-16", "strict") if wide else ("utf-8-sig", "surrogateescape")
    with io.TextIOWrapper(file, encoding=encoding, errors=errors, newline="") as lines:
        texts, delimiter, skipped = _sniffed(_lines(lines, reader.largest), delimiter, reader)
        records = _records(texts, delimiter, reader.largest, skipped)
        header = next((names for _, names in records if names), None)
        if header is None:
            return
        if isinstance(header, BadLine):
            raise SourceError(
                f"{_name(path)}: the first line, which names the columns, cannot be read: {header.problem}"
            )
        names = [name.strip() for name in header]
        columns = reader.columns(names, _name(path))
        places = {name: names.index(name) for name in columns}
        records = ((line, cells) for line, cells in records if cells)
        for number, (line, cells) in enumerate(records, 1):
            row = reader.row(number, _csv_item(cells, places, len(names)), "table")
            if isinstance(row, BadLine):
                row = BadLine(number, f"the record that begins on line {line} of the file: {row.problem}")
            yield row


def _sniffed(lines: Iterator[str], delimiter: str, reader: RowReader) -> tuple[Iterator[str], str, int]:
    """Return the lines, what separates their cells, and how many lines were passed over.

    That is what the first line says ("sep=;", as spreadsheets write it); else the first of the usual marks by which the
    line of names has a name that is known.
    """
    passed = 0
    for line in lines:
        bare = line.strip()
        if not bare:
            passed += 1
            continue
        if re.fullmatch(r"(?i)sep=.", line.rstrip("\r\n")):
            return lines, line[4], passed + 1
        for mark in (delimiter, *_MARKS):
            names = [name.strip() for name in next(csv.reader([bare], delimiter=mark))]
            if len(names) > 1 and reader.knows(names):
                return itertools.chain([line], lines), mark, passed
        return itertools.chain([line], lines), delimiter, passed
    return lines, delimiter, passed


def _csv_item(cells: list[str] | BadLine, places: Mapping[str, int], width: int) -> dict[str, str | None] | BadLine:
    if isinstance(cells, BadLine):
        return cells
    if len(cells) != width:
        return BadLine(0, f"has {len(cells)} cells, and there are {width} columns")
    values = {name: cells[place] or None for name, place in places.items()}
    for name, cell in values.items():
        if cell and not cell.isascii() and any("\udc80" <= character <= "\udcff" for character in cell):
            return BadLine(0, f"{name}: is not UTF-8; save the file as UTF-8")
    return values


def _records(
    lines: Iterator[str], delimiter: str, largest: int, passed: int
) -> Iterator[tuple[int, list[str] | BadLine]]:
    """Yield the line on which each record begins, and its cells."""
    # One for the whole process; 131,072 characters are too few for a context. It keeps each in four bytes.
    csv.field_size_limit(largest // 2)
    records = csv.reader(lines, delimiter=delimiter, strict=True)  # else an open quote swallows the rest unsaid
    while True:
        line = passed + records.line_num + 1
        try:
            record: list[str] | BadLine = next(records)
        except StopIteration:
            return
        except csv.Error as error:
            record = BadLine(0, f"is not CSV: {error}")
        yield line, record


def _pyarrow(path: Path, module: str = "ipc") -> Any:  # noqa: ANN401
    try:
        return importlib.import_module(f"pyarrow.{module}")
    except ImportError:
        raise SourceError(f"{_name(path)}: reading Parquet and Arrow needs pyarrow: pip install pyarrow") from None


def _parquet_rows(file: io.BufferedReader, reader: RowReader, path: Path) -> Rows:
    with _explained(path, " as Parquet"), _pyarrow(path, "parquet").ParquetFile(_seekable(file)) as table:
        columns = reader.columns(table.schema_arrow.names, _name(path))
        yield from _batch_rows(table.iter_batches(batch_size=_PARQUET_CHUNK, columns=columns), columns, reader)


def _arrow_rows(file: io.BufferedReader, reader: RowReader, path: Path) -> Rows:
    with _explained(path, " as Arrow"):
        batches, names = _batches(file, path)
        yield from _batch_rows(batches, reader.columns(names, _name(path)), reader)


def _batches(file: io.BufferedReader, path: Path) -> tuple[Iterator[Any], list[str]]:
    """Return the batches of an Arrow file or stream, and its columns."""
    ipc = _pyarrow(path)
    if file.peek(6)[:6] != b"ARROW1":
        stream = ipc.open_stream(file)
        return iter(stream), stream.schema.names
    table = ipc.open_file(_seekable(file))
    return map(table.get_batch, range(table.num_record_batches)), table.schema.names


def _seekable(file: io.BufferedReader) -> IO[bytes]:
    return file if file.seekable() else io.BytesIO(file.read())


def _folder_rows(path: Path, reader: RowReader) -> Rows:
    """Return the rows of a data set that Hugging Face's `save_to_disk` wrote: Arrow streams, which state.json names."""
    with _explained(path):
        if (splits := path / "dataset_dict.json").is_file():
            names = as_list(as_dict(json.loads(splits.read_bytes())).get("splits"))
            raise SourceError(f"{path}: holds the splits {_listed(names)}; name the folder of one of them")
        if not (path / "state.json").is_file():
            raise SourceError(f"{path}: is a folder; name a file in it, or a folder that Dataset.save_to_disk wrote")
        files = as_list(as_dict(json.loads((path / "state.json").read_bytes())).get("_data_files"))
    _pyarrow(path)
    return _shard_rows([path / Path(str(as_dict(each).get("filename"))).name for each in files], reader, path)


def _shard_rows(files: Sequence[Path], reader: RowReader, path: Path) -> Rows:
    def batches(columns: list[str]) -> Iterator[Any]:
        for each in files:
            with each.open("rb") as file:
                rows, names = _batches(file, each)
                columns[:] = columns or reader.columns(names, str(path))
                yield from rows

    with _explained(path, " as Arrow"):
        columns: list[str] = []
        yield from _batch_rows(batches(columns), columns, reader)


_READERS: dict[str, Callable[[io.BufferedReader, RowReader, Path], Rows]] = {
    ".jsonl": _json_rows,
    ".ndjson": _json_rows,
    ".json": _json_rows,
    ".csv": partial(_csv_rows, delimiter=","),
    ".tsv": partial(_csv_rows, delimiter="\t"),
    ".parquet": _parquet_rows,
    ".arrow": _arrow_rows,
    ".feather": _arrow_rows,
}
_ARROW = (".parquet", ".arrow", ".feather")


def _batch_rows(batches: Iterable[Any], columns: Sequence[str], reader: RowReader) -> Rows:
    number = 0
    for batch in batches:
        wanted = batch.select(list(columns))
        try:
            wanted.validate(full=True)  # reading a value of a damaged one may end the process
        except ValueError as error:
            raise SourceError(f"the rows from {number + 1:,} on are damaged: {error}") from None
        for start in range(0, wanted.num_rows, _CHUNK):
            part = wanted.slice(start, _CHUNK)
            if part.nbytes > reader.largest:
                _check_sizes(part, number + 1, reader.largest)
            for item in part.to_pylist():
                number += 1
                yield reader.row(number, item, "table")


def _check_sizes(part: Any, first: int, largest: int) -> None:  # noqa: ANN401 - of pyarrow
    for place in range(part.num_rows):
        if part.slice(place, 1).nbytes > largest:
            raise SourceError(f"row {first + place:,} is larger than {largest:,} bytes; {_SPLIT}")


def _frame_rows(frame: Any, columns: Sequence[str], reader: RowReader) -> Rows:  # noqa: ANN401
    for start in range(0, len(frame), _CHUNK):
        part = frame.iloc[start : start + _CHUNK]
        cells = zip(*(part[column].tolist() for column in columns), strict=True)
        for number, values in enumerate(cells, start + 1):
            yield reader.row(number, dict(zip(columns, values, strict=True)), "table")
