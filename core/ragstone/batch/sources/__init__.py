"""What may be scored, wherever it comes from: lists, tables and files, each read as rows of one sample."""

from ragstone.batch.sources.rows import read_rows
from ragstone.batch.sources.samples import SourceError
from ragstone.batch.sources.source import rows_of
from ragstone.sample import BadLine, Row

__all__ = ["BadLine", "Row", "SourceError", "read_rows", "rows_of"]
