"""Rows of Excel's workbooks, which openpyxl reads."""

import io
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from ragstone.sample import name_list
from ragstone.sources.base import Rows, SourceError
from ragstone.sources.passages import rows_from
from ragstone.sources.reader import RowReader

# What formulas that fail show.
_ERRORS = ("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A")
_Cells = Sequence[object]


def excel_rows(file: io.BufferedReader, reader: RowReader, name: str) -> Rows:
    """Yield the rows of the one sheet whose first line has names of a sample's fields; of formulas the values."""
    try:
        openpyxl = import_module("openpyxl")
    except ImportError:
        raise SourceError(
            f"{name}: reading Excel needs openpyxl: pip install openpyxl; or save the sheet as CSV"
        ) from None
    book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    tables = {sheet.title: _lines(sheet) for sheet in book.worksheets}
    heads = {title: _names(next(lines, ())) for title, lines in tables.items()}
    known = [title for title, names in heads.items() if reader.knows(names)]
    if len(known) > 1:
        raise SourceError(f"{name}: the sheets {name_list(known)} have samples; keep one of them, or save it as CSV")
    title = next((title for title, names in heads.items() if title in known or (names and not known)), None)
    if title is None:
        return
    names = heads[title]
    where = reader.columns(names, f"{name}, sheet {title!r}", all_of_them=True)
    columns = {column: names.index(column) for column in where}
    if len(tables) > 1:
        reader.part = f"sheet {title!r}"
    items = ({column: _text(cells, i) for column, i in columns.items()} for cells in tables[title])
    yield from rows_from(enumerate(items, 1), reader, table=True)


def _lines(sheet: Any) -> Iterator[_Cells]:  # noqa: ANN401 - openpyxl's
    """Yield the lines of a sheet that are not blank."""
    # Programs other than Excel may write a wrong size.
    sheet.reset_dimensions()
    for cells in sheet.iter_rows(values_only=True):
        if any(cell is not None for cell in cells):
            yield cells


def _names(cells: _Cells) -> list[str]:
    return ["" if cell is None else str(cell).strip() for cell in cells]


def _text(cells: _Cells, at: int) -> object:
    """A cell's text; a number as it would stand in CSV; None where it is empty or has no value."""
    cell = cells[at] if at < len(cells) else None
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        return str(cell)
    return None if cell in _ERRORS or cell == "" else cell
