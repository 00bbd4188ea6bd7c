"""Reports of what was scored: one report for batches and live traffic, statistics, comparisons, exports."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragstone.report.aggregates import MetricInfo as MetricInfo, MetricSummary as MetricSummary
    from ragstone.report.comparison import (
        Comparison as Comparison,
        MetricComparison as MetricComparison,
        NotComparableError as NotComparableError,
        compare as compare,
    )
    from ragstone.report.report import Report as Report
    from ragstone.results.tables import ResultsError as ResultsError
else:
    from ragstone._front_door import front_door

    __all__, __getattr__, __dir__ = front_door(
        __name__,
        {
            "ragstone.report.aggregates": "MetricInfo MetricSummary",
            "ragstone.report.comparison": "Comparison MetricComparison NotComparableError compare",
            "ragstone.report.report": "Report",
            "ragstone.results.tables": "ResultsError",
        },
    )
