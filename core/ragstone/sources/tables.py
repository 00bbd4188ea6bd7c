"""Tables of Arrow: files of Parquet and Arrow, and folders of Hugging Face, which pyarrow reads."""

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from ragstone.plain import as_dict, as_list, count
from ragstone.sample import name_list
from ragstone.sources.base import Rows, SourceError
from ragstone.sources.passages import rows_from
from ragstone.sources.reader import RowReader

# Rows of Parquet that are unpacked at a time.
_CHUNK = 16
# Only a text that says the same over and over is packed so densely.
_DENSEST = 1_000
SPLIT = "split it, or read it by rows_of(..., largest=...)"


def _pyarrow(name: str, module: str) -> Any:  # noqa: ANN401
    try:
        return import_module(f"pyarrow.{module}")
    except ImportError:
        raise SourceError(f"{name}: reading Parquet and Arrow needs pyarrow: pip install pyarrow") from None


def parquet_rows(file: io.BufferedReader, reader: RowReader, name: str) -> Rows:
    """Yield the rows of a file of Parquet, some at a time."""
    with _pyarrow(name, "parquet").ParquetFile(file) as table:
        columns = reader.columns(table.schema_arrow.names, name)
        _check_sizes(table.metadata, columns, reader.largest)
        items = arrow_items(table.iter_batches(batch_size=_CHUNK, columns=columns), columns, reader.largest)
        yield from rows_from(enumerate(items, 1), reader, table=True)


def _check_sizes(footer: Any, columns: Sequence[str], largest: int) -> None:  # noqa: ANN401 - pyarrow's
    """Refuse rows that are too large before they are unpacked."""
    for group in map(footer.row_group, range(footer.num_row_groups)):
        parts = [part for i in range(group.num_columns) if _root(part := group.column(i)) in columns]
        size = sum(part.total_uncompressed_size for part in parts)
        packed = sum(part.total_compressed_size for part in parts)
        rows = group.num_rows if size < _DENSEST * packed else 1
        if size > largest * rows:
            raise SourceError(
                f"{count(group.num_rows, 'row')} of {size:,} bytes in all, and one may have {largest:,}; {SPLIT}"
            )


def _root(part: Any) -> str:  # noqa: ANN401 - of pyarrow's footer
    return str(part.path_in_schema).partition(".")[0]


def folder_rows(path: Path, reader: RowReader) -> Rows:
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
        yield from arrow_rows([files.enter_context((path / name).open("rb")) for name in names], reader, str(path))


def arrow_rows(files: Sequence[io.BufferedReader], reader: RowReader, name: str) -> Rows:
    """Yield the rows of files or streams of Arrow."""
    ipc = _pyarrow(name, "ipc")

    def items() -> Iterator[object]:
        for file in files:
            is_stream = file.peek(6)[:6] != b"ARROW1"
            table = ipc.open_stream(file) if is_stream else ipc.open_file(file)
            batches = table if is_stream else map(table.get_batch, range(table.num_record_batches))
            yield from arrow_items(batches, reader.columns(table.schema.names, name), reader.largest)

    yield from rows_from(enumerate(items(), 1), reader, table=True)


def arrow_items(batches: Iterable[Any], columns: Sequence[str], largest: int) -> Iterator[object]:
    """Yield the rows of batches as mappings, each checked before it is read."""
    for batch in batches:
        wanted = batch.select(columns)
        # Reading a value of a damaged one may end the process.
        wanted.validate(full=True)
        for i in range(wanted.num_rows):
            row = wanted.slice(i, 1)
            if row.nbytes > largest:
                raise SourceError(f"a row is larger than {largest:,} bytes; {SPLIT}")
            yield from row.to_pylist()
