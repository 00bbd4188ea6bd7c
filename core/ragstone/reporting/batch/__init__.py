"""What came out of a run: its results, the statistics of them, and the forms in which they are shown and kept."""

from ragstone.reporting.batch.file import ReportError
from ragstone.reporting.batch.report import Report
from ragstone.reporting.batch.summary import Summary
from ragstone.reporting.batch.tally import MetricSummary
from ragstone.store.record import Record

__all__ = ["MetricSummary", "Record", "Report", "ReportError", "Summary"]
