"""What was scored, shown: one report for batches and live traffic, statistics, comparisons, exports."""

from ragstone.reporting.aggregates import MetricInfo, MetricSummary
from ragstone.reporting.comparison import Comparison, MetricComparison, NotComparableError, compare
from ragstone.reporting.report import Report, report_page
from ragstone.store.results import ResultsError

__all__ = [
    "Comparison",
    "MetricComparison",
    "MetricInfo",
    "MetricSummary",
    "NotComparableError",
    "Report",
    "ResultsError",
    "compare",
    "report_page",
]
