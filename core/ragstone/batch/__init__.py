"""Scoring a data set: the runner, its journal and report, and which of two systems is better."""

from typing import TYPE_CHECKING

# Not by the front door: the module `evaluate` has this name, too.
from ragstone.batch.evaluate import aevaluate as aevaluate, evaluate as evaluate

if TYPE_CHECKING:
    from ragstone.batch.estimation import (
        Estimate as Estimate,
        MetricEstimate as MetricEstimate,
        estimate as estimate,
    )
    from ragstone.batch.run import Interrupted as Interrupted
    from ragstone.batch.journal import Journal as Journal
    from ragstone.batch.scorer import Scorer as Scorer
    from ragstone.errors import JournalError as JournalError
    from ragstone.report import (
        Comparison as Comparison,
        MetricComparison as MetricComparison,
        MetricInfo as MetricInfo,
        MetricSummary as MetricSummary,
        NotComparableError as NotComparableError,
        Report as Report,
        ResultsError as ResultsError,
        compare as compare,
    )
    from ragstone.results.record import Record as Record
    from ragstone.sample import BadLine as BadLine, Row as Row
    from ragstone.sources.base import SourceError as SourceError
    from ragstone.sources.rows import rows_of as rows_of
else:
    from ragstone._front_door import front_door

    __all__, __getattr__, __dir__ = front_door(
        __name__,
        {
            "ragstone.batch.estimation": "Estimate MetricEstimate estimate",
            "ragstone.batch.evaluate": "aevaluate evaluate",
            "ragstone.batch.run": "Interrupted",
            "ragstone.batch.journal": "Journal",
            "ragstone.errors": "JournalError",
            "ragstone.batch.scorer": "Scorer",
            "ragstone.report": "Comparison MetricComparison MetricInfo MetricSummary NotComparableError Report "
            "ResultsError compare",
            "ragstone.results.record": "Record",
            "ragstone.sample": "BadLine Row",
            "ragstone.sources.base": "SourceError",
            "ragstone.sources.rows": "rows_of",
        },
    )
