"""Rows of samples, wherever they come from: lists, generators, tables and files."""

from ragstone.sample import BadLine, Row
from ragstone.sources.rows import SAMPLE_FIELDS, SourceError, read_rows
from ragstone.sources.source import Source, rows_of

__all__ = ["SAMPLE_FIELDS", "BadLine", "Row", "Source", "SourceError", "read_rows", "rows_of"]
