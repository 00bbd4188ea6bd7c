"""Scoring a data set: the runner, its journal and report, and which of two systems is better."""

from ragstone.batch.comparison import Comparison, MetricComparison, NotComparableError, compare
from ragstone.batch.estimation import Estimate, MetricEstimate, estimate
from ragstone.batch.evaluate import aevaluate, evaluate
from ragstone.batch.journal import Journal, JournalError
from ragstone.batch.provider import ProviderBatch
from ragstone.batch.report import MetricSummary, Report, ReportError, Result, Summary
from ragstone.batch.sources import BadLine, Row, SourceError, read_rows, rows_of

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
    "Report",
    "ReportError",
    "Result",
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
