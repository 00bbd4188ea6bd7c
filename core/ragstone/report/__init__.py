"""What was scored, shown: one report for batches and live traffic, statistics, comparisons, exports."""

from ragstone.report.aggregates import MetricInfo, MetricSummary
from ragstone.report.comparison import Comparison, MetricComparison, NotComparableError, compare
from ragstone.report.report import Report, report_page
from ragstone.results.read import ResultsError

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
