"""Rows of samples from lists, generators, tables (pandas, polars, Arrow, Hugging Face), files and standard input."""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from ragstone.fields.names import FIELDS, meant_by, strongly
from ragstone.options import checked
from ragstone.plain import fields_of, is_list, is_mapping
from ragstone.sample import BadLine, Row, Sample, name_list
from ragstone.sources.base import LARGEST, NAMING, Rows, SourceError

if TYPE_CHECKING:
    from ragstone.sources.reader import RowReader

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://?(?=[^/\\])")

Source = Iterable[object] | str | PathLike[str]


def rows_of(
    source: Source,
    fields: Mapping[str, str] | str | None = None,
    *,
    naming: str = NAMING,
    largest: int = LARGEST,
    rows_by: str | None = None,
    retriever_tools: Collection[str] = (),
) -> Rows:
    """The rows of a source, lazily: a `Row` per sample, a `BadLine` per other row.

    Rows count from 1: lines of a file of JSON lines, else positions (of CSV, records behind the line of names). A
    sample without an id keeps none; a row of a file or table, or a dict, gets its number. Ids may occur twice.

    Args:
        source: One of these.

            - Any iterable of `Sample`s, dicts, or objects with such fields (a sample of ragas,
              a test case of DeepEval). It may have no end.
            - A pandas or polars DataFrame, a Hugging Face Dataset, an Arrow Table, RecordBatch or RecordBatchReader.
            - The path of a file: JSON lines, one JSON list, CSV, TSV, .xlsx (needs openpyxl), Parquet or Arrow (need
              pyarrow), also packed by gzip. The content says which it is.
            - The path of a folder that `Dataset.save_to_disk` wrote (needs pyarrow).
            - "-": standard input.

            In tables NaN and its like are as good as absent, and a text in the column of contexts is a list of them, as
            JSON or as Python writes it, or the only one (in DeepEval's `retrieval_context`, "|" stands between them).
            In CSV an empty cell is absent. A context may be a document (`page_content`, `text`, `content`).
        fields: The key or column by the sample's field, such as {"user_input": "query"}, where it is none of the
            known names (ragstone's, ragas', DeepEval's). Dots name inner keys: "outputs.answer", "inputs.0.text". A row
            without it is a bad line. A text that is named here for `retrieved_contexts` is one context. Or what the
            rows come from, where names mean something else there: "phoenix", whose `reference` is the context.
        naming: How the user names a field's key, for messages.
        rows_by: The key or column whose value the rows of one answer share, such as "query_id", if each has one
            passage. They become one sample, with the passages in order, and the value as its id. They must be
            neighbours.
        retriever_tools: Of stored traces, the names of tools whose texts are contexts: see `traces`.
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
    # A list that is empty now may be filled before it is read.
    if is_list(source) and source and fields is None and all(isinstance(each, Sample) for each in source):
        return (Row(number, each) for number, each in enumerate(cast("Sequence[Sample]", source), 1))
    # Loaded when first used: samples need no reading.
    from ragstone.sources.passages import rows_from
    from ragstone.sources.reader import RowReader

    reader = RowReader(fields, naming, largest, checked("retriever_tools", retriever_tools, frozenset[str]), rows_by)
    if isinstance(source, (str, PathLike)):
        return _rows_of_file(source, reader)
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
        from ragstone.sources.tables import arrow_items

        items = arrow_items(batches, reader.columns(names, kind), largest)
    elif is_list(names := getattr(source, "column_names", None)):
        reader.columns(names, kind)
        items = table
    if items is not None:
        return rows_from(enumerate(items, 1), reader, table=True)
    return rows_from(*_items_of(source, reader))


def sample_of_row(row: object, fields: Mapping[str, object], needed: Collection[str] = ()) -> Sample:
    """The sample that one row is, or that its fields are, by name; read as `rows_of` reads it, but for a number as id.

    Args:
        row: A `Sample`, a mapping, or an object with fields; None where `fields` has them.
        fields: What was given by name in place of the row.
        needed: The fields that must not be missing where one other name may hold them.

    Raises:
        TypeError: It is no such thing, or a name in `fields` is no field's.
        ValueError: It holds no sample; the message says which name is meant, or which value is none.

    Example:
        >>> sample_of_row({"question": "Who wrote Emma?", "contexts": "Jane Austen wrote it."}, {}).retrieved_contexts
        ('Jane Austen wrote it.',)
    """
    given = row if row is not None else fields or None
    if row is not None and fields:
        raise TypeError(f"sample: is given, and so is {next(iter(fields))!r}; pass a row, or its fields by name")
    if not is_mapping(given) and fields_of(given) is None:
        kind = type(given).__name__
        raise TypeError(f"sample: is {kind}; pass a Sample, a row such as a dict, or its fields: user_input=...")
    # Loaded when first used: a sample needs no reading.
    from ragstone.sources.reader import RowReader

    read = RowReader(naming="{field}=..." if fields else "{field}=row[{key!r}]").row(0, given)
    if isinstance(read, BadLine):
        raise ValueError(read.problem)
    for field in needed:
        if field in read.problems:
            raise ValueError(f"{field}: {read.problems[field]}")
    if (first := read.first) is not None:
        for field, name in first.may_be.items():
            if field in needed:
                raise ValueError(f"{field}: is missing; {name!r} may be it: {first.way(field, name)}")
        for name in first.unread if fields else ():
            if not strongly(name):
                meant = meant_by(name)
                way = f"write {meant}=" if meant else f"there are {', '.join(FIELDS)}"
                raise TypeError(f"{name}: is no field of a sample; {way}")
    return read.sample


def _items_of(source: Iterable[object], reader: "RowReader") -> tuple[Iterable[tuple[int, object]], "RowReader"]:
    """The numbered items of a list, an iterator or a mapping with lists, and what reads them."""
    # Loaded when first used.
    from ragstone.sources.shapes import rows_of_columns

    kind = type(source).__name__
    if is_mapping(source):
        if (columns_and_names := rows_of_columns(source)) is not None:
            rows, names = columns_and_names
            return enumerate(rows, 1), reader.with_fields(names)
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
    return enumerate(source, 1), reader


def traces(
    source: Iterable[object] | str | PathLike[str],
    fields: Mapping[str, str] | None = None,
    *,
    retriever_tools: Collection[str] = (),
) -> Rows:
    """The rows of stored traces, lazily: a `Row` for each run of an app, a `BadLine` for each other trace.

    Spans are read as live runs are: question and answer of the outermost span, contexts of its searches, as far as the
    call that answered has read them. docs/traces.md has the forms. The id of a trace is its sample's id, and the name
    of its run stands in the metadata.

    Args:
        source: The path of a file of traces, or a list from a tool's client: runs, spans or traces, as mappings or
            objects.
        fields: The key by the sample's field, where a span's inputs or outputs have it under no known name. Dots lead
            inward.
        retriever_tools: Names of tools whose texts are contexts. A name that no tool has is a bad row at the end.

    Raises:
        SourceError: A file cannot be read, or none of its first 20 traces is a sample.
        TypeError: The source is no such thing.

    Example:
        >>> run = {"id": "1", "trace_id": "1", "run_type": "chain", "inputs": {"question": "Who wrote Emma?"}}
        >>> [row.sample.response for row in traces([{**run, "outputs": {"answer": "Jane Austen."}}])]
        ['Jane Austen.']
    """
    # Loaded when first used.
    from ragstone.sources.reader import RowReader

    reader = RowReader(fields, retriever_tools=checked("retriever_tools", retriever_tools, frozenset[str]))
    if isinstance(source, (str, PathLike)):
        return _rows_of_file(source, reader)
    items = (each if is_mapping(each) else fields_of(each) or each for each in source)
    return reader.trace_rows(enumerate(items, 1))


def _rows_of_file(name: str | PathLike[str], reader: "RowReader") -> Rows:
    path = os.path.expanduser(name)  # noqa: PTH111 - a text with NUL is no path, and is said below
    if _ADDRESS.match(path):
        raise SourceError(f"{path[:100]!r}: is an address; download it first, and pass the file's path")
    if path != "-" and not os.path.exists(path):  # noqa: PTH110
        raise SourceError(f"{path[:100]!r}: there is no such file; samples that are no file are a list, in Python")
    # Loaded when first used.
    from ragstone.sources.files import file_rows

    return file_rows(path, reader)
