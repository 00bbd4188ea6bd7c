"""Scoring a data set: the runner, its journal and report, and which of two systems is better."""

from ragstone.batch.estimation import Estimate, MetricEstimate, estimate
from ragstone.batch.evaluate import aevaluate, evaluate
from ragstone.batch.provider import ProviderBatch
from ragstone.reporting.batch import MetricSummary, Record, Report, ReportError, Summary
from ragstone.reporting.comparison import Comparison, MetricComparison, NotComparableError, compare
from ragstone.sources import BadLine, Row, SourceError, read_rows, rows_of
from ragstone.store.journal import Journal, JournalError

__all__ = [
    "BadLine",
    "Comparison",
    "Estimate",
    "Journal",
    "JournalError",
    "MetricComparison",
    "MetricEstimate",
    "MetricSummary",
    "NotComparableError",
    "ProviderBatch",
    "Record",
    "Report",
    "ReportError",
    "Row",
    "SourceError",
    "Summary",
    "aevaluate",
    "compare",
    "estimate",
    "evaluate",
    "read_rows",
    "rows_of",
]
