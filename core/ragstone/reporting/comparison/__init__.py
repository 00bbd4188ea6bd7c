"""Which of two runs is better: the paired difference of two reports, and the page that shows it."""

from ragstone.reporting.comparison.comparison import Comparison, MetricComparison, NotComparableError, compare

__all__ = ["Comparison", "MetricComparison", "NotComparableError", "compare"]
