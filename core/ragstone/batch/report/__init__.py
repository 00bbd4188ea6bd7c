"""What came out of a run: its results, the statistics of them, and the forms in which they are shown and kept."""

from ragstone.batch.report.file import ReportError
from ragstone.batch.report.report import Report
from ragstone.batch.report.result import Result
from ragstone.batch.report.summary import Summary
from ragstone.batch.report.tally import MetricSummary

__all__ = ["MetricSummary", "Report", "ReportError", "Result", "Summary"]
