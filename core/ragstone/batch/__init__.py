"""Scoring many samples: reading rows, streaming them through metrics, adding up."""

from ragstone.batch.rows import BadLine, Row, read_rows
from ragstone.batch.stream import Scored, stream
from ragstone.batch.summary import Summary

__all__ = ["BadLine", "Row", "Scored", "Summary", "read_rows", "stream"]
