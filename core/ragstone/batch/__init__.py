"""Scoring a data set: the runner, its journal and report, and which of two systems is better."""

from ragstone.batch.estimation import Estimate, MetricEstimate, estimate
from ragstone.batch.evaluate import Interrupted, RunOptions, aevaluate, evaluate
from ragstone.batch.journal import Journal, JournalError
from ragstone.report import (
    Comparison,
    MetricComparison,
    MetricInfo,
    MetricSummary,
    NotComparableError,
    Report,
    ResultsError,
    compare,
)
from ragstone.results.record import Record
from ragstone.sources import BadLine, Row, SourceError, rows_of

__all__ = [
    "BadLine",
    "Comparison",
    "Estimate",
    "Interrupted",
    "Journal",
    "JournalError",
    "MetricComparison",
    "MetricEstimate",
    "MetricInfo",
    "MetricSummary",
    "NotComparableError",
    "Record",
    "Report",
    "ResultsError",
    "Row",
    "RunOptions",
    "SourceError",
    "aevaluate",
    "compare",
    "estimate",
    "evaluate",
    "rows_of",
]
